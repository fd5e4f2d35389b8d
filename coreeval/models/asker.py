"""Asking a model for an answer of a given shape: never twice for the same, never half an answer.

Each draw goes through the call store. A valid answer is reused; an invalid one stays there as
evidence, and the next draw is asked with the reason.

The draws of a question form chains of `max_draws`: the first draw of a chain is the plain question,
each further one shows the bad answer before it. Asking walks the chains. A chain that the store
holds in part, because of a kill, is walked and finished; one that was exhausted earlier is passed
over and the next begins plainly, so that no bad answer is replayed for ever. A chain that is
exhausted now is the end of it. A model under test settles on its first chain: its bad answer is its
answer, now and later.
"""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel
from typing_extensions import TypedDict

from coreeval.errors import NoValidAnswer
from coreeval.models.calls import CallRef, note_call
from coreeval.models.failures import CallFailure, final_error
from coreeval.models.model import Model
from coreeval.models.retry import Retry
from coreeval.models.shapes import AnswerShape, InvalidAnswer
from coreeval.tools.stores.calls import CallRecord, CallStore, Origin, call_key, call_request

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

T = TypeVar("T", bound=BaseModel)
Message = Mapping[str, str]
MAX_DRAWS = 3
_MOST_REASON = 500
_MOST_REPEATED = 2000
"""Most characters of a bad answer that are shown to the model again."""


def accept(_value: BaseModel) -> None:
    """Check nothing beyond the shape."""


class Asker:
    """One model in one role, asked through the call store.

    Args:
        model: Who is asked.
        store: Where each call is looked up and kept.
        role: What the calls are noted as.
        max_draws: Length of a chain: most answers that one `ask` pays for.
        settle: Whether a chain exhausted earlier is the last word.
        retry: How often a request that fails on the wire is sent again.
    """

    def __init__(
        self,
        model: Model,
        store: CallStore,
        *,
        role: str,
        max_draws: int = MAX_DRAWS,
        settle: bool = False,
        retry: Retry | None = None,
    ) -> None:
        self.model = model
        self.role = role
        self._store = store
        self._max_draws = max_draws
        self._settle = settle
        self._retry = retry or Retry()

    async def ask(
        self,
        messages: Sequence[Message],
        shape: AnswerShape[T],
        *,
        check: Callable[[T], None] = accept,
    ) -> T:
        """Return the first valid answer among the draws.

        Args:
            messages: What is asked, as `role` and `content`.
            shape: What the answer must look like.
            check: Raises InvalidAnswer for an answer of the right shape that cannot be true of
                this request, such as one that cites an item that was not shown.

        Raises:
            NoValidAnswer: the chain is exhausted, or the endpoint declined the text.
            ModelCallError: the request was rejected, or given up after all tries.
            CredentialError: the endpoint refused the key.
            ModelUnusable: the model cannot be used at all, now or later.
        """
        asked, final = list(messages), self._settle
        for draw in itertools.count():
            record, origin = await self._draw(asked, shape, check, draw)
            try:
                return _value_of(record, shape, check)
            except InvalidAnswer as error:
                reason = str(error)[:_MOST_REASON]
            final = final or origin != "stored"
            left = self._max_draws - 1 - draw % self._max_draws
            if final and not left:
                break
            asked = [*messages, *(_again(record, reason, left=left) if left else ())]
        raise NoValidAnswer(
            f"{self.role}: {self.model.name} gave no valid answer in {self._max_draws} draws; "
            f"the last one: {reason}"
        )

    async def _draw(
        self,
        messages: Sequence[Message],
        shape: AnswerShape[T],
        check: Callable[[T], None],
        draw: int,
    ) -> tuple[CallRecord, Origin]:
        """Return the call of one draw: from the store, from another asker, or sent now."""
        request = self._request(messages, shape, draw)

        async def send() -> CallRecord:
            started, clock = datetime.now(UTC), time.monotonic()
            answer = await self._send(messages, shape, draw)
            record = CallRecord(
                key=call_key(request),
                draw=draw,
                role=self.role,
                request=request,
                started_at=started.isoformat(timespec="milliseconds"),
                seconds=time.monotonic() - clock,
                valid=False,
                **_said(answer),
            )
            error = _fault(record, shape, check)
            return replace(record, valid=not error, error=error)

        record, origin = await self._store.answer(call_key(request), send)
        note_call(self._reference(record, cached=origin != "sent"))
        return record, origin

    async def _send(
        self, messages: Sequence[Message], shape: AnswerShape[T], draw: int
    ) -> "AIMessage":
        """Send one request, again where that may help; raise what is wrong in the end."""

        async def once() -> "AIMessage":
            return await self.model.chat.ainvoke(
                [dict(message) for message in messages],
                schema=shape.schema,
                schema_name=shape.name,
                draw=draw,
            )

        try:
            return await self._retry.run(once)
        except CallFailure as failure:
            final = final_error(
                failure,
                model=self.model.name,
                endpoint=self.model.identity.endpoint,
                key_env=self.model.key_env,
            )
        raise final

    def _request(self, messages: Sequence[Message], shape: AnswerShape[T], draw: int) -> str:
        identity = self.model.identity
        return call_request(
            provider=identity.provider,
            endpoint=identity.endpoint,
            model=identity.model,
            parameters=identity.parameters,
            schema={"name": shape.name, "schema": shape.schema},
            messages=messages,
            draw=draw,
        )

    def _reference(self, record: CallRecord, *, cached: bool) -> CallRef:
        return CallRef(
            role=self.role,
            key=record.key,
            model=self.model.name,
            draw=record.draw,
            cached=cached,
            paid_by=record.paid_by,
            prompt_tokens=record.prompt_tokens,
            completion_tokens=record.completion_tokens,
            seconds=record.seconds,
        )


class _Said(TypedDict):
    """What a model's message says, as the store keeps it."""

    response: str
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    model_returned: str
    finish_reason: str


def _said(answer: "AIMessage") -> _Said:
    usage, metadata = answer.usage_metadata, answer.response_metadata
    refusal = str(metadata.get("refusal") or "")
    details = usage.get("input_token_details", {}) if usage else {}
    return _Said(
        response=refusal or str(answer.text),
        prompt_tokens=usage["input_tokens"] if usage else 0,
        cached_tokens=details.get("cache_read", 0),
        completion_tokens=usage["output_tokens"] if usage else 0,
        model_returned=str(metadata.get("model_name", "")),
        finish_reason="refusal" if refusal else str(metadata.get("finish_reason", "")),
    )


def _value_of(record: CallRecord, shape: AnswerShape[T], check: Callable[[T], None]) -> T:
    """Read a stored call; what it was worth when it was stored is not taken on trust."""
    if record.finish_reason in ("refusal", "content_filter"):
        raise InvalidAnswer("refusal")
    if record.finish_reason == "length":
        raise InvalidAnswer("truncated")
    if not record.response.strip():
        raise InvalidAnswer("empty")
    value = shape.parse(record.response)
    check(value)
    return value


def _fault(record: CallRecord, shape: AnswerShape[T], check: Callable[[T], None]) -> str:
    """Return why a call is no answer; empty when it is one."""
    try:
        _value_of(record, shape, check)
    except InvalidAnswer as error:
        reason = str(error)
        return reason if reason in _COMPLAINTS else f"invalid: {reason}"
    return ""


_COMPLAINTS = {
    "refusal": "Your answer declined. The text is benchmark data; answer what was asked about it.",
    "truncated": "Your answer was cut off at the length limit. Answer again, more briefly.",
    "empty": "Your answer was empty. Answer with the JSON object that was asked for.",
}


def _again(record: CallRecord, reason: str, *, left: int) -> list[Message]:
    """Return the turns that ask again: what was answered, and what is wrong with it.

    The bad answer stands between them because many chat templates insist that turns alternate; the
    number of tries left makes each draw another request, also for a model that repeats itself.
    """
    wrong = _COMPLAINTS.get(
        reason,
        f"Your answer cannot be used: {reason}. Answer again with the whole corrected JSON object.",
    )
    return [
        {"role": "assistant", "content": record.response[:_MOST_REPEATED] or "(no answer)"},
        {"role": "user", "content": f"{wrong} Tries left: {left}."},
    ]
