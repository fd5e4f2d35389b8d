"""Compares the updated arm with the original: texts, evidence, and answers of reference models.

Every sample is paired with itself. Samples of one cluster are dependent: an interval's variance is
the sum of the squared influences of the clusters (as in `covariates`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from coreeval.errors import CoreEvalError
from coreeval.evaluation.answer_codes import AnswerCodes
from coreeval.evaluation.comparability.verdict import (
    ENGLISH_ONLY,
    LIMITS,
    OFTEN,
    SHARED,
    Comparability,
    Measure,
    choose_word,
    judge_measures,
)
from coreeval.evaluation.covariates import MATTERS, CovariateDifference, compare_values
from coreeval.evaluation.metrics.text import find_words
from coreeval.evaluation.scores import LEVEL, RANKED_ARMS, Score
from coreeval.evaluation.statistics import adjust_holm, ensure_width, wilson_interval
from coreeval.evaluation.text_measures import Floats, Ints, count_sentences, measure_texts
from coreeval.languages import ENGLISH
from coreeval.schema import Rung
from coreeval.tools.embeddings import Embedder
from coreeval.tools.gdelt.words import count_shared_keys

Fields = Mapping[str, str]
WEIGHTS: Final[Mapping[str, int]] = {"original": -1, "updated": 1}
READ_BY_MODEL: Final = ("rare_words", "oddness", "numbers", "capitals", "grade")
"""The measures of `text_measures` to compare; lengths have their own measures."""
EMBEDDED: Final = 100
"""The most samples (own choice): the value is then known to about 0.04, after some ten seconds."""
NO_SECOND: Final = "the task has only one text field"
NO_EMBEDDER: Final = "no embeddings are installed on this machine"
NO_REFERENCE: Final = (
    "no target has `role: reference`, and no embedded target without exposure was evaluated"
)
NO_ANSWERS: Final = "the reference models have not answered both arms"
NOT_ENGLISH: Final = "it applies to English texts only"
NO_EVIDENCE: Final = "no accepted sample cites any news"


class TextPair(NamedTuple):
    """The texts of one sample in both arms."""

    original: Fields
    updated: Fields
    cluster: str


class SampleEvidence(NamedTuple):
    """The evidence for the new facts of one accepted sample."""

    rung: Rung
    events: frozenset[str]
    """The cited events; empty if it cites nothing."""
    depth: str
    """The deepest text that was read of any event: headline, description or article."""
    cluster: str


class PairedAccuracy(NamedTuple):
    """The share of right answers for each sample in both arms, over reference models."""

    original: Floats
    updated: Floats
    units: Ints


@dataclass(frozen=True, kw_only=True)
class ArmPairs:
    """The data for the comparison of both arms."""

    texts: Sequence[TextPair]
    evidence: Sequence[SampleEvidence]
    """One item for each accepted sample."""
    accuracy: PairedAccuracy | None = None
    """The accuracies; None if no reference model answered both arms."""
    absent: Mapping[str, str] = field(default_factory=dict)
    """The reason why a measure is missing, by measure, if known."""
    language: str = ENGLISH
    """The language of the texts; measures for English are left out for other languages."""


def measure_comparability(pairs: ArmPairs, embed: Embedder | None = None) -> Comparability:
    """Compare the updated arm with the original and return the verdict.

    Args:
        pairs: The accepted samples; the texts may be a part of them.
        embed: The embedder of texts; None if this machine has none.
    """
    absent = dict(pairs.absent)
    if pairs.language != ENGLISH:
        absent |= dict.fromkeys(ENGLISH_ONLY, NOT_ENGLISH)
        embed = None
    measures = list[Measure]()
    if pairs.texts:
        measures += _length_measures(pairs.texts)
        measures += _adjust(_differences(pairs, absent))
        measures += _topic_measures(pairs.texts, embed, absent)
    measures += _evidence_measures(pairs.evidence, absent)
    places = list(LIMITS)
    measures.sort(key=lambda each: places.index(each.name))
    verdict, sentences, needed = judge_measures(measures if pairs.texts else ())
    return Comparability(
        verdict=verdict,
        sentences=sentences,
        samples=len(pairs.evidence),
        compared=len(pairs.texts),
        needed=needed,
        measures=tuple(measures),
        absent=absent,
        events=count_reuse(pairs.evidence),
        most_reused=max(count_events(pairs.evidence).values(), default=None),
        rungs=dict(Counter(each.rung for each in pairs.evidence)),
        depths=dict(Counter(each.depth for each in pairs.evidence if each.events)),
    )


# -- length -------------------------------------------------------------------------------------


def _length_measures(texts: Sequence[TextPair]) -> Iterator[Measure]:
    """Yield the ratio of words, over whole samples and by field, and the share of close ratios."""
    units = _number_clusters(each.cluster for each in texts)
    names = list(texts[0].original)
    for part in ("", *(names if len(names) > 1 else ())):
        before, after = (_word_counts(texts, arm, part) for arm in WEIGHTS)
        ratio = after / before
        yield _measure(
            "length_ratio",
            median_interval(ratio, units),
            part=part,
            means=(float(np.median(before)), float(np.median(after))),
        )
        if not part:
            close = (ratio >= SHARED[0]) & (ratio <= SHARED[1])
            yield _measure("length_share", share_interval(close.astype(np.float64), units))


def _word_counts(texts: Sequence[TextPair], arm: str, part: str) -> Floats:
    """Return the number of words of each sample in one arm, of one field or all; at least one."""
    fields: Iterable[Fields] = (getattr(each, arm) for each in texts)
    found = [len(find_words(each.get(part, "") if part else _join_fields(each))) for each in fields]
    return np.maximum(np.array(found, np.float64), 1.0)


def median_interval(values: Floats, units: Ints) -> Score:
    """Return a median with its interval (Woodruff 1952, JASA 47, 635-646).

    The ends are the quantiles at the ends of the interval of the share below the median, whose
    standard error is at least that of a half.
    """
    from scipy.special import stdtrit  # type: ignore[import-untyped]  # slow to import

    n, middle = len(values), float(np.median(values))
    below = (values < middle) + 0.5 * (values == middle)
    count = int(units.max(initial=-1)) + 1
    if count < 2:
        return Score(estimate=middle, ci_low=None, ci_high=None, n=n)
    pulls = np.bincount(units, (below - below.mean()) / n)
    error = max(float(np.sqrt((pulls**2).sum() * count / (count - 1))), 0.5 / np.sqrt(count))
    half = min(0.5, float(stdtrit(count - 1, (1 + LEVEL) / 2)) * error)
    low, high = np.quantile(values, [0.5 - half, 0.5 + half])
    return Score(estimate=middle, ci_low=float(low), ci_high=float(high), n=n)


def share_interval(hits: Floats, units: Ints) -> Score:
    """Return a share with Wilson's interval, for the effective number of samples.

    This is the number of samples divided by the design effect of the clusters (Kish 1965), which is
    at least 1.
    """
    n, share = len(hits), float(hits.mean())
    count = int(units.max(initial=-1)) + 1
    if count < 2:
        return Score(estimate=share, ci_low=None, ci_high=None, n=n)
    worth, spread = float(count), share * (1 - share)
    if spread:
        sums = np.bincount(units, (hits - share) / n)
        worth = n / max(1.0, float((sums**2).sum()) * count / (count - 1) / (spread / n))
    low, high = wilson_interval(share, worth)
    return Score(estimate=share, ci_low=low, ci_high=high, n=n)


# -- differences ----------------------------------------------------------------------------------


class _Difference(NamedTuple):
    """A difference of the arms, and the largest difference that counts as equivalent."""

    found: CovariateDifference
    margin: float


def _differences(pairs: ArmPairs, absent: dict[str, str]) -> Iterator[_Difference]:
    """Yield the values to compare as a difference of means of the same samples."""
    texts = pairs.texts
    units = _number_clusters(each.cluster for each in texts)
    for name, values in _text_values(texts, absent).items():
        found = compare_values(name, values, WEIGHTS, units)
        yield _Difference(found, MATTERS * pooled_deviation(values))
    if pairs.accuracy is None:
        absent.setdefault("difficulty", NO_REFERENCE)
        return
    values = {"original": pairs.accuracy.original, "updated": pairs.accuracy.updated}
    margin = LIMITS["difficulty"].high or 0.0
    found = compare_values("difficulty", values, WEIGHTS, pairs.accuracy.units)
    wide = _allow_one_answer(found.difference, pairs.accuracy.units)
    yield _Difference(found.model_copy(update={"difference": wide}), margin)


def _allow_one_answer(score: Score, units: Ints) -> Score:
    """Add the variance of one answer, 1 over n squared, to an interval of accuracies.

    If a few samples are all answered alike in both arms, they do not reflect a sample that is not
    (as in `label_scores`).
    """
    from scipy.special import stdtrit  # slow to import

    if score.estimate is None or score.ci_high is None:
        return score
    count = int(units.max(initial=0)) + 1
    one = float(stdtrit(max(1, count - 1), (1 + LEVEL) / 2)) / count
    half = float(np.hypot(score.ci_high - score.estimate, one))
    ends = {"ci_low": score.estimate - half, "ci_high": score.estimate + half}
    return score.model_copy(update=ends)


def _text_values(
    texts: Sequence[TextPair], absent: dict[str, str]
) -> dict[str, Mapping[str, Floats]]:
    """Return the values of the texts by measure, then by arm."""
    joined = {arm: [_join_fields(getattr(each, arm)) for each in texts] for arm in WEIGHTS}
    read = measure_texts(joined, [each.cluster for each in texts])
    found: dict[str, Mapping[str, Floats]] = {
        "sentences": {
            arm: np.array([_count_sentences(getattr(each, arm)) for each in texts], np.float64)
            for arm in WEIGHTS
        }
    }
    compared = (name for name in READ_BY_MODEL if name not in absent)
    found |= {name: {arm: read[arm][name] for arm in WEIGHTS} for name in compared}
    if len(texts[0].original) < 2:
        absent["field_overlap"] = NO_SECOND
        return found
    return found | {
        "field_overlap": {
            arm: np.array([share_words(getattr(each, arm)) for each in texts]) for arm in WEIGHTS
        }
    }


def share_words(fields: Fields) -> float:
    """Return the percentage of the second field's content words that are in the first field."""
    first, second, *_ = fields.values()
    both, asked = count_shared_keys(first, second)
    return 100 * both / asked if asked else 100.0


def pooled_deviation(values: Mapping[str, Floats]) -> float:
    """Return the standard deviation within the arms, or of all values if it is 0 within."""
    within = float(np.sqrt(np.mean([own.var() for own in values.values()])))
    return within or float(np.concatenate([*values.values()]).std())


def _adjust(differences: Iterable[_Difference]) -> Iterator[Measure]:
    """Yield a measure for each difference, with p-values adjusted over all of them."""
    every = list(differences)
    fair = adjust_holm([each.found.p_value for each in every])
    for (found, margin), p in zip(every, fair, strict=True):
        made = _measure(
            found.covariate,
            found.difference,
            limits=(0.0 - margin, margin),
            means=(found.means["original"], found.means["updated"]),
            p_adjusted=p,
        )
        yield made.model_copy(update={"effect": found.effect})


def average_accuracy(answers: Iterable[AnswerCodes]) -> PairedAccuracy | None:
    """Return the mean accuracy of several targets on each sample of both arms.

    A target counts for a sample with the templates that it answered in both arms. Return None if
    there is no such sample.
    """
    sums, number, units = None, None, None
    for coded in answers:
        views = coded.views(RANKED_ARMS)
        if views is None:
            continue
        table = coded.table
        counted = np.all([view.counted for view in views], axis=0)
        right = np.stack(
            [((table.said[:, view.ways] == table.due[:, None]) & counted).sum(1) for view in views]
        ) / np.maximum(counted.sum(1), 1)
        there = counted.any(axis=1)
        sums = right * there if sums is None else sums + right * there
        number = there.astype(int) if number is None else number + there
        units = np.arange(len(table.due)) if table.clusters is None else table.clusters
    if sums is None or number is None or units is None or not number.any():
        return None
    some = number > 0
    first, second = sums[:, some] / number[some]
    return PairedAccuracy(first, second, np.unique(units[some], return_inverse=True)[1])


# -- topic ----------------------------------------------------------------------------------------


def _topic_measures(
    texts: Sequence[TextPair], embed: Embedder | None, absent: dict[str, str]
) -> Iterator[Measure]:
    """Yield whether updated texts are closer to their own originals than to others."""
    some = texts[:EMBEDDED]
    if embed is None or len(some) < 2:
        absent.setdefault("topic", NO_EMBEDDER)
        return
    try:
        before, after = (
            _unit_vectors(embed, [_join_fields(getattr(each, arm)) for each in some])
            for arm in WEIGHTS
        )
    except CoreEvalError as error:
        absent["topic"] = str(error)
        return
    near = after @ before.T
    own = near.diagonal()[:, None]
    others = ~np.eye(len(some), dtype=np.bool_)
    closer = ((near < own) + 0.5 * (near == own))[others].reshape(len(some), -1).mean(axis=1)
    apart = 1 - (before @ before.T)[others]
    values = {"updated": closer}
    units = _number_clusters(each.cluster for each in some)
    found = compare_values("topic", values, {"updated": 1}, units).difference
    far = float(np.median(apart)), float(np.median(1 - own))
    yield _measure("topic", _within_one(found, units), means=far)


def _within_one(score: Score, units: Ints) -> Score:
    """Return a mean of shares with its interval within 0 and 1, or Wilson's if it has no width."""
    if score.estimate is None or score.ci_low is None or score.ci_high is None:
        return score
    count = int(units.max(initial=0)) + 1
    low, high = ensure_width(score.estimate, score.ci_low, score.ci_high, count)
    return score.model_copy(update={"ci_low": max(0.0, low), "ci_high": min(1.0, high)})


def _unit_vectors(embed: Embedder, texts: Sequence[str]) -> Floats:
    found = np.asarray(embed(texts), np.float64)
    return np.asarray(found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12))


# -- evidence -------------------------------------------------------------------------------------


def _evidence_measures(
    evidence: Sequence[SampleEvidence], absent: dict[str, str]
) -> Iterator[Measure]:
    """Yield measures of how the accepted samples got their news, and how often they share it."""
    some = [each for each in evidence if each.events]
    if not some:
        absent |= dict.fromkeys(("structure", "reuse", "headline_only"), NO_EVIDENCE)
        return
    units, uses = _number_clusters(each.cluster for each in some), count_events(some)
    flags: dict[str, list[bool]] = {
        "structure": [each.rung == "structure" for each in some],
        "reuse": [max(uses[event] for event in each.events) > OFTEN for each in some],
        "headline_only": [each.depth == "headline" for each in some],
    }
    for name, own in flags.items():
        yield _measure(name, share_interval(np.array(own, np.float64), units))


def count_events(evidence: Iterable[SampleEvidence]) -> Counter[str]:
    """Return the number of samples that use each event."""
    return Counter(event for each in evidence for event in each.events)


def count_reuse(evidence: Iterable[SampleEvidence]) -> dict[str, int]:
    """Return the number of events by the number of samples that use them."""
    found = Counter(count_events(evidence).values())
    return {str(samples): found[samples] for samples in sorted(found)}


# -- what all measures share ----------------------------------------------------------------------


def _measure(
    name: str,
    score: Score,
    *,
    part: str = "",
    limits: tuple[float, float] | None = None,
    means: tuple[float, float] | None = None,
    p_adjusted: float | None = None,
) -> Measure:
    """Return a measure with its word; `limits` is its range if `LIMITS` has none."""
    limit = LIMITS[name]
    low, high = limits or (limit.low, limit.high)
    before, after = means or (None, None)
    return Measure(
        name=name,
        part=part,
        original=before,
        updated=after,
        score=score,
        low=low,
        high=high,
        p_adjusted=p_adjusted,
        word=choose_word(score, low, high, p_adjusted),
        decides=limit.decides,
    )


def _join_fields(fields: Fields) -> str:
    return "\n".join(fields.values())


def _count_sentences(fields: Fields) -> int:
    return sum(map(count_sentences, fields.values()))


def _number_clusters(clusters: Iterable[str]) -> Ints:
    """Number the clusters from 0 and return the number of each sample's cluster."""
    places = dict[str, int]()
    return np.array([places.setdefault(each, len(places)) for each in clusters], np.int64)
