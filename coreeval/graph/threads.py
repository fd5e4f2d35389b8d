"""One LangGraph thread per sample: starts or resumes it, and brings it to one result."""

import asyncio
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import RunControl
from langgraph.types import Durability

from coreeval.agents.edits import list_replaced_facts
from coreeval.errors import CoreEvalError, ModelCallError, SampleBudgetSpent
from coreeval.graph.checkpoints import CheckpointStore, report_damage
from coreeval.graph.pool import Stop
from coreeval.graph.recorder import NULL_OBSERVER, InFlight, RunObserver
from coreeval.graph.state import SampleInput, SampleState, build_result, start_sample
from coreeval.models.activity import limit_sample_time
from coreeval.models.batch_dispatch import CallQueued
from coreeval.models.rate_limit import RANK
from coreeval.models.running_steps import track_steps
from coreeval.models.sample_cost import limit_sample_cost
from coreeval.schema import Outcome, Plan, ReplacedFact, Result
from coreeval.tools.cutoffs import TargetDates, measure_freshness
from coreeval.tools.stores.run_store import RunStore

DURABILITY: Durability = "exit"
"""Saves a thread's state when it stops. Work lost by a kill is repeated for free from stored calls;
saving each step takes a millisecond per call (benchmarks/trivial_nodes.py, research: performance
§4)."""
STEPS_BEFORE, STEPS_PER_ATTEMPT = 12, 8
"""Bound on the supersteps that LangGraph may run for one sample."""
TRACED_AS = "refresh sample"
"""Name of a sample's trace in LangSmith."""
BEFORE_FAILED = {"unsafe", "label_unrecoverable"}
"""Outcomes that a later failure does not replace."""
SampleApp = CompiledStateGraph[SampleState, None, SampleInput, SampleState]


@dataclass(frozen=True, kw_only=True)
class SampleThreads:
    """Processes samples to their results, each in its own thread."""

    app: SampleApp
    saver: CheckpointStore
    checkpoints: Path
    """Path of the checkpoint file."""
    store: RunStore
    in_flight: InFlight
    stop: Stop
    prefix: str
    """Prefix of thread ids: `run : graph version`; the sample's id follows."""
    max_attempts: int
    timeout_s: float
    max_usd: float | None = None
    """The cost of a sample's calls, in US dollars, beyond which no further call is sent."""
    observer: RunObserver = NULL_OBSERVER
    targets: Sequence[TargetDates] = ()
    """Targets with whose dates the evidence of each sample is compared."""

    async def run(self, sample_id: str, rank: int = 0) -> Outcome | None:
        """Run one sample and commit its result; return None if it stays open.

        A sample stays open if it was drained or waits for a batch.

        Args:
            sample_id: The sample.
            rank: Its position in the order of starting; models serve earlier samples first.

        Raises:
            CoreEvalError: something that no other sample could survive either.
        """
        reached = await self._reach(sample_id, rank)
        return reached.outcome if isinstance(reached, Result) else None

    async def to_news(self, sample_id: str, rank: int = 0) -> Result | SampleState | None:
        """Run one sample up to its search for news, where its thread waits.

        A sample that has an outcome and needs no news waits before its rewording, so that in a run
        with batches its calls are sent together with the others'.

        Returns its state there, its result if it ended before, or None if it stays open.

        Raises:
            CoreEvalError: something that no other sample could survive either.
        """
        return await self._reach(sample_id, rank, before=("retrieve", "reword"))

    async def _reach(
        self, sample_id: str, rank: int, before: Sequence[str] = ()
    ) -> Result | SampleState | None:
        """Run a sample to its result, or to a point before one of the nodes."""
        thread_id = f"{self.prefix}:{sample_id}"
        RANK.set(rank)
        try:
            reached = await self._finish(sample_id, thread_id, before)
        except (GraphDrained, CallQueued) as parting:
            _drop_frames(parting)
            await self._store_place(thread_id)
            return None
        except CoreEvalError:
            await self._store_place(thread_id)
            raise
        finally:
            self.in_flight.leave(sample_id)
        if not isinstance(reached, Result):
            if self.saver.is_full:
                await self._store_place(thread_id)
            return reached
        result = await self._commit(reached)
        self.observer.on_end(sample_id, result)
        with report_damage(self.checkpoints):
            await self.saver.adelete_thread(thread_id)
        return result

    async def _commit(self, result: Result) -> Result:
        """Commit a result; return the sample's, which may be the earlier one of another process."""
        if await self.store.commit(result):
            return result
        return await asyncio.to_thread(self.store.result, result.sample_id) or result

    async def _store_place(self, thread_id: str) -> None:
        """Store the checkpoint of a thread that has not ended.

        If the record of its steps could not be written, the steps have to be repeated.
        """
        with report_damage(self.checkpoints):
            if await self.store.history.flush_steps():
                await self.saver.keep(thread_id)
            else:
                await self.saver.adelete_thread(thread_id)

    async def _finish(
        self, sample_id: str, thread_id: str, before: Sequence[str]
    ) -> Result | SampleState:
        """Return the result of a sample that ended or failed."""
        try:
            with report_damage(self.checkpoints):
                return await self._result(sample_id, thread_id, before)
        except (GraphDrained, CallQueued, CoreEvalError):
            raise
        except Exception as error:  # noqa: BLE001 - one sample's trouble must not end a night's run
            return await self._build_failure(sample_id, thread_id, error)

    async def _result(
        self, sample_id: str, thread_id: str, before: Sequence[str]
    ) -> Result | SampleState:
        with self.stop.control() as control:
            async with limit_sample_time(self.timeout_s):
                with track_steps(), limit_sample_cost(self.max_usd):
                    state = await self._go_on(sample_id, thread_id, control, before)
        if before and ("outcome" not in state or await self._find_state(thread_id, before)):
            return state
        return await conclude_sample(state, self.store, self.targets)

    async def _find_state(self, thread_id: str, before: Sequence[str]) -> SampleState | None:
        """Return the state of a thread that is waiting before one of the nodes."""
        if not before:
            return None
        place = await self.app.aget_state(self._config(thread_id))
        return cast(SampleState, place.values) if set(before) & set(place.next) else None

    async def _go_on(
        self, sample_id: str, thread_id: str, control: RunControl, before: Sequence[str]
    ) -> SampleState:
        """Resume the thread from its checkpoint, or start it, until it has an outcome.

        A thread that looks finished may have lost its last checkpoint in a kill (its writes are
        stored, its place is not), so only an outcome counts as the end.
        """
        config = self._config(thread_id)
        if self.saver.has_thread(thread_id):
            state = await self._find_state(thread_id, before)
            state = state or await self._invoke(None, config, control, before)
            if "outcome" in state or await self._find_state(thread_id, before):
                return state
            await self.saver.adelete_thread(thread_id)
        return await self._invoke(start_sample(sample_id), config, control, before)

    async def _invoke(
        self,
        start: SampleState | None,
        config: RunnableConfig,
        control: RunControl,
        before: Sequence[str],
    ) -> SampleState:
        state = await self.app.ainvoke(
            start, config, durability=DURABILITY, control=control, interrupt_before=before
        )
        return cast(SampleState, state)

    def _config(self, thread_id: str) -> RunnableConfig:
        return {
            "configurable": {"thread_id": thread_id},
            "recursion_limit": limit_steps(self.max_attempts),
            "run_name": TRACED_AS,
        }

    async def _build_failure(self, sample_id: str, thread_id: str, error: Exception) -> Result:
        """Return the result of a failed sample, which keeps its state so far."""
        with report_damage(self.checkpoints):
            last = await self.app.aget_state(self._config(thread_id))
        state = cast(SampleState, start_sample(sample_id) | last.values)
        return build_failure(state, error, self.timeout_s)


def limit_steps(max_attempts: int) -> int:
    """Return the most supersteps that LangGraph may run for one sample."""
    return STEPS_BEFORE + STEPS_PER_ATTEMPT * max_attempts


async def conclude_sample(
    state: SampleState, store: RunStore, targets: Sequence[TargetDates]
) -> Result:
    """Return the result of a sample by its last state, with how recent its evidence is.

    Raises:
        KeyError: the sample has not reached an outcome.
    """
    facts = _parse_facts(state["sample_id"], state)
    result = build_result(state, [fact.model_dump(mode="json") for fact in facts])
    ids = list(dict.fromkeys(fact.evidence_id for fact in facts))
    evidence = await store.history.load_evidence(ids)
    freshness = measure_freshness(evidence.values(), targets)
    return result.model_copy(update={"freshness": freshness})


def build_failure(state: SampleState, error: Exception, timeout_s: float) -> Result:
    """Return the result of a failed sample, by the last state that it reached.

    Unsafe or unrecoverable takes precedence over failed (design: outcomes).
    """
    if state.get("outcome") not in BEFORE_FAILED:
        state["outcome"], state["reason"] = "failed", describe_error(error, timeout_s)
    return build_result(state, [])


def _drop_frames(error: Exception) -> None:
    """Clear the frames of an error's traceback.

    LangGraph and asyncio keep a reference to the error, and its frames refer to them: this cycle
    would keep prompts and state of each waiting sample in memory until a garbage collection.
    """
    traceback.clear_frames(error.__traceback__)
    error.__traceback__ = None


def describe_error(error: Exception, timeout_s: float) -> str:
    """Return the reason that a sample failed, in words for the user."""
    if isinstance(error, TimeoutError):
        return f"took longer than {timeout_s:g} s (run.sample_timeout_s)"
    if isinstance(error, ModelCallError | SampleBudgetSpent):
        return str(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"


def _parse_facts(sample_id: str, state: SampleState) -> Sequence[ReplacedFact]:
    if state["outcome"] != "accepted":
        return ()
    return list_replaced_facts(sample_id, Plan.model_validate(state["plan"]), state.get("used", ()))
