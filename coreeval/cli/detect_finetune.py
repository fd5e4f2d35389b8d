"""`coreeval detect finetune`: how much does a leak help, before and after a refresh?"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer

from coreeval.cli.options import LARGEST_COUNT, RunArgument
from coreeval.cli.output import AsJson, brief, show
from coreeval.cli.weights_options import (
    BatchOption,
    DeviceOption,
    DryTrainingOption,
    EpochsOption,
    FullOption,
    HubOption,
    LearningRateOption,
    PlotOption,
    PrecisionOption,
    RankOption,
    SeedsOption,
    WeightsOption,
    time_line,
    weights_lines,
)
from coreeval.errors import UsageError
from coreeval.evaluation.whitebox.cells import Leak
from coreeval.schema import Arm

if TYPE_CHECKING:
    from coreeval.graph.detect import Detection
    from coreeval.graph.finetune_plan import FinetunePlan

Name = TypeVar("Name", bound=str)


def finetune(
    run: RunArgument,
    model: WeightsOption,
    arm: Annotated[
        list[str] | None,
        typer.Option(
            "--arm",
            metavar="NAME",
            help="An arm to compare with the originals: semantic, updated or control; "
            "repeatable. By default, all arms of the run.",
        ),
    ] = None,
    leak: Annotated[
        list[str] | None,
        typer.Option(
            "--leak",
            metavar="WHAT",
            help="What to train the model on: test (the test part; delta 1), both (the train "
            "and test parts; delta 2) or text (texts without labels); repeatable. By default, "
            "test and both.",
        ),
    ] = None,
    percent: Annotated[
        list[int] | None,
        typer.Option(
            "--percent",
            min=1,
            max=100,
            help="Percentage of the texts to leak; repeatable. By default, 100.",
        ),
    ] = None,
    seeds: SeedsOption = 3,
    samples: Annotated[
        int, typer.Option(min=1, max=LARGEST_COUNT, help="Maximum number of samples per arm.")
    ] = 300,
    train: Annotated[
        int | None,
        typer.Option(
            min=1, max=LARGEST_COUNT, help="Number of items of the train split to train on."
        ),
    ] = None,
    held_out: Annotated[
        int | None,
        typer.Option(
            min=0, max=LARGEST_COUNT, help="Number of items of the train split to hold out."
        ),
    ] = None,
    full: FullOption = False,
    epochs: EpochsOption = 3,
    learning_rate: LearningRateOption = 1e-4,
    batch: BatchOption = 8,
    rank: RankOption = 16,
    max_tokens: Annotated[
        int, typer.Option(min=16, max=LARGEST_COUNT, help="Maximum number of tokens per text.")
    ] = 400,
    device: DeviceOption = "auto",
    precision: PrecisionOption = "auto",
    hub: HubOption = False,
    plot: PlotOption = None,
    dry_run: DryTrainingOption = False,
    as_json: AsJson = False,
) -> None:
    """Leak a run's arms into a model by training it on them, and measure the gain in scores."""
    from coreeval.evaluation.pictures import require_picture
    from coreeval.evaluation.whitebox.settings import TrainingSettings
    from coreeval.graph.finetune_plan import FinetuneRequest, plan_finetune

    if plot:
        require_picture(plot)
    training = TrainingSettings(
        method="full" if full else "lora",
        epochs=epochs,
        learning_rate=learning_rate,
        batch=batch,
        rank=rank,
        max_tokens=max_tokens,
        precision=precision,
    )
    request = FinetuneRequest(
        run_dir=run,
        model=model,
        arms=_parse_names(arm or [], get_args(Arm), "--arm"),
        leaks=_parse_names(leak or ["test", "both"], get_args(Leak), "--leak"),
        percents=tuple(percent or (100,)),
        seeds=seeds,
        samples=samples,
        train=train,
        held_out=held_out,
        training=training,
        device=device,
        hub=hub,
    )
    plan = plan_finetune(request)
    if dry_run:
        document = estimate_document(plan)
        show(document, as_json, lambda: "\n".join(_estimate_lines(document)))
        return
    _train(plan, plot, as_json)


def _parse_names(given: Sequence[str], known: Sequence[Name], option: str) -> tuple[Name, ...]:
    """Return the values of an option that takes names.

    Raises:
        UsageError: a name is not known.
    """
    found = {str(name): name for name in known}
    for name in given:
        if name not in found:
            hint = f"one of {', '.join(found)}"
            raise UsageError(f"there is no {name!r}", where=option, hint=hint)
    return tuple(found[name] for name in dict.fromkeys(given))


def _train(plan: "FinetunePlan", plot: Path | None, as_json: bool) -> None:
    from coreeval.api.progress import show_progress
    from coreeval.evaluation.whitebox.contamination_tables import draw_contamination
    from coreeval.graph.execute import RunHooks
    from coreeval.graph.finetune import run_finetune

    with show_progress() as watch:
        found = run_finetune(plan, around=RunHooks(watch=watch))
    drawn = draw_contamination(plot, found.document) if plot else None
    show(found.document, as_json, lambda: "\n".join(_lines(found, drawn)))
    if found.summary.manifest.status == "interrupted":
        raise typer.Exit(130)


def _lines(found: "Detection", drawn: Path | None) -> Iterator[str]:
    from coreeval.evaluation.detectors.finetune import FINETUNE
    from coreeval.tools.tables import text_lines

    for table in FINETUNE.make_tables(found.document):
        yield from text_lines(table)
        yield ""
    yield f"report:  {brief(found.summary.run_dir / 'report.html')}"
    if drawn:
        yield f"plot:    {brief(drawn)}"


def estimate_document(plan: "FinetunePlan") -> dict[str, Any]:
    """Return the trainings of a contamination test, and their duration."""
    data = plan.data
    return {
        "model": plan.weights.name,
        "revision": plan.weights.revision,
        "parameters": plan.weights.parameters,
        "device": plan.device,
        "memory_bytes": plan.memory,
        "samples": {name: len(found) for name, found in data.parts.items()},
        "train": len(data.train),
        "time": plan.estimate().model_dump(mode="json"),
        "results": str(plan.results.path),
    }


def _estimate_lines(document: dict[str, Any]) -> Iterator[str]:
    times = document["time"]
    parts = ", ".join(f"{name} {number}" for name, number in document["samples"].items())
    yield from weights_lines(document)
    yield f"samples:  {parts}; train part {document['train']}"
    yield f"cells:    {times['left']} of {times['cells']} (one training each) are not done yet"
    yield time_line(times)
