"""What spans say besides where `telemetry.content` is on: texts, prompts, answers, news, reasons.

All that a run keeps of texts is told through here, and nothing here is called otherwise.
"""

import json
from collections.abc import Mapping
from typing import Any

from coreeval.graph.telemetry.naming import JSON
from coreeval.models.activity import CallRef
from coreeval.schema import Evidence, Result, Sample, TrainEnd
from coreeval.tools.stores.call_records import CallRecord
from coreeval.tools.stores.run_records import StepRecord
from coreeval.tools.telemetry import Attribute, Attributes


def of_root(sample: Sample, end: Result | TrainEnd) -> Attributes:
    """Return a sample's texts before and after, and why it ended so."""
    after = end.updated if isinstance(end, Result) else end.semantic
    return {
        **_value("input", sample.fields),
        **(_value("output", after) if after else {}),
        "coreeval.reason": end.reason,
    }


def of_step(step: StepRecord, evidence: Mapping[str, Evidence]) -> Attributes:
    """Return what a step wrote, the news that it found, and the reasons of its verdicts.

    Args:
        step: The step.
        evidence: By id, as far as the run store has it.
    """
    found: dict[str, Attribute] = dict(_value("output", step.detail))
    for place, (known, rung) in enumerate(step.detail.get("evidence", {}).items()):
        if known in evidence:
            found |= _document(f"retrieval.documents.{place}.document", evidence[known], rung)
    for place, verdict in enumerate(step.verdicts):
        found[f"evaluations.{place}.evaluation.explanation"] = verdict.reason
    return found


def of_call(call: CallRef, record: CallRecord) -> Attributes:
    """Return what a model was told and what it said."""
    messages = json.loads(record.request)["messages"]
    found: dict[str, Attribute] = {
        "input.value": messages[-1]["content"],
        "output.value": record.response,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": record.response,
        "coreeval.tried": call.tries,
    }
    for place, message in enumerate(messages):
        found[f"llm.input_messages.{place}.message.role"] = message["role"]
        found[f"llm.input_messages.{place}.message.content"] = message["content"]
    return found


def _value(name: str, value: Mapping[str, Any]) -> Attributes:
    told = json.dumps(value, ensure_ascii=False)
    return {f"{name}.value": told, f"{name}.mime_type": JSON}


def _document(start: str, item: Evidence, rung: str) -> Attributes:
    names = {"domain", "published_at", "published_precision"}
    said = item.model_dump(mode="json", include=names) | {"rung": rung}
    return {
        f"{start}.content": f"{item.title}\n{item.snippet}".strip(),
        f"{start}.url": item.url,
        f"{start}.metadata": json.dumps(said),
    }
