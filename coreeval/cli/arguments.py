"""Arguments that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

ConfigArgument = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="The YAML config.", show_default=False)
]
RunArgument = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="The run's directory.", file_okay=False, show_default=False),
]


def _readable(settings: list[str] | None) -> list[str] | None:
    """Refuse a value that is no YAML before it is put into the config."""
    import yaml

    for setting in settings or ():
        try:
            yaml.safe_load(setting.partition("=")[2])
        except yaml.YAMLError:
            raise typer.BadParameter(
                f"the value in {setting!r} is not YAML; quote it, as in 'key=\"value\"'"
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
