"""Replaces texts, prompts and answers by their lengths and hashes, so that others may look on.

Only fields that are listed here stay; a field that is new is hidden until it is listed.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, TypeVar

from coreeval.schema import Evidence, ReplacedFact, Result, Sample, TrainEnd, Value, Verdict
from coreeval.tools.stores.run_queries import ListRow
from coreeval.tools.text import DiffPiece
from coreeval.viewer.history import (
    ArmDiff,
    CallHistory,
    PromptMessage,
    SampleHistory,
    StepHistory,
    StepInput,
)

KEPT_FIELDS: Mapping[type[Value], frozenset[str]] = {
    Sample: frozenset({"id", "split", "label_text"}),
    Result: frozenset(
        {"sample_id", "outcome", "rung", "semantic_status", "original_label", "kept_from"}
    ),
    TrainEnd: frozenset({"status"}),
    ReplacedFact: frozenset({"sample_id", "field", "evidence_id"}),
    Evidence: frozenset({"id", "url", "domain", "published_precision", "language", "origin"}),
    Verdict: frozenset({"name"}),
    StepHistory: frozenset({"node"}),
    StepInput: frozenset({"source", "evidence"}),
    CallHistory: frozenset(
        {"key", "role", "model", "prompt", "prompt_version", "parameters", "method",
         "model_returned", "finish_reason", "started_at"}
    ),
    PromptMessage: frozenset({"role"}),
    ArmDiff: frozenset({"before", "after", "field"}),
    DiffPiece: frozenset({"op"}),
    ListRow: frozenset(
        {"sample", "label", "outcome", "cause", "rung", "semantic_status", "kept_from", "ended_at"}
    ),
}  # fmt: skip
"""Of each kind of value the words that are names, dates or addresses; all others are texts."""
KEPT_DETAILS = frozenset(
    {"decision", "mode", "modality", "policy", "route", "check", "kind", "rung", "type", "flag",
     "outcome", "field", "evidence", "evidence_id", "evidence_ids", "original_label",
     "semantic_status", "why_none", "supported", "defect"}
)  # fmt: skip
"""The same of what a step made."""
V = TypeVar("V", bound=Value)


def redact_text(text: str) -> str:
    """Return what stands for a text: its length and the beginning of its hash."""
    return f"[{len(text)} characters, sha256 {hashlib.sha256(text.encode()).hexdigest()[:12]}]"


def redact_history(history: SampleHistory) -> SampleHistory:
    """Return the history with every text, prompt, answer and reason replaced by its mark."""
    return _redact_value(history).model_copy(update={"hidden": True})


def redact_row(row: ListRow) -> ListRow:
    """Return a row of a list without the excerpt and the reason."""
    return _redact_value(row)


def _redact_value(value: V) -> V:
    shown = KEPT_FIELDS.get(type(value), frozenset())
    changed = {
        name: _redact_any(getattr(value, name), KEPT_DETAILS if name == "did" else frozenset())
        for name in type(value).model_fields
        if name not in shown
    }
    return value.model_copy(update=changed)


def _redact_any(value: Any, codes: frozenset[str]) -> Any:  # noqa: ANN401 - any field of a value
    if isinstance(value, Value):
        return _redact_value(value)
    if isinstance(value, str):
        return redact_text(value) if value else ""
    if isinstance(value, Mapping):
        return {
            name: inner if name in codes else _redact_any(inner, codes)
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return type(value)(_redact_any(inner, codes) for inner in value)
    return value
