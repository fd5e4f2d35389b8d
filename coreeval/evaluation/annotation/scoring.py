"""What ratings show: means by arm, what the updated texts lose, how well the raters agree."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import hypot, nan
from typing import Final

from coreeval.evaluation.annotation.collecting import Collected
from coreeval.evaluation.annotation.drawing import ARMS
from coreeval.evaluation.annotation.guideline import CRITERIA, Criterion
from coreeval.evaluation.annotation.key import Key, KeyItem
from coreeval.evaluation.annotation.reliability import (
    RARE,
    Ratings,
    agreed,
    counts_of,
    fleiss,
    krippendorff,
    share_of,
    uncommon,
)
from coreeval.evaluation.annotation.results import (
    Annotation,
    Difference,
    Disagreement,
    Rated,
    RatedItem,
    Rater,
    Reliability,
)
from coreeval.evaluation.scoring.classification import DRAWS, NOTHING, Score

SKEWED: Final = 0.9
"""Share of one value from which kappa and alpha are told to be hard to read. Own choice: Feinstein
and Cicchetti (1990) show that they are low where one value prevails, and name no share."""


def score(
    collected: Collected,
    key: Key,
    texts: Mapping[str, str],
    *,
    run: str,
    at: str,
    draws: int = DRAWS,
) -> Annotation:
    """Return what ratings show.

    Args:
        collected: All ratings that count.
        key: What each item is.
        texts: By item, as the raters saw them.
        run: Name of the run.
        at: When they are scored, ISO.
        draws: Of the bootstrap, which starts from the key's seed.
    """
    return Annotation(
        study=key.study,
        made_of=key.made_of,
        run=run,
        scored_at=at,
        scale=key.scale,
        items=len(key.items),
        raters=tuple(_rater(name, collected) for name in collected.raters),
        criteria=tuple(_rated(each, collected, key, draws) for each in CRITERIA),
        disagreements=tuple(_disagreements(collected, key, texts)),
        remarks=collected.remarks,
        problems=collected.problems,
        ratings=tuple(_item(each, collected) for each in key.items),
        seed=key.seed,
        draws=draws,
    )


def _rater(name: str, collected: Collected) -> Rater:
    given = {
        criterion: [by[name] for by in items.values() if name in by]
        for criterion, items in collected.ratings.items()
    }
    due = sum(len(items) for items in collected.ratings.values())
    count = sum(map(len, given.values()))
    means = {key: sum(some) / len(some) if some else None for key, some in given.items()}
    return Rater(name=name, ratings=count, missing=due - count, means=means)


def _item(one: KeyItem, collected: Collected) -> RatedItem:
    ratings = {name: dict(items[one.item]) for name, items in collected.ratings.items()}
    shown = one.model_dump(include={"item", "sample", "arm", "label"})
    return RatedItem(**shown, ratings=ratings)


def _rated(criterion: Criterion, collected: Collected, key: Key, draws: int) -> Rated:
    ratings = collected.ratings[criterion.name]
    by_arm = {
        arm: {each.item: ratings[each.item] for each in key.items if each.arm == arm}
        for arm in ARMS
    }
    told = Counter(chain.from_iterable(by.values() for by in ratings.values()))
    raters = len(collected.raters)
    means = {arm: _mean(some, criterion) for arm, some in by_arm.items() if some}
    every = _reliability(criterion, ratings, raters, key.seed, draws)
    return Rated(
        criterion=criterion.name,
        level=criterion.level,
        values=criterion.values,
        ratings=told.total(),
        prevalence={value: told[value] / max(told.total(), 1) for value in criterion.values},
        arms=means,
        difference=_difference(means.get("updated", NOTHING), means.get("original", NOTHING)),
        reliability=every,
        of_updated=_reliability(criterion, by_arm["updated"], raters, key.seed, draws),
        notes=tuple(_notes(told, raters, every, uncommon(counts_of(ratings, criterion.values)))),
    )


def _mean(ratings: Ratings, criterion: Criterion) -> Score:
    """Return the mean over items of their mean rating.

    The interval is Wilson's of the mean as a share of the scale, each item one trial: no rating
    between the ends of a scale varies more than one of either end, and it keeps a width where all
    are the same. It is about other texts, rated by these raters.
    """
    low, span = criterion.values[0], criterion.values[-1] - criterion.values[0]
    found = share_of([(sum(by.values()) / len(by) - low) / span for by in ratings.values() if by])
    if not found.n:
        return found
    mean, least, most = (low + span * each for each in _numbers(found))
    return Score(estimate=mean, ci_low=least, ci_high=most, n=found.n)


def _numbers(score: Score) -> tuple[float, float, float]:
    """Return a number and the ends of its interval; nan for what there is not."""
    parts = (score.estimate, score.ci_low, score.ci_high)
    number, low, high = (nan if part is None else part for part in parts)
    return number, low, high


def _difference(first: Score, second: Score) -> Difference:
    """Return the first mean minus the second (interval: Newcombe 1998, method 10)."""
    n = (first.n, second.n)
    if not all(n):
        return Difference(estimate=None, ci_low=None, ci_high=None, n=n)
    (one, one_low, one_high), (two, two_low, two_high) = _numbers(first), _numbers(second)
    return Difference(
        estimate=one - two,
        ci_low=one - two - hypot(one - one_low, two_high - two),
        ci_high=one - two + hypot(one_high - one, two - two_low),
        n=n,
    )


def _reliability(
    criterion: Criterion, ratings: Ratings, raters: int, seed: int, draws: int
) -> Reliability:
    items = sum(bool(by) for by in ratings.values())
    if raters < 2:
        return Reliability(items=items, agreement=NOTHING, kappa=NOTHING, alpha=NOTHING)
    values = criterion.values
    return Reliability(
        items=items,
        agreement=agreed(ratings, values),
        kappa=fleiss(ratings, values, raters=raters, seed=seed, draws=draws),
        alpha=krippendorff(ratings, values, criterion.level, seed=seed, draws=draws),
    )


def _notes(told: Counter[int], raters: int, found: Reliability, rare: int) -> Iterator[str]:
    """Yield what a reader of kappa and alpha must know; `rare` items differ from the commonest."""
    if not told:
        yield "nobody has rated it"
    elif raters < 2:
        yield "one rater: there is a mean, and no agreement"
    elif not found.agreement.n:
        yield "no text was rated by two raters: there is no agreement"
    else:
        value, count = told.most_common(1)[0]
        yield from _skewed(value, count / told.total(), found, rare)


def _skewed(value: int, share: float, found: Reliability, rare: int) -> Iterator[str]:
    """Yield what a value that prevails does to kappa and alpha."""
    if share == 1:
        yield f"all ratings are {value}: the raters agree, and kappa and alpha are not defined"
        return
    if share >= SKEWED:
        yield (
            f"{share:.0%} of the ratings are {value}: by chance alone raters would agree often, so "
            "that kappa and alpha can be low where nearly all pairs agree"
        )
    if found.agreement.estimate == 1:
        yield "all raters say the same of every text, so that kappa and alpha have no interval"
    elif rare < RARE:
        yield f"{rare} texts have another rating than {value}: too few for an interval of agreement"


def _disagreements(
    collected: Collected, key: Key, texts: Mapping[str, str]
) -> Iterator[Disagreement]:
    spans = {each.name: each.values[-1] - each.values[0] for each in CRITERIA}
    found = [
        (spread / spans[name], one, name)
        for one in key.items
        for name, items in collected.ratings.items()
        if (spread := _range(list(items[one.item].values())))
    ]
    for _, one, name in sorted(found, key=lambda each: -each[0]):
        shown = one.model_dump(include={"item", "sample", "arm", "label"})
        ratings = dict(collected.ratings[name][one.item])
        yield Disagreement(**shown, criterion=name, ratings=ratings, text=texts[one.item])


def _range(values: Sequence[int]) -> int:
    return max(values) - min(values) if values else 0
