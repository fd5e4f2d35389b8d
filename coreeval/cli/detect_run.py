"""`coreeval detect NAME RUN`: a detector asks the targets of a finished run."""

from collections.abc import Iterator
from pathlib import Path

import typer

from coreeval.cli.app import pause_garbage_collection
from coreeval.cli.options import budget_arguments
from coreeval.cli.output import brief, command, show
from coreeval.evaluation.detectors.base import Detector
from coreeval.tools.tables import text_lines

with pause_garbage_collection():
    from coreeval.api.progress import show_progress
    from coreeval.graph.detect import Detection, plan_detection, run_detector
    from coreeval.graph.execute import RunHooks


def detect_run(
    detector: Detector, run: Path, targets: list[str], budget: float | None, as_json: bool
) -> None:
    """Run a detector on a run, and show its finding."""
    plan = plan_detection(detector, run, targets, budget)
    with show_progress() as watch:
        found = run_detector(plan, around=RunHooks(watch=watch))
    show(found.document, as_json, lambda: "\n".join(detection_lines(detector, found)))
    if found.summary.manifest.status == "interrupted":
        raise typer.Exit(130)


def detection_lines(detector: Detector, found: Detection) -> Iterator[str]:
    """Yield the lines that show a detector's finding."""
    for table in detector.make_tables(found.document):
        yield from text_lines(table)
        yield ""
    yield f"report:  {brief(found.summary.run_dir / 'report.html')}"


def show_detection_estimate(
    detector: Detector, run: Path, targets: list[str], budget: float | None, as_json: bool
) -> None:
    """Show a detector's questions to the targets of a run, and their cost."""
    from coreeval.cli.estimate import estimate_document, estimate_lines
    from coreeval.graph.estimate.evaluation_estimate import estimate_detection

    made = estimate_detection(plan_detection(detector, run, targets, budget), budget_usd=budget)
    option = "--model" if detector.scores_texts else "--target"
    chosen = (word for name in targets for word in (option, name))
    following = command(*detector.command_words, run, *chosen, *budget_arguments(budget))
    show(estimate_document(made), as_json, lambda: "\n".join(estimate_lines(made, following)))
