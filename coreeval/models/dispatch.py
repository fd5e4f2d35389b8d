"""Sends one question: in turn, within the budget, and again if that may help."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from coreeval.config import Method
from coreeval.errors import ModelUnusable
from coreeval.models.activity import ActiveCall, ActiveCalls
from coreeval.models.budget import Budget
from coreeval.models.capabilities import Capabilities
from coreeval.models.failures import CallFailure, FinalError, to_final_error
from coreeval.models.model import IMPOSSIBLE_COUNT, Model, RequestOptions, find_impossible_count
from coreeval.models.rate_limit import Permit, RateLimiter
from coreeval.models.retry import Retry
from coreeval.tools.stores.call_store import Reservation

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage


DOWN_AFTER = 10
"""Questions given up one after the other, each after all its tries, until the model counts as down:
a text that its endpoint chokes on stands alone."""
CHARACTERS_A_TOKEN = 4
"""About, for tokens-per-minute limits, which are put right when the answer counts them."""


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """What is sent, whichever way the endpoint is asked for structure."""

    key: str
    """Under which the answer will be stored."""
    messages: Sequence[Mapping[str, str]]
    """What is asked, as `role` and `content`."""
    schema: Mapping[str, object]
    """Empty where the answer may have any form."""
    name: str
    """What the schema is called."""
    size: int
    """Bytes of messages and schema."""
    max_tokens: int
    draw: int
    looser: bool = False
    """Whether to ask for structure less strictly than the model is believed to need."""
    logprobs: int = 0
    """How many of the most probable tokens are to be told at each place; 0: none."""


@dataclass(frozen=True, kw_only=True)
class DispatchResult:
    """What came of sending a question."""

    answer: "AIMessage"
    method: Method
    tries: Sequence[str]
    """Why earlier requests for it came to nothing."""
    reservation: Reservation | None
    """What the record of the call settles."""


@dataclass(frozen=True, kw_only=True)
class Dispatcher:
    """The way to one model.

    Args:
        model: Who is asked.
        pace: How fast; shared with other roles of the same model.
        purse: Who pays; shared by the run.
        abilities: How models are asked for structure; shared by the process.
        retry: How often and how patiently a request is sent again.
        role: Who asks.
        traffic: Told where each call stands; shared by the process.
    """

    model: Model
    limiter: RateLimiter
    budget: Budget
    capabilities: Capabilities
    retry: Retry
    role: str = ""
    active_calls: ActiveCalls = field(default_factory=ActiveCalls)

    async def send(self, question: ModelRequest) -> DispatchResult:
        """Return the answer to one question.

        Raises:
            BudgetSpent: the budget does not allow another call.
            NoValidAnswer: the endpoint declined the text.
            ModelCallError: the request was rejected, or given up after all tries.
            CredentialError: the endpoint refused the key.
            ModelUnusable: the model cannot be used at all, now or later.
        """
        tries: list[str] = []
        try:
            with self.active_calls.track(self.role, self.model.name) as call:

                def rest(reason: str) -> None:
                    tries.append(reason)
                    call.move_to("resting")

                once = partial(self._send_with_fallback, question, tries, call)
                return await self.retry.run(once, rest)
        except CallFailure as failure:
            final = self._to_error(failure)
        raise final

    def _to_error(self, failure: CallFailure) -> FinalError:
        """Return the error that a failure is when nothing more is tried."""
        endpoint = self.model.identity.endpoint
        if failure.retryable:
            self.limiter.failures_in_a_row += 1
            if self.limiter.failures_in_a_row >= DOWN_AFTER:
                return ModelUnusable(
                    f"{self.model.name}: {DOWN_AFTER} calls in a row were given up, the last "
                    f"because: {failure.message}",
                    where=endpoint,
                    hint="see to the endpoint; coreeval retry takes up what has failed",
                )
        return to_final_error(
            failure,
            model=self.model.name,
            endpoint=endpoint,
            key_env=self.model.config.key_variable,
        )

    async def settle(self, sent: DispatchResult, usd: float | None) -> None:
        """Note what an answer cost; None where that is not known."""
        await self.budget.settle(sent.reservation, usd)

    def record_validity(self, sent: DispatchResult, *, valid: bool) -> None:
        """Note whether the answer to a plain question was one: the way of asking may not work."""
        self.capabilities.record_outcome(self.model, sent.method, valid=valid)

    async def _send_with_fallback(
        self, question: ModelRequest, tries: list[str], call: ActiveCall
    ) -> DispatchResult:
        """Send one request that the endpoint takes, whatever it takes."""
        while True:
            form = self._build_options(question)
            try:
                return await self._send_once(question, form, tries, call)
            except CallFailure as failure:
                if not self._fall_back(failure, form):
                    raise
                tries.append(failure.message)

    def _build_options(self, question: ModelRequest) -> RequestOptions:
        method: Method = "text"
        if question.schema:
            method = self.capabilities.method(self.model, looser=question.looser)
        return RequestOptions(
            schema=question.schema,
            name=question.name,
            method=method,
            max_tokens=question.max_tokens,
            plain_limit=self.capabilities.plain_limit(self.model),
            draw=question.draw,
            logprobs=question.logprobs,
        )

    def _fall_back(self, failure: CallFailure, form: RequestOptions) -> bool:
        if failure.refused == "method" and form.schema:
            return self.capabilities.drop_method(self.model, form.method)
        if failure.refused == "limit":
            return self.capabilities.drop_limit_name(self.model, plain=form.plain_limit)
        return False

    async def _send_once(
        self, question: ModelRequest, form: RequestOptions, tries: Sequence[str], call: ActiveCall
    ) -> DispatchResult:
        about = question.size // CHARACTERS_A_TOKEN
        call.move_to("turn")
        async with self.limiter.acquire(about) as turn:
            call.move_to("budget")
            reservation = await self.budget.reserve(
                self.model, question.key, prompt_bytes=question.size, max_tokens=form.max_tokens
            )
            call.move_to("answer")
            answer = await self._call_model(question, form, turn, reservation)
        method: Method = answer.response_metadata.get("method", form.method)  # as it was recorded
        return DispatchResult(answer=answer, method=method, tries=tries, reservation=reservation)

    async def _call_model(
        self,
        question: ModelRequest,
        form: RequestOptions,
        turn: Permit,
        reservation: Reservation | None,
    ) -> "AIMessage":
        try:
            answer = await self.model.chat.ask([dict(one) for one in question.messages], form)
        except CallFailure as failure:
            turn.record_failure(failure)
            self.active_calls.record_failure(self.model.name, failure)
            if failure.billed:
                await self.budget.write_off(reservation)
            else:
                await self.budget.release(reservation)
            raise
        except BaseException:
            await self.budget.write_off(reservation)
            raise
        answer = _drop_impossible_count(answer, question, form)
        if told := answer.response_metadata.get(IMPOSSIBLE_COUNT):
            self.active_calls.record_impossible_count(self.model.name, str(told))
        usage = answer.usage_metadata
        turn.record_answer(
            answer.response_metadata["limits"], usage["total_tokens"] if usage else turn.tokens
        )
        return answer


def _drop_impossible_count(
    answer: "AIMessage", question: ModelRequest, form: RequestOptions
) -> "AIMessage":
    """Return an answer with its tokens; without them where its request cannot have had so many."""
    usage = answer.usage_metadata
    told = usage and find_impossible_count(
        usage, prompt_bytes=question.size, max_tokens=form.max_tokens
    )
    if not told:
        return answer
    metadata = {**answer.response_metadata, IMPOSSIBLE_COUNT: str(told)}
    return answer.model_copy(update={"usage_metadata": None, "response_metadata": metadata})
