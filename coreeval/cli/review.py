"""`coreeval review`: a person's yes or no to the samples that ask for it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from coreeval.cli.output import AsJson, Document, show
from coreeval.cli.review_words import PAGE, Shown, review_lines
from coreeval.errors import UsageError

if TYPE_CHECKING:
    from coreeval.releases.review import Review
    from coreeval.releases.review.deciding import Choice, Recorded
    from coreeval.releases.review.listed import Listed

PlaceArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RELEASE_OR_RUN",
        file_okay=False,
        show_default=False,
        help="The run's directory, or that of a release that was made of it.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class _Said:
    """What the command line decides."""

    approve: list[str]
    reject: list[str]
    rest: str | None
    sheet: Path | None
    by: str | None
    note: str

    @property
    def anything(self) -> bool:
        return bool(self.approve or self.reject or self.rest or self.sheet)


def review(
    place: PlaceArgument,
    approve: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A sample to publish; repeatable.")
    ] = None,
    reject: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A sample to leave out; repeatable.")
    ] = None,
    rest: Annotated[
        Literal["approve", "reject"] | None,
        typer.Option("--all", help="What to say of all others that are shown and open."),
    ] = None,
    from_csv: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", dir_okay=False, help="A sheet whose `decision` column is filled in."
        ),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who decides; goes with every decision.")
    ] = None,
    note: Annotated[str, typer.Option(metavar="TEXT", help="A remark on the decisions.")] = "",
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="REASON", help="Only samples listed for nothing but this; repeatable."
        ),
    ] = None,
    with_decided: Annotated[
        bool, typer.Option("--decided", help="Show those that are decided too.")
    ] = False,
    page: Annotated[int, typer.Option(metavar="N", min=1, help=f"{PAGE} samples a page.")] = 1,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Write the list as a sheet to fill in."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Write the list as a page to read."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List samples that name people or are doubtful; record decisions.

    A rejected sample is in no arm of any later release.
    """
    from coreeval.releases.review import decided
    from coreeval.releases.review.place import run_of

    run = run_of(place)
    chosen = _Filter.of(only or [], with_decided)
    said = _Said(
        approve=approve or [],
        reject=reject or [],
        rest=rest,
        sheet=from_csv,
        by=by,
        note=note,
    )
    _refuse_idle(said)
    recorded = _record(run, said, chosen) if said.anything else None
    found = decided(run)
    samples = chosen.among(found)
    _write(found, samples, csv, html)
    shown = Shown(
        place=place,
        filters=chosen.options,
        review=found,
        samples=samples,
        page=page,
        recorded=recorded,
        files=[file for file in (csv, html) if file],
    )
    show(_document(shown, csv, html), as_json, lambda: "\n".join(review_lines(shown)))


def _refuse_idle(said: _Said) -> None:
    """Refuse the name or the remark of a decision that is none."""
    if (said.by or said.note) and not said.anything:
        raise UsageError(
            "nothing is decided",
            where="--by" if said.by else "--note",
            hint="add --approve ID, --reject ID, --all approve|reject or --from-csv FILE",
        )


@dataclass(frozen=True)
class _Filter:
    """Which of the listed samples are meant."""

    only: frozenset[str]
    with_decided: bool

    @property
    def options(self) -> list[str]:
        """The command line's way of saying so."""
        only = [word for reason in sorted(self.only) for word in ("--only", reason)]
        return [*only, *["--decided"] * self.with_decided]

    @classmethod
    def of(cls, only: list[str], with_decided: bool) -> "_Filter":
        from coreeval.releases.review.listed import REASONS

        for reason in only:
            if reason not in REASONS:
                raise UsageError(
                    f"there is no reason {reason!r}", where="--only", hint=", ".join(REASONS)
                )
        return cls(frozenset(only), with_decided)

    def among(self, review: "Review") -> list["Listed"]:
        return [
            each
            for each in (review.samples if self.with_decided else review.open)
            if not self.only or each.reasons <= self.only
        ]


def _record(run: Path, said: _Said, chosen: _Filter) -> "Recorded":
    from coreeval.releases.review.deciding import record

    return record(run, list(_choices(run, said, chosen)), by=said.by or "")


def _choices(run: Path, said: _Said, chosen: _Filter) -> Iterator["Choice"]:
    from coreeval.releases.review import decided
    from coreeval.releases.review.deciding import Choice
    from coreeval.releases.review.sheet import read_sheet

    named = [
        *(read_sheet(said.sheet) if said.sheet else ()),
        *(Choice(sample=key, verdict="approved") for key in said.approve),
        *(Choice(sample=key, verdict="rejected") for key in said.reject),
    ]
    if said.rest:
        known = {choice.sample for choice in named}
        open_ones = (each for each in chosen.among(decided(run)) if not each.decision)
        named += (
            Choice(
                sample=each.sample,
                digest=each.digest,
                verdict="approved" if said.rest == "approve" else "rejected",
            )
            for each in open_ones
            if each.sample not in known
        )
    yield from (replace(choice, note=choice.note or said.note) for choice in named)


def _write(review: "Review", samples: list["Listed"], csv: Path | None, html: Path | None) -> None:
    if csv:
        from coreeval.releases.review.sheet import write_sheet

        write_sheet(csv, samples)
    if html:
        from coreeval.releases.review.page import write_page

        write_page(html, review, samples)


def _document(shown: Shown, csv: Path | None, html: Path | None) -> Document:
    state = shown.review.state(required=False).model_dump(exclude={"required"})
    new = shown.recorded.new if shown.recorded else ()
    return {
        "run": str(shown.review.run),
        **state,
        "samples": [each.model_dump(mode="json") for each in shown.samples],
        "recorded": [decision.model_dump() for decision in new],
        "unchanged": shown.recorded.unchanged if shown.recorded else 0,
        "csv": str(csv) if csv else None,
        "html": str(html) if html else None,
    }
