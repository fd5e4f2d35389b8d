"""`coreeval demo`: a refresh of bundled data, offline."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.output import AsJson, Document, brief, command, show
from coreeval.errors import RunError
from coreeval.evaluation.detectors import SUMMARIES
from coreeval.graph.bundled import RecordedKind
from coreeval.tools.clock import utc_now

if TYPE_CHECKING:
    from coreeval.graph.execute import RunSummary


FolderOption = Annotated[
    Path,
    typer.Option("--dir", metavar="DIR", file_okay=False, help="Folder for configs and runs."),
]


KindOption = Annotated[
    RecordedKind | None,
    typer.Option("--kind", help="Replay a recorded run of this kind of task.", show_default=False),
]


def demo(
    folder: FolderOption = Path("coreeval-demo"), kind: KindOption = None, as_json: AsJson = False
) -> None:
    """Run CoreEval on bundled data, without a key or network."""
    if kind is None:
        _show_rules_at_work(folder, as_json)
    else:
        _show_recorded(kind, folder, as_json)


def _show_recorded(kind: RecordedKind, folder: Path, as_json: bool) -> None:
    from coreeval.cli import demo_recorded

    done = demo_recorded.repeat_recorded(kind, folder)

    def words() -> str:
        lines = _run_lines(demo_recorded.summarize_runs(done))
        return "\n".join((*lines, *demo_recorded.recorded_lines(done)))

    show(demo_recorded.recorded_document(done), as_json, words)
    if not all(one.same for one in done):
        raise typer.Exit(RunError.exit_code)


def _show_rules_at_work(folder: Path, as_json: bool) -> None:
    from coreeval.api.progress import show_progress
    from coreeval.cli.refresh import exit_code
    from coreeval.graph.bundled import write_configs, write_memory_config
    from coreeval.graph.execute import RunHooks
    from coreeval.graph.run import refresh
    from coreeval.graph.run_document import build_run_document

    runs: list[RunSummary] = []
    for config in (*write_configs(folder), write_memory_config(folder)):
        with show_progress(config.stem) as watch:
            runs.append(refresh(config, around=RunHooks(watch=watch)))
        if runs[-1].manifest.status != "complete":
            break
    whole = runs[-1].manifest.status == "complete"
    report = _report(runs[-1]) if whole else dict.fromkeys(SUMMARIES)
    document = {"runs": [build_run_document(run) for run in runs], **report}
    show(
        document,
        as_json,
        lambda: "\n".join(_words(runs, report) if whole else _stop_lines(runs[-1])),
    )
    code = max(exit_code(run) for run in runs)
    if code:
        raise typer.Exit(code)


def _report(run: "RunSummary") -> Document:
    """Return the memory findings of the last run, on generated items and a generated series."""
    report = json.loads((run.run_dir / "report.json").read_text(encoding="utf-8"))
    return {name: report[name] for name in SUMMARIES}


def _words(runs: "list[RunSummary]", report: Document) -> Iterator[str]:
    *refreshed, memory = runs
    yield from _run_lines(refreshed)
    yield "Rules played every role: this demonstrates the process, not the quality of a model."
    yield ""
    yield "What do targets remember? Small models with known memories answered questions about"
    yield "SYNTHETIC items (examples/synthetic_memory.py) and a SYNTHETIC series"
    yield "(examples/synthetic_numbers.py)."
    for name, summarize in SUMMARIES.items():
        yield ""
        yield from summarize(report[name])
    yield ""
    yield from _where_to_look(refreshed)
    yield f"    {'memory':<9} {brief(memory.run_dir / 'report.html')}"


def _run_lines(runs: "list[RunSummary]") -> Iterator[str]:
    from coreeval.meanings import OUTCOMES

    yield f"{'task':<10}{'samples':>8}{'updated':>9}{'semantic':>10}   not updated, because"
    yield from map(_line, runs)
    yield ""
    yield "updated: rewritten with recent facts; semantic: the same facts reworded"
    seen = {name for run in runs for name, n in run.manifest.counts.items() if n}
    for name, meaning in OUTCOMES.items():
        if name in seen and name != "accepted":
            yield f"{name}: {meaning}."


def _stop_lines(run: "RunSummary") -> Iterator[str]:
    yield f"stopped at task {run.manifest.task}"
    yield f"continue:        {command('resume', run.run_dir)}"


def _line(run: "RunSummary") -> str:
    counts, rows = run.manifest.counts, run.manifest.arms
    hidden = {"total", "accepted"}
    others = ", ".join(f"{name} {n}" for name, n in counts.items() if n and name not in hidden)
    arms = f"{rows.get('updated', 0):>9}{rows.get('semantic', 0):>10}"
    return f"{run.manifest.task:<10}{counts['total']:>8}{arms}   {others}"


def _where_to_look(runs: "list[RunSummary]") -> Iterator[str]:
    first = runs[0]
    yield "Where to look:"
    yield f"  everything in a browser   {command('view', first.run_dir)}"
    yield f"  the history of a sample   {command('trace', first.run_dir, _find_example(first))}"
    yield f"  all outcomes              {command('trace', first.run_dir)}"
    yield f"  the dataset               {brief(first.run_dir / 'dataset')} (parquet)"
    yield "  the reports"
    for run in runs:
        yield f"    {run.manifest.task:<9} {brief(run.run_dir / 'report.html')}"


def _find_example(run: "RunSummary") -> str:
    """Return the most instructive sample: an accepted one with the most attempts."""
    from coreeval.tools.stores.run_store import RunStore

    with RunStore.open(run.run_dir / "run.db", now=utc_now) as store:
        ended = list(store.sample_results(["accepted"])) or list(store.sample_results())
        return max(ended, key=lambda one: one.result.attempts).sample.id
