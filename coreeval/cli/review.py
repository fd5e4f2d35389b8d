"""`coreeval review`: lists samples that need a person's decision, and records decisions.

The list shows a few samples at a time, with everything needed for a decision.
"""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from coreeval.cli.options import LARGEST_COUNT, PlaceArgument
from coreeval.cli.output import AsJson, brief, command, one_line, show
from coreeval.tasks.kinds import find_display, title_fields
from coreeval.tools.formatting import format_quantity, plural

if TYPE_CHECKING:
    from coreeval.releases.review import Review
    from coreeval.releases.review.decisions import Decision, NewFact, ReviewEntry
    from coreeval.releases.review.review import ChoiceResult


PAGE = 5
"""Samples shown at a time: about as many as fit on a screen."""
WIDTH = 100
TITLE = 10
"""Columns reserved for the label before a text."""


@dataclass(frozen=True, kw_only=True)
class ReviewPage:
    """One page of the review output."""

    place: Path
    """The run's path as given by the user."""
    filters: Sequence[str]
    """The options that selected the samples."""
    review: "Review"
    samples: Sequence["ReviewEntry"]
    page: int
    recorded: "ChoiceResult | None"
    files: Sequence[Path]

    @property
    def pages(self) -> int:
        """Return the number of pages; one if there is nothing to show."""
        return max(1, -(-len(self.samples) // PAGE))


def review_lines(shown: ReviewPage) -> Iterator[str]:
    """Yield what was recorded, one page of the list, and the next step."""
    yield from _record_lines(shown)
    yield from (f"written: {brief(file)}" for file in shown.files)
    if not shown.files and not shown.recorded:
        yield from _page_lines(shown)
    yield from _problem_lines(shown.review)
    yield from _count_lines(shown)
    yield from _next_lines(shown)


def _problem_lines(review: "Review") -> Iterator[str]:
    """Yield a warning if notes, or samples listed because of them, may be missing."""
    if problem := review.notes_problem:
        yield f"warning: notes may be missing: {one_line(problem.message)}"
        yield f"  where: {one_line(problem.where)}"
        yield f"  to do: {problem.hint}"


def _record_lines(shown: ReviewPage) -> Iterator[str]:
    if not shown.recorded:
        return
    for decision in shown.recorded.new[:PAGE]:
        yield one_line(f"{decision.verdict}: {decision.sample}")
    if more := len(shown.recorded.new[PAGE:]):
        yield f"and {more} more"
    if shown.recorded.unchanged:
        yield f"samples that already had this decision: {shown.recorded.unchanged}"


def _page_lines(shown: ReviewPage) -> Iterator[str]:
    first = (shown.page - 1) * PAGE
    for number, each in enumerate(shown.samples[first : first + PAGE], start=first + 1):
        yield f"-- {number} of {len(shown.samples)} " + "-" * 60
        yield from _sample_lines(each)
    if shown.samples:
        yield "-" * 73


def _sample_lines(each: "ReviewEntry") -> Iterator[str]:
    kind = find_display(each.original, each.label)
    told = f"{kind.label_title}: {each.label}"
    yield f"{one_line(each.sample)}   {told}{_format_decision(each.decision)}"
    for why in each.why:
        yield from _entry_lines("why", f"{why.reason.replace('_', ' ')}: {why.detail}")
    for name, text in title_fields(each.original, each.label).items():
        yield from _entry_lines("original", _field_text(name, text, each))
    for name, text in title_fields(each.new, each.label).items():
        yield from _entry_lines("new", _field_text(name, text, each))
    for fact in each.facts:
        yield from _fact_lines(fact)
    if each.remarks.tags:
        yield from _entry_lines("tags", ", ".join(each.remarks.tags))
    for said in each.remarks.notes:
        yield from _entry_lines("note", f"{said.by}, {said.at[:10]}: {said.note}")
    if each.beside:
        yield from _entry_lines("beside", f"its evidence also names {', '.join(each.beside)}")


def _field_text(name: str, text: str, each: "ReviewEntry") -> str:
    return text if len(each.original) == 1 else f"{name}: {text}"


def _format_decision(decision: "Decision | None") -> str:
    if decision is None:
        return ""
    note = f": {decision.note}" if decision.note else ""
    return "   " + one_line(f"{decision.verdict} by {decision.by}, {decision.at[:10]}{note}")


def _fact_lines(fact: "NewFact") -> Iterator[str]:
    how = f" ({fact.published_precision})" if fact.published_precision else ""
    yield from _entry_lines("new fact", fact.told)
    yield from _entry_lines(
        "evidence", f"{fact.published_at[:10]}{how} {fact.domain}: {fact.source}"
    )
    yield from _entry_lines("", fact.url)


def _entry_lines(title: str, text: str) -> list[str]:
    """Return a titled text, wrapped; addresses stay clickable."""
    indent = " " * (TITLE + 6)
    return textwrap.wrap(
        one_line(text),
        WIDTH,
        initial_indent=f"    {title:<{TITLE}}  ",
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _count_lines(shown: ReviewPage) -> Iterator[str]:
    state = shown.review.state(required=False)
    listed_ones = format_quantity(state.listed, "sample is", "samples are")
    yield (
        f"{listed_ones} listed: {state.pending} open, {state.approved} approved; "
        f"{format_quantity(state.rejected, 'sample')} of the run "
        f"{plural(state.rejected, 'is', 'are')} rejected"
    )
    listed = {each.sample for each in shown.review.samples}
    if others := [key for key in shown.review.remarks if key not in listed]:
        noted = format_quantity(len(others), "sample with notes has", "samples with notes have")
        yield f"{noted} no new text; --json shows their notes"


def _next_lines(shown: ReviewPage) -> Iterator[str]:
    place = shown.place
    if shown.page < shown.pages:
        following = ("--page", str(shown.page + 1))
        yield f"next page: {command('review', place, *shown.filters, *following)}"
    elif shown.page > shown.pages:
        yield f"this page does not exist; first page: {command('review', place, *shown.filters)}"
    if shown.review.open:
        yield f"decide:    {command('review', place, '--by', 'NAME', '--approve', 'ID')}"
        yield f"in bulk:   {command('review', place, '--csv', 'FILE')}, then --from-csv FILE"
    else:
        run = shown.review.run
        yield f"publish:   {command('release', run, '--version', 'V', '--require-review')}"


def review(
    place: PlaceArgument,
    approve: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A sample to publish; repeatable.")
    ] = None,
    reject: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A sample to exclude; repeatable.")
    ] = None,
    rest: Annotated[
        Literal["approve", "reject"] | None,
        typer.Option("--all", help="The decision for all other open samples on the list."),
    ] = None,
    from_csv: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", dir_okay=False, help="A sheet with a completed `decision` column."
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The person who decides; the name is recorded with every decision."
        ),
    ] = None,
    note: Annotated[str, typer.Option(metavar="TEXT", help="A remark on the decisions.")] = "",
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="REASON",
            help="Show only samples that are listed for this reason alone; repeatable, to allow "
            "several reasons.",
        ),
    ] = None,
    with_decided: Annotated[
        bool, typer.Option("--decided", help="Also show samples that already have a decision.")
    ] = False,
    page: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, max=LARGEST_COUNT, help=f"Page to show; a page has {PAGE} samples."
        ),
    ] = 1,
    csv: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="Write the list to a CSV sheet that you can fill in.",
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Write the list to an HTML page."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List samples that name people or are doubtful; record decisions.

    A rejected sample is excluded from all later releases.
    """
    from coreeval.api.reviews import review as work

    found = work(
        place,
        approve=approve or (),
        reject=reject or (),
        rest=rest,
        from_csv=from_csv,
        by=by,
        note=note,
        only=only or (),
        decided=with_decided,
        csv=csv,
        html=html,
    )
    filters = [word for reason in sorted(set(only or ())) for word in ("--only", reason)]
    shown = ReviewPage(
        place=place,
        filters=[*filters, *["--decided"] * with_decided],
        review=found.review,
        samples=found.samples,
        page=page,
        recorded=found.recorded,
        files=[file for file in (csv, html) if file],
    )
    show(found.document, as_json, lambda: "\n".join(review_lines(shown)))
