"""`coreeval init`: a commented config to start from."""

from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from coreeval.cli.output import AsJson, command, show
from coreeval.errors import UsageError

NAME = "coreeval.yaml"


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", file_okay=False, help="Where to write it.")
    ] = Path(),
    as_json: AsJson = False,
) -> None:
    """Write a commented config to start from."""
    path = folder / NAME
    if path.exists():
        raise UsageError(
            "there is a config here already", where=str(path), hint="edit it, or name another DIR"
        )
    folder.mkdir(parents=True, exist_ok=True)
    template = resources.files("coreeval.cli").joinpath("coreeval.yaml")
    path.write_text(template.read_text(encoding="utf-8"), encoding="utf-8")
    show(
        {"config": str(path)},
        as_json,
        lambda: f"wrote {path}\nnext: put your paths in, then: {command('validate', path)}",
    )
