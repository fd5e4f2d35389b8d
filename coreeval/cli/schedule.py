"""`coreeval schedule due|install|run`: scheduled refreshes of benchmarks."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo

import typer

from coreeval.cli.options import TrustOption, with_trusted_endpoints
from coreeval.cli.output import (
    AsJson,
    Document,
    brief,
    control_lines,
    note,
    note_traceback,
    one_line,
    outcome_lines,
    say,
    show,
)
from coreeval.errors import UsageError
from coreeval.tools.extras import require_extra
from coreeval.tools.formatting import format_quantity

if TYPE_CHECKING:
    from coreeval.schedule.due import Dependencies, ScheduleResult
    from coreeval.schedule.install import UnitKind
    from coreeval.schedule.plan import SchedulePlan


AcceptedOption = Annotated[
    list[str] | None,
    typer.Option(
        "--accepted",
        metavar="DIGEST",
        help="Digest of the hooks and endpoints that `schedule install` accepted on another "
        "machine; repeatable.",
    ),
]
schedule = typer.Typer(name="schedule", help="Refresh benchmarks on a schedule.")
ConfigsArgument = Annotated[
    list[Path],
    typer.Argument(metavar="CONFIG...", help="YAML configs with a schedule.", show_default=False),
]


@schedule.command("due")
def due(
    configs: ConfigsArgument,
    explain: Annotated[
        bool, typer.Option("--explain", help="Only show the next five due dates and times.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print nothing if nothing was due.")
    ] = False,
    trust_endpoints: TrustOption = False,
    accepted: AcceptedOption = None,
    as_json: AsJson = False,
) -> None:
    """Do what is due: refresh or resume, release, notify. The command can be repeated safely."""
    from coreeval.schedule.due import IDLE_ENDINGS
    from coreeval.schedule.due import run_due as work

    if explain:
        from coreeval.api.schedules import explain_schedules

        document = explain_schedules(configs).document
        show(document, as_json, lambda: "\n".join(explain_lines(document)))
        return
    done = list(work(configs, _make_dependencies(trust_endpoints, accepted)))
    if as_json or not quiet or any(each.ending not in IDLE_ENDINGS for each in done):
        show_results(done, as_json)
    if code := max((each.exit_code for each in done), key=_RANKS.index):
        raise typer.Exit(code)


def _make_dependencies(trust_endpoints: bool, accepted: list[str] | None) -> "Dependencies":
    from coreeval.api.progress import show_progress
    from coreeval.api.schedules import make_dependencies

    return make_dependencies(
        accepted or (), show_progress, lambda work: with_trusted_endpoints(trust_endpoints, work)
    )


@schedule.command("run")
def run(
    configs: ConfigsArgument,
    trust_endpoints: TrustOption = False,
    accepted: AcceptedOption = None,
    as_json: AsJson = False,
) -> None:
    """Run in the foreground and do what is due, until SIGINT or SIGTERM (for containers)."""
    otherwise = "alternatively, run from cron: coreeval schedule due"
    with require_extra("scheduler", "coreeval schedule run", otherwise=otherwise):
        from coreeval.schedule.daemon import run_schedules
    from coreeval.schedule.plan import open_plan

    hands = _make_dependencies(trust_endpoints, accepted)
    for config in configs:
        with open_plan(config) as plan:
            hands.consent(plan)
    note("running schedules; stop with Ctrl-C or SIGTERM")
    code = 0
    for done in run_schedules(configs, hands):
        show_results([done], as_json)
        code = 130 if done.ending == "interrupted" else 0
    if code:
        raise typer.Exit(code)


@schedule.command("install")
def install(
    configs: ConfigsArgument,
    cron: Annotated[bool, typer.Option("--cron", help="Add a line to your crontab.")] = False,
    systemd: Annotated[
        bool, typer.Option("--systemd", help="Write a user service and timer.")
    ] = False,
    github: Annotated[
        bool, typer.Option("--github", help="Write a workflow to the config's repository.")
    ] = False,
    print_only: Annotated[
        bool, typer.Option("--print", help="Print the unit; write nothing.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing unit of the same name.")
    ] = False,
    trust_endpoints: TrustOption = False,
    accept_hooks: Annotated[
        bool,
        typer.Option(
            "--accept-hooks",
            help="Accept the current hooks; if no scheduler is chosen, no unit is written.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Let cron, systemd or GitHub Actions check for due work."""
    from coreeval.schedule.install import ScheduleGroup, find_future_root, make_units
    from coreeval.schedule.plan import open_plan, refuse_duplicates
    from coreeval.schedule.write_units import write_units

    way = _choose_unit_kind(
        cron=cron, systemd=systemd, github=github, none=accept_hooks or trust_endpoints
    )
    with ExitStack() as stack:
        plans = [stack.enter_context(open_plan(config)) for config in configs]
        refuse_duplicates(plans)
        agreed = [_confirm(plan, trust_endpoints, accept_hooks, print_only) for plan in plans]
        looks = ScheduleGroup(plans, [digest for digest in agreed if digest])
        future = find_future_root(looks) if print_only and way == "github" else None
        units = make_units(looks, way, root=future) if way else {}
        hooks = [hook.description for plan in plans for hook in plan.hooks]
    if future:
        note(
            "the config is not in a git repository yet; the workflow assumes a repository in "
            f"{future}"
        )
    if not print_only:
        for other in write_units(units, force=force, crontab_copy=looks.crontab_copy):
            note(f"replaced another unit of this name: {one_line(other)}")
    if looks.uses_database and way in _DATABASE_PLACES:
        note(
            "runs are stored in PostgreSQL, but the unit does not contain COREEVAL_STORE_URL, "
            f"which may have a password: {_DATABASE_PLACES[way]}"
        )
    document = {
        "way": way,
        "unit": looks.unit_name,
        "units": units,
        "written": not print_only,
        "accepted": {"hooks": hooks if accept_hooks else [], "digests": list(looks.accepted)},
    }
    show(document, as_json, lambda: "\n".join(unit_lines(document)))


def _choose_unit_kind(*, cron: bool, systemd: bool, github: bool, none: bool) -> "UnitKind | None":
    """Return the scheduler that checks for due work; None if it is optional and not given."""
    if none and not (cron or systemd or github):
        return None
    if cron + systemd + github != 1:
        raise UsageError(
            "no scheduler was chosen",
            where="coreeval schedule install",
            hint="use one of --cron, --systemd, --github",
        )
    return "cron" if cron else "systemd" if systemd else "github"


def _confirm(plan: "SchedulePlan", trust: bool, accept: bool, print_only: bool) -> str:
    """Return the digest of what a schedule needs consent for, after a person has agreed to it.

    With `print_only`, nothing is asked or stored, and the digest is empty without consent.
    """
    from coreeval.schedule import hooks
    from coreeval.tools.endpoints import refuse_untrusted, run_pairs
    from coreeval.tools.trust import TrustRecord

    pairs, record = run_pairs(plan.config, None), TrustRecord(plan.workspace)
    if print_only:
        agreed = (accept or not plan.hooks) and (trust or not pairs)
        return hooks.consent_digest(plan) if agreed else ""
    if accept:
        hooks.accept_hooks(plan)
    hooks.require_hooks(plan)
    with_trusted_endpoints(
        trust, lambda: refuse_untrusted(pairs, record.endpoints(), record=record.path)
    )
    return hooks.consent_digest(plan)


_RANKS = (0, 1, 5, 2, 3, 4, 130)
"""Exit codes by rank for several configs: the last one in this order is returned. A config that
waits for batches needs no attention, but a refused one does."""
DAY = "%a %Y-%m-%d %H:%M %Z"


def show_results(done: "Sequence[ScheduleResult]", as_json: bool) -> None:
    """Print the results of schedules; errors go to stderr."""
    for each in done:
        if each.error:
            note_traceback(each.error)
    if as_json:
        from coreeval.api.schedules import DueResults

        show(DueResults(results=tuple(done)).document, as_json, str)
        return
    for each in done:
        if each.trouble and each.ending == "failed":
            note("error: " + "\n".join([*_error_lines(each), *_message_lines(each)]))
        else:
            say("\n".join(_result_lines(each)))


def _result_lines(done: "ScheduleResult") -> Iterator[str]:
    from coreeval.schedule.plan import MOST_MISSED

    yield f"{done.name}: {_describe_ending(done)}"
    yield from outcome_lines(done.counts)
    yield from control_lines(done.control)
    if done.missed:
        most = " or more" if done.missed == MOST_MISSED else ""
        yield f"  earlier due times missed: {done.missed}{most}; this release covers them all"
    yield from _message_lines(done)


def _message_lines(done: "ScheduleResult") -> Iterator[str]:
    if done.note and done.ending not in ("held", "clock_back"):  # these contain the note
        yield f"  {one_line(done.note)}"
    for told in done.told:
        how = (
            f"notification failed ({told.tries} tries): {told.problem}"
            if told.problem
            else "notified"
        )
        yield f"  {how}: {told.hook}"


def _describe_ending(done: "ScheduleResult") -> str:
    """Return the result of a check in words."""
    said = _ENDINGS[done.ending](done, done.period.version if done.period else "")
    return f"{said}; next {done.next_due.strftime(DAY)}" if done.next_due else said


def _describe_idle(done: "ScheduleResult", version: str) -> str:
    there = f"{version} already exists: {brief(Path(done.release))}"
    return there if version else "nothing is due"


_ENDINGS: "dict[str, Callable[[ScheduleResult, str], str]]" = {
    "nothing": _describe_idle,
    "held": lambda done, _: f"already running: {done.note}",
    "clock_back": lambda done, _: f"did nothing: {done.note}",
    "released": lambda done, version: f"{version} is released: {brief(Path(done.release))}",
    "gate": lambda done, version: f"{version} waits: " + "\n".join(_error_lines(done)),
    "waiting": lambda done, version: (
        f"{version} is waiting for batches; the next check collects the results for {done.run}"
    ),
    "interrupted": lambda done, version: (
        f"{version} was stopped; the next check resumes {done.run}"
    ),
}


def _error_lines(done: "ScheduleResult") -> Iterator[str]:
    """Yield the errors in the usual form: what is wrong, where, and what to do."""
    trouble = done.trouble
    assert trouble is not None, "unexpected result of a schedule"
    named = done.ending == "failed" and done.period
    yield f"{done.name} {named.version}: {trouble.message}" if named else trouble.message
    yield f"  where: {trouble.where or done.config}"
    if trouble.hint:
        yield f"  to do: {trouble.hint}"


# -- explain ------------------------------------------------------------------------------------


def explain_lines(document: Document) -> Iterator[str]:
    """Yield the meaning of schedules in words."""
    for each in document["schedules"]:
        yield f"{each['name']}: {each['cron']} in {each['timezone']}: {each['words']}"
        yield from _summary_lines(each)
        for period in each["next"]:
            yield f"  next   {_format_due(period, each)}"


def _format_due(period: Document, schedule: Document) -> str:
    local = datetime.fromisoformat(period["due_at"]).astimezone(ZoneInfo(schedule["timezone"]))
    return f"{local.strftime(DAY)}   {period['version']}"


def _summary_lines(found: Document) -> Iterator[str]:
    """Yield the state of the newest period."""
    newest, finished, begun = found["newest"], found["finished"], found["begun"]
    if begun:
        trouble = f": {one_line(begun['trouble']['message'])}" if begun["trouble"] else ""
        tries = format_quantity(begun["tries"], "try", "tries")
        yield f"  begun  {begun['version']}, {begun['outcome']} after {tries}{trouble}"
        yield f"         {begun['run']}"
    if finished:
        yield f"  last   {finished['version']}: {finished['release']}"
    if newest and not begun and (finished is None or _moment(finished) < _moment(newest)):
        yield f"  due    {_format_due(newest, found)}"


def _moment(period: Document) -> datetime:
    return datetime.fromisoformat(period["due_at"])


# -- install ------------------------------------------------------------------------------------


def unit_lines(document: Document) -> Iterator[str]:
    """Yield the printed units, or the paths of written ones and the next step."""
    from coreeval.schedule.install import CRONTAB

    for hook in document["accepted"]["hooks"]:
        yield f"accepted: {hook}"
    for digest in () if document["way"] else document["accepted"]["digests"]:
        yield f"on another machine: coreeval schedule due --accepted {digest}"
    for place, text in document["units"].items():
        if document["written"]:
            yield f"wrote {place}"
        else:
            yield text if place == CRONTAB else f"# {place}\n{text}"
    if document["written"] and document["way"]:
        yield from _NEXT[document["way"]](document["unit"])


_DATABASE_PLACES = {
    "cron": "write it without the password into the crontab, as a line above the others, and the "
    "password into ~/.pgpass",
    "systemd": "write it into ~/.config/environment.d/coreeval.conf, which only you may read",
}
"""Where to write the address of the database; GitHub's workflow names a secret for it."""
_NEXT: dict[str, Callable[[str], list[str]]] = {
    "cron": lambda unit: [f"check with: crontab -l   (the line ends in # {unit})"],
    "systemd": lambda unit: [
        "next: systemctl --user daemon-reload",
        f"      systemctl --user enable --now {unit}.timer",
        "      loginctl enable-linger    # also run while you are logged out",
    ],
    "github": lambda unit: [
        "next: commit the workflow, and add the secrets that it names in the repository settings",
    ],
}
