"""What the spans of samples and steps always say: ids, names and numbers, never a text."""

import json
from collections.abc import Mapping, Sequence

from coreeval.graph.telemetry.call_facts import Bill
from coreeval.graph.telemetry.naming import Kind, of_kind, own
from coreeval.models.activity import CallRef
from coreeval.schema import Result, TrainEnd
from coreeval.tools.stores.run_records import StepRecord
from coreeval.tools.telemetry import Attribute, Attributes, SpanEvent

KINDS: Mapping[str, Kind] = {
    "retrieve": "RETRIEVER",
    "check": "GUARDRAIL",
    "reflect": "EVALUATOR",
    "judge_original": "EVALUATOR",
    "judge_semantic": "EVALUATOR",
}
"""Of the nodes that are more than a CHAIN."""


def of_root(run: str, subject: str, end: Result | TrainEnd, bill: Bill) -> Attributes:
    """Return what the span of a whole sample or train item says."""
    said: dict[str, Attribute] = {"sample": subject, **_end(end), **vars(bill)}
    return {
        **of_kind("AGENT", run),
        "agent.name": "coreeval",
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "coreeval",
        "input.value": subject,
        "output.value": outcome_of(end),
        "tag.tags": [outcome_of(end)],
        **own(said),
    }


def of_step(run: str, step: StepRecord, *, judged_by_model: bool) -> Attributes:
    """Return what the span of a step says; its documents, if it found news; what it was judged."""
    return {
        **of_kind(KINDS.get(step.node, "CHAIN"), run),
        "graph.node.id": step.node,
        **own({"sample": step.sample_id, "node": step.node, "attempt": step.attempt}),
        **_documents(step),
        **_evaluations(step, "LLM" if judged_by_model else "CODE"),
        **({"error.type": error_type(step)} if step.error else {}),
    }


def of_asking(run: str, step: StepRecord, calls: Sequence[CallRef]) -> Attributes:
    """Return what the span of a target that was asked at one go says."""
    bill = Bill().with_calls(calls)
    said = {"target": step.sample_id, "source": step.node, **vars(bill)}
    return {
        **of_kind("CHAIN", run),
        "input.value": f"{step.sample_id}: {step.node}",
        **own(said),
    }


def verdict_events(step: StepRecord) -> list[SpanEvent]:
    """Return a step's verdicts as the events that GenAI's conventions have for them."""
    return [
        SpanEvent(
            name="gen_ai.evaluation.result",
            attributes={
                "gen_ai.evaluation.name": verdict.name,
                "gen_ai.evaluation.score.value": float(verdict.passed),
                "gen_ai.evaluation.score.label": _label(verdict.passed),
            },
        )
        for verdict in step.verdicts
    ]


def outcome_of(end: Result | TrainEnd) -> str:
    """Return in one word how a sample or a train item ended."""
    return end.outcome if isinstance(end, Result) else end.status


def error_type(step: StepRecord) -> str:
    """Return the class of the error that a step ended with."""
    return step.error.partition(":")[0]


def _end(end: Result | TrainEnd) -> dict[str, Attribute]:
    if isinstance(end, TrainEnd):
        return {"outcome": end.status}
    names = ("outcome", "attempts", "rung", "semantic_status")
    return {name: getattr(end, name) for name in names}


def _documents(step: StepRecord) -> Attributes:
    """Return the news that a step found: ids, and the rung of each."""
    found: dict[str, Attribute] = {}
    for place, (known, rung) in enumerate(step.detail.get("evidence", {}).items()):
        found[f"retrieval.documents.{place}.document.id"] = known
        found[f"retrieval.documents.{place}.document.metadata"] = json.dumps({"rung": rung})
    return found


def _evaluations(step: StepRecord, annotator: str) -> Attributes:
    """Return a step's verdicts as OpenInference has them."""
    found: dict[str, Attribute] = {}
    for place, verdict in enumerate(step.verdicts):
        start = f"evaluations.{place}.evaluation"
        found[f"{start}.name"] = verdict.name
        found[f"{start}.score"] = float(verdict.passed)
        found[f"{start}.label"] = _label(verdict.passed)
        found[f"{start}.annotator_kind"] = annotator
    return found


def _label(passed: bool) -> str:
    return "passed" if passed else "failed"
