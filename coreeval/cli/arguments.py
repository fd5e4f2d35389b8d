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
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY.PATH=VALUE", help="Overrides the config; repeatable."),
]
