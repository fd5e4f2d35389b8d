"""Asks a model for a valid answer with a given schema, and pays for each request only once.

Each draw goes through the call store. A valid answer is reused; an invalid one stays there as
evidence, and the next draw is asked with the reason.

The draws of a question form chains of at most `max_draws`: the first draw of a chain is the
original question, and each further draw shows the bad answer before it. `ask` goes through the
chains in order. It completes a chain that is only partly stored because the process was killed. It
skips a chain that was exhausted earlier and starts the next one, so that a bad answer is not
replayed for ever. It fails if a chain is exhausted now, or, with recorded answers, if the last
recorded chain is. A model under test has only the first chain: its bad answer is its answer, now
and later.
"""

import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel
from typing_extensions import TypedDict

from coreeval.errors import NotRecorded, NoValidAnswer
from coreeval.models.activity import CallRef, add_call, pause_sample_clock
from coreeval.models.answers import (
    MOST_ANSWER_CHARACTERS,
    InvalidAnswer,
    OutputSchema,
    dump_first_tokens,
)
from coreeval.models.batch_dispatch import CallQueued
from coreeval.models.capabilities import Capabilities
from coreeval.models.dispatch import Dispatcher, ModelRequest
from coreeval.models.model import Model, RequestOptions, clamp_count
from coreeval.models.running_steps import wait_for_other_steps
from coreeval.models.sample_cost import add_sample_cost, find_overspent
from coreeval.tools.catalogs import cost, worst_case_cost
from coreeval.tools.formatting import format_quantity
from coreeval.tools.stores.call_records import CallRecord, call_key, call_request
from coreeval.tools.stores.call_store import CallStore, Origin

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

    from coreeval.config import PriceConfig


Message = Mapping[str, str]
LENGTH_FACTOR = 2
"""The factor by which the limit grows for the draw after a truncated answer."""
_MOST_REPEATED = 2000
"""The most characters of a bad answer that are shown to the model again."""
COMPLAINTS = {
    "refusal": "Your answer declined. The text is benchmark data; answer what was asked about it.",
    "truncated": "Your answer was cut off at the length limit. Answer again, more briefly.",
    "empty": "Your answer was empty. Answer with the JSON object that was asked for.",
}


@dataclass(frozen=True)
class Draw:
    """One draw of a question.

    Each kind of bad answer has one remedy, applied once: after a truncated answer the limit is
    raised, and after an invalid answer to a correction a less strict method is used.
    """

    question: Sequence[Message]
    limit: int
    """The longest answer to the original question, in tokens."""
    number: int = 0
    """Counts through all chains of a question."""
    added: tuple[Message, ...] = field(default=())
    max_tokens: int = 0
    looser: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_tokens", self.max_tokens or self.limit)

    @property
    def messages(self) -> list[Message]:
        """The messages to send."""
        return [*self.question, *self.added]

    @property
    def is_plain(self) -> bool:
        """Whether this is the original question, without corrections."""
        return not self.added

    def next_draw(self, record: CallRecord, reason: str, *, left: int) -> "Draw":
        """Return the draw after a bad answer, which shows the answer and what is wrong with it."""
        cut = reason == "truncated"
        return Draw(
            self.question,
            self.limit,
            number=self.number + 1,
            added=_correction_messages(record, reason, left=left),
            max_tokens=LENGTH_FACTOR * self.limit if cut else self.max_tokens,
            looser=not self.is_plain and reason not in ("truncated", "refusal"),
        )

    def next_chain(self) -> "Draw":
        """Return the first draw of the next chain: the original question."""
        return Draw(self.question, self.limit, number=self.number + 1)


def _correction_messages(record: CallRecord, reason: str, *, left: int) -> tuple[Message, ...]:
    """Return the turns that ask again: the previous answer, and what is wrong with it.

    The bad answer is included because many chat templates require turns to alternate. The number of
    tries left makes each draw a different request, even for a model that repeats itself.
    """
    wrong = COMPLAINTS.get(
        reason,
        f"Your answer cannot be used: {reason}. Answer again with the whole corrected JSON object.",
    )
    return (
        {"role": "assistant", "content": record.response[:_MOST_REPEATED] or "(no answer)"},
        {"role": "user", "content": f"{wrong} Tries left: {left}."},
    )


T = TypeVar("T", bound=BaseModel)
MAX_DRAWS = 4
"""If 4.4 % of answers are bad by chance, three draws lose one question in 11,000, and four lose one
in 260,000 (benchmarks/faults.py)."""
_MOST_REASON = 500
_CHAIN_ENDS: Mapping[str, Literal["refused", "truncated"]] = {
    "refusal": "refused",
    "truncated": "truncated",
}
"""The failure of a chain by the reason that its last answer was bad; `unparsed` for any other."""


def accept_any(_value: BaseModel) -> None:
    """Accept any value: check nothing beyond the schema."""


def ignore_call(_call: CallRecord) -> None:
    """Discard the call."""


class ModelClient:
    """One model in one role, asked through the call store.

    Args:
        model: The model.
        dispatcher: Sends requests to it.
        store: Where each call is looked up and kept.
        capabilities: Records whether answers are valid: the method of asking may not work.
        role: The role under which calls are recorded.
        max_draws: The length of a chain: the most answers that one `ask` pays for.
        settle: Whether a chain exhausted earlier is final.
        logprobs: How many of the most probable tokens to return at each position of the answer;
            calls with and without log-probabilities are different calls.
    """

    def __init__(
        self,
        model: Model,
        dispatcher: Dispatcher,
        store: CallStore,
        capabilities: Capabilities,
        *,
        role: str,
        max_draws: int = MAX_DRAWS,
        settle: bool = False,
        logprobs: int = 0,
        price: "PriceConfig | None" = None,
    ) -> None:
        self.model = model
        self.role = role
        self.dispatcher = dispatcher
        self._store = store
        self._capabilities = capabilities
        self._max_draws = max_draws
        self._settles = settle
        self._logprobs = logprobs
        self._price = price

    async def ask(
        self,
        messages: Sequence[Message],
        output_schema: OutputSchema[T],
        *,
        check: Callable[[T], None] = accept_any,
        chain: int = 0,
        on_answer: Callable[[CallRecord], None] = ignore_call,
    ) -> T:
        """Return the first valid answer among the draws.

        Args:
            messages: The question, as `role` and `content`.
            output_schema: The required schema of the answer.
            check: Raises InvalidAnswer for an answer that has the right schema and cannot be true
                of this request, such as one that cites an item that was not shown.
            chain: The chain to begin with; increase it to get several answers to one question.
            on_answer: Receives the call that returned the answer.

        Raises:
            NoValidAnswer: the chain is exhausted, or the endpoint declined the text.
            ModelCallError: the request was rejected, or failed after all tries.
            CredentialError: the endpoint refused the key.
            ModelUnusable: the model cannot be used at all, now or later.
            BudgetSpent: the budget does not allow another call.
            CallQueued: the question waits for a batch; no step of the sample can go on.
            SampleBudgetSpent: the sample has cost more than `run.max_usd_per_sample`.
        """
        first = Draw(messages, self.model.config.max_tokens, number=chain * self._max_draws)
        draw, final = first, self._settles
        while True:
            request = self._serialize(draw, output_schema)
            key = call_key(request)
            send = partial(self._send, key, request, draw, output_schema, check)
            try:
                record, origin = await self._find_or_send(key, send, request)
            except NotRecorded:
                if draw.number == first.number or not draw.is_plain:
                    raise
                break  # there are no more chains
            add_call(self._to_reference(record, cached=origin != "sent"))
            if origin == "sent" or record.paid_by == self._store.payer:
                add_sample_cost(self._cost_of(record, draw))
            try:
                value = _parse_answer(record, output_schema, check)
            except InvalidAnswer as error:
                reason = str(error)[:_MOST_REASON]
            else:
                on_answer(record)
                return value
            final = final or not (origin == "stored" or self.model.is_recorded)
            left = self._max_draws - 1 - draw.number % self._max_draws
            if final and not left:
                break
            draw = draw.next_draw(record, reason, left=left) if left else draw.next_chain()
        raise NoValidAnswer(
            f"{self.role}: {self.model.name} gave no valid answer in "
            f"{format_quantity(self._max_draws, 'draw')}; the last problem: {reason}",
            kind=_CHAIN_ENDS.get(reason, "unparsed"),
            said=record.response,
        )

    def _cost_of(self, record: CallRecord, draw: Draw) -> float:
        """Return the cost of a call in US dollars; its maximum if its tokens are unknown."""
        if record.usd is not None or self._price is None:
            return record.usd or 0.0
        if record.prompt_tokens or record.completion_tokens:  # its price was unknown then
            return cost(
                self._price,
                prompt=record.prompt_tokens,
                cached=record.cached_tokens,
                written=0,
                completion=record.completion_tokens,
            )
        size = len(record.request.encode())
        return worst_case_cost(self._price, prompt_bytes=size, max_tokens=draw.max_tokens)

    async def _find_or_send(
        self, key: str, send: Callable[[], Coroutine[Any, Any, CallRecord]], request: str
    ) -> tuple[CallRecord, Origin]:
        """Return the stored call, or send the request, if the sample may make another call.

        Samples that share a call also share its error. Each raises an error of its own, so that
        one sample's traceback has no frames of another.
        """
        await self._refuse_if_overspent(key, request)
        try:
            with self._pause_if_sent(key):
                return await self._store.answer(key, send, request)
        except CallQueued as shared:
            shared.__traceback__ = None
            queued = CallQueued(*shared.args)
        await wait_for_other_steps()
        raise queued

    async def _refuse_if_overspent(self, key: str, request: str) -> None:
        """Raise an error if the sample may not make another call.

        Raises:
            SampleBudgetSpent: the sample has cost more than `run.max_usd_per_sample`, and the
                request was not sent.
        """
        cost = find_overspent()
        if cost is None or self._store.is_in_flight(key):
            return
        if await self._store.find(key, request) is None:
            raise cost.build_error()

    def _pause_if_sent(self, key: str) -> AbstractContextManager[None]:
        """Stop the sample's clock while it only waits for a call that another sample has sent."""
        return pause_sample_clock() if self._store.is_in_flight(key) else nullcontext()

    async def _send(
        self,
        key: str,
        request: str,
        draw: Draw,
        output_schema: OutputSchema[T],
        check: Callable[[T], None],
    ) -> CallRecord:
        """Send the request of a draw, judge its answer, and commit the call."""
        started, clock = datetime.now(UTC), time.monotonic()
        result = await self.dispatcher.send(
            ModelRequest(
                key=key,
                messages=draw.messages,
                options=RequestOptions(
                    schema=output_schema.schema,
                    name=output_schema.name,
                    max_tokens=draw.max_tokens,
                    draw=draw.number,
                    logprobs=self._logprobs,
                ),
                size=len(request.encode()),
                looser=draw.looser,
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
            method=result.method,
            tries="\n".join(result.tries),
            usd=result.usd,
            **_answer_fields(result.answer),
        )
        error = _find_fault(record, output_schema, check)
        # A refusal says nothing about the method.
        if output_schema.schema and draw.is_plain and error != "refusal":
            self._capabilities.record_outcome(self.model, result.method, valid=not error)
        record = replace(record, valid=not error, error=error)
        return await self._store.put(record, result.reservation, result.also)

    def _serialize(self, draw: Draw, output_schema: OutputSchema[T]) -> str:
        """Return the request as it is stored; its hash is the key of the call."""
        identity = self.model.identity
        asked = {"max_tokens": draw.max_tokens}
        asked |= {"logprobs": self._logprobs} if self._logprobs else {}
        return call_request(
            provider=identity.provider,
            endpoint=identity.endpoint,
            model=identity.model,
            parameters={**identity.parameters, **asked},
            schema={"name": output_schema.name, "schema": output_schema.schema},
            messages=draw.messages,
            draw=draw.number,
        )

    def _to_reference(self, record: CallRecord, *, cached: bool) -> CallRef:
        return CallRef(
            role=self.role,
            key=record.key,
            model=self.model.name,
            draw=record.draw,
            cached=cached,
            paid_by=record.paid_by,
            prompt_tokens=clamp_count(record.prompt_tokens),
            cached_tokens=clamp_count(record.cached_tokens),
            completion_tokens=clamp_count(record.completion_tokens),
            seconds=record.seconds,
            method=record.method,
            tries=record.tries,
            error=record.error,
            usd=record.usd,
            record=record,
        )


class _AnswerFields(TypedDict):
    """The parts of a model's message that the call store keeps."""

    response: str
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    model_returned: str
    finish_reason: str
    logprobs: str


def _answer_fields(answer: "AIMessage") -> _AnswerFields:
    usage, metadata = answer.usage_metadata, answer.response_metadata
    told = metadata.get("logprobs")
    details = usage.get("input_token_details", {}) if usage else {}
    return _AnswerFields(
        response=str(answer.text)[:MOST_ANSWER_CHARACTERS],
        prompt_tokens=usage["input_tokens"] if usage else 0,
        cached_tokens=details.get("cache_read", 0),
        completion_tokens=usage["output_tokens"] if usage else 0,
        model_returned=str(metadata.get("model_name", "")),
        finish_reason=str(metadata.get("finish_reason", "")),
        logprobs=dump_first_tokens(told, str(answer.text)) if told else "",
    )


def _parse_answer(
    record: CallRecord, output_schema: OutputSchema[T], check: Callable[[T], None]
) -> T:
    """Parse a stored call again instead of trusting the outcome stored with it."""
    if record.finish_reason in ("refusal", "content_filter"):
        raise InvalidAnswer("refusal")
    if record.finish_reason == "length":
        raise InvalidAnswer("truncated")
    if len(record.response) >= MOST_ANSWER_CHARACTERS:
        raise InvalidAnswer(f"it has {MOST_ANSWER_CHARACTERS:,} characters or more")
    value = output_schema.parse(record.response, mend=record.method == "text")
    check(value)
    return value


def _find_fault(
    record: CallRecord, output_schema: OutputSchema[T], check: Callable[[T], None]
) -> str:
    """Return why a call is not a valid answer, or "" if it is one."""
    try:
        _parse_answer(record, output_schema, check)
    except InvalidAnswer as error:
        reason = str(error)
        return reason if reason in COMPLAINTS else f"invalid: {reason}"
    return ""
