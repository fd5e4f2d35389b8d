"""The results of ratings: means by arm, losses of the updated texts, agreement of the raters.

Agreement is the share of pairs, Fleiss' kappa and Krippendorff's alpha, with bootstrap intervals.
Each is computed from sums over items, so a resample of the items is one product.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from math import hypot, nan
from typing import Final

import numpy as np

from coreeval.evaluation.annotation.compared_ratings import (
    ComparedRatings,
    Ratings,
    compare_ratings,
    list_given,
)
from coreeval.evaluation.annotation.criteria import (
    LABEL_STUDY,
    Criterion,
    Level,
    RatedText,
    StudyDesign,
)
from coreeval.evaluation.annotation.rating_study import RATED_ARMS, KeyItem, StudyKey
from coreeval.evaluation.annotation.ratings import (
    Annotation,
    CriterionResult,
    Disagreement,
    ItemRatings,
    Rater,
    RatingCollection,
    RatingDifference,
    Reliability,
    SheetRow,
    collect_ratings,
)
from coreeval.evaluation.label_scores import expand_interval
from coreeval.evaluation.scores import DRAWS, NO_SCORE, Score
from coreeval.evaluation.statistics import Array, bootstrap_sums, wilson_interval
from coreeval.tools.text import join_fields

Statistic = Callable[[Array], Array]
"""A function from sums of shape (draws, columns) to one value per draw; nan if undefined."""
_SETTLED: Final = 1e-12
"""An expected disagreement below this counts as 0: sums of floats differ in the last bits."""


RARE: Final = 5
"""The fewest items with a rating other than the most common one for an interval. With two of 20, it
contained the truth in 0.68 to 0.75 of simulated studies; see docs/annotation.md."""


def count_values(ratings: Ratings, values: Sequence[int]) -> Array:
    """Return the number of raters that gave each value, of shape (items, values)."""
    rows = [[list(by.values()).count(value) for value in values] for by in ratings.values()]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(values))


def measure_agreement(ratings: Ratings, values: Sequence[int]) -> Score:
    """Return the share of pairs of raters that agree, averaged over items with two or more ratings.

    The interval is Wilson's with one trial per item: no item's share can vary more than a trial.
    """
    counts = _pair_mask(count_values(ratings, values))
    return average_shares([float(each) for each in _same(counts)])


def average_shares(shares: Sequence[float]) -> Score:
    """Return the mean of shares from 0 to 1 with Wilson's interval, counting each as one trial."""
    n = len(shares)
    if not n:
        return NO_SCORE
    mean = sum(shares) / n
    low, high = wilson_interval(mean, n)
    return Score(estimate=mean, ci_low=low, ci_high=high, n=n)


def measure_fleiss_kappa(
    ratings: Ratings, values: Sequence[int], *, raters: int, seed: int, draws: int = DRAWS
) -> Score:
    """Return Fleiss' kappa over the items that all raters rated (Fleiss 1971, equations 1 to 7)."""
    counts = count_values(ratings, values)
    counts = counts[counts.sum(axis=1) == raters]
    if raters < 2:
        return NO_SCORE
    sums = np.column_stack([counts, _same(counts), np.ones(len(counts))])
    return _bootstrap_score(counts, sums, _kappa, seed, draws)


def measure_krippendorff_alpha(
    ratings: Ratings, values: Sequence[int], level: Level, *, seed: int, draws: int = DRAWS
) -> Score:
    """Return alpha over all items with two or more ratings (Krippendorff 2019, chapter 12)."""
    counts = _pair_mask(count_values(ratings, values))
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(len(values))
    weight = counts.sum(axis=1) - 1
    sums = (pairs / weight[:, None, None]).reshape(len(counts), len(values) ** 2)
    return _bootstrap_score(
        counts, sums, lambda total: _alpha(total, len(values), level), seed, draws
    )


def _pair_mask(counts: Array) -> Array:
    return np.asarray(counts[counts.sum(axis=1) >= 2])


def _same(counts: Array) -> Array:
    """Return the share of pairs of ratings with the same value, for each item."""
    n = counts.sum(axis=1)
    return np.asarray((counts * (counts - 1)).sum(axis=1) / (n * (n - 1)))


def _kappa(total: Array) -> Array:
    shares = total[:, :-2] / total[:, :-2].sum(axis=1, keepdims=True)
    seen, expected = total[:, -2] / total[:, -1], (shares**2).sum(axis=1)
    return _over(seen - expected, 1 - expected)


def _alpha(total: Array, values: int, level: Level) -> Array:
    """Return 1 - (n - 1) sum(o delta) / sum(n n delta) for coincidence matrices o, one per row."""
    matrix = total.reshape(-1, values, values)
    margins = matrix.sum(axis=2)
    apart = _apart(margins, level)
    n = margins.sum(axis=1)
    seen = (n - 1) * (matrix * apart).sum(axis=(1, 2))
    expected = (margins[:, :, None] * margins[:, None, :] * apart).sum(axis=(1, 2))
    return _over(expected - seen, expected)


def _apart(margins: Array, level: Level) -> Array:
    """Return the squared difference between every two values, of shape (draws, values, values).

    For ordinal values it is the difference of their mid-ranks: all ratings between the two values
    and half of the ratings with either value.
    """
    if level == "nominal":
        return np.broadcast_to(1 - np.eye(margins.shape[1]), (*margins.shape, margins.shape[1]))
    middle = np.cumsum(margins, axis=1) - margins / 2
    return np.asarray((middle[:, :, None] - middle[:, None, :]) ** 2)


def _over(above: Array, below: Array) -> Array:
    """Return the quotient, or nan if no disagreement is expected."""
    defined = np.abs(below) > _SETTLED
    return np.asarray(np.divide(above, below, out=np.full(len(below), np.nan), where=defined))


def _bootstrap_score(
    counts: Array, sums: Array, statistic: Statistic, seed: int, draws: int
) -> Score:
    """Return a statistic with its expanded percentile interval (see `expand_interval`).

    There is no interval if all raters agree, or if hardly any item has a rating other than the most
    common one: all resamples would agree, however few items there are.
    """
    n = len(sums)
    value = statistic(sums.sum(axis=0, keepdims=True)) if n else np.array([np.nan])
    if not np.isfinite(value[0]):
        return NO_SCORE.model_copy(update={"n": n})
    if value[0] > 1 - _SETTLED or count_uncommon(counts) < RARE:
        return Score(estimate=float(value[0]), ci_low=None, ci_high=None, n=n)
    drawn = statistic(bootstrap_sums(sums, draws, np.random.default_rng(seed)))
    return expand_interval(np.concatenate([value, drawn]), n)


def count_uncommon(counts: Array) -> int:
    """Return the number of items with a rating other than the most common one."""
    commonest = counts.sum(axis=0).argmax()
    return int(np.count_nonzero(counts.sum(axis=1) > counts[:, commonest]))


SKEW_SHARE: Final = 0.9
"""The share of one value from which a note warns that kappa and alpha are hard to read. Own choice:
Feinstein and Cicchetti (1990) show that they are low if one value prevails, but do not give a
share."""


def score_ratings(
    collected: RatingCollection,
    key: StudyKey,
    texts: Mapping[str, str],
    *,
    run: str,
    at: str,
    design: StudyDesign = LABEL_STUDY,
    draws: int = DRAWS,
) -> Annotation:
    """Return the results of a rating study.

    Args:
        collected: All ratings that count.
        key: The sample and arm of each item.
        texts: The texts by item, as the raters saw them.
        run: Name of the run.
        at: Time of scoring, ISO.
        design: The questions to the raters.
        draws: Number of bootstrap draws; the bootstrap starts from the key's seed.
    """
    return Annotation(
        study=key.study,
        made_of=key.made_of,
        run=run,
        scored_at=at,
        scale=key.scale,
        items=len(key.items),
        raters=tuple(_score_rater(name, collected) for name in collected.raters),
        criteria=tuple(_score_criterion(each, collected, key, draws) for each in design.criteria),
        disagreements=tuple(_list_disagreements(collected, key, texts, design)),
        remarks=collected.remarks,
        problems=collected.problems,
        ratings=tuple(_make_item_ratings(each, collected) for each in key.items),
        seed=key.seed,
        draws=draws,
    )


def score_part(
    found: Annotation, texts: Mapping[str, RatedText], design: StudyDesign
) -> Annotation | None:
    """Return the results of only some of the rated texts, by item; None if none of them is rated.

    Args:
        found: The results of the whole study.
        texts: The texts to keep.
        design: The questions to the raters.
    """
    kept = [each for each in found.ratings if each.item in texts]
    collected = collect_ratings(
        chain.from_iterable(map(_list_rows, kept)),
        [each.item for each in kept],
        design=design,
        texts=texts,
    )
    if not collected.raters:
        return None
    key = StudyKey(
        study=found.study,
        made_of=found.made_of,
        seed=found.seed,
        asked=len(kept),
        raters=collected.raters,
        scale=found.scale,
        items=tuple(KeyItem(**each.model_dump(exclude={"ratings"})) for each in kept),
    )
    return score_ratings(
        collected,
        key,
        {item: join_fields(text.fields) for item, text in texts.items()},
        run=found.run,
        at=found.scored_at,
        design=design,
        draws=found.draws,
    )


def _list_rows(one: ItemRatings) -> Iterator[SheetRow]:
    raters = dict.fromkeys(chain.from_iterable(one.ratings.values()))
    for rater in raters:
        cells: dict[str, str] = {
            name: str(by[rater]) for name, by in one.ratings.items() if rater in by
        }
        yield SheetRow(where="", item=one.item, rater=rater, cells=cells)


def _score_rater(name: str, collected: RatingCollection) -> Rater:
    given = {
        criterion: [by[name] for by in items.values() if name in by]
        for criterion, items in collected.ratings.items()
    }
    due = sum(len(items) for items in collected.ratings.values())
    count = sum(map(len, given.values()))
    means = {key: sum(some) / len(some) if some else None for key, some in given.items()}
    return Rater(name=name, ratings=count, missing=due - count, means=means)


def _make_item_ratings(one: KeyItem, collected: RatingCollection) -> ItemRatings:
    ratings = {name: list_given(name, one.item, collected) for name in collected.ratings}
    shown = one.model_dump(include={"item", "sample", "arm", "label", "text_sha256"})
    return ItemRatings(**shown, ratings=ratings)


def _score_criterion(
    criterion: Criterion, collected: RatingCollection, key: StudyKey, draws: int
) -> CriterionResult:
    ratings = collected.ratings[criterion.name]
    of_arm = {arm: [each.item for each in key.items if each.arm == arm] for arm in RATED_ARMS}
    told = Counter(chain.from_iterable(by.values() for by in ratings.values()))
    raters = len(collected.raters)
    means = {
        arm: _score_mean({item: ratings[item] for item in items}, criterion)
        for arm, items in of_arm.items()
        if items
    }
    compared = compare_ratings(criterion, collected)
    every = _measure_reliability(criterion, compared, raters, key.seed, draws)
    updated = compared.select(of_arm["updated"])
    return CriterionResult(
        criterion=criterion.name,
        level=criterion.level,
        values=criterion.values,
        ratings=told.total(),
        prevalence={value: told[value] / max(told.total(), 1) for value in criterion.values},
        arms=means,
        difference=_difference(means.get("updated", NO_SCORE), means.get("original", NO_SCORE)),
        reliability=every,
        of_updated=_measure_reliability(criterion, updated, raters, key.seed, draws),
        notes=tuple(_notes(compared, raters, every)),
    )


def _score_mean(ratings: Ratings, criterion: Criterion) -> Score:
    """Return the mean over items of their mean rating.

    The interval is Wilson's, of the mean as a share of the scale with one trial per item: ratings
    at the ends of the scale vary most, and the interval has a width even if all ratings are equal.
    It is about other texts rated by these raters.
    """
    low, span = criterion.values[0], criterion.values[-1] - criterion.values[0]
    found = average_shares(
        [(sum(by.values()) / len(by) - low) / span for by in ratings.values() if by]
    )
    if not found.n:
        return found
    mean, least, most = (low + span * each for each in _numbers(found))
    return Score(estimate=mean, ci_low=least, ci_high=most, n=found.n)


def _numbers(score: Score) -> tuple[float, float, float]:
    """Return an estimate and the ends of its interval, with nan for missing values."""
    parts = (score.estimate, score.ci_low, score.ci_high)
    number, low, high = (nan if part is None else part for part in parts)
    return number, low, high


def _difference(first: Score, second: Score) -> RatingDifference:
    """Return the first mean minus the second (interval: Newcombe 1998, method 10)."""
    n = (first.n, second.n)
    if not all(n):
        return RatingDifference(estimate=None, ci_low=None, ci_high=None, n=n)
    (one, one_low, one_high), (two, two_low, two_high) = _numbers(first), _numbers(second)
    return RatingDifference(
        estimate=one - two,
        ci_low=one - two - hypot(one - one_low, two_high - two),
        ci_high=one - two + hypot(one_high - one, two - two_low),
        n=n,
    )


def _measure_reliability(
    criterion: Criterion, compared: ComparedRatings, raters: int, seed: int, draws: int
) -> Reliability:
    ratings, values = compared.categories, compared.values
    items = sum(bool(by) for by in ratings.values())
    if raters < 2:
        return Reliability(items=items, agreement=NO_SCORE, kappa=NO_SCORE, alpha=NO_SCORE)
    said = sorted({each for by in compared.pairs.values() for each in by.values()})
    return Reliability(
        items=items,
        agreement=measure_agreement(compared.pairs, said),
        kappa=measure_fleiss_kappa(ratings, values, raters=raters, seed=seed, draws=draws),
        alpha=measure_krippendorff_alpha(ratings, values, criterion.level, seed=seed, draws=draws),
    )


def _notes(compared: ComparedRatings, raters: int, found: Reliability) -> Iterator[str]:
    """Yield notes for readers of kappa and alpha."""
    told = Counter(chain.from_iterable(by.values() for by in compared.categories.values()))
    if not told:
        yield "it has no ratings"
    elif raters < 2:
        yield "there is only one rater, so agreement cannot be measured"
    elif not found.agreement.n:
        yield "no text was rated by two raters, so agreement cannot be measured"
    else:
        value, count = told.most_common(1)[0]
        rare = count_uncommon(count_values(compared.categories, compared.values))
        name = compared.names.get(value, str(value))
        yield from _note_skew(name, count / told.total(), found, rare)


def _note_skew(value: str, share: float, found: Reliability, rare: int) -> Iterator[str]:
    """Yield notes on how a prevalent value affects kappa and alpha.

    `rare` texts have a different rating.
    """
    if share == 1:
        agree = "the raters agree, and " if found.agreement.estimate == 1 else ""
        yield f"all ratings are {value}: {agree}kappa and alpha are not defined"
        return
    if share >= SKEW_SHARE:
        yield (
            f"{share:.0%} of the ratings are {value}: raters would often agree by chance, so "
            "kappa and alpha can be low even if nearly all pairs agree"
        )
    if found.agreement.estimate == 1:
        yield "all raters agree on every text, so kappa and alpha have no interval"
    elif rare < RARE:
        texts = "text has" if rare == 1 else "texts have"
        yield f"{rare} {texts} a rating other than {value}: too few for an interval of agreement"


def _list_disagreements(
    collected: RatingCollection, key: StudyKey, texts: Mapping[str, str], design: StudyDesign
) -> Iterator[Disagreement]:
    compared = {each.name: compare_ratings(each, collected).pairs for each in design.criteria}
    found = [
        (spread, one, criterion.name)
        for one in key.items
        for criterion in design.criteria
        if (spread := _find_spread(criterion, [*compared[criterion.name][one.item].values()]))
    ]
    for _, one, name in sorted(found, key=lambda each: -each[0]):
        shown = one.model_dump(include={"item", "sample", "arm", "label"})
        ratings = list_given(name, one.item, collected)
        yield Disagreement(**shown, criterion=name, ratings=ratings, text=texts[one.item])


def _find_spread(criterion: Criterion, given: Sequence[int]) -> float:
    """Return the distance of an item's ratings: 0 if they are the same, 1 at most."""
    if len({*given}) < 2:
        return 0.0
    values = criterion.values
    scaled = criterion.form == "scale"
    return (max(given) - min(given)) / (values[-1] - values[0]) if scaled else 1.0
