"""Bringing the newest period without a release to one: once, by one process, and then no more."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from coreeval.config.schedule import HookConfig
from coreeval.errors import CoreEvalError, GateNotMet, Interrupted, ReviewOpen, RunError, RunLocked
from coreeval.schedule.does import Ran
from coreeval.schedule.done import Done, Ending, Hands
from coreeval.schedule.hooks import News, Told
from coreeval.schedule.plan import Period, Plan, planned, refuse_alike
from coreeval.schedule.state import Begun, Finished, State, Trouble, this_process
from coreeval.tools.workspace import RunFiles


def due(configs: Sequence[Path], hands: Hands) -> Iterator[Done]:
    """Do what is due for each config; trouble with one keeps no other waiting.

    Raises:
        UsageError: two configs share a name in one workspace.
    """
    refuse_alike_configs(configs)
    for config in configs:
        for done in _due(config, hands):
            yield done
            if done.ending == "interrupted":
                return


def refuse_alike_configs(configs: Sequence[Path]) -> None:
    """Refuse configs that would share their state; one that is wrong is told of in its turn.

    Raises:
        UsageError: two have one name in one workspace.
    """
    plans = list[Plan]()
    for config in configs if len(configs) > 1 else ():
        with ExitStack() as stack:
            try:
                plans.append(stack.enter_context(planned(config)))
            except CoreEvalError:
                continue
    refuse_alike(plans)


def _due(config: Path, hands: Hands) -> Iterator[Done]:
    try:
        with planned(config) as plan:
            yield from Turn(plan, hands).taken()
    except CoreEvalError as error:
        yield Done(
            config=config,
            name="",
            ending="failed",
            exit_code=error.exit_code,
            trouble=Trouble.of(error),
        )


@dataclass(frozen=True)
class Turn:
    """One look at one config."""

    plan: Plan
    hands: Hands

    def taken(self) -> Iterator[Done]:
        """Do what is due, if anything is and nobody else does it."""
        book = self.plan.book
        idle = self._idle(book.read())
        if idle:
            yield idle
            return
        self.hands.consent(self.plan)
        self.plan.check_hooks()
        self.plan.gates()  # a file that is none is told of before anything is spent
        try:
            with book.lease():
                yield from self._worked()
        except RunLocked:
            begun = book.read().begun
            yield self._done("held", note=begun.holder if begun else "another process")

    def _idle(self, state: State) -> Done | None:
        """Return why there is nothing to do, or None where there is."""
        now = self.hands.now()
        known = max(_moments(state), default=now)
        if now < known:
            return self._done(
                "clock_back",
                note=f"the clock says {now.isoformat()}, but this was done at {known.isoformat()}; "
                f"if that was a mistake of the clock, remove {self.plan.book.path}",
            )
        newest = self.plan.times.find_latest(now)
        if newest is None or (state.finished and state.finished.due_at >= newest):
            return self._done("nothing", next_due=self._next(now))
        return None if state.begun else self._there_already(now)

    def _there_already(self, now: datetime) -> Done | None:
        """Return that the newest period has a release which the schedule has not made."""
        period = self.plan.newest(now)
        there = period and self._released(period.version)
        if there is None:
            return None
        return self._done("nothing", period=period, release=str(there), next_due=self._next(now))

    def _next(self, now: datetime) -> datetime | None:
        found = next(self.plan.times.iter_after(now), None)
        return found and self.plan.local(found)

    def _worked(self) -> Iterator[Done]:
        """Finish what was begun for an earlier period, then bring the newest to its release."""
        state, now = self.plan.book.read(), self.hands.now()
        newest = self.plan.times.find_latest(now)
        if state.begun and newest and state.begun.due_at < newest:
            done = self._tried(state.begun)
            yield done
            if done.ending in ("interrupted", "held"):
                return
        idle = self._idle(self.plan.book.read())
        yield idle or self._tried(self._opened())

    def _opened(self) -> Begun:
        """Return what is to be tried: what was begun for the newest period, or a new run."""
        state, now = self.plan.book.read(), self.hands.now()
        period = self.plan.newest(now)
        assert period is not None, "_idle has looked"
        if state.begun and state.begun.due_at >= period.due_at:
            return state.begun
        return Begun.model_validate(
            {
                "due_at": period.due_at,
                "version": period.version,
                "run": str(self.plan.workspace.new_run(self.plan.name, now)),
                "began_at": now,
                "tried_at": now,
                "tries": 0,
                **this_process(),
            }
        )

    def _tried(self, begun: Begun) -> Done:
        """Bring a period to its release, as far as that goes, and record how far."""
        begun = begun.model_copy(
            update={
                "tried_at": self.hands.now(),
                "tries": begun.tries + 1,
                "outcome": "running",
                **this_process(),
            }
        )
        self._keep(begun)
        try:
            return self._carried_out(begun)
        except RunLocked as error:
            self._keep(begun.model_copy(update={"outcome": "interrupted"}))
            return self._done("held", begun, note=f"{error.message}: {error.where}")
        except Interrupted:
            return self._interrupted(begun)
        except CoreEvalError as error:
            return self._failed(begun, error)
        except OSError as error:
            where = str(error.filename or self.plan.workspace.root)
            return self._failed(begun, RunError(error.strerror or str(error), where=where))

    def _carried_out(self, begun: Begun) -> Done:
        """Run what is left of a run and release it; a release that is there keeps the gates too.

        Raises:
            CoreEvalError: it could not be done.
        """
        release, counts = self._released(begun.version), dict[str, int]()
        gates = self.plan.gates()
        if release and gates:
            self.hands.does.gate(release, gates)
        if release is None:
            ran = self._ran(begun)
            begun, counts = begun.model_copy(update={"run": str(ran.run)}), dict(ran.counts)
            self._keep(begun)
            if not ran.finished:
                return self._interrupted(begun)
            self._refuse_failed(ran)
            release = self.hands.does.release(
                ran.run,
                begun.version,
                require_review=self.plan.schedule.require_review,
                gates=gates,
            )
        return self._finished(begun, release, counts)

    def _ran(self, begun: Begun) -> Ran:
        """Bring a run to its end; what failed in it is tried once more."""
        run, does = Path(begun.run), self.hands.does
        ran = does.resume(run) if RunFiles(run).manifest.exists() else self._refreshed(run)
        return does.retry(ran.run) if ran.finished and ran.counts["failed"] else ran

    def _refreshed(self, run: Path) -> Ran:
        plan, age = self.plan, self.plan.schedule.stale_after
        parent = self.hands.does.latest(plan.workspace, plan.name) if age else None
        kept = age if parent else None
        return self.hands.does.refresh(plan.path, run, parent=parent, stale_after=kept)

    def _refuse_failed(self, ran: Ran) -> None:
        """Refuse to release a run in which too many samples failed.

        Raises:
            GateNotMet: more did than the schedule allows.
        """
        failed, total = ran.counts["failed"], ran.counts["total"]
        if failed > total * self.plan.schedule.max_failed:
            raise GateNotMet(
                f"{failed} of {total} samples failed, and schedule.max_failed is "
                f"{self.plan.schedule.max_failed:g}",
                where=str(ran.run),
                hint="they are tried again when the schedule is looked at next; see why with: "
                f"coreeval status {ran.run}",
            )

    def _released(self, version: str) -> Path | None:
        return self.hands.does.released(self.plan.workspace, self.plan.name, version)

    # -- endings --------------------------------------------------------------------------------

    def _finished(self, begun: Begun, release: Path, counts: dict[str, int]) -> Done:
        """Tell that there is a release, then close the period: told twice rather than never."""
        done = self._done("released", begun, release=str(release), counts=counts)
        told = self._tell(done, self.plan.schedule.hooks.success)
        state = self.plan.book.read()
        missed = self.plan.missed(state.finished.due_at, begun.due_at) if state.finished else 0
        finished = Finished(
            due_at=begun.due_at,
            version=begun.version,
            run=begun.run,
            release=str(release),
            ended_at=self.hands.now(),
        )
        self.plan.book.write(state.model_copy(update={"finished": finished, "begun": None}))
        bad = counts.get("failed", 0) or any(each.problem for each in told)
        return replace(
            done,
            told=told,
            missed=missed,
            exit_code=1 if bad else 0,
            next_due=self._next(self.hands.now()),
        )

    def _interrupted(self, begun: Begun) -> Done:
        self._keep(begun.model_copy(update={"outcome": "interrupted"}))
        return self._done("interrupted", begun, exit_code=Interrupted.exit_code)

    def _failed(self, begun: Begun, error: CoreEvalError) -> Done:
        """Record trouble, and tell of it where nobody knows of it yet."""
        gate, trouble = isinstance(error, GateNotMet | ReviewOpen), Trouble.of(error)
        outcome: Literal["gate", "failed"] = "gate" if gate else "failed"
        key, hooks = _key(outcome, trouble), self.plan.schedule.hooks
        begun = begun.model_copy(update={"outcome": outcome, "trouble": trouble})
        self._keep(begun)
        code = GateNotMet.exit_code if gate else error.exit_code
        done = self._done(outcome, begun, exit_code=code, trouble=trouble)
        if key in begun.told:
            return done
        told = self._tell(done, hooks.gate if gate else hooks.failure)
        self._keep(begun.model_copy(update={"told": (*begun.told, key)}))
        return replace(done, told=told)

    def _tell(self, done: Done, hooks: Sequence[HookConfig]) -> tuple[Told, ...]:
        period = done.period
        assert period is not None, "only a period is told of"
        news = News(
            outcome=done.ending,
            name=done.name,
            version=period.version,
            due_at=self.plan.local(period.due_at).isoformat(),
            run=done.run,
            release=done.release,
            counts=done.counts,
            trouble=done.trouble.model_dump() if done.trouble else None,
        )
        return self.hands.tell(hooks, news, self.plan.path.parent)

    def _keep(self, begun: Begun) -> None:
        state = self.plan.book.read()
        self.plan.book.write(state.model_copy(update={"begun": begun}))

    def _done(self, ending: Ending, begun: Begun | None = None, **more: object) -> Done:
        done = Done(config=self.plan.path, name=self.plan.name, ending=ending)
        if begun:
            done = replace(done, period=Period(begun.due_at, begun.version), run=begun.run)
        return replace(done, **more)  # type: ignore[arg-type]


def _key(outcome: str, trouble: Trouble) -> str:
    """Return under what trouble is remembered as told.

    Of a gate the words of the message count too: they say what was violated. Its numbers do not,
    nor other messages: they may differ at each try though nothing else has happened.
    """
    key = f"{outcome}:{trouble.kind}"
    if trouble.kind != GateNotMet.kind:
        return key
    words = re.sub(r"\d+(?:\.\d+)?", "", trouble.message)
    return f"{key}:{hashlib.sha256(words.encode()).hexdigest()[:12]}"


def _moments(state: State) -> Iterator[datetime]:
    """Yield when something was done."""
    if state.finished:
        yield state.finished.ended_at
    if state.begun:
        yield state.begun.tried_at
