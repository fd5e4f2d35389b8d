"""The options of `coreeval trace`."""

from pathlib import Path
from typing import Annotated

import typer

SHOWN = 50
"""Samples that are listed in words where nobody says how many."""

SampleArgument = Annotated[
    str | None, typer.Argument(metavar="SAMPLE", help="A sample's id; all, if absent.")
]
OutcomeOption = Annotated[
    list[str] | None,
    typer.Option(metavar="OUTCOME", help="List those that ended so, or `pending`; repeatable."),
]
LabelOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="List those with this label.")
]
AttemptsOption = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="List those of N attempts or more.")
]
CostOption = Annotated[
    float | None, typer.Option(metavar="USD", min=0.0, help="List those that cost it or more.")
]
CauseOption = Annotated[
    str | None, typer.Option(metavar="CAUSE", help="List those that were left for this cause.")
]
TextOption = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="List those with it in the id, a text or the reason."),
]
SortOption = Annotated[
    str, typer.Option(metavar="BY", help="order, usd, attempts, seconds, calls, ended_at, …")
]
DescendingOption = Annotated[bool, typer.Option("--desc", help="The most or the last first.")]
OffsetOption = Annotated[int, typer.Option(metavar="N", min=0, help="Leave out the first N.")]
LimitOption = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help=f"At most so many; {SHOWN}, or all with --json[l]."),
]
CallsOption = Annotated[
    bool, typer.Option("--calls", help="With SAMPLE: show prompts and answers.")
]
LinesOption = Annotated[
    Path | None,
    typer.Option(
        "--jsonl",
        metavar="FILE",
        help="Write the story of each, a line of JSON, into a file or to stdout (-).",
    ),
]
HideOption = Annotated[
    bool, typer.Option("--hide-texts", help="Lengths and hashes for texts, prompts, answers.")
]
