"""`coreeval detect finetune`: what is a leak of the benchmark worth, before and after a refresh?"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer

from coreeval.cli.options import LARGEST_COUNT, RunArgument
from coreeval.cli.output import AsJson, brief, one_line, show
from coreeval.errors import UsageError
from coreeval.evaluation.whitebox.cells import Leak
from coreeval.schema import Arm

if TYPE_CHECKING:
    from coreeval.graph.detect import Detection
    from coreeval.graph.finetune_plan import FinetunePlan

Name = TypeVar("Name", bound=str)


def finetune(
    run: RunArgument,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            metavar="hf:WEIGHTS",
            help="hf:FOLDER, hf:FILE.gguf or hf:package:NAME; with --hub, hf:OWNER/NAME@REVISION.",
        ),
    ],
    arm: Annotated[
        list[str] | None,
        typer.Option(
            "--arm",
            metavar="NAME",
            help="An arm beside the originals: semantic, updated, control; repeatable. By default "
            "all that the run has.",
        ),
    ] = None,
    leak: Annotated[
        list[str] | None,
        typer.Option(
            "--leak",
            metavar="WHAT",
            help="test: the test part (delta 1); both: train and test (delta 2); text: texts "
            "without labels; repeatable. By default test and both.",
        ),
    ] = None,
    percent: Annotated[
        list[int] | None,
        typer.Option("--percent", min=1, max=100, help="A share to leak; repeatable. Else 100."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="How often each is trained.")] = 3,
    samples: Annotated[
        int, typer.Option(min=1, max=LARGEST_COUNT, help="Most samples of each arm.")
    ] = 300,
    train: Annotated[
        int | None,
        typer.Option(min=1, max=LARGEST_COUNT, help="Items of the train split to train on."),
    ] = None,
    held_out: Annotated[
        int | None,
        typer.Option(min=0, max=LARGEST_COUNT, help="Items of the train split to keep clean."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Train all weights, not adapters (LoRA).")
    ] = False,
    epochs: Annotated[int, typer.Option(min=1, max=LARGEST_COUNT)] = 3,
    learning_rate: Annotated[float, typer.Option(min=1e-8, max=1.0)] = 1e-4,
    batch: Annotated[int, typer.Option(min=1, max=LARGEST_COUNT, help="Texts at a time.")] = 8,
    rank: Annotated[int, typer.Option(min=1, max=4096, help="Of the adapters.")] = 16,
    max_tokens: Annotated[
        int, typer.Option(min=16, max=LARGEST_COUNT, help="Most tokens of a text.")
    ] = 400,
    device: Annotated[
        str, typer.Option(metavar="NAME", help="cpu, cuda:0, cuda:1, …; else a GPU if any.")
    ] = "auto",
    hub: Annotated[
        bool, typer.Option("--hub", help="Fetch the weights from Hugging Face if need be.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the result as .svg or .png.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be trained and how long; do nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Leak the arms of a run into a model by training it, and measure what that is worth."""
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
    from coreeval.cli.progress import show_progress
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
    """Return what a contamination test would train, and how long that takes."""
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
    from coreeval.tools.formatting import format_expected_time, format_size

    times = document["time"]
    low, expected, high = (format_expected_time(times[key]) for key in ("low", "seconds", "high"))
    basis = "measured on those done" if times["measured"] else "a guess before the first"
    parts = ", ".join(f"{name} {number}" for name, number in document["samples"].items())
    size = f"{document['parameters'] / 1e6:,.1f} million parameters"
    yield f"model:    {one_line(document['model'])}, {size}"
    yield f"revision: {document['revision']}"
    yield f"device:   {document['device']}, needs {format_size(document['memory_bytes'])}"
    yield f"samples:  {parts}; train part {document['train']}"
    yield f"cells:    {times['left']} of {times['cells']} are left to train and ask"
    yield f"time:     {expected} ({low} to {high}; {basis})"
