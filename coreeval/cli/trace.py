"""`coreeval trace`: the history of each sample, step by step.

Prints a list of samples, the history of one sample, or histories as JSON Lines.
"""

import json
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from coreeval.cli.options import LARGEST_COUNT, LATEST_RUN, RunArgument
from coreeval.cli.output import (
    AsJson,
    Document,
    brief,
    command,
    note,
    offline_lines,
    one_line,
    show,
)
from coreeval.cli.story import show_story
from coreeval.errors import UsageError
from coreeval.meanings import describe_reason
from coreeval.tools.formatting import format_number, format_quantity
from coreeval.tools.outputs import refuse_foreign_output
from coreeval.tools.tables import Table, numbers, text_lines, texts

if TYPE_CHECKING:
    from coreeval.runs.history import SampleHistory
    from coreeval.schema import Arm
    from coreeval.tools.stores.run_queries import SampleFilter, SampleSort


SHOWN = 50
"""Default number of samples in the readable list."""

SampleArgument = Annotated[
    str | None,
    typer.Argument(metavar="SAMPLE", help="A sample's id; if omitted, all samples are listed."),
]
OutcomeOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="OUTCOME",
        help="List samples with this outcome; `pending` lists those without one yet; repeatable.",
    ),
]
LabelOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="List samples with this label.")
]
AttemptsOption = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, max=LARGEST_COUNT, help="List samples with at least N attempts."
    ),
]
CostOption = Annotated[
    float | None,
    typer.Option(
        metavar="USD", min=0.0, max=LARGEST_COUNT, help="List samples that cost at least this much."
    ),
]
CauseOption = Annotated[
    str | None, typer.Option(metavar="CAUSE", help="List samples rejected for this cause.")
]
TextOption = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="List samples with this text in their id, in one of their texts or in the reason for "
        "their outcome.",
    ),
]
TargetOption = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="The target for --right and --wrong; without them, list the samples that it answered.",
    ),
]
RightOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ARM", help="List samples that a target got right on this arm; repeatable."
    ),
]
WrongOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ARM",
        help="List samples that a target (with --right: the same target) got wrong on this "
        "arm; repeatable.",
    ),
]
SortOption = Annotated[
    str,
    typer.Option(metavar="BY", help="Sort key: order, usd, attempts, seconds, calls, ended_at, …"),
]
DescendingOption = Annotated[bool, typer.Option("--desc", help="Sort in descending order.")]
OffsetOption = Annotated[
    int, typer.Option(metavar="N", min=0, max=LARGEST_COUNT, help="Skip the first N samples.")
]
LimitOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        max=LARGEST_COUNT,
        help=f"Maximum number of samples to list; by default {SHOWN}, or all with --json or "
        "--jsonl.",
    ),
]
CallsOption = Annotated[
    bool, typer.Option("--calls", help="With SAMPLE: show prompts and answers.")
]
LinesOption = Annotated[
    Path | None,
    typer.Option(
        "--jsonl",
        metavar="FILE",
        help="Write the history of each sample as a line of JSON, to a file or stdout (-).",
    ),
]
HideOption = Annotated[
    bool,
    typer.Option(
        "--hide-texts", help="Replace texts, prompts and answers with their lengths and hashes."
    ),
]


WIDEST_ID = 40
REASON = 80
"""The most characters of a reason in the list."""


def list_lines(listing: Document, run: Path, offset: int, nothing: str) -> Iterator[str]:
    """Yield a line for each sample of a list, and how to see the others.

    Args:
        listing: The `--json` output.
        run: The run.
        offset: The number of samples skipped before these.
        nothing: The message if no sample is listed.
    """
    from coreeval.runs.target_answers import describe_right

    rows, total = listing["samples"], listing["total"]
    if not rows:
        yield f"the list has only {format_quantity(total, 'sample')}" if total else nothing
        return
    ids = [one_line(row["sample"]) for row in rows]
    wide = min(WIDEST_ID, max(len("sample"), *map(len, ids)))
    arms = _answered_arms(rows)
    columns = (texts("sample", wide), texts("outcome", 19, gap=2), numbers("attempts", 8, gap=2),
               numbers("usd", 9, gap=2), *(texts(arm, 8, gap=2) for arm in arms),
               texts("reason", gap=2))  # fmt: skip
    cells = [
        (sample, row["outcome"], row["attempts"], format_number(row["usd"], ".4f", "unknown"),
         *(describe_right(row["targets"], arm) for arm in arms),
         textwrap.shorten(describe_reason(row["reason"]), REASON, placeholder=" …"))
        for sample, row in zip(ids, rows, strict=True)
    ]  # fmt: skip
    yield from text_lines(Table(columns, cells))
    last = offset + len(rows)
    if last < total or offset:
        more = f"; next page: --offset {last}" if last < total else ""
        yield f"{offset + 1} to {last} of {total}{more}"
    yield f"details of one: {command('trace', run, ids[0])}"
    yield from offline_lines(listing["offline_roles"])


def _answered_arms(rows: Sequence[Document]) -> "list[Arm]":
    """Return the first and last arm with columns in the list, if targets answered any."""
    arms: list[Arm] = ["original", "updated"]
    return arms if any(row["targets"] for row in rows) else []


def export_stories(stories: "Iterable[SampleHistory]", path: Path, as_json: bool) -> None:
    """Write histories as they are read, one line of JSON each.

    Raises:
        UsageError: the file cannot be written, or two outputs are to go to stdout.
    """
    if str(path) != "-":
        number = _write_file(stories, path)
        document = {"file": str(path), "stories": number}
        show(
            document,
            as_json,
            lambda: f"{format_quantity(number, 'history', 'histories')}: {brief(path)}",
        )
    elif as_json:
        raise UsageError("--json and --jsonl - both write to stdout", hint="omit one of them")
    else:
        _write_lines(stories, sys.stdout)


def _write_file(stories: "Iterable[SampleHistory]", path: Path) -> int:
    refuse_foreign_output(path, '{"sample": ')
    try:
        with path.open("w", encoding="utf-8") as file:
            return _write_lines(stories, file)
    except OSError as error:
        raise UsageError(
            f"cannot write this file: {error.strerror}",
            where=str(path),
            hint="name a new file in an existing folder",
        ) from None


def _write_lines(stories: "Iterable[SampleHistory]", file: IO[str]) -> int:
    from coreeval.runs.history import build_history_document

    lines = (json.dumps(build_history_document(story)) + "\n" for story in stories)
    return sum(1 for line in lines if file.write(line))


_FILTERS = {
    "outcomes": "--outcome",
    "label": "--label",
    "attempts_min": "--attempts",
    "usd_min": "--min-cost",
    "cause": "--cause",
    "text": "--text",
    "target": "--target",
    "right": "--right",
    "wrong": "--wrong",
}


def trace(
    run: RunArgument = LATEST_RUN,
    sample: SampleArgument = None,
    outcome: OutcomeOption = None,
    label: LabelOption = None,
    attempts: AttemptsOption = None,
    min_cost: CostOption = None,
    cause: CauseOption = None,
    text: TextOption = None,
    target: TargetOption = None,
    right: RightOption = None,
    wrong: WrongOption = None,
    sort: SortOption = "order",
    descending: DescendingOption = False,
    offset: OffsetOption = 0,
    limit: LimitOption = None,
    calls: CallsOption = False,
    jsonl: LinesOption = None,
    hide_texts: HideOption = False,
    as_json: AsJson = False,
) -> None:
    """Show the history of a sample, or the outcomes of all samples."""
    said = (outcome, label, attempts, min_cost, cause, text, target, right, wrong)
    given = {name: value for name, value in zip(_FILTERS, said, strict=True) if value}
    _check_options(sample, given, hide_texts)
    by = _parse_sort(sort)
    from coreeval.runs.sample_reader import open_sample_reader

    with open_sample_reader(run, hide_texts=hide_texts, told=note) as book:
        if jsonl is not None:
            ids = (
                [sample] if sample else book.store.listing.ids(_make_filter(given), by, descending)
            )
            export_stories(map(book.story, ids[offset:][:limit]), jsonl, as_json)
        elif sample is not None:
            show_story(book.story(sample), book.offline_roles, as_json=as_json, calls=calls)
        else:
            most = limit or (max(1, book.store.total()) if as_json else SHOWN)
            listed = book.listed(_make_filter(given), by, descending, offset, most)
            nothing = "" if listed["total"] else book.explain_empty(given)
            show(listed, as_json, lambda: "\n".join(list_lines(listed, run, offset, nothing)))


def _check_options(sample: str | None, given: Mapping[str, object], hide_texts: bool) -> None:
    if sample is not None and given:
        option = _FILTERS[next(iter(given))]
        raise UsageError(
            f"{option} applies only to the list of samples", hint="omit it, or omit SAMPLE"
        )
    if hide_texts and "text" in given:
        raise UsageError(
            "--text would search texts that --hide-texts hides", hint="omit one of them"
        )


def _parse_sort(name: str) -> "SampleSort":
    from coreeval.runs.sample_reader import require_known
    from coreeval.tools.stores.run_queries import SORTS

    require_known("order", name, SORTS)
    return next(sort for sort in SORTS if sort == name)


def _make_filter(given: Mapping[str, Any]) -> "SampleFilter":
    """Return the filter; pending samples are listed only if requested."""
    from coreeval.runs.sample_reader import read_outcomes, require_known
    from coreeval.tools.stores.run_correctness import ARMS
    from coreeval.tools.stores.run_queries import SampleFilter

    ends = [(how, arm) for how in ("right", "wrong") for arm in given.get(how, ())]
    for how, arm in ends:
        require_known("arm", arm, ARMS)
        if how == "wrong" and arm in given.get("right", ()):
            raise UsageError(
                f"an answer to the {arm} text cannot be both right and wrong",
                hint=f"omit --right {arm} or --wrong {arm}",
            )
    asked = read_outcomes(given.get("outcomes", ()))
    plain = {name: value for name, value in given.items() if name not in ("right", "wrong")}
    answered = {f"on_{arm}": how for how, arm in ends}
    return SampleFilter.model_validate({**plain, **answered, "outcomes": asked})
