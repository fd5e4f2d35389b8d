"""Arguments that several commands share."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

MOST_SHOWN = 120
"""Characters of an argument that an error repeats."""
ConfigArgument = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="The YAML config.", show_default=False)
]
RunArgument = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="The run's directory.", file_okay=False, show_default=False),
]


def _readable(settings: list[str] | None) -> list[str] | None:
    """Refuse a value that is no YAML before it is put into the config."""
    from coreeval.config.user_files import YamlError, parse_yaml

    for setting in settings or ():
        try:
            parse_yaml(setting.partition("=")[2])
        except YamlError as error:
            from coreeval.config.credentials import hide_credentials

            shown = setting if len(setting) <= MOST_SHOWN else f"{setting[:MOST_SHOWN]}..."
            problem = hide_credentials(error.problem)
            raise typer.BadParameter(
                f"the value in {hide_credentials(shown)!r} is not YAML: {problem}; quote a text, "
                "as in "
                "'key=\"value\"'"
            ) from None
    return settings


SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY.PATH=VALUE",
        callback=_readable,
        help="Overrides the config; repeatable.",
    ),
]

FromOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="RELEASE",
        help="Keep the samples of this release that are still good; `latest`: the last one here.",
    ),
]
StaleOption = Annotated[
    str | None,
    typer.Option(
        "--stale-after",
        metavar="AGE",
        help="With --from: renew samples whose evidence is older, such as 90d, 12w or 6m.",
    ),
]
BudgetOption = Annotated[
    float | None,
    typer.Option(
        "--budget",
        metavar="USD",
        min=0.0,
        help="Most that the run may cost in all; it stops before (exit 3) and can be resumed.",
    ),
]
UnpricedOption = Annotated[
    bool,
    typer.Option(
        "--allow-unpriced",
        help="Under a budget, ask models without a price too; what they cost is not counted.",
    ),
]


def lineage_words(release: str | None, stale_after: str | None) -> list[str]:
    """Return what the options about a release before are, as words of a command line."""
    options = {"--from": release, "--stale-after": stale_after}
    return [word for name, value in options.items() if value for word in (name, value)]


def of_money(budget: float | None, allow_unpriced: bool) -> Iterator[str]:
    """Yield what the options about money say as overrides of the config."""
    if budget is not None:
        yield f"run.budget_usd={budget}"
    if allow_unpriced:
        yield "run.allow_unpriced=true"
