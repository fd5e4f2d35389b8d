"""What spans always say: ids, names and numbers, never a text.

Names of attributes are OpenInference's (its semantic conventions 0.1) and, where it is cheap, those
of OpenTelemetry's GenAI conventions (1.41, in development); `coreeval.*` are our own.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from coreeval.models.calls import CallRef
from coreeval.schema import Result, TrainEnd
from coreeval.tools.stores.call_rows import CallRecord
from coreeval.tools.stores.run_rows import Step
from coreeval.tools.telemetry.spans import Attribute, Attributes, Event

Kind = Literal["AGENT", "CHAIN", "RETRIEVER", "LLM", "EVALUATOR", "GUARDRAIL"]
KINDS: Mapping[str, Kind] = {
    "retrieve": "RETRIEVER",
    "check": "GUARDRAIL",
    "reflect": "EVALUATOR",
    "judge_original": "EVALUATOR",
    "judge_semantic": "EVALUATOR",
}
"""Of the nodes that are more than a CHAIN."""
_PARAMETERS = ("temperature", "max_tokens", "seed", "reasoning_effort")
"""Those of a request that are told; `extra` ones may be anything."""
JSON = "application/json"


@dataclass(frozen=True, kw_only=True)
class Bill:
    """What calls came to that were sent, as opposed to found in the call store."""

    sent_calls: int = 0
    found_calls: int = 0
    usd: float = 0.0
    unpriced_calls: int = 0
    """Sent calls whose price is not known; `usd` lacks them."""

    def with_calls(self, calls: Sequence[CallRef]) -> "Bill":
        """Return the bill with further calls on it."""
        sent = [call for call in calls if not call.cached]
        return Bill(
            sent_calls=self.sent_calls + len(sent),
            found_calls=self.found_calls + len(calls) - len(sent),
            usd=self.usd + sum(call.usd or 0.0 for call in sent),
            unpriced_calls=self.unpriced_calls + sum(call.usd is None for call in sent),
        )


def of_root(run: str, subject: str, end: Result | TrainEnd, bill: Bill) -> Attributes:
    """Return what the span of a whole sample or train item says."""
    said: dict[str, Attribute] = {"sample": subject, **_end(end), **vars(bill)}
    return {
        **_kind("AGENT", run),
        "agent.name": "coreeval",
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "coreeval",
        "input.value": subject,
        "output.value": outcome_of(end),
        "tag.tags": [outcome_of(end)],
        **_told(said),
    }


def of_step(run: str, step: Step, *, judged_by_model: bool) -> Attributes:
    """Return what the span of a step says; its documents, if it found news; what it was judged."""
    return {
        **_kind(KINDS.get(step.node, "CHAIN"), run),
        "graph.node.id": step.node,
        **_told({"sample": step.sample_id, "node": step.node, "attempt": step.attempt}),
        **_documents(step),
        **_evaluations(step, "LLM" if judged_by_model else "CODE"),
        **({"error.type": error_type(step)} if step.error else {}),
    }


def of_asking(run: str, step: Step, calls: Sequence[CallRef]) -> Attributes:
    """Return what the span of a target that was asked at one go says."""
    bill = Bill().with_calls(calls)
    said = {"target": step.sample_id, "source": step.node, **vars(bill)}
    return {
        **_kind("CHAIN", run),
        "input.value": f"{step.sample_id}: {step.node}",
        **_told(said),
    }


def of_call(run: str, call: CallRef, prompt: str) -> Attributes:
    """Return what the span of a model call says.

    A call that was not sent for this step cost nothing here: its tokens and its price are 0, so
    that sums over spans are what was sent.

    Args:
        run: The run.
        call: As the step made it.
        prompt: Version of the role's prompt; empty where it has none.
    """
    asked = _asked_for(call)
    return {
        **_kind("LLM", run),
        "gen_ai.operation.name": "chat",
        "llm.model_name": asked,
        "gen_ai.request.model": asked,
        **_used(call),
        **({"llm.prompt_template.version": prompt, "prompt.id": call.role} if prompt else {}),
        **(_recorded(call.record) if call.record else {}),
        **_told(
            {
                "role": call.role,
                "draw": call.draw,
                "cached": call.cached,
                "key": call.key,
                "method": call.method,
                "tries": len(call.tries.splitlines()),
            }
        ),
    }


def verdict_events(step: Step) -> list[Event]:
    """Return a step's verdicts as the events that GenAI's conventions have for them."""
    return [
        Event(
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


def error_type(step: Step) -> str:
    """Return the class of the error that a step ended with."""
    return step.error.partition(":")[0]


def fault_type(call: CallRef) -> str:
    """Return what kind of non-answer a call is: `truncated`, `refusal`, `empty` or `invalid`."""
    return call.error.partition(":")[0]


def _kind(kind: Kind, run: str) -> Attributes:
    return {"openinference.span.kind": kind, "session.id": run, "gen_ai.conversation.id": run}


def _told(said: Mapping[str, Attribute]) -> Attributes:
    """Return our own facts twice: for viewers of metadata, and for queries by attribute."""
    own = {f"coreeval.{name}": value for name, value in said.items()}
    return {"metadata": json.dumps(said), **own}


def _end(end: Result | TrainEnd) -> dict[str, Attribute]:
    if isinstance(end, TrainEnd):
        return {"outcome": end.status}
    names = ("outcome", "attempts", "rung", "semantic_status")
    return {name: getattr(end, name) for name in names}


def _documents(step: Step) -> Attributes:
    """Return the news that a step found: ids, and the rung of each."""
    found: dict[str, Attribute] = {}
    for place, (known, rung) in enumerate(step.detail.get("evidence", {}).items()):
        found[f"retrieval.documents.{place}.document.id"] = known
        found[f"retrieval.documents.{place}.document.metadata"] = json.dumps({"rung": rung})
    return found


def _evaluations(step: Step, annotator: str) -> Attributes:
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


def _asked_for(call: CallRef) -> str:
    """Return a model's name as its provider has it."""
    return call.model.partition(":")[2] or call.model


def _used(call: CallRef) -> Attributes:
    """Return what a call took of tokens and money: nothing where it was not sent."""
    sent = not call.cached
    prompted, answered = call.prompt_tokens * sent, call.completion_tokens * sent
    usd = call.usd if sent else 0.0
    return {
        "llm.token_count.prompt": prompted,
        "llm.token_count.completion": answered,
        "llm.token_count.total": prompted + answered,
        "llm.token_count.prompt_details.cache_read": call.cached_tokens * sent,
        "gen_ai.usage.input_tokens": prompted,
        "gen_ai.usage.output_tokens": answered,
        **({} if usd is None else {"llm.cost.total": usd}),
    }


def _recorded(record: CallRecord) -> Attributes:
    """Return what only the record knows: the provider, parameters, and how the answer ended."""
    asked = json.loads(record.request)
    given = {name: asked["parameters"].get(name) for name in _PARAMETERS}
    sent = {name: value for name, value in given.items() if value is not None}
    shared = {"temperature", "max_tokens", "seed"} & sent.keys()
    return {
        "llm.provider": asked["provider"],
        "gen_ai.provider.name": asked["provider"],
        "llm.invocation_parameters": json.dumps(sent),
        **{f"gen_ai.request.{name}": sent[name] for name in sorted(shared)},
        **_if_any("llm.response.model_name", record.model_returned),
        **_if_any("gen_ai.response.model", record.model_returned),
        **_if_any("llm.finish_reason", record.finish_reason),
    }


def _if_any(name: str, value: str) -> Attributes:
    return {name: value} if value else {}
