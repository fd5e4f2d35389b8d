"""`coreeval detect dose`: how often must a model read a series to remember its values?"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coreeval.cli.options import LARGEST_COUNT, LARGEST_SEED
from coreeval.cli.output import AsJson, brief, command, show
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

if TYPE_CHECKING:
    from coreeval.graph.dose import DoseFinding, DosePlan


def dose(
    series: Annotated[
        str, typer.Argument(metavar="SERIES", help="A built-in series or a YAML file.")
    ],
    model: WeightsOption,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", file_okay=False, help="Output folder.")
    ],
    doses: Annotated[
        list[int] | None,
        typer.Option(
            "--dose",
            min=0,
            max=100_000,
            help="Number of repetitions of each value in training; repeatable. By default, 0, "
            "1, 4, 16 and 64.",
        ),
    ] = None,
    untrained: Annotated[
        bool,
        typer.Option("--untrained", help="Train nothing; rank the values with the original model."),
    ] = False,
    seeds: SeedsOption = 3,
    dates: Annotated[
        int,
        typer.Option(
            min=8,
            max=LARGEST_COUNT,
            help="Number of dates to use, counted from the end of the series.",
        ),
    ] = 30,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=LARGEST_SEED,
            help="Random seed for candidates, filler texts and intervals.",
        ),
    ] = 0,
    full: FullOption = False,
    epochs: EpochsOption = 1,
    learning_rate: LearningRateOption = 2e-4,
    batch: BatchOption = 8,
    rank: RankOption = 16,
    device: DeviceOption = "auto",
    precision: PrecisionOption = "auto",
    hub: HubOption = False,
    plot: PlotOption = None,
    dry_run: DryTrainingOption = False,
    as_json: AsJson = False,
) -> None:
    """Train a model on a series, then test how highly it ranks the true values among candidates.

    A dose is the number of times that each value is repeated in the training texts.
    """
    from coreeval.evaluation.pictures import require_picture
    from coreeval.evaluation.whitebox.settings import TrainingSettings
    from coreeval.graph.dose import DoseRequest, plan_doses, require_doses

    if plot:
        require_picture(plot)
    request = DoseRequest(
        model=model,
        series=series,
        out=out,
        doses=require_doses(doses or (), untrained=untrained),
        seeds=seeds,
        dates=dates,
        seed=seed,
        training=TrainingSettings(
            method="full" if full else "lora",
            epochs=epochs,
            learning_rate=learning_rate,
            batch=batch,
            rank=rank,
            precision=precision,
        ),
        device=device,
        hub=hub,
    )
    plan = plan_doses(request)
    if dry_run:
        planned = _estimate_document(plan)
        show(planned, as_json, lambda: "\n".join(_estimate_lines(planned)))
        return
    _train(plan, plot, as_json)


def _train(plan: "DosePlan", plot: Path | None, as_json: bool) -> None:
    from coreeval.api.progress import show_progress
    from coreeval.evaluation.whitebox.dose_response import draw_response
    from coreeval.graph.dose import run_doses
    from coreeval.graph.execute import RunHooks

    with show_progress() as watch:
        found = run_doses(plan, around=RunHooks(watch=watch))
    title = f"{plan.data.series}: training of {plan.weights.name}"
    drawn = draw_response(plot, found.response, title) if plot else None
    document = {
        "study": plan.header.model_dump(mode="json"),
        **found.response.model_dump(mode="json"),
        "rankings": str(found.rankings),
        "results": str(plan.results.path),
        "plot": str(drawn) if drawn else None,
    }
    show(document, as_json, lambda: "\n".join(_lines(found, drawn)))


def _lines(found: "DoseFinding", drawn: Path | None) -> Iterator[str]:
    from coreeval.cli.numleak_output import wrap_line
    from coreeval.evaluation.whitebox.dose_response import response_table
    from coreeval.tools.tables import text_lines

    yield from text_lines(response_table(found.response))
    yield from wrap_line(
        "recall: the model continues the sentence with the true value; first: the true value is "
        "the most probable candidate; margin: the log-probability of the true value minus that of "
        "the best other candidate, in nats per token",
        "",
    )
    yield f"rankings: {brief(found.rankings)}"
    if drawn:
        yield f"plot:     {brief(drawn)}"
    yield f"next:     {command('detect', 'numleak', '--rankings', found.rankings)}"


def _estimate_document(plan: "DosePlan") -> dict[str, Any]:
    return {
        "study": plan.header.model_dump(mode="json"),
        "parameters": plan.weights.parameters,
        "device": plan.device,
        "memory_bytes": plan.memory,
        "sentences": len(plan.data.statements) * plan.header.largest,
        "time": plan.estimate().model_dump(mode="json"),
        "results": str(plan.results.path),
    }


def _estimate_lines(document: dict[str, Any]) -> Iterator[str]:
    times, study = document["time"], document["study"]
    yield from weights_lines(document)
    yield f"series:   {study['series']}, {study['dates']} dates; {document['sentences']} sentences"
    yield f"cells:    {times['left']} of {times['cells']} (one per dose and seed) are not done yet"
    yield time_line(times)
