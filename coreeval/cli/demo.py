"""`coreeval demo`: the main job on bundled data, offline."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.output import AsJson, brief, command, show
from coreeval.tools.clock import utc_now

if TYPE_CHECKING:
    from coreeval.graph.work import RunSummary

FolderOption = Annotated[
    Path,
    typer.Option("--dir", metavar="DIR", file_okay=False, help="Where to keep configs and runs."),
]


def demo(folder: FolderOption = Path("coreeval-demo"), as_json: AsJson = False) -> None:
    """Show it at work on bundled data: no key, no network."""
    from coreeval.cli.progress import watching
    from coreeval.cli.refresh import exit_code, summary_document
    from coreeval.graph.bundled import write_configs
    from coreeval.graph.run import refresh
    from coreeval.graph.work import Surroundings

    runs: list[RunSummary] = []
    for config in write_configs(folder):
        with watching(config.stem) as watch:
            runs.append(refresh(config, around=Surroundings(watch=watch)))
        if runs[-1].manifest.status != "complete":
            break
    document = {"runs": [summary_document(run) for run in runs]}
    whole = runs[-1].manifest.status == "complete"
    show(document, as_json, lambda: "\n".join(_words(runs) if whole else _stopped(runs[-1])))
    code = max(exit_code(run) for run in runs)
    if code:
        raise typer.Exit(code)


def _words(runs: "list[RunSummary]") -> Iterator[str]:
    from coreeval.cli.meanings import OUTCOMES

    yield f"{'task':<10}{'samples':>8}{'updated':>9}{'semantic':>10}   not updated, because"
    yield from map(_line, runs)
    yield ""
    yield "updated: rewritten with recent facts. semantic: the same facts in other words."
    seen = {name for run in runs for name, n in run.manifest.counts.items() if n}
    for name, meaning in OUTCOMES.items():
        if name in seen and name != "accepted":
            yield f"{name}: {meaning}."
    yield "Every role was played by rules: they show the workings, not the quality of a model."
    yield ""
    yield from _where_to_look(runs)


def _stopped(run: "RunSummary") -> Iterator[str]:
    yield f"stopped at the task {run.manifest.task}"
    yield f"go on with it:   {command('resume', run.run_dir)}"


def _line(run: "RunSummary") -> str:
    counts, rows = run.manifest.counts, run.manifest.arms
    hidden = {"total", "accepted"}
    others = ", ".join(f"{name} {n}" for name, n in counts.items() if n and name not in hidden)
    arms = f"{rows.get('updated', 0):>9}{rows.get('semantic', 0):>10}"
    return f"{run.manifest.task:<10}{counts['total']:>8}{arms}   {others}"


def _where_to_look(runs: "list[RunSummary]") -> Iterator[str]:
    first = runs[0]
    yield "Where to look:"
    yield f"  one sample's story   {command('trace', first.run_dir, _telling(first))}"
    yield f"  how all ended        {command('trace', first.run_dir)}"
    yield f"  the dataset          {brief(first.run_dir / 'dataset')} (parquet)"
    yield "  the reports"
    for run in runs:
        yield f"    {run.manifest.task:<9} {brief(run.run_dir / 'report.html')}"


def _telling(run: "RunSummary") -> str:
    """Return the sample whose story says most: an accepted one with the most attempts."""
    from coreeval.tools.stores.runs import RunStore

    store = RunStore.open(run.run_dir / "run.db", now=utc_now)
    try:
        ended = list(store.ended(["accepted"])) or list(store.ended())
        return max(ended, key=lambda one: one.result.attempts).sample.id
    finally:
        store.close()
