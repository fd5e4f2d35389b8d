"""A story without its texts, prompts and answers, to be shown to others."""

import hashlib
from collections.abc import Mapping
from typing import Any, TypeVar

from coreeval.schema import Evidence, ReplacedFact, Result, Sample, TrainEnd, Value, Verdict
from coreeval.tools.stores.run_queries import ListRow
from coreeval.tools.text import DiffPiece
from coreeval.viewer.story_values import ArmDiff, CallStory, Given, Said, SampleStory, StepStory

SHOWN: Mapping[type[Value], frozenset[str]] = {
    Sample: frozenset({"id", "split", "label_text"}),
    Result: frozenset(
        {"sample_id", "outcome", "rung", "semantic_status", "original_label", "kept_from"}
    ),
    TrainEnd: frozenset({"status"}),
    ReplacedFact: frozenset({"sample_id", "field", "evidence_id"}),
    Evidence: frozenset({"id", "url", "domain", "published_precision", "language", "origin"}),
    Verdict: frozenset({"name"}),
    StepStory: frozenset({"node"}),
    Given: frozenset({"source", "evidence"}),
    CallStory: frozenset(
        {"key", "role", "model", "prompt", "prompt_version", "parameters", "method",
         "model_returned", "finish_reason", "started_at"}
    ),
    Said: frozenset({"role"}),
    ArmDiff: frozenset({"before", "after", "field"}),
    DiffPiece: frozenset({"op"}),
    ListRow: frozenset(
        {"sample", "label", "outcome", "cause", "rung", "semantic_status", "kept_from", "ended_at"}
    ),
}  # fmt: skip
"""Of each kind of value the words that are names, dates or addresses; all others are texts."""
CODES = frozenset(
    {"decision", "mode", "modality", "policy", "route", "check", "kind", "rung", "type", "flag",
     "outcome", "field", "evidence", "evidence_id", "evidence_ids", "original_label",
     "semantic_status", "why_none", "supported", "defect"}
)  # fmt: skip
"""The same of what a step made."""
V = TypeVar("V", bound=Value)


def mark(text: str) -> str:
    """Return what stands for a text: its length and the beginning of its hash."""
    return f"[{len(text)} characters, sha256 {hashlib.sha256(text.encode()).hexdigest()[:12]}]"


def hidden(story: SampleStory) -> SampleStory:
    """Return the story with every text, prompt, answer and reason replaced by its mark."""
    return _hidden(story).model_copy(update={"hidden": True})


def hidden_row(row: ListRow) -> ListRow:
    """Return a row of a list without the excerpt and the reason."""
    return _hidden(row)


def _hidden(value: V) -> V:
    shown = SHOWN.get(type(value), frozenset())
    changed = {
        name: _without(getattr(value, name), CODES if name == "did" else frozenset())
        for name in type(value).model_fields
        if name not in shown
    }
    return value.model_copy(update=changed)


def _without(value: Any, codes: frozenset[str]) -> Any:  # noqa: ANN401 - any field of a value
    if isinstance(value, Value):
        return _hidden(value)
    if isinstance(value, str):
        return mark(value) if value else ""
    if isinstance(value, Mapping):
        return {
            name: inner if name in codes else _without(inner, codes)
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return type(value)(_without(inner, codes) for inner in value)
    return value
