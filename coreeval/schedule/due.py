"""Makes the release of the newest period without one, exactly once and in one process."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from coreeval.config.schedule import FIRST_MOMENT, HookConfig, format_version, is_version
from coreeval.errors import (
    WAITING,
    GateNotMet,
    Interrupted,
    ReviewOpen,
    RunLocked,
    to_coreeval_error,
)
from coreeval.schedule.hooks import HookEvent, HookResult, require_consent
from coreeval.schedule.plan import (
    ErrorRecord,
    OpenPeriod,
    PeriodRelease,
    SchedulePeriod,
    SchedulePlan,
    ScheduleState,
    describe_process,
    open_plan,
    refuse_duplicates,
)
from coreeval.schedule.steps import StepResult, StepRunner
from coreeval.tools.clock import Clock, utc_now
from coreeval.tools.files import is_inside, special_kind
from coreeval.tools.workspace import RunFiles

Ending = Literal[
    "released", "failed", "gate", "interrupted", "waiting", "held", "nothing", "clock_back"
]
IDLE_ENDINGS: frozenset[Ending] = frozenset({"nothing", "held"})
"""The results of checks that had nothing to do."""
HookCaller = Callable[[Sequence[HookConfig], HookEvent, Path], tuple[HookResult, ...]]


@dataclass(frozen=True, kw_only=True)
class Dependencies:
    """The steps, hooks, consent check and clock of a schedule; tests replace them."""

    steps: StepRunner
    run_hooks: HookCaller
    now: Clock = utc_now
    consent: Callable[[SchedulePlan], None] = require_consent
    """Raises a UsageError if nobody has consented to a schedule's hooks and endpoints."""


@dataclass(frozen=True, kw_only=True)
class ScheduleResult:
    """The result for one config, or for one of its periods."""

    config: Path
    name: str
    ending: Ending
    exit_code: int = 0
    period: SchedulePeriod | None = None
    next_due: datetime | None = None
    """Local time of the schedule's zone; None if there is still something to do."""
    missed: int = 0
    """The number of earlier periods that have no release and will not get one."""
    run: str = ""
    release: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    control: Mapping[str, int] | None = None
    """The counts of the pass that writes the control arm; None without one."""
    trouble: ErrorRecord | None = None
    error: Exception | None = None
    """The exception that `trouble` records, with its traceback."""
    told: tuple[HookResult, ...] = ()
    note: str = ""


def run_due(configs: Sequence[Path], dependencies: Dependencies) -> Iterator[ScheduleResult]:
    """Run what is due for each config; a failure of one does not affect the others.

    Raises:
        UsageError: two configs share a name in one workspace.
    """
    refuse_duplicate_configs(configs)
    for config in configs:
        for done in _run_config(config, dependencies):
            yield done
            if done.ending == "interrupted":
                return


def refuse_duplicate_configs(configs: Sequence[Path]) -> None:
    """Refuse configs that would share state; an invalid config is reported in its turn.

    Raises:
        UsageError: two configs share a name in one workspace.
    """
    plans = list[SchedulePlan]()
    for config in configs if len(configs) > 1 else ():
        with ExitStack() as stack:
            try:
                plans.append(stack.enter_context(open_plan(config)))
            except Exception:  # noqa: BLE001 - whatever it is, `_run_config` reports it
                continue
    refuse_duplicates(plans)


def _run_config(config: Path, dependencies: Dependencies) -> Iterator[ScheduleResult]:
    try:
        with open_plan(config) as plan:
            yield from ScheduleCheck(plan, dependencies).run()
    except Exception as error:  # noqa: BLE001 - not even a fault of ours may stop other configs
        told = to_coreeval_error(error)
        if told is not error:
            told.where = ", ".join(filter(None, [str(config), told.where]))
        yield ScheduleResult(
            config=config,
            name="",
            ending="failed",
            exit_code=told.exit_code,
            trouble=ErrorRecord.from_error(told),
            error=error,
        )


@dataclass(frozen=True)
class ScheduleCheck:
    """One check of one config."""

    plan: SchedulePlan
    dependencies: Dependencies

    def run(self) -> Iterator[ScheduleResult]:
        """Do what is due, unless another process is doing it."""
        state_file = self.plan.state_file
        state = state_file.read()
        self.plan.refuse_other_config(state)
        idle = self._idle_result(state)
        if idle:
            yield idle
            return
        self.dependencies.consent(self.plan)
        self.plan.check_hooks()
        self.plan.load_gates()  # an invalid file is reported before anything is spent
        try:
            with state_file.lease():
                yield from self._work()
        except RunLocked:
            begun = state_file.read().begun
            yield self._make_result("held", note=begun.holder if begun else "another process")

    def _idle_result(self, state: ScheduleState) -> ScheduleResult | None:
        """Return why there is nothing to do; None if there is something to do."""
        now = self.dependencies.now()
        known = max(_list_moments(state), default=now)
        if max(now, FIRST_MOMENT) < known:
            return self._make_result(
                "clock_back",
                note=f"the clock shows {now.isoformat()}, but the schedule was last active at "
                f"{known.isoformat()}; if the clock was wrong then, remove "
                f"{self.plan.state_file.path}",
            )
        newest = self.plan.times.find_latest(now)
        if newest is None or (state.finished and state.finished.due_at >= newest):
            return self._make_result("nothing", next_due=self._next_due(now))
        return None if state.begun else self._existing_release(now)

    def _existing_release(self, now: datetime) -> ScheduleResult | None:
        """Return a result if the newest period has a release that the schedule did not make.

        If the schedule has gates, `_complete` checks the release first.
        """
        if self.plan.schedule.gates is not None:
            return None
        period = self.plan.find_newest(now)
        there = period and self._find_release(period.version)
        if there is None:
            return None
        return self._make_result(
            "nothing", period=period, release=str(there), next_due=self._next_due(now)
        )

    def _next_due(self, now: datetime) -> datetime | None:
        found = next(self.plan.times.iter_after(now), None)
        return found and self.plan.to_local(found)

    def _work(self) -> Iterator[ScheduleResult]:
        """Finish the period begun earlier, then bring the newest period to its release."""
        state, now = self.plan.state_file.read(), self.dependencies.now()
        newest = self.plan.times.find_latest(now)
        if state.begun and newest and state.begun.due_at < newest:
            done = self._try_period(state.begun)
            yield done
            if done.ending in ("interrupted", "waiting", "held"):
                return
        idle = self._idle_result(self.plan.state_file.read())
        yield idle or self._try_period(self._open_period())

    def _open_period(self) -> OpenPeriod:
        """Return the period to try: the newest if it was begun, else with a new run."""
        state, now = self.plan.state_file.read(), self.dependencies.now()
        period = self.plan.find_newest(now)
        assert period is not None, "_idle has looked"
        if state.begun and state.begun.due_at >= period.due_at:
            return state.begun
        return OpenPeriod.model_validate(
            {
                "due_at": period.due_at,
                "version": period.version,
                "run": str(self.plan.workspace.new_run(self.plan.name, now)),
                "began_at": now,
                "tried_at": now,
                "tries": 0,
                **describe_process(),
            }
        )

    def _try_period(self, begun: OpenPeriod) -> ScheduleResult:
        """Bring a period as far towards its release as possible, and record the progress.

        The version from an earlier pattern is kept, unless it is not valid for a release.
        """
        plan = self.plan
        version = format_version(begun.due_at, plan.times, plan.schedule.version_pattern)
        begun = begun.model_copy(
            update={
                "run": str(self._locate_run(begun)),
                "tried_at": self.dependencies.now(),
                "tries": begun.tries + 1,
                "version": begun.version if is_version(begun.version) else version,
                "outcome": "running",
                **describe_process(),
            }
        )
        self._save(begun)
        try:
            return self._try_steps(begun)
        except KeyboardInterrupt:
            saved = self.plan.state_file.read().begun  # with the period's progress
            if saved is None:
                raise
            return self._record_interrupt(saved)

    def _locate_run(self, begun: OpenPeriod) -> Path:
        """Return a begun period's run in this workspace, or the path of a new one.

        The state may come from another machine or from a stranger, as in a cloned repository.
        """
        stamp = Path(begun.run).name
        run = self.plan.workspace.runs / self.plan.name / stamp
        if not is_inside(stamp) or special_kind(run):
            return self.plan.workspace.new_run(self.plan.name, self.dependencies.now())
        return run

    def _try_steps(self, begun: OpenPeriod) -> ScheduleResult:
        note = ""
        try:
            begun, note = self._replace_changed(begun)
            done = self._complete(begun)
        except RunLocked as error:
            self._save(begun.model_copy(update={"outcome": "interrupted"}))
            done = self._make_result("held", begun, note=f"{error.message}: {error.where}")
        except Interrupted:
            done = self._record_interrupt(begun)
        except Exception as error:  # noqa: BLE001 - nobody is there: hooks tell of faults too
            done = self._record_failure(begun, error)
        return replace(done, note="; ".join(filter(None, [note, done.note])))

    def _replace_changed(self, begun: OpenPeriod) -> tuple[OpenPeriod, str]:
        """Return the period with a new run if its run's config or data have changed, and why.

        A period that has a release keeps its run.

        Raises:
            CoreEvalError: the run cannot be read.
        """
        run = Path(begun.run)
        if self._find_release(begun.version) or not RunFiles(run).manifest.exists():
            return begun, ""
        changed = self.dependencies.steps.list_changes(run)
        if not changed:
            return begun, ""
        new = self.plan.workspace.new_run(self.plan.name, self.dependencies.now())
        begun = begun.model_copy(update={"run": str(new)})
        self._save(begun)
        told = f"a new run replaces {run}, because the following has changed since it began"
        return begun, f"{told}: {', '.join(changed)}"

    def _complete(self, begun: OpenPeriod) -> ScheduleResult:
        """Complete and release a run; an existing release must also pass the gates.

        Raises:
            CoreEvalError: the run or the release failed.
        """
        release, ran = self._find_release(begun.version), None
        gates = self.plan.load_gates()
        if release and gates:
            self.dependencies.steps.gate(release, gates)
        if release is None:
            ran = self._run_steps(begun)
            if not ran.finished:
                stop = self._record_waiting if ran.waiting else self._record_interrupt
                return stop(begun)
            ran.refuse_failed(self.plan.schedule.max_failed)
            release = self.dependencies.steps.release(
                ran.run,
                begun.version,
                require_review=self.plan.schedule.require_review,
                gates=gates,
            )
        return self._close_period(begun, release, ran)

    def _run_steps(self, begun: OpenPeriod) -> StepResult:
        """Complete a run, then retry its failed samples once."""
        run, steps = Path(begun.run), self.dependencies.steps
        ran = steps.resume(run) if RunFiles(run).manifest.exists() else self._refresh(run)
        if not (ran.finished and ran.failed) or begun.retried:
            return ran
        again = steps.retry(ran.run)
        if again.waiting:
            self._save(begun.model_copy(update={"retried": True}))
        return again

    def _refresh(self, run: Path) -> StepResult:
        plan, age = self.plan, self.plan.schedule.stale_after
        parent = self.dependencies.steps.find_latest(plan.workspace, plan.name) if age else None
        kept = age if parent else None
        return self.dependencies.steps.refresh(plan.path, run, parent=parent, stale_after=kept)

    def _find_release(self, version: str) -> Path | None:
        return self.dependencies.steps.find_release(self.plan.workspace, self.plan.name, version)

    # -- endings --------------------------------------------------------------------------------

    def _close_period(
        self, begun: OpenPeriod, release: Path, ran: StepResult | None
    ) -> ScheduleResult:
        """Run the success hooks, then close the period: after a crash, they run again.

        They do not run for a release that was made by hand before the period was begun.
        """
        made_by_hand = ran is None and begun.tries == 1
        ending: Ending = "nothing" if made_by_hand else "released"
        done = self._make_result(ending, begun, release=str(release))
        if ran:
            done = replace(done, counts=ran.counts, control=ran.control)
        told = () if made_by_hand else self._run_hooks(done, self.plan.schedule.hooks.success)
        state = self.plan.state_file.read()
        missed = (
            self.plan.count_missed(state.finished.due_at, begun.due_at) if state.finished else 0
        )
        finished = PeriodRelease(
            due_at=begun.due_at,
            version=begun.version,
            run=begun.run,
            release=str(release),
            ended_at=self.dependencies.now(),
        )
        self.plan.save(state.model_copy(update={"finished": finished, "begun": None}))
        bad = (ran and ran.failed) or any(each.problem for each in told)
        return replace(
            done,
            told=told,
            missed=missed,
            exit_code=1 if bad else 0,
            next_due=self._next_due(self.dependencies.now()),
        )

    def _record_interrupt(self, begun: OpenPeriod) -> ScheduleResult:
        self._save(begun.model_copy(update={"outcome": "interrupted"}))
        return self._make_result("interrupted", begun, exit_code=Interrupted.exit_code)

    def _record_waiting(self, begun: OpenPeriod) -> ScheduleResult:
        """Record that the run waits for batches; the next check collects them."""
        known = self.plan.state_file.read().begun or begun
        self._save(known.model_copy(update={"outcome": "waiting"}))
        return self._make_result("waiting", begun, exit_code=WAITING)

    def _record_failure(self, begun: OpenPeriod, error: Exception) -> ScheduleResult:
        """Record an error, and run the hooks that have not taken it yet."""
        told_as = to_coreeval_error(error)
        gate, trouble = isinstance(error, GateNotMet | ReviewOpen), ErrorRecord.from_error(told_as)
        outcome: Literal["gate", "failed"] = "gate" if gate else "failed"
        hooks = self.plan.schedule.hooks.gate if gate else self.plan.schedule.hooks.failure
        begun = begun.model_copy(update={"outcome": outcome, "trouble": trouble})
        self._save(begun)
        code = GateNotMet.exit_code if gate else told_as.exit_code
        done = self._make_result(outcome, begun, exit_code=code, trouble=trouble, error=error)
        keys = {hook: trouble.make_key(outcome, hook) for hook in hooks}
        untold = [hook for hook in hooks if keys[hook] not in begun.told]
        told = self._run_hooks(done, untold) if untold else ()
        taken = [keys[hook] for hook, each in zip(untold, told, strict=True) if not each.problem]
        self._save(begun.model_copy(update={"told": (*begun.told, *taken)}))
        return replace(done, told=told)

    def _run_hooks(
        self, done: ScheduleResult, hooks: Sequence[HookConfig]
    ) -> tuple[HookResult, ...]:
        period = done.period
        assert period is not None, "only a period is told of"
        news = HookEvent(
            outcome=done.ending,
            name=done.name,
            version=period.version,
            due_at=self.plan.to_local(period.due_at).isoformat(),
            run=done.run,
            release=done.release,
            counts=done.counts,
            trouble=done.trouble.model_dump() if done.trouble else None,
        )
        return self.dependencies.run_hooks(hooks, news, self.plan.path.parent)

    def _save(self, begun: OpenPeriod) -> None:
        state = self.plan.state_file.read()
        self.plan.save(state.model_copy(update={"begun": begun}))

    def _make_result(
        self, ending: Ending, begun: OpenPeriod | None = None, **more: object
    ) -> ScheduleResult:
        done = ScheduleResult(config=self.plan.path, name=self.plan.name, ending=ending)
        if begun:
            done = replace(done, period=SchedulePeriod(begun.due_at, begun.version), run=begun.run)
        return replace(done, **more)  # type: ignore[arg-type]


def _list_moments(state: ScheduleState) -> Iterator[datetime]:
    """Yield the times of the recorded actions, and when these were due."""
    if state.finished:
        yield max(state.finished.ended_at, state.finished.due_at)
    if state.begun:
        yield max(state.begun.tried_at, state.begun.due_at)
