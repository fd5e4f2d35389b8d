"""`coreeval diff`: the differences between two releases or runs.

The text output marks words as git does: `[-removed-]` and `{+added+}`.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.completion import complete_runs_and_releases, unless_completing
from coreeval.cli.options import LARGEST_COUNT, find_run_or_release
from coreeval.cli.output import AsJson, Document, brief, one_line, show, wrap_marked_text
from coreeval.tools.tables import Table, numbers, text_lines, texts

if TYPE_CHECKING:
    from coreeval.releases.diff import Diff, FactDiff, FieldDiff, SampleDiff, ValueChange
    from coreeval.releases.sources import StaleSample


SideArgument = Annotated[
    Path,
    typer.Argument(
        help="A release's directory, or a run: its directory, its id or `latest`.",
        file_okay=False,
        show_default=False,
        callback=unless_completing(find_run_or_release),
        autocompletion=complete_runs_and_releases,
    ),
]


def diff(
    before: SideArgument,
    after: SideArgument,
    sample: Annotated[
        str | None,
        typer.Option(metavar="SAMPLE", help="Show only this sample, with all its texts."),
    ] = None,
    most: Annotated[
        int,
        typer.Option(
            "--show",
            metavar="N",
            min=0,
            max=LARGEST_COUNT,
            help="Maximum number of samples to show.",
        ),
    ] = 10,
    stale_after: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="List samples whose evidence is older than this age, such as 90d, 12w or 6m.",
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Also write the result to an HTML page."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare two releases or runs, sample by sample."""
    from coreeval.api.comparisons import diff as compare

    found = compare(before, after, sample=sample, stale_after=stale_after, page=page)
    document: Document = {**found.document, "page": page and str(page)}
    show(document, as_json, lambda: "\n".join(diff_lines(found, most, page)))


VALUE = 60
"""The most characters of a setting shown."""
_STANDS = {
    "added": "new in the updated arm",
    "removed": "removed from the updated arm",
    "changed": "other text",
    "same": "differs elsewhere",
}
_MARKS = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}
_WHY = {"age": "too old", "cutoff": "older than a new target's cutoff", "undated": "undated"}


def diff_lines(diff: "Diff", most: int, page: Path | None) -> Iterator[str]:
    """Yield the totals, the differences in settings, and the first samples.

    Args:
        diff: The diff.
        most: The number of samples to show.
        page: The page that the diff was written to.
    """
    yield f"{diff.before} -> {diff.after}"
    if any(change.name == "task" for change in diff.settings):
        yield "warning: these are different tasks; their samples and counts are not comparable"
    kinds = ("added", "removed", "changed", "kept")
    named = {"samples of the updated arm": diff.samples, "replaced facts": diff.facts}
    counts = [(title, *(getattr(each, kind) for kind in kinds)) for title, each in named.items()]
    yield from text_lines(Table((texts(width=28), *(numbers(kind, 9) for kind in kinds)), counts))
    for move in diff.outcomes:
        yield f"  {move.before} -> {move.after}: {move.samples}"
    yield from map(_setting_line, diff.settings)
    yield from _stale_lines(str(diff.after), diff.stale)
    for one in islice(diff.changed, most):
        yield from _sample_lines(one)
    if (left := len(diff.changed) - most) > 0:
        yield (
            f"and {left} more samples differ; to see them, use --show N, --sample SAMPLE, "
            "--page FILE or --json"
        )
    if page:
        yield f"page: {brief(page)}"


def _setting_line(change: "ValueChange") -> str:
    return f"  {change.name}: {_format_value(change.before)} -> {_format_value(change.after)}"


def _format_value(value: object) -> str:
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = one_line(text)
    return (line if len(line) <= VALUE else f"{line[:VALUE]} …") or '""'


def _stale_lines(title: str, found: Sequence["StaleSample"]) -> Iterator[str]:
    for why, number in Counter(one.why for one in found).most_common():
        yield f"stale in {title}, {_WHY[why]}: {number}"


def _sample_lines(sample: "SampleDiff") -> Iterator[str]:
    yield f"{one_line(sample.id)}   {_STANDS[sample.updated]}"
    for change in sample.changes:
        if not change.name.endswith("_sha256"):
            yield f"  {_setting_line(change)}"
        else:
            yield "    the original text has changed"
    for field in sample.fields:
        yield from wrap_marked_text(f"{field.arm} {field.field}: {_field_text(field)}")
    for fact in sample.facts:
        yield from wrap_marked_text(_fact_line(fact))


def _field_text(field: "FieldDiff") -> str:
    return "".join(_MARKS[piece.op].format(piece.text) for piece in field.pieces)


def _fact_line(diff: "FactDiff") -> str:
    fact = diff.fact
    triple = f"{fact.after_head} | {fact.after_relation} | {fact.after_tail}"
    mark = "+" if diff.op == "added" else "-"
    return f"{mark} {triple} ({fact.published_at[:10]} {fact.domain})"
