"""Definitions and sources of a report's numbers, and ten notable samples."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from coreeval.evaluation.detectors import PROBES, TARGET_DETECTORS
from coreeval.evaluation.grading import SCORING, define_scores
from coreeval.evaluation.scores import ARM_DEFINITIONS as OF_ARMS
from coreeval.schema import Outcome, Result, Rung, Sample, TaskKind, Value
from coreeval.tools.stores.run_figures import SampleRank
from coreeval.tools.stores.run_store import RunStore

_INTERVAL = "95 % interval"
SAMPLES: Final[Mapping[str, tuple[str, str]]] = {
    "accepted": (
        "accepted",
        "the share of all samples that are in the updated arm: they were rewritten, checked and "
        "judged. "
        f"{_INTERVAL}: Wilson (1927).",
    ),
    "balance_shift": (
        "shift of the label balance",
        "total variation distance between the labels of the benchmark and those of the updated "
        "arm: 0 if the labels are distributed in the same way, 1 if the two have no label in "
        "common.",
    ),
    "original_noise": (
        "originals labelled differently",
        "the share of the original texts to which a blind judge clearly gave another label.",
    ),
    "updated_noise": (
        "new texts rejected",
        "the share of the new texts, including retries, to which a blind judge did not give the "
        "sample's label.",
    ),
    "noise_bound": (
        "label-noise bound",
        "the largest share of accepted texts that may have a wrong label: r m / ((1 - m)(1 - r)). "
        "Here, m is the share of originals to which the judge gave another label, and r is the "
        "share of new texts that it rejected; both are the upper ends of their intervals. The "
        "bound holds if the judge errs on new texts no more often than it disagrees with "
        "originals.",
    ),
    "overlap": (
        "overlap with the originals",
        "the share of the word 5-grams of all accepted texts that also occur in their originals, "
        "including names and other words that must stay.",
    ),
    "coverage": (
        "evidence found",
        "the share of all samples for which news inside the window was found, even if "
        "it was not used.",
    ),
    "rung": (
        "rung",
        "how far the search had to be widened: from the names in the sample to other names for "
        "them, the topic, something of the same kind, and news with a similar structure.",
    ),
    "precision": (
        "precision of a date",
        "how certain the publication time of an article is; the least certain kind of time is "
        "the one at which GDELT saw the page.",
    ),
    "age": ("age", "days from the publication of an article to the end of the window."),
    "after_cutoff": (
        "after the cutoff",
        "samples whose evidence was all published after both the target's training cutoff and "
        "its release.",
    ),
}


def define_terms(kind: TaskKind) -> dict[str, tuple[str, str]]:
    """Return the name and definition of each term of the arms that depends on the kind of task."""
    told, scoring = define_scores(kind), SCORING[kind]
    return {
        "macro_f1": (scoring.score.name, f"{told['macro_f1']}."),
        "accuracy": (scoring.accuracy.name, f"{told['accuracy']}."),
        "no_label": (
            "refused, unparsed, cut off",
            f"refused: {told['refused']}; unparsed: {told['unparsed']}; cut off: "
            f"{told['truncated']}.",
        ),
        "ranking": ("order of targets", f"{told['ranking']}; {told['intervals']}."),
    }


_OF_LABELS: Final = define_terms("labels")
DETECTION: Final[Mapping[str, tuple[str, str]]] = {
    "alike": (
        "alike",
        "the arms are alike in a measure if its whole interval is within the given range "
        "(Schuirmann 1987). They differ if its value and its interval are outside the range. If "
        "the measure is a difference of means, they differ if it is outside the range and "
        "significant at 5 % after correction for all such differences (Holm 1979). Otherwise, more "
        "samples are needed.",
    ),
    "macro_f1": _OF_LABELS["macro_f1"],
    "accuracy": _OF_LABELS["accuracy"],
    "n": ("n", f"{OF_ARMS['n']}."),
    "no_label": _OF_LABELS["no_label"],
    "difference": ("difference of arms", f"{OF_ARMS['difference']}; in percentage points."),
    "ranking": _OF_LABELS["ranking"],
    "arm_interval": (f"{_INTERVAL} of a score", f"{OF_ARMS['intervals']}."),
    "lost": (
        "lost",
        "by how much accuracy falls from one arm to another, or the difference between two such "
        "falls, on the samples that all arms of the term share. Values above 0 are losses. 95 % "
        "interval: paired bootstrap over samples.",
    ),
    "beyond_noise": (
        "beyond label noise",
        "the loss that remains if the share of new texts with a wrong label is as large as the "
        "label-noise bound and each of these texts cost a right answer. The upper end of its "
        "interval is that of the loss.",
    ),
    "detectable": (
        "detectable loss",
        "the size of a true loss that would be detected in 80 % of such tests.",
    ),
    "covariate": (
        "property of the texts",
        "what can make a text harder regardless of its content: its length, how unusual it is to "
        "a neutral model, its readability, and its rare words, numbers and names.",
    ),
    "effect": (
        "effect",
        "the difference divided by the standard deviation of the texts. Arms differ if the effect "
        "is at least a quarter and significant at 5 % after correction for all rows (Holm 1979). "
        "Such differences cannot be adjusted for (What Works Clearinghouse, Standards Handbook "
        "5.0).",
    ),
    "flagged": (
        "flagged",
        "samples that the target seems to remember; on average, at most one in ten is a false "
        "positive (Benjamini and Hochberg 1995 over conformal p-values). No sample is flagged if "
        "a harder arm cannot be ruled out.",
    ),
    **{key: term for each in (*TARGET_DETECTORS, *PROBES) for key, term in each.terms.items()},
}
MONEY: Final[Mapping[str, tuple[str, str]]] = {
    "billed": (
        "billed",
        "calls that this run sent and paid for, at the prices known when it ran.",
    ),
    "found": (
        "found",
        "calls answered from the call store: an earlier run paid for them, or this run repeated "
        "them.",
    ),
    "unknown_usd": (
        "with an unknown outcome",
        "the maximum cost of requests with an unknown outcome; it is charged to the budget.",
    ),
    "fingerprint": (
        "fingerprint",
        "the sha256 of everything that determines the result; two runs with the same fingerprints "
        "sent the same requests.",
    ),
}
DEFINITIONS: Final[Mapping[str, tuple[str, str]]] = {**SAMPLES, **DETECTION, **MONEY}
"""The name of each number on the page, and its definition, by key."""


MOST = 10
EXCERPT: Final = 200
"""The most characters of a text to show, as for a snippet in the provenance."""
LOOSE: Final[tuple[Rung, ...]] = ("structure", "sibling", "concept")
"""Rungs of the knowledge ladder that are not about the subject of the text, the loosest first."""
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Hidden characters, and characters that reorder the text around them."""


class Highlight(Value):
    """A notable sample."""

    sample: str
    label: str
    outcome: Outcome
    why: str
    """A sentence that says why it is notable."""
    reason: str
    """The reason for its outcome; empty if it was accepted or the reason would quote the text."""
    original: str
    """The original text; empty for an unsafe sample, because reports are passed on."""
    shown: Literal["updated", "semantic", ""]
    """The arm of the other text; empty if it has none."""
    text: str


class _Measure(NamedTuple):
    """A measure by which samples stand out."""

    ranked: Callable[[RunStore], Sequence[SampleRank]]
    why: Callable[[SampleRank, Sample, Result], str]


def find_highlights(store: RunStore, targets: Sequence[str]) -> tuple[Highlight, ...]:
    """Return up to ten distinct samples, each notable in a different way."""
    taken: dict[str, Highlight] = {}
    for measure in _measures(targets):
        for standing in measure.ranked(store):
            if standing.sample_id not in taken and len(taken) < MOST:
                taken[standing.sample_id] = _make_highlight(store, standing, measure)
                break
    return tuple(taken.values())


def _measures(targets: Sequence[str]) -> Iterator[_Measure]:
    yield _Measure(
        lambda store: store.figures.lost_by_targets(targets),
        lambda at, *_: (
            f"{at.value} of {_count(len(targets), 'target')} got the original right and the "
            "updated text wrong, with every template"
        ),
    )
    yield _measure_attempts(
        "label_unrecoverable", lambda _, sample, result: _explain_misreading(sample, result)
    )
    for outcome, words in _REJECTED.items():
        yield _measure_attempts(outcome, _explain_attempts(words))
    yield _Measure(
        lambda store: _keep_outliers(store.figures.most_tried("accepted")),
        lambda at, *_: f"it was accepted only on attempt {at.value}",
    )
    yield _Measure(
        lambda store: store.figures.loosest_found(LOOSE),
        lambda _, __, result: (
            f"its news was found on the {result.rung} rung, not by names in the sample"
        ),
    )
    yield _Measure(
        lambda store: store.figures.oldest_cited(),
        lambda at, *_: f"it rests on the oldest evidence, from {str(at.value)[:10]}",
    )
    yield _Measure(
        lambda store: _keep_outliers(store.figures.most_replaced()),
        lambda at, *_: f"it has the most replaced facts ({at.value})",
    )
    yield _Measure(
        lambda store: store.figures.dearest(),
        lambda at, *_: f"it is the most expensive sample ({at.value:.4f} USD)",
    )
    yield _measure_attempts(
        "unsafe", lambda *_: "it was not rewritten, because it is too sensitive"
    )
    yield _measure_attempts("no_knowledge", lambda *_: "no news fits it")


_REJECTED: Final[Mapping[Outcome, str]] = {
    "rejected_label": "a blind judge did not give the new text the sample's label",
    "rejected_facts": "the news did not support the text",
    "rejected_form": "it was rejected for its form",
    "failed": "a step or a model call failed permanently",
}


def _keep_outliers(ranked: Sequence[SampleRank]) -> list[SampleRank]:
    """Drop samples with a value of 0 or 1, which do not stand out."""
    return [at for at in ranked if at.value not in (0, 1)]


def _measure_attempts(
    outcome: Outcome, why: Callable[[SampleRank, Sample, Result], str]
) -> _Measure:
    return _Measure(lambda store: store.figures.most_tried(outcome), why)


def _explain_attempts(words: str) -> Callable[[SampleRank, Sample, Result], str]:
    return lambda at, *_: f"after {_count(at.value, 'attempt')}, {words}" if at.value else words


def _explain_misreading(sample: Sample, result: Result) -> str:
    return (
        f"a blind judge labelled the original {result.original_label or 'something else'}, but its "
        f"label in the benchmark is {sample.label_text}; one of the two may be wrong"
    )


def _make_highlight(store: RunStore, standing: SampleRank, measure: _Measure) -> Highlight:
    sample, result = store.sample(standing.sample_id), store.result(standing.sample_id)
    assert result is not None, "rankings cover finished samples"
    shown, fields = _other_text(result)
    quiet = result.outcome == "unsafe"
    return Highlight(
        sample=sample.id,
        label=sample.label_text,
        outcome=result.outcome,
        why=measure.why(standing, sample, result),
        reason="" if quiet or result.outcome == "accepted" else _excerpt(result.reason),
        original="" if quiet else _excerpt(_join_fields(sample.fields)),
        shown=shown,
        text=_excerpt(_join_fields(fields)),
    )


def _other_text(
    result: Result,
) -> tuple[Literal["updated", "semantic", ""], Mapping[str, str]]:
    if result.outcome == "accepted" and result.updated:
        return "updated", result.updated
    if result.semantic_status == "reworded" and result.semantic and result.outcome != "unsafe":
        return "semantic", result.semantic
    return "", {}


def _join_fields(fields: Mapping[str, str]) -> str:
    return " / ".join(fields.values())


def _excerpt(text: str) -> str:
    """Return the start of a text on one line, with hidden and reordering characters marked."""
    plain = _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", " ".join(text[: 2 * EXCERPT].split()))
    cut = len(plain) > EXCERPT or len(text) > 2 * EXCERPT
    return f"{plain[: EXCERPT - 1]}…" if cut else plain


def _count(number: float | str, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"
