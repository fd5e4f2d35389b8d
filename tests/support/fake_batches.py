"""Batches of a provider within the test's own process, which does as the test says."""

from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from urllib.request import Request, urlopen

from langchain_core.messages import AIMessage

from coreeval.models.batches import BatchAnswer, BatchRequest, BatchState, QueueFull
from coreeval.models.failures import CallFailure
from coreeval.models.openai import read_answer


@dataclass
class FakeProvider:
    """A provider whose batches end at once, unless the test says otherwise.

    Args:
        url: The server that answers the requests of a batch.
    """

    url: str
    ends: bool = True
    """Whether batches end when they are looked at."""
    cancels_slowly: bool = False
    """Whether a cancelled batch goes on until batches end."""
    refuses: str = ""
    """Why batches fail their validation."""
    has_batches: bool = True
    loses: bool = False
    failures: dict[str, CallFailure | None] = field(default_factory=dict)
    """What requests come to in place of an answer, by custom id; "*" for all."""
    breaks_after_create: int = 0
    """How many of the next creations are made, and then the connection breaks."""
    breaks_before_create: int = 0
    """How many of the next creations make nothing, and then the connection breaks."""
    clock_ahead: timedelta = timedelta()
    """How far its clock is ahead of that of this machine."""
    hides: int = 0
    """How many of the next searches for a batch end without an answer."""
    queue_limit: int | None = None
    """How many requests may be in open batches; None for any number."""
    refuses_at_once: bool = False
    """Whether a batch that is too much is refused when it is made, not when it is looked at."""
    queued: set[str] = field(default_factory=set)
    """The batches that are within the limit."""
    is_down: bool = False
    """Whether no look gets an answer."""
    looks: int = 0
    cuts_results: int = 0
    """How many of the next reads end in the middle."""
    strays: bool = False
    """Whether results name a question twice, and one that nobody asked."""
    states: dict[str, BatchState] = field(default_factory=dict)
    requests: dict[str, list[BatchRequest]] = field(default_factory=dict)
    paid: Counter[str] = field(default_factory=Counter)
    """How often each request was answered in a batch."""
    deleted: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    """The batches that were to be cancelled, as often as that was asked for."""

    @property
    def sizes(self) -> list[int]:
        """How many requests each batch had, in order."""
        return [len(each) for each in self.requests.values()]

    def has_room(self, total: int) -> bool:
        """Return whether so many more requests may be in open batches."""
        taken = sum(self.states[each].total for each in self.queued)
        return self.queue_limit is None or taken + total <= self.queue_limit

    def answer(self, request: BatchRequest) -> "AIMessage | CallFailure | None":
        """Answer one request of a batch."""
        for name in (request.custom_id, "*"):
            if name in self.failures:
                return self.failures[name]
        self.paid[request.custom_id] += 1
        headers = {"Content-Type": "application/json"}
        live = Request(f"{self.url}/chat/completions", data=request.body, headers=headers)
        with urlopen(live) as response:
            return read_answer(response.read(), (), "")


@dataclass
class FakeBatches:
    """The endpoint of a model at a provider."""

    provider: FakeProvider
    most_requests: int = 1000
    most_bytes: int = 1 << 20
    absent_after_s: float = 0.0

    async def read_clock(self) -> datetime:
        return datetime.now(UTC) + self.provider.clock_ahead

    async def create(self, batch_id: str, requests: Sequence[BatchRequest]) -> BatchState:
        provider = self.provider
        if not provider.has_batches:
            raise CallFailure("unsupported", "the endpoint does not support batches")
        if provider.refuses_at_once and not provider.has_room(len(requests)):
            raise QueueFull("Enqueued token limit reached")
        if provider.breaks_before_create:
            provider.breaks_before_create -= 1
            raise CallFailure("transient", "the connection broke", billed=True)
        state = BatchState(
            provider_id=f"at-provider-{batch_id}",
            phase="running",
            status="in_progress",
            total=len(requests),
            succeeded=0,
            failed=0,
            input_file=f"file-{batch_id}",
            created_at=datetime.now(UTC),
        )
        provider.states[state.provider_id] = state
        provider.requests[state.provider_id] = list(requests)
        if provider.breaks_after_create:
            provider.breaks_after_create -= 1
            raise CallFailure("transient", "the connection broke", billed=True)
        return state

    async def find(
        self,
        batch_id: str,
        requests: Collection[str],
        *,
        since: datetime,
        total: int | None = None,
        known: Collection[str] = (),
    ) -> BatchState | None:
        if self.provider.hides:
            self.provider.hides -= 1
            raise CallFailure("transient", "no list now")
        return self.provider.states.get(f"at-provider-{batch_id}")

    async def look(self, provider_id: str) -> BatchState:
        provider, state = self.provider, self.provider.states[provider_id]
        provider.looks += 1
        if provider.is_down:
            raise CallFailure("transient", "the provider is down", retry_after=0.0)
        if provider.loses:
            return replace(state, phase="lost", status="not found")
        if provider.refuses:
            return replace(state, phase="failed", status="failed", problem=provider.refuses)
        if provider_id not in provider.queued and state.phase == "running":
            if not provider.has_room(state.total):
                told = "Enqueued token limit reached"
                state = replace(
                    state, phase="failed", status="failed", problem=told, is_queue_full=True
                )
                provider.states[provider_id] = state
                return state
            provider.queued.add(provider_id)
        if provider.ends and state.phase == "running":
            status = "cancelled" if state.status == "cancelling" else "completed"
            state = replace(state, phase="ended", status=status, succeeded=state.total)
            provider.states[provider_id] = state
            provider.queued.discard(provider_id)
        return state

    async def cancel(self, provider_id: str) -> BatchState:
        self.provider.cancelled.append(provider_id)
        state = self.provider.states[provider_id]
        if self.provider.cancels_slowly:
            state = replace(state, status="cancelling")
        else:
            state = replace(state, phase="ended", status="cancelled")
        self.provider.states[provider_id] = state
        return state

    async def read_answers(self, state: BatchState) -> AsyncIterator[BatchAnswer]:
        requests = self.provider.requests[state.provider_id]
        cut = self.provider.cuts_results > 0
        self.provider.cuts_results -= cut
        for request in requests[: len(requests) // 2] if cut else requests[::-1]:
            yield BatchAnswer(custom_id=request.custom_id, outcome=self.provider.answer(request))
        if self.provider.strays:
            yield BatchAnswer(custom_id=requests[0].custom_id, outcome=AIMessage("no, another"))
            yield BatchAnswer(custom_id="nobody-asked-this", outcome=AIMessage("an answer"))
        if cut:
            raise CallFailure("transient", "the results file ends early")

    async def delete_files(self, state: BatchState) -> None:
        self.provider.deleted.append(state.input_file)
