"""`coreeval refresh`, `resume` and `retry`: the run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.output import AsJson, Document, show

if TYPE_CHECKING:
    from coreeval.graph.run import IfChanged
    from coreeval.graph.work import RunSummary

RunArgument = Annotated[Path, typer.Argument(help="Run directory.", show_default=False)]


def refresh(
    config: Annotated[Path, typer.Argument(help="YAML config.", show_default=False)],
    limit: Annotated[int | None, typer.Option(min=1, help="Take only the first N.")] = None,
    run_dir: Annotated[Path | None, typer.Option(help="Where to keep the run.")] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="key.path=value over the config's; repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Build the semantic and updated arms of a benchmark; Ctrl-C stops cleanly."""
    from coreeval.cli.progress import watching
    from coreeval.graph.run import refresh as work
    from coreeval.graph.work import Surroundings

    with watching() as watch:
        around = Surroundings(watch=watch)
        done = work(config, limit=limit, run_dir=run_dir, overrides=setting or (), around=around)
    _finish(done, as_json)


def resume(
    run: RunArgument,
    keep: Annotated[
        bool, typer.Option("--keep", help="The config changed: go on with the run's own.")
    ] = False,
    anew: Annotated[
        bool, typer.Option("--anew", help="The config changed: start a new run with it.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Go on with a run that was stopped or killed; nothing answered is asked again."""
    from coreeval.cli.progress import watching
    from coreeval.graph.run import resume as work
    from coreeval.graph.work import Surroundings

    if keep and anew:
        raise typer.BadParameter("--keep and --anew exclude each other")
    with watching() as watch:
        around = Surroundings(watch=watch)
        choice: IfChanged = "keep" if keep else "anew" if anew else "refuse"
        done = work(run, if_changed=choice, around=around)
    _finish(done, as_json)


def retry(run: RunArgument, as_json: AsJson = False) -> None:
    """Take the samples that failed once more."""
    from coreeval.cli.progress import watching
    from coreeval.graph.run import retry as work
    from coreeval.graph.work import Surroundings

    with watching() as watch:
        done = work(run, around=Surroundings(watch=watch))
    _finish(done, as_json)


def _finish(done: "RunSummary", as_json: bool) -> None:
    """Print what came out; the exit code says whether anything is left to do."""
    show(summary_document(done), as_json, lambda: _words(done))
    code = exit_code(done)
    if code:
        raise typer.Exit(code)


def exit_code(done: "RunSummary") -> int:
    """Return 0 when every sample has an outcome other than failed, 1 or 130 otherwise."""
    if done.manifest.status == "interrupted":
        return 130
    return 1 if done.manifest.counts["failed"] else 0


def summary_document(done: "RunSummary") -> Document:
    """Return what `--json` prints for a run."""
    manifest = done.manifest
    return {
        "run": str(done.run_dir),
        "status": manifest.status,
        "counts": manifest.counts,
        "bad_rows": manifest.bad_rows,
        "cost": manifest.cost.model_dump(mode="json"),
        "dataset": str(done.run_dir / "dataset"),
        "report": str(done.run_dir / "report.html"),
    }


def _words(done: "RunSummary") -> str:
    counts = done.manifest.counts
    ended = [f"{name} {n}" for name, n in counts.items() if n and name != "total"]
    lines = [f"{done.manifest.status}: {counts['total']} samples: {', '.join(ended)}"]
    if done.manifest.bad_rows:
        lines.append(f"bad rows: {done.manifest.bad_rows} (coreeval status {done.run_dir})")
    if done.manifest.status == "complete":
        lines.append(f"dataset:  {done.run_dir / 'dataset'}")
        lines.append(f"report:   {done.run_dir / 'report.html'}")
        lines.append(f"story:    coreeval trace {done.run_dir} SAMPLE")
    else:
        lines.append(f"go on:    coreeval resume {done.run_dir}")
    if counts["failed"]:
        lines.append(f"again:    coreeval retry {done.run_dir}")
    return "\n".join(lines)
