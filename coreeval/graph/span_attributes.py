"""The attributes of spans.

Names are OpenInference's (its semantic conventions 0.1) and, if it is cheap, those of
OpenTelemetry's GenAI conventions (1.41, in development); `coreeval.*` are our own. Facts are ids,
names and numbers, never a text. Texts, prompts, answers, news and reasons come from `root_texts`,
`step_texts` and `call_texts` alone, which are called only if `telemetry.content` is on.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from coreeval.models.activity import CallRef
from coreeval.schema import Evidence, Result, Sample, TrainEnd
from coreeval.tools.stores.call_records import CallRecord
from coreeval.tools.stores.run_tables import StepRecord
from coreeval.tools.telemetry import Attribute, Attributes, SpanEvent

SpanKind = Literal["AGENT", "CHAIN", "RETRIEVER", "LLM", "EVALUATOR", "GUARDRAIL"]
JSON_TYPE = "application/json"


def kind_attributes(kind: SpanKind, run: str) -> Attributes:
    """Return the attributes that every span of a run has, by its kind."""
    return {"openinference.span.kind": kind, "session.id": run, "gen_ai.conversation.id": run}


def own_attributes(said: Mapping[str, Attribute]) -> Attributes:
    """Return our own attributes in two forms: for metadata viewers and for queries by attribute."""
    named = {f"coreeval.{name}": value for name, value in said.items()}
    return {"metadata": json.dumps(said), **named}


_PARAMETERS = ("temperature", "max_tokens", "seed", "reasoning_effort")
"""Request parameters that are exported; the values of `extra` ones are unrestricted."""


@dataclass(frozen=True, kw_only=True)
class CallBill:
    """The cost of the calls that were sent rather than found in the call store."""

    sent_calls: int = 0
    found_calls: int = 0
    usd: float = 0.0
    unpriced_calls: int = 0
    """Sent calls with unknown price; `usd` does not include them."""

    def with_calls(self, calls: Sequence[CallRef]) -> "CallBill":
        """Return the bill with further calls added."""
        sent = [call for call in calls if not call.cached]
        return CallBill(
            sent_calls=self.sent_calls + len(sent),
            found_calls=self.found_calls + len(calls) - len(sent),
            usd=self.usd + sum(call.usd or 0.0 for call in sent),
            unpriced_calls=self.unpriced_calls + sum(call.usd is None for call in sent),
        )


def call_attributes(run: str, call: CallRef, prompt: str) -> Attributes:
    """Return the attributes of a model call's span.

    A call that was not sent for this step costs nothing here: its tokens and its price are 0, so
    that sums over spans match what was sent.

    Args:
        run: The run.
        call: The call of the step.
        prompt: Version of the role's prompt; empty if it has none.
    """
    asked = _requested_model(call)
    return {
        **kind_attributes("LLM", run),
        "gen_ai.operation.name": "chat",
        "llm.model_name": asked,
        "gen_ai.request.model": asked,
        **_usage_attributes(call),
        **({"llm.prompt_template.version": prompt, "prompt.id": call.role} if prompt else {}),
        **(_record_attributes(call.record) if call.record else {}),
        **own_attributes(
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


def find_fault_type(call: CallRef) -> str:
    """Return why a call gave no usable answer: `truncated`, `refusal`, `empty` or `invalid`."""
    return call.error.partition(":")[0]


def _requested_model(call: CallRef) -> str:
    """Return a model's name as its provider knows it."""
    return call.model.partition(":")[2] or call.model


def _usage_attributes(call: CallRef) -> Attributes:
    """Return the tokens and cost of a call; nothing if it was not sent."""
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


def _record_attributes(record: CallRecord) -> Attributes:
    """Return the attributes from the record: provider, parameters, and the finish reason."""
    asked = json.loads(record.request)
    given = {name: asked["parameters"].get(name) for name in _PARAMETERS}
    sent = {name: value for name, value in given.items() if value is not None}
    shared = {"temperature", "max_tokens", "seed"} & sent.keys()
    return {
        "llm.provider": asked["provider"],
        "gen_ai.provider.name": asked["provider"],
        "llm.invocation_parameters": json.dumps(sent),
        **{f"gen_ai.request.{name}": sent[name] for name in sorted(shared)},
        **_optional_attribute("llm.response.model_name", record.model_returned),
        **_optional_attribute("gen_ai.response.model", record.model_returned),
        **_optional_attribute("llm.finish_reason", record.finish_reason),
    }


def _optional_attribute(name: str, value: str) -> Attributes:
    return {name: value} if value else {}


NODE_KINDS: Mapping[str, SpanKind] = {
    "retrieve": "RETRIEVER",
    "check": "GUARDRAIL",
    "reflect": "EVALUATOR",
    "judge_original": "EVALUATOR",
    "judge_semantic": "EVALUATOR",
}
"""Span kinds of the nodes that are more than a CHAIN."""


def root_attributes(run: str, subject: str, end: Result | TrainEnd, bill: CallBill) -> Attributes:
    """Return the attributes of the span of a whole sample or train item."""
    said: dict[str, Attribute] = {"sample": subject, **_end_facts(end), **vars(bill)}
    return {
        **kind_attributes("AGENT", run),
        "agent.name": "coreeval",
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "coreeval",
        "input.value": subject,
        "output.value": find_outcome(end),
        "tag.tags": [find_outcome(end)],
        **own_attributes(said),
    }


def step_attributes(run: str, step: StepRecord, *, judged_by_model: bool) -> Attributes:
    """Return the attributes of a step's span, with any documents found and any verdicts."""
    return {
        **kind_attributes(NODE_KINDS.get(step.node, "CHAIN"), run),
        "graph.node.id": step.node,
        **own_attributes({"sample": step.sample_id, "node": step.node, "attempt": step.attempt}),
        **_document_attributes(step),
        **_evaluation_attributes(step, "LLM" if judged_by_model else "CODE"),
        **({"error.type": find_error_type(step)} if step.error else {}),
    }


def asking_attributes(run: str, step: StepRecord, calls: Sequence[CallRef]) -> Attributes:
    """Return the attributes of the span of one batch of questions to a target."""
    bill = CallBill().with_calls(calls)
    said = {"target": step.sample_id, "source": step.node, **vars(bill)}
    return {
        **kind_attributes("CHAIN", run),
        "input.value": f"{step.sample_id}: {step.node}",
        **own_attributes(said),
    }


def list_verdict_events(step: StepRecord) -> list[SpanEvent]:
    """Return a step's verdicts as the events that the GenAI conventions define."""
    return [
        SpanEvent(
            name="gen_ai.evaluation.result",
            attributes={
                "gen_ai.evaluation.name": verdict.name,
                "gen_ai.evaluation.score.value": float(verdict.passed),
                "gen_ai.evaluation.score.label": _verdict_label(verdict.passed),
            },
        )
        for verdict in step.verdicts
    ]


def find_outcome(end: Result | TrainEnd) -> str:
    """Return one word for how a sample or a train item ended."""
    return end.outcome if isinstance(end, Result) else end.status


def find_error_type(step: StepRecord) -> str:
    """Return the class of the error that a step ended with."""
    return step.error.partition(":")[0]


def _end_facts(end: Result | TrainEnd) -> dict[str, Attribute]:
    if isinstance(end, TrainEnd):
        return {"outcome": end.status}
    names = ("outcome", "attempts", "rung", "semantic_status")
    return {name: getattr(end, name) for name in names}


def _document_attributes(step: StepRecord) -> Attributes:
    """Return the attributes of the news that a step found: ids, and the rung of each."""
    found: dict[str, Attribute] = {}
    for place, (known, rung) in enumerate(step.detail.get("evidence", {}).items()):
        found[f"retrieval.documents.{place}.document.id"] = known
        found[f"retrieval.documents.{place}.document.metadata"] = json.dumps({"rung": rung})
    return found


def _evaluation_attributes(step: StepRecord, annotator: str) -> Attributes:
    """Return a step's verdicts in OpenInference's form."""
    found: dict[str, Attribute] = {}
    for place, verdict in enumerate(step.verdicts):
        start = f"evaluations.{place}.evaluation"
        found[f"{start}.name"] = verdict.name
        found[f"{start}.score"] = float(verdict.passed)
        found[f"{start}.label"] = _verdict_label(verdict.passed)
        found[f"{start}.annotator_kind"] = annotator
    return found


def _verdict_label(passed: bool) -> str:
    return "passed" if passed else "failed"


def root_texts(sample: Sample, end: Result | TrainEnd) -> Attributes:
    """Return a sample's texts before and after, and the reason for its outcome."""
    after = end.updated if isinstance(end, Result) else end.semantic
    return {
        **_value_attributes("input", sample.fields),
        **(_value_attributes("output", after) if after else {}),
        "coreeval.reason": end.reason,
    }


def step_texts(step: StepRecord, evidence: Mapping[str, Evidence]) -> Attributes:
    """Return the text that a step wrote, the news it found, and the reasons of its verdicts.

    Args:
        step: The step.
        evidence: The evidence by id, if the run store has it.
    """
    found: dict[str, Attribute] = dict(_value_attributes("output", step.detail))
    for place, (known, rung) in enumerate(step.detail.get("evidence", {}).items()):
        if known in evidence:
            found |= _document_texts(f"retrieval.documents.{place}.document", evidence[known], rung)
    for place, verdict in enumerate(step.verdicts):
        found[f"evaluations.{place}.evaluation.explanation"] = verdict.reason
    return found


def call_texts(call: CallRef, record: CallRecord) -> Attributes:
    """Return the messages to a model and its answer."""
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


def _value_attributes(name: str, value: Mapping[str, Any]) -> Attributes:
    told = json.dumps(value, ensure_ascii=False)
    return {f"{name}.value": told, f"{name}.mime_type": JSON_TYPE}


def _document_texts(start: str, item: Evidence, rung: str) -> Attributes:
    names = {"domain", "published_at", "published_precision"}
    said = item.model_dump(mode="json", include=names) | {"rung": rung}
    return {
        f"{start}.content": f"{item.title}\n{item.snippet}".strip(),
        f"{start}.url": item.url,
        f"{start}.metadata": json.dumps(said),
    }
