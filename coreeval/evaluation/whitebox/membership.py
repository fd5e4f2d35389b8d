"""Whether originals look read to a model, and their unread twins do not: by log-probabilities.

Membership scores mostly measure how two sets of texts differ: of 335 published findings of them 199
were right (arXiv 2606.03305). So originals are compared with their reworded twins, text by text,
and the difference must exceed both differences that nobody's reading explains: between the
control and the updated texts, which differ in their news, and between the reworded and the control
texts, which differ by one rewriting more.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import nsmallest
from random import Random
from typing import Final, Literal, NamedTuple, get_args

import numpy as np

from coreeval.errors import DatasetError
from coreeval.evaluation.label_scores import expand_interval
from coreeval.evaluation.scores import DRAWS, NO_SCORE, Score
from coreeval.evaluation.statistics import Array, cluster_sums
from coreeval.evaluation.whitebox.membership_scores import (
    Method,
    TokenFrequencies,
    context_loss,
    dc_pdd,
    min_k,
    min_k_plus,
    zlib_ratio,
)
from coreeval.schema import Arm, Value
from coreeval.tools.text_scores import TextScores

MembershipVerdict = Literal["member", "no_membership", "shifted", "no_control", "too_few"]
TermName = Literal[
    "wording", "facts", "news_shift", "rewriting", "beyond_news_shift", "beyond_rewriting"
]
FEWEST: Final = 50
"""Fewest samples with both texts from which a verdict is given (own choice: as for a contamination
test)."""
FEWEST_CLUSTERS: Final = 10
"""Fewest clusters of samples from which a verdict is given (own choice): with two, originals scored
surely above their twins in 39 of 150 clean studies."""
MOST_SAMPLES: Final = 300
"""Most samples that are scored (own choice)."""
CONTEXT_TEXTS: Final = 3
"""Other texts that stand before a text for CoDeC (own choice)."""
SEPARATOR: Final = "\n\n"
TERMS: Final[Mapping[TermName, Mapping[Arm, int]]] = {
    "wording": {"original": 1, "semantic": -1},
    "facts": {"original": 1, "updated": -1},
    "news_shift": {"control": 1, "updated": -1},
    "rewriting": {"semantic": 1, "control": -1},
    "beyond_news_shift": {"original": 1, "semantic": -1, "control": -1, "updated": 1},
    "beyond_rewriting": {"original": 1, "semantic": -2, "control": 1},
}
"""What each term adds up: the weight of a text's score in each arm."""
TERM_DEFINITIONS: Final[Mapping[TermName, str]] = {
    "wording": "original - reworded: what the published words are worth",
    "facts": "original - updated",
    "news_shift": "control - updated: what other news are worth, which nobody has read",
    "rewriting": "reworded - control: what one rewriting is worth",
    "beyond_news_shift": "wording - news_shift",
    "beyond_rewriting": "wording - rewriting",
}
CAVEAT: Final = (
    "it holds if a text's first rewriting costs it no more probability than a second one; a model "
    "older than the benchmark shows whether"
)
_PAIRS: Final[tuple[tuple[Arm, Arm], ...]] = (("original", "semantic"), ("control", "updated"))
"""The arms of which it is asked how well scores tell one from the other."""
_VERDICT_METHODS: Final[tuple[Method, ...]] = ("min_k_plus", "min_k")
"""The score that the verdict rests on: the first that there is."""


class MembershipSettings(Value):
    """What is scored."""

    samples: int = MOST_SAMPLES
    context: int = CONTEXT_TEXTS
    """Texts before each for CoDeC; 0 leaves it out."""


@dataclass(frozen=True, kw_only=True)
class MembershipItem:
    """A sample with its texts by arm."""

    id: str
    texts: Mapping[Arm, str]
    context: Sequence[str] = ()
    """The ids of the samples whose texts stand before it for CoDeC."""
    cluster: str = ""


class TextRequest(NamedTuple):
    """A text to score."""

    key: str
    text: str


class Discrimination(Value):
    """How often a text of the first arm scores higher than one of the second."""

    first: Arm
    second: Arm
    auc: Score
    """The area under the curve of the scores; 0.5 if they say nothing."""


class MethodFinding(Value):
    """What one membership score says of the arms."""

    method: Method
    means: dict[Arm, float]
    """The mean score of the texts of each arm."""
    terms: dict[TermName, Score]
    """Differences between arms on the samples that all of them have; see `TERM_DEFINITIONS`."""
    aucs: tuple[Discrimination, ...]
    confidence_drops: dict[Arm, float] | None = None
    """CoDeC's own score: the share of texts that context makes less probable, by arm."""


class Membership(Value):
    """The finding on one model."""

    verdict: MembershipVerdict
    reason: str
    samples: int
    """Samples whose original and reworded text were scored."""
    method: Method
    """The score that the verdict rests on."""
    methods: tuple[MethodFinding, ...]
    left_out: int
    """Texts without scores."""
    caveat: str = ""
    """The condition under which the verdict holds."""
    notes: tuple[str, ...] = ()


def choose_items(
    samples: Iterable[tuple[str, str, Mapping[Arm, str]]],
    settings: MembershipSettings,
    *,
    seed: int,
) -> list[MembershipItem]:
    """Return the samples whose texts are scored, drawn by seed and id; those with all arms first.

    Args:
        samples: The id, the cluster and the texts by arm of each sample.
        settings: How many are drawn, and how many texts stand before each for CoDeC.
        seed: The seed of the draw.

    Raises:
        DatasetError: no sample has both an original and a reworded text.
    """
    every = [
        MembershipItem(id=name, texts=some, cluster=cluster)
        for name, cluster, texts in samples
        if {"original", "semantic"}
        <= (some := {arm: text for arm, text in texts.items() if text.strip()}).keys()
    ]
    if not every:
        raise DatasetError(
            "no sample has an original and a reworded text",
            where="the run's arms",
            hint="refresh samples with a rewriter; membership is read off the difference of both",
        )

    def place(item: MembershipItem) -> tuple[bool, int, str]:
        return (
            len(item.texts) < len(get_args(Arm)),
            zlib.crc32(f"{seed} {item.id}".encode()),
            item.id,
        )

    drawn = nsmallest(settings.samples, every, key=place)
    return [_add_context(item, drawn, settings.context, seed) for item in drawn]


def _add_context(
    item: MembershipItem, drawn: Sequence[MembershipItem], number: int, seed: int
) -> MembershipItem:
    others = [
        other.id
        for other in drawn
        if other.id != item.id and item.texts.keys() <= other.texts.keys()
    ]
    some = Random(f"{seed} {item.id}").sample(others, min(number, len(others)))
    return MembershipItem(id=item.id, texts=item.texts, context=some, cluster=item.cluster)


def list_texts(items: Sequence[MembershipItem]) -> list[TextRequest]:
    """Return the texts to score: each by itself, and each after others of its arm for CoDeC."""
    texts = {item.id: item.texts for item in items}
    found = list[TextRequest]()
    for item in items:
        for arm, text in item.texts.items():
            found.append(TextRequest(f"alone:{arm}:{item.id}", text))
            if item.context:
                before = [texts[other][arm] for other in item.context]
                found.append(
                    TextRequest(f"context:{arm}:{item.id}", SEPARATOR.join([*before, text]))
                )
    return found


def judge_membership(
    items: Sequence[MembershipItem], scores: Mapping[str, TextScores], *, draws: int = DRAWS
) -> Membership:
    """Return what the scores of a study say.

    Args:
        items: The samples.
        scores: The scores of the texts by key; those without any are left out.
        draws: The number of bootstrap draws: over samples, or clusters where there are some.
    """
    values = measure_items(items, scores)
    names = [(item.cluster and f"cluster {item.cluster}") or f"sample {item.id}" for item in items]
    methods = [
        _measure_method(method, table, names, draws)
        for method, table in values.items()
        if any(len(each) > 1 for each in table)
    ]
    asked = [request.key for request in list_texts(items) if request.key.startswith("alone:")]
    left_out = sum(key not in scores for key in asked)
    chosen = next(
        (each for name in _VERDICT_METHODS for each in methods if each.method == name), None
    )
    if chosen is None:
        reason = "no sample has scores of its original and of a twin"
        return Membership(verdict="too_few", reason=reason, samples=0, method="min_k", methods=(),
                          left_out=left_out)  # fmt: skip
    verdict, reason = _judge(chosen, values[chosen.method], names)
    return Membership(
        verdict=verdict,
        reason=reason,
        samples=chosen.terms["wording"].n if "wording" in chosen.terms else 0,
        method=chosen.method,
        methods=tuple(methods),
        left_out=left_out,
        caveat=CAVEAT if verdict == "member" else "",
        notes=tuple(_list_notes(chosen, left_out, len(asked))),
    )


ItemScores = Mapping[Arm, float]


def measure_items(
    items: Sequence[MembershipItem], scores: Mapping[str, TextScores]
) -> dict[Method, list[ItemScores]]:
    """Return the scores of each sample by method and arm; an arm without a score is left out."""
    frequencies = TokenFrequencies(
        found.tokens for key, found in scores.items() if key.startswith("alone:")
    )
    table: dict[Method, list[ItemScores]] = {method: [] for method in get_args(Method)}
    for item in items:
        rows: dict[Method, dict[Arm, float]] = {method: {} for method in table}
        for arm, text in item.texts.items():
            alone = scores.get(f"alone:{arm}:{item.id}")
            if alone is None:
                continue
            within = scores.get(f"context:{arm}:{item.id}")
            measured: dict[Method, float | None] = {
                "min_k_plus": min_k_plus(alone),
                "min_k": min_k(alone),
                "dc_pdd": dc_pdd(alone, frequencies),
                "zlib": zlib_ratio(alone, text),
                "codec": context_loss(alone, within) if within else None,
            }
            for method, value in measured.items():
                if value is not None:
                    rows[method][arm] = value
        for method, row in rows.items():
            table[method].append(row)
    return table


def _measure_method(
    method: Method, table: Sequence[ItemScores], names: Sequence[str], draws: int
) -> MethodFinding:
    arms = [arm for arm in get_args(Arm) if any(arm in row for row in table)]
    terms = {
        name: _score_term(table, names, weights, draws)
        for name, weights in TERMS.items()
        if set(weights) <= set(arms)
    }
    return MethodFinding(
        method=method,
        means={arm: float(np.mean([row[arm] for row in table if arm in row])) for arm in arms},
        terms=terms,
        aucs=tuple(
            Discrimination(
                first=first, second=second, auc=_score_auc(table, names, first, second, draws)
            )
            for first, second in _PAIRS
            if {first, second} <= set(arms)
        ),
        confidence_drops=_count_drops(table, arms) if method == "codec" else None,
    )


def _count_drops(table: Sequence[ItemScores], arms: Sequence[Arm]) -> dict[Arm, float]:
    return {arm: float(np.mean([row[arm] > 0 for row in table if arm in row])) for arm in arms}


def _score_term(
    table: Sequence[ItemScores], names: Sequence[str], weights: Mapping[Arm, int], draws: int
) -> Score:
    """Return the mean of a difference over the samples that have all its arms."""
    both = [at for at, row in enumerate(table) if set(weights) <= set(row)]
    if not both:
        return NO_SCORE
    values = np.array(
        [sum(times * table[at][arm] for arm, times in weights.items()) for at in both]
    )
    rows = np.column_stack([values, np.ones(len(values))])
    sums = cluster_sums(rows, [names[at] for at in both])
    drawn = _draw_weights(len(sums), draws) @ sums
    return _make_score(float(values.mean()), drawn[:, 0] / drawn[:, 1], len(both), len(sums))


def _score_auc(
    table: Sequence[ItemScores], names: Sequence[str], first: Arm, second: Arm, draws: int
) -> Score:
    """Return the area under the curve (Mann and Whitney 1947: ties count half)."""
    both = [at for at, row in enumerate(table) if first in row and second in row]
    if not both:
        return NO_SCORE
    some, other = (np.array([table[at][arm] for at in both]) for arm in (first, second))
    higher = (some[:, None] > other) + 0.5 * (some[:, None] == other)
    known, unit = np.unique([names[at] for at in both], return_inverse=True)
    weights = _draw_weights(len(known), draws)[:, unit]
    drawn = np.einsum("di,ij,dj->d", weights, higher, weights, optimize=True)
    return _make_score(
        float(higher.mean()), drawn / weights.sum(axis=1) ** 2, len(both), len(known)
    )


@lru_cache(maxsize=4)
def _draw_weights(units: int, draws: int) -> Array:
    """Return how often each unit is drawn: the same for all terms, so that they stay paired."""
    chance = np.random.default_rng(0)
    return chance.multinomial(units, np.full(units, 1 / units), size=draws).astype(np.float64)


def _make_score(value: float, drawn: Array, n: int, units: int) -> Score:
    """Return a score with its expanded interval; one without width if all draws are equal."""
    if np.ptp(drawn) == 0 and units > 1:
        return Score(estimate=value, ci_low=value, ci_high=value, n=n)
    return expand_interval(np.concatenate([[value], drawn]), n, units=units)


def _judge(
    found: MethodFinding, table: Sequence[ItemScores], names: Sequence[str]
) -> tuple[MembershipVerdict, str]:
    """Return the verdict and its reason."""
    wording = found.terms.get("wording", NO_SCORE)
    if wording.n < FEWEST:
        return "too_few", f"{wording.n} samples have both texts scored, and {FEWEST} are needed"
    both = [at for at, row in enumerate(table) if {"original", "semantic"} <= row.keys()]
    clusters = len({names[at] for at in both})
    if clusters < FEWEST_CLUSTERS:
        said = f"the samples are of {clusters} clusters, and {FEWEST_CLUSTERS} are needed"
        return "too_few", said
    if len({value for at in both for value in table[at].values()}) == 1:
        return "too_few", "the model gives every text the same score"
    said = f"originals score {_say(wording)} above their reworded twins"
    if not _is_above(wording):
        return "no_membership", said
    news = found.terms.get("beyond_news_shift", NO_SCORE)
    rewriting = found.terms.get("beyond_rewriting", NO_SCORE)
    if min(news.n, rewriting.n) < FEWEST:
        return "no_control", (
            f"{said}, which rewording alone may explain: {min(news.n, rewriting.n)} samples have a "
            f"control text, and {FEWEST} are needed"
        )
    shifts = {"other news": news, "one rewriting": rewriting}
    alike = [name for name, each in shifts.items() if not _is_above(each)]
    if alike:
        return "shifted", f"{said}, and {' and '.join(alike)} may shift scores as much"
    return "member", (
        f"{said}: {_say(news)} more than other news shift scores, and {_say(rewriting)} more than "
        "one rewriting"
    )


def _is_above(found: Score) -> bool:
    return found.ci_low is not None and found.ci_low > 0


def _say(found: Score) -> str:
    if found.estimate is None or found.ci_low is None or found.ci_high is None:
        return "an unknown amount"
    return f"{found.estimate:.3f} ({found.ci_low:.3f} to {found.ci_high:.3f})"


def _list_notes(found: MethodFinding, left_out: int, asked: int) -> Iterable[str]:
    if "news_shift" not in found.terms:
        yield (
            "the run has no control arm: whether a difference to the twins is memory, or due to "
            "their being rewritten, cannot be told (run.control_window makes one)"
        )
    if left_out:
        yield f"{left_out} of {asked} texts were not scored: too long, or without two tokens"
    if found.method != "min_k_plus":
        yield "without weights there is no Min-K%++; the verdict rests on Min-K%"
