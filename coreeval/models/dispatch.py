"""Sends requests to a model, with retries, supported options, rate limits and a budget.

`Dispatcher` is the interface for clients. `LiveDispatcher` sends each request immediately, through
five independent parts, from the outside in:

- `FirstRequests` sends one request ahead of all that begin alike, which the provider then has in
  its cache;
- `Retry` sends again what failed and may succeed later;
- `Capabilities` chooses the options, and others if the endpoint does not support them;
- `RateLimiter` lets the request wait for its turn;
- `Budget` reserves the most that it can cost.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from coreeval.config import Method
from coreeval.errors import ModelUnusable
from coreeval.models.activity import ActiveCall, ActiveCalls
from coreeval.models.budget import Budget, answer_cost
from coreeval.models.capabilities import Capabilities
from coreeval.models.failures import CallFailure, FinalError, to_final_error
from coreeval.models.model import IMPOSSIBLE_COUNT, Model, RequestOptions, find_impossible_count
from coreeval.models.prompt_cache import FirstRequests, find_fewest_tokens
from coreeval.models.rate_limit import Permit, RateLimiter
from coreeval.models.retry import Retry
from coreeval.tools.stores.batch_writer import Write
from coreeval.tools.stores.call_ledger import Reservation

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage


DOWN_AFTER = 10
"""The number of consecutive requests that failed after all tries, from which the model counts as
down; a single text that the endpoint cannot handle does not."""
CHARACTERS_A_TOKEN = 4
"""An estimate for tokens-per-minute limits; corrected when the answer reports its tokens."""


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """A request, independent of the method of structured output."""

    key: str
    """The key under which the answer is stored."""
    messages: Sequence[Mapping[str, str]]
    """The messages, each with `role` and `content`."""
    options: RequestOptions
    """The options; the dispatcher chooses the method and the name of the token limit."""
    size: int
    """Bytes of messages and schema."""
    looser: bool = False
    """Whether to use a less strict method than the best one known for the model."""


@dataclass(frozen=True, kw_only=True)
class DispatchResult:
    """The answer to a request, with its cost and failed tries."""

    answer: "AIMessage"
    method: Method
    tries: Sequence[str]
    """Why earlier requests for it failed."""
    usd: float | None
    """The cost in US dollars; None if unknown."""
    reservation: Reservation | None
    """The reservation, settled in the transaction that stores the call."""
    also: Sequence[Write] = ()
    """What else that transaction writes."""


class Dispatcher(Protocol):
    """Sends requests to one model: at once, in batches, or through another process."""

    async def send(self, request: ModelRequest) -> DispatchResult:
        """Return the answer to one request.

        An implementation may rely on the client: it never sends a key twice at the same time; it
        runs each request in its own task, which continues if the callers are cancelled; it
        validates the answer and stores it in the transaction that ends its reservation.

        The client relies on the implementation: it reserves money before it sends a request and
        settles it with the budget, it drops impossible token counts, and it uses
        `pause_sample_clock` while a request waits for others, which may take hours.

        Raises:
            BudgetSpent: the budget does not allow another call.
            NoValidAnswer: the endpoint declined the text.
            ModelCallError: the request was rejected, or given up after all tries.
            CredentialError: the endpoint refused the key.
            ModelUnusable: the model cannot be used at all, now or later.
            CallQueued: the request waits for a batch; the same request returns the answer later.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class LiveDispatcher:
    """Sends each request immediately and waits for its answer.

    Args:
        model: The model.
        limiter: The rate limiter; shared with other roles of the same model.
        budget: The run's budget.
        capabilities: Known methods and options of models; shared by the process.
        retry: When and how often a failed request is sent again.
        role: The role that asks.
        active_calls: Receives the stage of each call; shared by the process.
        first_requests: Which requests of the role others that begin alike wait for.
    """

    model: Model
    limiter: RateLimiter
    budget: Budget
    capabilities: Capabilities
    retry: Retry
    role: str = ""
    active_calls: ActiveCalls = field(default_factory=ActiveCalls)
    first_requests: FirstRequests = field(default_factory=FirstRequests)

    async def send(self, request: ModelRequest) -> DispatchResult:
        """Return the answer to one request; see `Dispatcher.send`."""
        tries: list[str] = []
        try:
            with self.active_calls.track(self.role, self.model.name) as call:

                def rest(reason: str) -> None:
                    tries.append(reason)
                    call.move_to("resting")

                attempt = partial(self._attempt, request, tries, call)
                async with self.first_requests.go_ahead(self._find_prefix(request)):
                    result = await self.retry.run(attempt, rest)
        except CallFailure as failure:
            final = self.to_error(failure)
        else:
            await self.budget.settle(result.reservation, result.usd)
            return result
        raise final

    def _find_prefix(self, request: ModelRequest) -> tuple[str, str] | None:
        """Return what a request has in common with others, if the provider may cache it."""
        fewest, first = find_fewest_tokens(self.model.config), request.messages[0]
        if fewest is None or first["role"] != "system":
            return None
        own = sum(len(each["content"].encode()) for each in request.messages[1:])
        is_short = request.size - own < fewest * CHARACTERS_A_TOKEN
        return None if is_short else (request.options.name, first["content"])

    async def _attempt(
        self, request: ModelRequest, tries: list[str], call: ActiveCall
    ) -> DispatchResult:
        """Send a request once, with options that the endpoint supports."""
        while True:
            options = self.choose_options(request)
            call.move_to("turn")
            try:
                async with self.limiter.acquire(request.size // CHARACTERS_A_TOKEN) as permit:
                    call.move_to("budget")
                    reservation = await self.budget.reserve(
                        self.model,
                        request.key,
                        prompt_bytes=request.size,
                        max_tokens=options.max_tokens,
                    )
                    call.move_to("answer")
                    async with self._record_failure(permit, reservation):
                        messages = [dict(one) for one in request.messages]
                        answer = await self.model.chat.ask(messages, options)
                    answer = self._record_answer(answer, request, permit)
            except CallFailure as failure:
                if not self.fall_back(failure, options):
                    raise
                tries.append(failure.message)
            else:
                return DispatchResult(
                    answer=answer,
                    method=answer.response_metadata.get("method", options.method),  # as recorded
                    tries=tries,
                    usd=answer_cost(answer, self.budget.find_price(self.model)),
                    reservation=reservation,
                )

    def choose_options(self, request: ModelRequest) -> RequestOptions:
        """Return the options with the best method that the endpoint is known to support."""
        method: Method = "text"
        if request.options.schema:
            method = self.capabilities.method(self.model, looser=request.looser)
        plain_limit = self.capabilities.plain_limit(self.model)
        return replace(request.options, method=method, plain_limit=plain_limit)

    def fall_back(self, failure: CallFailure, options: RequestOptions) -> bool:
        """Drop the option that the endpoint rejected; return whether another one is left."""
        if failure.refused == "method" and options.schema:
            return self.capabilities.drop_method(self.model, options.method)
        if failure.refused == "limit":
            return self.capabilities.drop_limit_name(self.model, plain=options.plain_limit)
        return False

    @asynccontextmanager
    async def _record_failure(
        self, permit: Permit, reservation: Reservation | None
    ) -> AsyncIterator[None]:
        """Record the failure of the request inside the block, and end its reservation."""
        try:
            yield
        except CallFailure as failure:
            permit.record_failure(failure)
            self.active_calls.record_failure(self.model.name, failure)
            if failure.billed:
                await self.budget.write_off(reservation)
            else:
                await self.budget.release(reservation)
            raise
        except BaseException:
            await self.budget.write_off(reservation)
            raise

    def _record_answer(
        self, answer: "AIMessage", request: ModelRequest, permit: Permit
    ) -> "AIMessage":
        """Record an answer; return it without impossible token counts."""
        answer = drop_impossible_count(
            answer, prompt_bytes=request.size, max_tokens=request.options.max_tokens
        )
        if told := answer.response_metadata.get(IMPOSSIBLE_COUNT):
            self.active_calls.record_impossible_count(self.model.name, str(told))
        usage = answer.usage_metadata
        tokens = usage["total_tokens"] if usage else permit.tokens
        permit.record_answer(answer.response_metadata["limits"], tokens)
        return answer

    def to_error(self, failure: CallFailure) -> FinalError:
        """Return the error for a failure that is not retried."""
        endpoint = self.model.identity.endpoint
        if failure.retryable:
            self.limiter.failures_in_a_row += 1
            if self.limiter.failures_in_a_row >= DOWN_AFTER:
                return ModelUnusable(
                    f"{self.model.name}: {DOWN_AFTER} calls in a row failed; the last error was: "
                    f"{failure.message}",
                    where=endpoint,
                    hint="check the endpoint, then retry the failed samples with coreeval retry",
                )
        return to_final_error(
            failure,
            model=self.model.name,
            endpoint=endpoint,
            key_env=self.model.config.key_variable,
        )


def drop_impossible_count(
    answer: "AIMessage", *, prompt_bytes: int, max_tokens: int
) -> "AIMessage":
    """Return an answer, without its token counts if they are impossible for the request.

    Args:
        answer: The answer.
        prompt_bytes: Bytes of messages and schema of the request.
        max_tokens: The token limit of the answer.
    """
    usage = answer.usage_metadata
    told = usage and find_impossible_count(usage, prompt_bytes=prompt_bytes, max_tokens=max_tokens)
    if not told:
        return answer
    metadata = {**answer.response_metadata, IMPOSSIBLE_COUNT: str(told)}
    return answer.model_copy(update={"usage_metadata": None, "response_metadata": metadata})
