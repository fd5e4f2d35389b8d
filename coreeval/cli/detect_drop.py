"""`coreeval detect drop`: what the score drops of a run are made of, as its report has it."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coreeval.cli.arguments import RunArgument
from coreeval.cli.output import AsJson, Document, command, show
from coreeval.errors import RunStateError

if TYPE_CHECKING:
    from coreeval.tools.workspace import RunFiles

_SAID = {
    "remembered": "remembered",
    "not_shown": "not shown",
    "cannot_tell": "cannot tell",
    "not_measured": "not measured",
}


def drop(
    run: RunArgument,
    items: Annotated[
        Path | None,
        typer.Option(
            "--items", metavar="FILE.csv", dir_okay=False, help="Write every sample of each target."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a run's drops are made of: memory, rewriting, label noise; nothing is asked."""
    from coreeval.releases.manifest import read_manifest
    from coreeval.tools.workspace import RunFiles

    files = RunFiles(run)
    read_manifest(files.manifest)
    document = _document(run, files)
    if items:
        _copy(run, files.items, items)
    show(document, as_json, lambda: "\n".join(_words(document, items)))


def _document(run: Path, files: "RunFiles") -> Document:
    """Return what the report says of drops.

    Raises:
        RunStateError: there is no report yet, or one from before drops were taken apart; or no
            target labelled texts.
        RunCorrupt: it is damaged.
    """
    from coreeval.evaluation.report.report_file import read_report

    report, again = read_report(files), command("evaluate", run)
    if report is None:
        raise RunStateError(
            "the run has no report yet", where=str(run), hint=f"first: {command('resume', run)}"
        )
    found: dict[str, Any] = report["decomposition"]
    if not found["targets"]:
        asked = report["arms"]["targets"]
        why = "the report is from before drops were taken apart" if asked else "nobody was asked"
        hint = f"write it anew: {again}" if asked else f"{again} --target provider:name"
        raise RunStateError(f"no drop can be taken apart: {why}", where=str(run), hint=hint)
    return {"run": str(run), **found}


def _copy(run: Path, table: Path, to: Path) -> None:
    """Copy the table of samples.

    Raises:
        RunStateError: it is gone, or the copy cannot be written.
    """
    try:
        shutil.copyfile(table, to)
    except OSError as error:
        raise RunStateError(
            f"the table of samples cannot be copied: {error.strerror or error}",
            where=str(error.filename or to),
            hint=f"look at the path, or write the table anew: {command('evaluate', run)}",
        ) from None


def _words(document: Document, items: Path | None) -> Iterator[str]:
    control = document["control"]
    if control:
        window = control["window"]
        yield f"control arm: news from {window['start'][:10]} to {window['end'][:10]}"
    else:
        yield "no control arm: rewriting cannot be told from memory (run.control_window adds one)"
    yield from _texts(document["texts"])
    for target in document["targets"]:
        yield ""
        yield from _target(target)
    yield ""
    yield f"against each other: {document['panel']['note']}"
    yield from _matrix(document["agreement"])
    if items:
        yield f"samples: {items}"


def _target(target: Document) -> Iterator[str]:
    yield f"{target['target']}: {target['verdict'].replace('_', ' ')}"
    yield from (f"  {reason}" for reason in target["reasons"])
    yield f"  {'accuracy, points':<22}{'lost':>8}  {'95 % interval':<18}{'n':>7}"
    for name, term in target["accuracy"]["terms"].items():
        lost = term["lost"]
        yield f"  {name.replace('_', ' '):<22}{_points(lost['estimate']):>8}  {_span(lost):<18}" + (
            f"{lost['n']:>7}"
        )
    for kind, found in target["items"]["kinds"].items():
        yield f"  samples flagged by {kind}: {len(found['ids'])} of {target['items']['n']}"


def _texts(texts: Document | None) -> Iterator[str]:
    """Yield how the texts of the arms differ, a line for each covariate."""
    for kind, check in texts["kinds"].items() if texts else ():
        yield ""
        arms = ", ".join(check["weights"])
        yield f"texts for memory of {kind} ({arms}; {texts['n']} samples)" if texts else ""
        for one in check["covariates"]:
            means = " ".join(f"{one['means'][arm]:>9.3g}" for arm in check["weights"])
            of = one["difference"]
            span = f"{of['estimate']:+.3g} ({of['ci_low']:+.3g} to {of['ci_high']:+.3g})"
            differs = "  differs" if one["differs"] else ""
            yield f"  {one['covariate'].replace('_', ' '):<12}{means}   {span}{differs}"


def _matrix(agreement: Document) -> Iterator[str]:
    yield "what the detectors say:"
    for row in agreement["rows"]:
        said = (f"{name} {_SAID[cell['said']]}" for name, cell in row["cells"].items())
        yield f"  {row['target']}: {', '.join(said)}"


def _points(share: float | None) -> str:
    return "n/a" if share is None else f"{100 * share:+.1f}"


def _span(found: Document) -> str:
    if found["ci_low"] is None:
        return ""
    return f"{_points(found['ci_low'])} … {_points(found['ci_high'])}"
