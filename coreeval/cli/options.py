"""Options and arguments that several commands share.

`with_trusted_endpoints` asks before an environment variable is sent to an endpoint for the first
time.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from coreeval.api.arguments import LARGEST_SEED as LARGEST_SEED
from coreeval.api.arguments import MOST_DAYS_BACK as MOST_DAYS_BACK
from coreeval.api.arguments import MOST_DRAWS as MOST_DRAWS
from coreeval.api.arguments import budget_overrides as budget_overrides
from coreeval.cli.completion import (
    complete_releases,
    complete_runs,
    complete_runs_and_releases,
    unless_completing,
)
from coreeval.cli.output import note, one_line, plain
from coreeval.errors import UntrustedEndpoint, UsageError

if TYPE_CHECKING:
    from coreeval.config.plugins import PluginGroup
    from coreeval.evaluation.benchmarks.subset import Subset

LARGEST_COUNT = 10**9
"""The largest number that any option accepts; a test checks all options."""
MOST_SHOWN = 120
"""The most characters of an argument that an error repeats."""
ConfigArgument = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="The YAML config.", show_default=False)
]


def find_run_folder(run: Path) -> Path:
    """Return the directory of a run given by its path, its id, its benchmark or `latest`."""
    from coreeval.runs.names import find_run_folder as find

    return find(run)


def find_optional_run(run: Path | None) -> Path | None:
    """Return the directory of the run in an option; None without one."""
    return run and find_run_folder(run)


def find_run_or_release(place: Path) -> Path:
    """Return the directory of a release, or of a run given by any of its names."""
    from coreeval.releases.named import find_run_or_release as find

    return find(place)


def find_release_folder(place: Path | None) -> Path | None:
    """Return the directory of a release, or of the last release of a run."""
    from coreeval.releases.named import find_release_folder as find

    return place and find(place)


RunArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        help="The run: its directory, its id, a benchmark's name (for its newest run) or `latest`.",
        show_default=False,
        callback=unless_completing(lambda run: find_run_folder(run)),
        autocompletion=complete_runs,
    ),
]
PlaceArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RUN_OR_RELEASE",
        help="The run: its directory, its id, its benchmark's name or `latest`; or the directory "
        "of a release.",
        file_okay=False,
        show_default=False,
        callback=unless_completing(find_run_or_release),
        autocompletion=complete_runs_and_releases,
    ),
]
ReleaseArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RELEASE",
        help="The release's directory, or the id of its run.",
        file_okay=False,
        show_default=False,
        callback=unless_completing(find_release_folder),
        autocompletion=complete_runs_and_releases,
    ),
]
LATEST_RUN = Path("latest")
"""The default of commands that use the newest run unless another one is given."""


def _require_yaml(settings: list[str] | None) -> list[str] | None:
    """Raise an error for a value that is not YAML, before it is set in the config."""
    from coreeval.config.user_files import YamlError, parse_yaml

    for setting in settings or ():
        try:
            parse_yaml(setting.partition("=")[2])
        except YamlError as error:
            from coreeval.config.credentials import hide_credentials

            shown = setting if len(setting) <= MOST_SHOWN else f"{setting[:MOST_SHOWN]}..."
            problem = hide_credentials(error.problem)
            raise typer.BadParameter(
                f"the value in {hide_credentials(shown)!r} is not YAML: {problem}; put a text in "
                "quotes, as in 'key=\"value\"'"
            ) from None
    return settings


SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY.PATH=VALUE",
        callback=_require_yaml,
        help="Override a config key; repeatable.",
    ),
]

FromOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="RELEASE",
        autocompletion=complete_releases,
        help="Carry over the samples of this release that are still valid; `latest` is the "
        "newest release in this workspace.",
    ),
]
StaleOption = Annotated[
    str | None,
    typer.Option(
        "--stale-after",
        metavar="AGE",
        help="With --from: renew samples whose evidence is older than this age, such as 90d, "
        "12w or 6m.",
    ),
]
BudgetOption = Annotated[
    float | None,
    typer.Option(
        "--budget",
        metavar="USD",
        min=0.0,
        max=LARGEST_COUNT,
        help="Maximum total cost of the run. The run stops before it would cost more (exit code "
        "3), and can be resumed.",
    ),
]
UnpricedOption = Annotated[
    bool,
    typer.Option(
        "--allow-unpriced",
        help="With --budget: also use models whose price is unknown; their cost is not counted.",
    ),
]


SampleOrderOption = Annotated[
    str | None,
    typer.Option(
        "--sample",
        metavar="ORDER",
        help="With --limit: first (the default), random, or stratified by label.",
    ),
]
IdsOption = Annotated[
    Path | None,
    typer.Option(
        "--ids",
        metavar="FILE",
        help="Use only the samples whose ids this file lists, one per line.",
    ),
]
LabelsOption = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="NAME", help="Use only samples with this label; repeatable."),
]


def read_subset(
    limit: int | None, order: str | None, ids: Path | None, labels: list[str] | None
) -> "Subset | None":
    """Return the samples selected by options; None for all, or for the first ones.

    Raises:
        UsageError: the order does not exist or has no limit, or the file of ids cannot be read.
    """
    from coreeval.evaluation.benchmarks.subset import build_subset

    return build_subset(limit, order or "first", _read_ids(ids), labels or (), named="--{}".format)


def _read_ids(path: Path | None) -> list[str]:
    if path is None:
        return []
    from coreeval.config.user_files import (
        MOST_DATA_BYTES,
        UNREADABLE_HINT,
        describe_unreadable,
        read_text,
    )

    try:
        text = read_text(path, most_bytes=MOST_DATA_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        told = f"cannot read the file of ids: {describe_unreadable(error)}"
        raise UsageError(told, where=str(path), hint=UNREADABLE_HINT) from None
    found = list(dict.fromkeys(line for each in text.splitlines() if (line := each.strip())))
    if not found:
        raise UsageError("the file of ids is empty", where=str(path), hint="write one id per line")
    return found


def lineage_arguments(release: str | None, stale_after: str | None) -> list[str]:
    """Return the options about the previous release as command line words."""
    options = {"--from": release, "--stale-after": stale_after}
    return [word for name, value in options.items() if value for word in (name, value)]


def budget_arguments(budget: float | None) -> list[str]:
    """Return the option about the budget as command line words."""
    return [] if budget is None else ["--budget", f"{budget:g}"]


def allow_given(group: "PluginGroup", text: str) -> None:
    """Allow a plugin that the user names on the command line.

    Raises:
        PluginError: there is no such plugin.
    """
    from coreeval.config.plugins import PluginUse, parse_plugin

    if name := parse_plugin(text):
        from coreeval.tools.plugins import allow_plugin

        allow_plugin(PluginUse(group, name))


T = TypeVar("T")
TrustOption = Annotated[
    bool,
    typer.Option(
        "--trust-endpoints",
        help="Send keys and texts to the config's endpoints without confirmation, and remember "
        "this choice.",
    ),
]


def with_trusted_endpoints(trust: bool, work: Callable[[], T]) -> T:
    """Return the result of a piece of work, after a person has approved its endpoints.

    Args:
        trust: Whether the command line gave consent.
        work: Raises UntrustedEndpoint before anything is written or sent; it is called again.

    Raises:
        UntrustedEndpoint: consent was refused, or nobody can be asked.
    """
    from coreeval.tools.trust import retry_with_trust

    return retry_with_trust(work, lambda error: trust or _confirm(error), note)


def _confirm(error: UntrustedEndpoint) -> bool:
    """Ask on the terminal; return False without one."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    note("The config names endpoints that this workspace has not used before:")
    for variable, origin in error.pairs:
        note(f"  {plain(one_line(variable))} would be sent to {plain(one_line(origin))}")
    return typer.confirm("Allow these endpoints from now on?", default=False, err=True)
