"""`coreeval export`: a run or a release in the files that other tools read."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.output import AsJson, Document, brief, show

if TYPE_CHECKING:
    from coreeval.releases.exports.exporting import Exported

_FORMATS = "hf, lm-eval, inspect, junit, csv, spreadsheet or jsonl"
_NEXT = {
    "hf": "load_dataset('{out}', '{arm}')",
    "lm-eval": "lm-eval run --include_path {out} --tasks coreeval_{slug} --model ...",
    "inspect": "inspect eval {out}/coreeval_task.py -T arm={arm} --model ...",
}
"""How what was written is used."""
_ARMS = ("updated", "semantic", "original")
"""Arms that a hint may name, the first that has rows."""


def export(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RUN_OR_RELEASE",
            help="The directory of a run that has ended, or of a release.",
            file_okay=False,
            show_default=False,
        ),
    ],
    to: Annotated[str, typer.Option(metavar="FORMAT", help=f"{_FORMATS}.", show_default=False)],
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            help="An empty or a new folder.",
            show_default=False,
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Write a run or a release for another tool."""
    from coreeval.releases.exports.exporting import export as write

    made = write(source, to=to, out=out)
    show(_document(made), as_json, lambda: "\n".join(_words(made)))


def _document(made: "Exported") -> Document:
    material = made.material
    return {
        "source": str(material.path),
        "kind": material.kind,
        "name": material.name,
        "version": material.version,
        "to": made.to,
        "out": str(made.out),
        "rows": made.rows,
    }


def _words(made: "Exported") -> Iterator[str]:
    from coreeval.releases.exports.questions import slug

    material = made.material
    yield f"exported the {material.kind} {material.name} {material.version} as {made.to}"
    for what, rows in made.rows.items():
        yield f"  {what:<12}{rows:>8}"
    yield f"files:  {brief(made.out)}"
    arm = next((name for name in _ARMS if made.rows.get(name)), None)
    if made.to in _NEXT and arm:
        how = _NEXT[made.to].format(out=brief(made.out), slug=slug(material.name), arm=arm)
        yield f"use:    {how}"
