"""`coreeval schedule due|install|run`: a benchmark that renews itself."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.output import AsJson, note, show
from coreeval.cli.trust import TrustOption, with_trusted_endpoints
from coreeval.errors import UsageError

if TYPE_CHECKING:
    from coreeval.schedule.due import Dependencies
    from coreeval.schedule.install import UnitKind
    from coreeval.schedule.plan import SchedulePlan

AcceptedOption = Annotated[
    list[str] | None,
    typer.Option(
        "--accepted",
        metavar="DIGEST",
        help="Hooks and endpoints as `schedule install` accepted them elsewhere; repeatable.",
    ),
]
schedule = typer.Typer(name="schedule", help="Renew benchmarks when their configs say so.")
ConfigsArgument = Annotated[
    list[Path],
    typer.Argument(metavar="CONFIG...", help="YAML configs with a schedule.", show_default=False),
]


@schedule.command("due")
def due(
    configs: ConfigsArgument,
    explain: Annotated[
        bool, typer.Option("--explain", help="Do nothing; show the next five times.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Say nothing where there was nothing to do.")
    ] = False,
    trust_endpoints: TrustOption = False,
    accepted: AcceptedOption = None,
    as_json: AsJson = False,
) -> None:
    """Do what is due: refresh or resume, release, tell. A second call finds nothing to do."""
    from coreeval.cli.schedule_words import tell
    from coreeval.schedule.due import IDLE_ENDINGS
    from coreeval.schedule.due import run_due as work

    if explain:
        _explain(configs, as_json)
        return
    done = list(work(configs, _hands(trust_endpoints, accepted)))
    if as_json or not quiet or any(each.ending not in IDLE_ENDINGS for each in done):
        tell(done, as_json)
    if code := max(each.exit_code for each in done):
        raise typer.Exit(code)


def _explain(configs: list[Path], as_json: bool) -> None:
    from coreeval.cli.schedule_words import explain_document, explain_lines
    from coreeval.schedule.plan import explain_schedule
    from coreeval.tools.clock import utc_now

    now = utc_now()
    found = [explain_schedule(config, now) for config in configs]
    show(explain_document(now, found), as_json, lambda: "\n".join(explain_lines(found)))


def _hands(trust_endpoints: bool, accepted: list[str] | None) -> "Dependencies":
    from coreeval.cli.progress import watching
    from coreeval.schedule.due import Dependencies
    from coreeval.schedule.hooks import HookRunner, accept_by_digest, require_consent
    from coreeval.schedule.steps import GraphSteps

    def consent(plan: "SchedulePlan") -> None:
        accept_by_digest(plan, accepted or ())
        with_trusted_endpoints(trust_endpoints, lambda: require_consent(plan))

    return Dependencies(steps=GraphSteps(watching), run_hooks=HookRunner(), consent=consent)


@schedule.command("run")
def run(
    configs: ConfigsArgument,
    trust_endpoints: TrustOption = False,
    accepted: AcceptedOption = None,
    as_json: AsJson = False,
) -> None:
    """Stay in the foreground and do what falls due, until SIGINT or SIGTERM. For containers."""
    from coreeval.cli.schedule_words import tell

    try:
        from coreeval.schedule.daemon import run_schedules
    except ImportError:
        raise UsageError(
            "schedule run needs APScheduler, which is not installed",
            where="coreeval schedule run",
            hint="pip install 'coreeval[scheduler]', or let cron call: coreeval schedule due",
        ) from None
    from coreeval.schedule.plan import open_plan

    hands = _hands(trust_endpoints, accepted)
    for config in configs:
        with open_plan(config) as plan:
            hands.consent(plan)
    note("looking after schedules; Ctrl-C or SIGTERM ends it")
    code = 0
    for done in run_schedules(configs, hands):
        tell([done], as_json)
        code = 130 if done.ending == "interrupted" else 0
    if code:
        raise typer.Exit(code)


@schedule.command("install")
def install(
    configs: ConfigsArgument,
    cron: Annotated[bool, typer.Option("--cron", help="A line in your crontab.")] = False,
    systemd: Annotated[
        bool, typer.Option("--systemd", help="A service and a timer of your own user.")
    ] = False,
    github: Annotated[
        bool, typer.Option("--github", help="A workflow in the config's repository.")
    ] = False,
    print_only: Annotated[bool, typer.Option("--print", help="Print it; write nothing.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace other units of the same name.")
    ] = False,
    trust_endpoints: TrustOption = False,
    accept_hooks: Annotated[
        bool,
        typer.Option(
            "--accept-hooks",
            help="Accept the hooks as they are; alone, this writes no unit.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Have cron, systemd or GitHub look whether anything is due."""
    from coreeval.cli.schedule_words import unit_lines
    from coreeval.schedule.install import ScheduleGroup, make_units, write_units
    from coreeval.schedule.plan import open_plan, refuse_duplicates

    way = _way(cron=cron, systemd=systemd, github=github, none=accept_hooks or trust_endpoints)
    with ExitStack() as stack:
        plans = [stack.enter_context(open_plan(config)) for config in configs]
        refuse_duplicates(plans)
        agreed = [_agreed(plan, trust_endpoints, accept_hooks, print_only) for plan in plans]
        looks = ScheduleGroup(plans, [digest for digest in agreed if digest])
        units = make_units(looks, way) if way else {}
        hooks = [hook.description for plan in plans for hook in plan.hooks]
    if not print_only:
        write_units(units, force=force)
    document = {
        "way": way,
        "unit": looks.unit_name,
        "units": units,
        "written": not print_only,
        "accepted": {"hooks": hooks if accept_hooks else [], "digests": list(looks.accepted)},
    }
    show(document, as_json, lambda: "\n".join(unit_lines(document)))


def _way(*, cron: bool, systemd: bool, github: bool, none: bool) -> "UnitKind | None":
    """Return who is to look whether anything is due; None if that may be left out, and is."""
    if none and not (cron or systemd or github):
        return None
    if cron + systemd + github != 1:
        raise UsageError(
            "say who is to look whether anything is due",
            where="coreeval schedule install",
            hint="give one of --cron, --systemd, --github",
        )
    return "cron" if cron else "systemd" if systemd else "github"


def _agreed(plan: "SchedulePlan", trust: bool, accept: bool, print_only: bool) -> str:
    """Return the digest of what a schedule needs consent to, once a person has agreed to it.

    With `print_only` nothing is asked or remembered; the digest is empty if nobody has agreed.
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
