"""Options of the commands that score texts with weights on this machine, or train them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from coreeval.cli.options import LARGEST_COUNT
from coreeval.cli.output import one_line

WeightsOption = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="hf:WEIGHTS",
        help="hf:FOLDER, hf:FILE.gguf or hf:package:NAME; with --hub, hf:OWNER/NAME@REVISION.",
    ),
]
SeedsOption = Annotated[
    int, typer.Option(min=1, max=100, help="Number of training runs, each with a different seed.")
]
FullOption = Annotated[
    bool, typer.Option("--full", help="Train all weights instead of adapters (LoRA).")
]
EpochsOption = Annotated[int, typer.Option(min=1, max=LARGEST_COUNT, help="Number of epochs.")]
LearningRateOption = Annotated[float, typer.Option(min=1e-8, max=1.0, help="Learning rate.")]
BatchOption = Annotated[int, typer.Option(min=1, max=LARGEST_COUNT, help="Batch size.")]
RankOption = Annotated[int, typer.Option(min=1, max=4096, help="Rank of the adapters.")]
DeviceOption = Annotated[
    str,
    typer.Option(metavar="NAME", help="cpu, cuda:0, cuda:1, …; by default a GPU, if available."),
]
PrecisionOption = Annotated[
    Literal["auto", "float32", "bfloat16"],
    typer.Option(
        help="Precision of the arithmetic; by default bfloat16 on a GPU and float32 on a CPU. "
        "bfloat16 is faster on CPUs with AMX.",
    ),
]
HubOption = Annotated[
    bool, typer.Option("--hub", help="Download the weights from Hugging Face if needed.")
]
PlotOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Plot the result as .svg or .png.")
]
DryTrainingOption = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Show what would be trained and how long it would take; train nothing."
    ),
]


def weights_lines(document: dict[str, Any]) -> Iterator[str]:
    """Yield the model and its device, from the document of an estimate."""
    from coreeval.tools.formatting import format_size

    said = document.get("study", document)
    size = f"{document['parameters'] / 1e6:,.1f} million parameters"
    yield f"model:    {one_line(said['model'])}, {size}"
    yield f"revision: {said['revision']}"
    yield f"device:   {document['device']}, needs {format_size(document['memory_bytes'])} of memory"


def time_line(times: dict[str, Any]) -> str:
    """Return the duration in words, from the times of such a document."""
    from coreeval.tools.formatting import format_expected_time

    low, expected, high = (format_expected_time(times[key]) for key in ("low", "seconds", "high"))
    basis = (
        "measured on the completed part"
        if times.get("measured")
        else ("a guess until the first part is complete")
    )
    return f"time:     {expected} ({low} to {high}; {basis})"
