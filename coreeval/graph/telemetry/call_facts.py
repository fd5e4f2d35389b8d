"""What the spans of model calls say without their texts, and what calls come to."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from coreeval.graph.telemetry.naming import of_kind, own
from coreeval.models.activity import CallRef
from coreeval.tools.stores.call_records import CallRecord
from coreeval.tools.telemetry import Attributes

_PARAMETERS = ("temperature", "max_tokens", "seed", "reasoning_effort")
"""Those of a request that are told; `extra` ones may be anything."""


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
        **of_kind("LLM", run),
        "gen_ai.operation.name": "chat",
        "llm.model_name": asked,
        "gen_ai.request.model": asked,
        **_used(call),
        **({"llm.prompt_template.version": prompt, "prompt.id": call.role} if prompt else {}),
        **(_recorded(call.record) if call.record else {}),
        **own(
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


def fault_type(call: CallRef) -> str:
    """Return what kind of non-answer a call is: `truncated`, `refusal`, `empty` or `invalid`."""
    return call.error.partition(":")[0]


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
