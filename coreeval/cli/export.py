"""`coreeval export` and `push`: a run or release as files for other tools, or on the hub."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.options import PlaceArgument, ReleaseArgument, allow_given
from coreeval.cli.output import AsJson, Document, brief, show
from coreeval.tools.formatting import format_quantity

if TYPE_CHECKING:
    from coreeval.releases.exports.export import ExportResult


_FORMATS = "One of hf, lm-eval, inspect, junit, csv, spreadsheet, jsonl, or plugin:NAME"
_NEXT = {
    "hf": "load_dataset('{out}', '{arm}')",
    "lm-eval": "lm-eval run --include_path {out} --tasks coreeval_{slug} --model ...",
    "inspect": "inspect eval {out}/coreeval_task.py -T arm={arm} --model ...",
}
"""How to use an export, by format."""
_ARMS = ("updated", "semantic", "original")
"""The arms for a hint; the first one with rows is used."""


def export(
    source: PlaceArgument,
    to: Annotated[str, typer.Option(metavar="FORMAT", help=f"{_FORMATS}.", show_default=False)],
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            help="A new or empty folder.",
            show_default=False,
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Export a run or a release for use in another tool."""
    from coreeval.api.exports import export as write

    allow_given("exports", to)
    made = write(source, to=to, out=out)
    show(made.document, as_json, lambda: "\n".join(_export_lines(made)))


def _export_lines(made: "ExportResult") -> Iterator[str]:
    from coreeval.releases.exports.material import task_slug

    material = made.material
    yield f"exported the {material.kind} {material.name} {material.version} as {made.to}"
    for what, rows in made.rows.items():
        yield f"  {what:<12}{rows:>8}"
    yield f"files:  {brief(made.out)}"
    arm = next((name for name in _ARMS if made.rows.get(name)), None)
    if made.to in _NEXT and arm:
        how = _NEXT[made.to].format(out=brief(made.out), slug=task_slug(material.name), arm=arm)
        yield f"use:    {how}"


SHOWN = 20
"""The most files listed; `--json` has them all."""


def push(
    release: ReleaseArgument,
    to: Annotated[
        str,
        typer.Option(
            metavar="OWNER/NAME", help="The dataset on the Hugging Face Hub.", show_default=False
        ),
    ],
    public: Annotated[
        bool, typer.Option("--public", help="Make a newly created repository public.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be uploaded; change nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Publish a release on the Hugging Face Hub, in one commit."""
    from coreeval.api.exports import push as work

    document = work(release, to=to, public=public, dry_run=dry_run).document
    show(document, as_json, lambda: "\n".join(_push_lines(document)))


def _push_lines(document: Document) -> Iterator[str]:
    name, repository = f"{document['name']} {document['version']}", document["repository"]
    changed = [
        *(f"  + {path}" for path in document["uploaded"]),
        *(f"  - {path}" for path in document["removed"]),
    ]
    if document["dry_run"]:
        differ = format_quantity(len(changed), "file differs", "files differ")
        yield f"would update {repository} to {name}: {differ}"
    elif changed:
        yield (
            f"updated {repository} to {name}: {format_quantity(len(changed), 'file')} "
            f"uploaded, {document['kept']} unchanged"
        )
    else:
        yield f"{repository} already has {name}"
    yield from changed[:SHOWN]
    if len(changed) > SHOWN:
        yield f"  and {len(changed) - SHOWN} more; --json lists them all"
    yield f"release: {brief(Path(document['release']))}"
    yield f"on the hub: {document['url']} (tag {document['version']})"
