"""Ten samples worth a look: each stands out in one way, which is told in a sentence."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from coreeval.schema import Outcome, Result, Rung, Sample, Value
from coreeval.tools.stores.run_figures import SampleRank
from coreeval.tools.stores.run_store import RunStore

MOST = 10
EXCERPT: Final = 200
"""Characters of a text that are shown, as of a snippet in the provenance."""
LOOSE: Final[tuple[Rung, ...]] = ("structure", "sibling", "concept")
"""Rungs of the knowledge ladder that are not about what the text names, the loosest first."""
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that hide, or that reorder the text around them."""


class Highlight(Value):
    """A sample worth a look."""

    sample: str
    label: str
    outcome: Outcome
    why: str
    """A sentence: how it stands out."""
    reason: str
    """Why it ended as it did; empty where it was accepted, or where that would quote the text."""
    original: str
    """Empty for an unsafe sample: a report travels."""
    shown: Literal["updated", "semantic", ""]
    """Which other text is shown; empty where it has none."""
    text: str


class _Measure(NamedTuple):
    """A way to stand out."""

    ranked: Callable[[RunStore], Sequence[SampleRank]]
    why: Callable[[SampleRank, Sample, Result], str]


def find_highlights(store: RunStore, targets: Sequence[str]) -> tuple[Highlight, ...]:
    """Return up to ten samples, no two in the same way and none twice."""
    taken: dict[str, Highlight] = {}
    for measure in _measures(targets):
        for standing in measure.ranked(store):
            if standing.sample_id not in taken and len(taken) < MOST:
                taken[standing.sample_id] = _make_highlight(store, standing, measure)
                break
    return tuple(taken.values())


def _measures(targets: Sequence[str]) -> Iterator[_Measure]:
    yield _Measure(
        lambda store: store.lost_by_targets(targets),
        lambda at, *_: (
            f"{_count(at.value, 'target')} of {len(targets)} got the original right and "
            "the updated text wrong, with every template"
        ),
    )
    yield _measure_attempts(
        "label_unrecoverable", lambda _, sample, result: _explain_misreading(sample, result)
    )
    for outcome, words in _REJECTED.items():
        yield _measure_attempts(outcome, _explain_attempts(words))
    yield _Measure(
        lambda store: _keep_outliers(store.most_tried("accepted")),
        lambda at, *_: f"accepted only at attempt {at.value}",
    )
    yield _Measure(
        lambda store: store.loosest_found(LOOSE),
        lambda _, __, result: f"its news was found by the rung {result.rung}, not by what it names",
    )
    yield _Measure(
        lambda store: store.oldest_cited(),
        lambda at, *_: f"it rests on the oldest evidence, of {str(at.value)[:10]}",
    )
    yield _Measure(
        lambda store: _keep_outliers(store.most_replaced()),
        lambda at, *_: f"the most replaced facts of one sample: {at.value}",
    )
    yield _Measure(
        lambda store: store.dearest(), lambda at, *_: f"the dearest sample: {at.value:.4f} USD"
    )
    yield _measure_attempts("unsafe", lambda *_: "left alone as too sensitive to rewrite")
    yield _measure_attempts("no_knowledge", lambda *_: "no news fitted it")


_REJECTED: Final[Mapping[Outcome, str]] = {
    "rejected_label": "a blind judge no longer read its label",
    "rejected_facts": "the news did not carry what was written",
    "rejected_form": "it was refused for its form",
    "failed": "a step or a model call failed for good",
}


def _keep_outliers(ranked: Sequence[SampleRank]) -> list[SampleRank]:
    """Leave out what does not stand out."""
    return [at for at in ranked if at.value not in (0, 1)]


def _measure_attempts(
    outcome: Outcome, why: Callable[[SampleRank, Sample, Result], str]
) -> _Measure:
    return _Measure(lambda store: store.most_tried(outcome), why)


def _explain_attempts(words: str) -> Callable[[SampleRank, Sample, Result], str]:
    return lambda at, *_: f"{words}, after {_count(at.value, 'attempt')}" if at.value else words


def _explain_misreading(sample: Sample, result: Result) -> str:
    return (
        f"a blind judge read the original as {result.original_label or 'something else'}, the "
        f"benchmark says {sample.label_text}: who is right?"
    )


def _make_highlight(store: RunStore, standing: SampleRank, measure: _Measure) -> Highlight:
    sample, result = store.sample(standing.sample_id), store.result(standing.sample_id)
    assert result is not None, "rankings are of samples that ended"
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
    """Return the beginning of a text, on one line, with a mark for what hides or reorders."""
    plain = _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", " ".join(text[: 2 * EXCERPT].split()))
    cut = len(plain) > EXCERPT or len(text) > 2 * EXCERPT
    return f"{plain[: EXCERPT - 1]}…" if cut else plain


def _count(number: float | str, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"
