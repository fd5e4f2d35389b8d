"""Asking a model for an answer of a given shape: never twice for the same, never half an answer.

Each draw goes through the call store. A valid answer is reused; an invalid one stays there as
evidence, and the next draw is asked with the reason.

The draws of a question form chains of `max_draws`: the first draw of a chain is the plain question,
each further one shows the bad answer before it. Asking walks the chains. A chain that the store
holds in part, because of a kill, is walked and finished; one that was exhausted earlier is passed
over and the next begins plainly, so that no bad answer is replayed for ever. A chain that is
exhausted now is the end of it; of recorded answers all were given earlier, so that the last chain
there is ends it. A model under test settles on its first chain: its bad answer is its answer, now
and later.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, TypeVar

from pydantic import BaseModel
from typing_extensions import TypedDict

from coreeval.errors import NotRecorded, NoValidAnswer
from coreeval.models.calls import CallRef, note_call
from coreeval.models.counts import possible_count
from coreeval.models.draws import COMPLAINTS, Draw, Message
from coreeval.models.logprobs import first_tokens
from coreeval.models.purse import cost_of
from coreeval.models.sender import Question, Sender
from coreeval.models.shapes import AnswerShape, InvalidAnswer
from coreeval.tools.stores.call_records import CallRecord, call_key, call_request
from coreeval.tools.stores.call_store import CallResult, CallStore, Origin

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

T = TypeVar("T", bound=BaseModel)
MAX_DRAWS = 4
"""Where 4.4 % of all answers are bad by chance, three in a row lose one question in 11,000, four
one in 260,000 (benchmarks/faults.py)."""
MOST_KEPT = 1 << 18
"""Most characters of an answer that are read and kept: 65,536 tokens at 4 characters each, as many
as models give with their thoughts (DeepSeek-R1: at most 64K, https://api-docs.deepseek.com). An
answer that is longer is invalid; its beginning is kept as evidence."""
_MOST_REASON = 500
_KINDS: Mapping[str, Literal["refused", "truncated"]] = {
    "refusal": "refused",
    "truncated": "truncated",
}
"""What a chain whose last answer was bad for this reason comes to; `unparsed` for any other."""


def accept(_value: BaseModel) -> None:
    """Check nothing beyond the shape."""


class Asker:
    """One model in one role, asked through the call store.

    Args:
        sender: The way to the model.
        store: Where each call is looked up and kept.
        role: What the calls are noted as.
        max_draws: Length of a chain: most answers that one `ask` pays for.
        settle: Whether a chain exhausted earlier is the last word.
        logprobs: How many of the most probable tokens are to be told at each place of the answer;
            a call that asks for them is another than one that does not.
    """

    def __init__(
        self,
        sender: Sender,
        store: CallStore,
        *,
        role: str,
        max_draws: int = MAX_DRAWS,
        settle: bool = False,
        logprobs: int = 0,
    ) -> None:
        self.model = sender.model
        self.role = role
        self.sender = sender
        self._store = store
        self._max_draws = max_draws
        self._settle = settle
        self._logprobs = logprobs

    async def ask(
        self,
        messages: Sequence[Message],
        shape: AnswerShape[T],
        *,
        check: Callable[[T], None] = accept,
        chain: int = 0,
    ) -> T:
        """Return the first valid answer among the draws; see `ask_for_call`."""
        return (await self.ask_for_call(messages, shape, check=check, chain=chain))[0]

    async def ask_for_call(
        self,
        messages: Sequence[Message],
        shape: AnswerShape[T],
        *,
        check: Callable[[T], None] = accept,
        chain: int = 0,
    ) -> tuple[T, CallRecord]:
        """Return the first valid answer among the draws, and the call that brought it.

        Args:
            messages: What is asked, as `role` and `content`.
            shape: What the answer must look like.
            check: Raises InvalidAnswer for an answer of the right shape that cannot be true of
                this request, such as one that cites an item that was not shown.
            chain: The chain to begin with; whoever wants several answers to one question counts up.

        Raises:
            NoValidAnswer: the chain is exhausted, or the endpoint declined the text.
            ModelCallError: the request was rejected, or given up after all tries.
            CredentialError: the endpoint refused the key.
            ModelUnusable: the model cannot be used at all, now or later.
            BudgetSpent: the budget does not allow another call.
        """
        first = Draw(messages, self.model.config.max_tokens, number=chain * self._max_draws)
        draw, final = first, self._settle
        while True:
            try:
                record, origin = await self._draw(draw, shape, check)
            except NotRecorded:
                if draw.number == first.number or not draw.plain:
                    raise
                break  # there are no more chains
            try:
                return _value_of(record, shape, check), record
            except InvalidAnswer as error:
                reason = str(error)[:_MOST_REASON]
            final = final or not (origin == "stored" or self.model.recorded)
            left = self._max_draws - 1 - draw.number % self._max_draws
            if final and not left:
                break
            draw = draw.after(record, reason, left=left) if left else draw.anew()
        raise NoValidAnswer(
            f"{self.role}: {self.model.name} gave no valid answer in {self._max_draws} draws; "
            f"the last one: {reason}",
            kind=_KINDS.get(reason, "unparsed"),
            said=record.response,
        )

    async def _draw(
        self, draw: Draw, shape: AnswerShape[T], check: Callable[[T], None]
    ) -> tuple[CallRecord, Origin]:
        """Return the call of one draw: from the store, from another asker, or sent now."""
        request = self._request(draw, shape)
        key = call_key(request)

        async def send() -> CallResult:
            started, clock = datetime.now(UTC), time.monotonic()
            sent = await self.sender.send(
                Question(
                    key=key,
                    messages=draw.messages,
                    schema=shape.schema,
                    name=shape.name,
                    size=len(request.encode()),
                    max_tokens=draw.max_tokens,
                    draw=draw.number,
                    looser=draw.looser,
                    logprobs=self._logprobs,
                )
            )
            record = CallRecord(
                key=key,
                draw=draw.number,
                role=self.role,
                request=request,
                started_at=started.isoformat(timespec="milliseconds"),
                seconds=time.monotonic() - clock,
                valid=False,
                method=sent.method,
                tries="\n".join(sent.tries),
                usd=cost_of(sent.answer, self.sender.purse.price(self.model)),
                **_said(sent.answer),
            )
            await self.sender.settle(sent, record.usd)
            error = _fault(record, shape, check)
            told = error != "refusal"  # which says nothing of the way of asking
            if shape.schema and draw.plain and told:
                self.sender.judged(sent, valid=not error)
            return CallResult(
                record=replace(record, valid=not error, error=error), reservation=sent.reservation
            )

        record, origin = await self._store.answer(key, send)
        note_call(self._reference(record, cached=origin != "sent"))
        return record, origin

    def _request(self, draw: Draw, shape: AnswerShape[T]) -> str:
        identity = self.model.identity
        asked = {"max_tokens": draw.max_tokens}
        asked |= {"logprobs": self._logprobs} if self._logprobs else {}
        return call_request(
            provider=identity.provider,
            endpoint=identity.endpoint,
            model=identity.model,
            parameters={**identity.parameters, **asked},
            schema={"name": shape.name, "schema": shape.schema},
            messages=draw.messages,
            draw=draw.number,
        )

    def _reference(self, record: CallRecord, *, cached: bool) -> CallRef:
        return CallRef(
            role=self.role,
            key=record.key,
            model=self.model.name,
            draw=record.draw,
            cached=cached,
            paid_by=record.paid_by,
            prompt_tokens=possible_count(record.prompt_tokens),
            cached_tokens=possible_count(record.cached_tokens),
            completion_tokens=possible_count(record.completion_tokens),
            seconds=record.seconds,
            method=record.method,
            tries=record.tries,
            error=record.error,
            usd=record.usd,
            record=record,
        )


class _Said(TypedDict):
    """What a model's message says, as the store keeps it."""

    response: str
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    model_returned: str
    finish_reason: str
    logprobs: str


def _said(answer: "AIMessage") -> _Said:
    usage, metadata = answer.usage_metadata, answer.response_metadata
    told = metadata.get("logprobs")
    details = usage.get("input_token_details", {}) if usage else {}
    return _Said(
        response=str(answer.text)[:MOST_KEPT],
        prompt_tokens=usage["input_tokens"] if usage else 0,
        cached_tokens=details.get("cache_read", 0),
        completion_tokens=usage["output_tokens"] if usage else 0,
        model_returned=str(metadata.get("model_name", "")),
        finish_reason=str(metadata.get("finish_reason", "")),
        logprobs=first_tokens(told, str(answer.text)) if told else "",
    )


def _value_of(record: CallRecord, shape: AnswerShape[T], check: Callable[[T], None]) -> T:
    """Read a stored call; what it was worth when it was stored is not taken on trust."""
    if record.finish_reason in ("refusal", "content_filter"):
        raise InvalidAnswer("refusal")
    if record.finish_reason == "length":
        raise InvalidAnswer("truncated")
    if len(record.response) >= MOST_KEPT:
        raise InvalidAnswer(f"it has {MOST_KEPT:,} characters or more")
    value = shape.parse(record.response, mend=record.method == "text")
    check(value)
    return value


def _fault(record: CallRecord, shape: AnswerShape[T], check: Callable[[T], None]) -> str:
    """Return why a call is no answer; empty when it is one."""
    try:
        _value_of(record, shape, check)
    except InvalidAnswer as error:
        reason = str(error)
        return reason if reason in COMPLAINTS else f"invalid: {reason}"
    return ""
