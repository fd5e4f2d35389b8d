"""`coreeval diff`: what differs between two releases or runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.output import AsJson, Document, show
from coreeval.errors import UsageError
from coreeval.tools.clock import utc_now

if TYPE_CHECKING:
    from datetime import datetime

    from coreeval.releases.diff import Diff

SideArgument = Annotated[
    Path,
    typer.Argument(help="Directory of a release or a run.", file_okay=False, show_default=False),
]


def diff(
    before: SideArgument,
    after: SideArgument,
    sample: Annotated[
        str | None, typer.Option(metavar="SAMPLE", help="Only this one, with all its texts.")
    ] = None,
    most: Annotated[
        int, typer.Option("--show", metavar="N", min=0, help="Most samples that are shown.")
    ] = 10,
    stale_after: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="List what is older now, such as 90d, 12w or 6m."),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Write it as a web page too."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare two releases or runs: settings, samples, words, facts."""
    from coreeval.cli.diff_words import diff_lines
    from coreeval.releases.diff import compare
    from coreeval.releases.sides import side_at

    oldest = _oldest(stale_after)
    found = compare(side_at(before), side_at(after), oldest=oldest)
    if sample is not None:
        found = _only(found, sample)
    if page is not None:
        _write(page, found)
    document: Document = {**found.model_dump(mode="json"), "page": page and str(page)}
    show(document, as_json, lambda: "\n".join(diff_lines(found, most, page)))


def _oldest(stale_after: str | None) -> "datetime | None":
    from coreeval.config.dates import parse_age

    try:
        return parse_age(stale_after).subtract_from(utc_now()) if stale_after else None
    except ValueError as error:
        raise UsageError(str(error), where="--stale-after") from None


def _only(found: "Diff", sample: str) -> "Diff":
    """Return a diff with one of its samples."""
    those = tuple(one for one in found.changed if one.id == sample)
    if not those:
        raise UsageError(
            f"the sample {sample!r} does not differ, or neither side has it",
            where="--sample",
            hint="leave --sample out to see which differ",
        )
    stale = tuple(one for one in found.stale if one.id == sample)
    return found.model_copy(update={"changed": those, "stale": stale})


def _write(page: Path, found: "Diff") -> None:
    from coreeval.releases.diff_page import write_page

    write_page(page, found)
