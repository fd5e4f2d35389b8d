"""One command that asks and pays: under a lock, through the call store, until told to stop."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from coreeval.errors import CoreEvalError, Interrupted, RunLocked
from coreeval.graph.desk import Desk
from coreeval.graph.progress import Progress, Watch
from coreeval.graph.signals import heeding_signals
from coreeval.models import close_models
from coreeval.tools.files import hold_lock
from coreeval.tools.stores.call_store import CallStore, open_calls

Found = TypeVar("Found")
_WAY_ON = "then the same command goes on"


@dataclass(frozen=True, kw_only=True)
class Session:
    """Who asks, who pays, and where it is kept; a stop or a kill costs what is in flight."""

    source: Path
    """The config's file."""
    lock: Path
    """Held meanwhile; in the folder of what was asked."""
    calls: Path
    """The call store."""
    payer: str
    concurrency: int
    watch: Watch

    def run(self, ask: Callable[[Desk, CallStore], Awaitable[Found]]) -> Found:
        """Return what came of asking.

        Raises:
            BudgetSpent: another call may cost more than the budget has left.
            Interrupted: a signal stopped it. In both cases the same call goes on from there.
            RunLocked: another process asks for this config.
            RunError: questions got no answer, or a model cannot be used; what was answered is kept.
        """
        self.lock.parent.mkdir(parents=True, exist_ok=True)
        where = str(self.lock.parent)
        taken = RunLocked("another process asks for this config", where=where, hint="wait for it")
        with hold_lock(self.lock, taken):
            try:
                return asyncio.run(self._asked(ask))
            except (KeyboardInterrupt, asyncio.CancelledError):
                raise Interrupted(
                    "stopped: what was answered is kept and not asked again",
                    where=str(self.source),
                    hint=_WAY_ON,
                ) from None
            except CoreEvalError as error:
                error.hint = f"{error.hint}; {_WAY_ON}" if error.hint else _WAY_ON
                raise

    async def _asked(self, ask: Callable[[Desk, CallStore], Awaitable[Found]]) -> Found:
        desk = Desk(concurrency=self.concurrency, watch=self.watch)
        calls = await asyncio.to_thread(open_calls, self.calls, self.payer)
        try:
            with heeding_signals(desk.stop, lambda: self.watch(_STOPPING)):
                return await ask(desk, calls)
        finally:
            await close_models()
            await asyncio.to_thread(calls.close)
            for note in desk.traffic.count_notes():
                self.watch(Progress(stage="asked", note=note))


_STOPPING = Progress(
    stage="stopping", note="waiting for the answers in flight; once more stops at once"
)
