"""Tests by log-probabilities whether a model has read originals but not their unread twins.

Membership scores mostly measure how two sets of texts differ: of 335 published findings, 199 were
right (arXiv 2606.03305). So originals are compared with their reworded twins, text by text, and the
difference must exceed two differences that reading cannot explain: between the control and the
updated texts, which differ in their news, and between the reworded and the control texts, which
differ by one more rewriting.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, get_args

import numpy as np

from coreeval.evaluation.scores import DRAWS, NO_SCORE, Score
from coreeval.evaluation.whitebox.membership_reference import (
    DECISIVE,
    ReferenceFinding,
    ReferenceScores,
    compare_terms,
)
from coreeval.evaluation.whitebox.membership_scores import (
    Method,
    TokenFrequencies,
    context_loss,
    dc_pdd,
    min_k,
    min_k_plus,
    zlib_ratio,
)
from coreeval.evaluation.whitebox.membership_terms import (
    TERMS,
    ItemScores,
    TermName,
    score_auc,
    score_term,
)
from coreeval.evaluation.whitebox.membership_texts import MembershipItem, list_texts
from coreeval.schema import Arm, Value
from coreeval.tools.formatting import format_quantity
from coreeval.tools.text_scores import TextScores

MembershipVerdict = Literal["member", "no_membership", "shifted", "no_control", "too_few"]
FEWEST: Final = 50
"""The fewest samples with both texts for a verdict (own choice: as for a contamination test)."""
FEWEST_CLUSTERS: Final = 10
"""The fewest clusters of samples for a verdict (own choice): with two, originals scored
significantly above their twins in 39 of 150 clean studies."""
CAVEAT: Final = (
    "this assumes that a text's first rewriting lowers its probability no more than a second one "
    "does; to test this assumption, score a model older than the benchmark"
)
_PAIRS: Final[tuple[tuple[Arm, Arm], ...]] = (("original", "semantic"), ("control", "updated"))
"""Pairs of arms for which the area under the curve is computed."""
_VERDICT_METHODS: Final[tuple[Method, ...]] = ("min_k_plus", "min_k")
"""The scores for the verdict; the first available one is used."""


class Discrimination(Value):
    """How often a text of the first arm scores higher than one of the second."""

    first: Arm
    second: Arm
    auc: Score
    """The area under the curve of the scores; 0.5 if they do not separate the arms."""


class MethodFinding(Value):
    """The results of one membership score."""

    method: Method
    means: dict[Arm, float]
    """The mean score of the texts of each arm."""
    terms: dict[TermName, Score]
    """Differences between arms on their common samples; see `TERM_DEFINITIONS`."""
    aucs: tuple[Discrimination, ...]
    confidence_drops: dict[Arm, float] | None = None
    """CoDeC's own score: the share of texts that context makes less probable, by arm."""


class Membership(Value):
    """The finding on one model."""

    verdict: MembershipVerdict
    reason: str
    samples: int
    """The number of samples with scores of the original and the reworded text."""
    method: Method
    """The score on which the verdict is based."""
    methods: tuple[MethodFinding, ...]
    left_out: int
    """The number of texts without scores."""
    caveat: str = ""
    """The condition under which the verdict holds."""
    notes: tuple[str, ...] = ()
    reference: ReferenceFinding | None = None
    """The comparison with a model that cannot have read the originals, if there was one."""


def judge_membership(
    items: Sequence[MembershipItem],
    scores: Mapping[str, TextScores],
    *,
    reference: ReferenceScores | None = None,
    draws: int = DRAWS,
) -> Membership:
    """Return the finding from the scores of a study.

    Args:
        items: The samples.
        scores: The scores of the texts by key; texts without scores are left out.
        reference: The scores of the same texts under a model that cannot have read the originals:
            the verdict `member` requires a larger difference than that model's.
        draws: The number of bootstrap draws, over samples, or over clusters if there are any.
    """
    values = measure_items(items, scores)
    other = measure_items(items, reference.scores) if reference else values
    names = [(item.cluster and f"cluster {item.cluster}") or f"sample {item.id}" for item in items]
    found = {method: table for method, table in values.items() if _has_pair(table)}
    methods = [_measure_method(method, table, names, draws) for method, table in found.items()]
    asked = [request.key for request in list_texts(items) if request.key.startswith("alone:")]
    left_out = sum(key not in scores for key in asked)
    usable = {each.method: each for each in methods if _has_pair(other[each.method])}
    chosen = next((usable[name] for name in _VERDICT_METHODS if name in usable), None)
    if chosen is None:
        reason = "no sample has scores for both its original and a twin"
        said = f"{reason} from the reference" if methods else reason
        return Membership(verdict="too_few", reason=said, samples=0, method="min_k",
                          methods=tuple(methods), left_out=left_out)  # fmt: skip
    compared = None
    if reference:
        terms = compare_terms(values[chosen.method], other[chosen.method], names, draws)
        without = sum(key not in reference.scores for key in asked)
        compared = ReferenceFinding(
            name=reference.name, revision=reference.revision, terms=terms, left_out=without
        )
    verdict, reason = _judge(chosen, values[chosen.method], names)
    if verdict == "member" and compared:
        shared = [
            {arm: value for arm, value in row.items() if arm in rest}
            for row, rest in zip(values[chosen.method], other[chosen.method], strict=True)
        ]
        clusters = _count_clusters(shared, names, ("original", "semantic", "control"))
        verdict, reason = _judge_reference(compared, clusters, reason)
    return Membership(
        verdict=verdict,
        reason=reason,
        samples=chosen.terms["wording"].n if "wording" in chosen.terms else 0,
        method=chosen.method,
        methods=tuple(methods),
        left_out=left_out,
        caveat=_say_condition(compared) if verdict == "member" else "",
        notes=tuple(_list_notes(chosen, compared, left_out, len(asked))),
        reference=compared,
    )


def _has_pair(table: Sequence[ItemScores]) -> bool:
    """Return whether a sample has scores of two texts."""
    return any(len(each) > 1 for each in table)


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
        name: score_term(table, names, weights, draws)
        for name, weights in TERMS.items()
        if set(weights) <= set(arms)
    }
    return MethodFinding(
        method=method,
        means={arm: float(np.mean([row[arm] for row in table if arm in row])) for arm in arms},
        terms=terms,
        aucs=tuple(
            Discrimination(
                first=first, second=second, auc=score_auc(table, names, first, second, draws)
            )
            for first, second in _PAIRS
            if {first, second} <= set(arms)
        ),
        confidence_drops=_count_drops(table, arms) if method == "codec" else None,
    )


def _count_drops(table: Sequence[ItemScores], arms: Sequence[Arm]) -> dict[Arm, float]:
    return {arm: float(np.mean([row[arm] > 0 for row in table if arm in row])) for arm in arms}


def _judge(
    found: MethodFinding, table: Sequence[ItemScores], names: Sequence[str]
) -> tuple[MembershipVerdict, str]:
    """Return the verdict and its reason."""
    wording = found.terms.get("wording", NO_SCORE)
    if wording.n < FEWEST:
        have = format_quantity(wording.n, "sample has", "samples have")
        return "too_few", f"{have} scores for both texts, but {FEWEST} are needed"
    both = [at for at, row in enumerate(table) if {"original", "semantic"} <= row.keys()]
    clusters = _count_clusters(table, names, ("original", "semantic"))
    if clusters < FEWEST_CLUSTERS:
        said = f"the samples are from {clusters} clusters, but {FEWEST_CLUSTERS} are needed"
        return "too_few", said
    if len({value for at in both for value in table[at].values()}) == 1:
        return "too_few", "the model gives every text the same score"
    said = f"originals score {_say(wording)} above their reworded twins"
    if not wording.is_positive:
        return "no_membership", said
    news = found.terms.get("beyond_news_shift", NO_SCORE)
    rewriting = found.terms.get("beyond_rewriting", NO_SCORE)
    if min(news.n, rewriting.n) < FEWEST:
        return "no_control", (
            f"{said}, a difference that rewording alone may explain: {min(news.n, rewriting.n)} "
            f"samples have a control text, but {FEWEST} are needed"
        )
    clusters = _count_clusters(table, names, get_args(Arm))
    if clusters < FEWEST_CLUSTERS:
        return "no_control", (
            f"{said}, a difference that rewording alone may explain: the samples with a control "
            f"text are from {clusters} clusters, but {FEWEST_CLUSTERS} are needed"
        )
    shifts = {"other news": news, "one rewriting": rewriting}
    alike = [name for name, each in shifts.items() if not each.is_positive]
    if alike:
        return "shifted", f"{said}, but {' and '.join(alike)} may shift scores by as much"
    return "member", (
        f"{said}, which exceeds the effect of other news by {_say(news)} and that of one rewriting "
        f"by {_say(rewriting)}"
    )


def _count_clusters(table: Sequence[ItemScores], names: Sequence[str], arms: Iterable[Arm]) -> int:
    """Return the number of clusters of the samples with a score in each of these arms."""
    needed = {*arms}
    return len({name for row, name in zip(table, names, strict=True) if needed <= row.keys()})


def _judge_reference(
    found: ReferenceFinding, clusters: int, said: str
) -> tuple[MembershipVerdict, str]:
    """Return the verdict and its reason if the model's scores alone would give `member`."""
    number = min(found.find_difference(term).n for term in DECISIVE)
    if number < FEWEST:
        return "too_few", (
            f"{said}; only {format_quantity(number, 'sample')} can be compared with the reference, "
            f"but {FEWEST} are needed"
        )
    if clusters < FEWEST_CLUSTERS:
        return "too_few", (
            f"{said}; the samples that can be compared with the reference are from {clusters} "
            f"clusters, but {FEWEST_CLUSTERS} are needed"
        )
    more = _say_more(found)
    if not all(found.find_difference(term).is_positive for term in DECISIVE):
        return "shifted", f"{said}, but the reference may show the same difference: {more}"
    return "member", f"{said}; {more}"


def _say_more(found: ReferenceFinding) -> str:
    wording, rewriting = (_say(found.find_difference(term)) for term in DECISIVE)
    return (
        "beyond the reference, the model scores originals above their twins by "
        f"{wording} standard deviations, and by {rewriting} after the effect of one rewriting is "
        "subtracted"
    )


def _say_condition(found: ReferenceFinding | None) -> str:
    """Return the condition under which a verdict of membership holds."""
    if found is None:
        return CAVEAT
    own = _say(found.terms["wording"].reference)
    return (
        f"the reference scores originals above their twins by {own} standard deviations; "
        f"{_say_more(found)}; this assumes that the reference "
        "has not read the originals, and that a first rewriting lowers the scores of both models "
        "by equally many standard deviations"
    )


def _say(found: Score) -> str:
    if found.estimate is None or found.ci_low is None or found.ci_high is None:
        return "an unknown amount"
    return f"{found.estimate:.3f} ({found.ci_low:.3f} to {found.ci_high:.3f})"


def _list_notes(
    found: MethodFinding, compared: ReferenceFinding | None, left_out: int, asked: int
) -> Iterable[str]:
    if "news_shift" not in found.terms:
        yield (
            "the run has no control arm (run.control_window), so it is unclear whether "
            "differences from the twins are due to memory or to rewriting"
        )
    if left_out:
        yield (
            f"{left_out} of {asked} texts were not scored, because they are too long or have fewer "
            "than two tokens"
        )
    if compared and compared.left_out:
        yield f"{compared.left_out} of {asked} texts were not scored by the reference"
    if compared and not compared.terms:
        yield (
            "differences are not compared with the reference, because too few samples have scores "
            "from both models"
        )
    if found.method != "min_k_plus":
        yield "Min-K%++ is not available without weights, so the verdict uses Min-K%"
