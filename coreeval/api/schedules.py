"""Scheduled benchmarks: doing what is due, and the next due times."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from coreeval.api.progress import show_progress_to_viewer
from coreeval.api.tables import CommandResult, Result, Row, Table, parse_columns
from coreeval.schedule import due
from coreeval.schedule.due import Dependencies, ScheduleResult
from coreeval.schedule.hooks import HookRunner, accept_by_digest, require_consent
from coreeval.schedule.plan import SchedulePeriod, SchedulePlan, ScheduleSummary, explain_schedule
from coreeval.schedule.steps import GraphSteps
from coreeval.tools.clock import utc_now
from coreeval.tools.trust import retry_with_trust

if TYPE_CHECKING:
    from pydantic import JsonValue

    from coreeval.graph.monitor import Watch

_RESULT_COLUMNS: Final = parse_columns(
    "config name ending exit_code:integer version due_at next_due missed:integer run release "
    "problem"
)
_PERIOD_COLUMNS: Final = parse_columns("config name version due_at")


@dataclass(frozen=True, kw_only=True, repr=False)
class DueResults(Result):
    """The work that was due for each config, and its result."""

    results: tuple[ScheduleResult, ...]

    @property
    def document(self) -> "Mapping[str, JsonValue]":
        """The document that `coreeval schedule due --json` prints."""
        rows = [_result_document(each) for each in self.results]
        return {"schedules": cast("list[JsonValue]", rows)}

    @property
    def summary(self) -> str:
        """The result for each config, in a line."""
        return ", ".join(f"{each.name}: {each.ending}" for each in self.results)

    @property
    def table(self) -> Table:
        """A row for each config."""
        rows = [
            {**_result_document(each), "problem": each.trouble.message if each.trouble else ""}
            for each in self.results
        ]
        return Table.from_dicts("schedules", _RESULT_COLUMNS, rows)


def run_due(
    configs: Sequence[Path | str],
    *,
    accepted: Sequence[str] = (),
    trust_endpoints: bool = False,
    progress: bool = True,
) -> DueResults:
    """Do what is due: refresh or resume, release, notify. The call can be repeated safely.

    Args:
        configs: YAML configs with a schedule.
        accepted: Digests of hooks and endpoints that `schedule install` accepted on another
            machine.
        trust_endpoints: Send keys and texts to the configs' endpoints without confirmation, and
            remember this choice.
        progress: Show a progress bar on a terminal and in a notebook.

    Returns:
        The results; an error of one config is in its result and does not stop the others.

    Raises:
        UsageError: two configs have the same benchmark and workspace.
    """
    dependencies = make_dependencies(
        accepted,
        lambda: show_progress_to_viewer(progress),
        lambda work: retry_with_trust(work, lambda _: trust_endpoints),
    )
    return DueResults(results=tuple(due.run_due(list(map(Path, configs)), dependencies)))


def make_dependencies(
    accepted: Sequence[str],
    watching: "Callable[[], AbstractContextManager[Watch]]",
    ask_first: Callable[[Callable[[], None]], None],
) -> Dependencies:
    """Return the steps of schedules, and the check of consent before the first step.

    Args:
        accepted: Digests of hooks and endpoints that were accepted on another machine.
        watching: Opens a callback that shows the progress of a run.
        ask_first: Calls a check of endpoints, and approves them or passes its error on.
    """

    def consent(plan: SchedulePlan) -> None:
        accept_by_digest(plan, accepted)
        ask_first(lambda: require_consent(plan))

    return Dependencies(steps=GraphSteps(watching), run_hooks=HookRunner(), consent=consent)


def explain_schedules(configs: Sequence[Path | str]) -> CommandResult:
    """Return the next five dates and times at which configs are due, without doing anything.

    Args:
        configs: YAML configs with a schedule.

    Raises:
        ConfigError: a config cannot be read, or has no schedule.
    """
    now = utc_now()
    found = [explain_schedule(Path(config), now) for config in configs]
    document = {"now": now.isoformat(), "schedules": [_summary_document(each) for each in found]}
    rows: list[Row] = [
        (str(each.config), each.name, period.version, period.due_at.isoformat())
        for each in found
        for period in each.coming
    ]
    said = "; ".join(f"{each.name}: {each.words} in {each.timezone}" for each in found)
    return CommandResult(document, said, Table("next", _PERIOD_COLUMNS, rows))


def _result_document(done: ScheduleResult) -> dict[str, object]:
    return {
        "config": str(done.config),
        "name": done.name,
        "ending": done.ending,
        "exit_code": done.exit_code,
        **_period_document(done.period),
        "next_due": done.next_due and done.next_due.isoformat(),
        "missed": done.missed,
        "run": done.run,
        "release": done.release,
        "counts": dict(done.counts),
        "control": done.control and {"counts": dict(done.control)},
        "trouble": done.trouble and done.trouble.model_dump(),
        "hooks": [asdict(told) for told in done.told],
        "note": done.note,
    }


def _period_document(period: SchedulePeriod | None) -> dict[str, object]:
    return {
        "version": period.version if period else "",
        "due_at": period.due_at.isoformat() if period else "",
    }


def _summary_document(found: ScheduleSummary) -> dict[str, object]:
    state = found.state
    return {
        "config": str(found.config),
        "name": found.name,
        "cron": found.cron,
        "words": found.words,
        "timezone": found.timezone,
        "versions": found.pattern,
        "newest": found.newest and _period_document(found.newest),
        "next": [_period_document(period) for period in found.coming],
        "finished": state.finished and state.finished.model_dump(mode="json"),
        "begun": state.begun and state.begun.model_dump(mode="json"),
    }
