"""Reviews: decisions of people about samples."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from coreeval.api.places import SideLike, find_side
from coreeval.api.tables import Result, Row, Table, parse_columns
from coreeval.errors import UsageError
from coreeval.releases.review import Review, load_review
from coreeval.releases.review.decisions import REASONS, ReviewEntry
from coreeval.releases.review.output import (
    read_sheet,
    refuse_unrecorded,
    write_review_page,
    write_sheet,
)
from coreeval.releases.review.review import Choice, ChoiceResult, record_choices, resolve_run
from coreeval.runs.copying import refuse_takedown
from coreeval.tools.formatting import format_quantity
from coreeval.tools.outputs import PAGE, refuse_foreign_output

if TYPE_CHECKING:
    from pydantic import JsonValue

Verdict = Literal["approve", "reject"]
_COLUMNS: Final = parse_columns("sample label reasons:texts verdict by original new")


@dataclass(frozen=True, kw_only=True, repr=False)
class ReviewResult(Result):
    """The samples of a run that need a person's decision, and the decisions."""

    review: Review
    samples: tuple[ReviewEntry, ...]
    """The listed samples: the open ones, or all with `decided`."""
    recorded: ChoiceResult | None
    """The decisions that were recorded; None if there are none."""
    csv: Path | None
    html: Path | None

    @property
    def document(self) -> "dict[str, JsonValue]":
        """The document that `coreeval review --json` prints."""
        state = self.review.state(required=False).model_dump(exclude={"required"})
        new, problem = self.recorded.new if self.recorded else (), self.review.notes_problem
        return {
            "run": str(self.review.run),
            **state,
            "samples": [each.model_dump(mode="json") for each in self.samples],
            "remarks": {
                key: said.model_dump(mode="json") for key, said in self.review.remarks.items()
            },
            "notes_problem": dict(problem.as_dict()) if problem else None,
            "recorded": [decision.model_dump() for decision in new],
            "unchanged": self.recorded.unchanged if self.recorded else 0,
            "csv": str(self.csv) if self.csv else None,
            "html": str(self.html) if self.html else None,
        }

    @property
    def summary(self) -> str:
        """The numbers of listed and open samples, in a line."""
        state = self.review.state(required=False)
        listed = format_quantity(state.listed, "sample is", "samples are")
        return f"{listed} listed: {state.pending} open, {state.approved} approved"

    @property
    def table(self) -> Table:
        """A row for each listed sample: the reasons, its texts, and the decision."""
        rows: list[Row] = [
            (
                each.sample,
                each.label,
                tuple(sorted(each.reasons)),
                each.decision.verdict if each.decision else None,
                each.decision.by if each.decision else None,
                " ".join(each.original.values()),
                " ".join(each.new.values()),
            )
            for each in self.samples
        ]
        return Table("samples to review", _COLUMNS, rows)


def review(
    source: SideLike,
    *,
    approve: Sequence[str] = (),
    reject: Sequence[str] = (),
    rest: Verdict | None = None,
    from_csv: Path | str | None = None,
    by: str | None = None,
    note: str = "",
    only: Sequence[str] = (),
    decided: bool = False,
    csv: Path | str | None = None,
    html: Path | str | None = None,
) -> ReviewResult:
    """List samples that name people or are doubtful, and record decisions about them.

    A rejected sample is excluded from all later releases.

    Args:
        source: A run or a release: a directory, a run's id or name, `latest`, or a `Run` or
            `Release`.
        approve: The ids of samples to publish.
        reject: The ids of samples to exclude.
        rest: The decision for all other open samples that are listed.
        from_csv: A sheet with a completed `decision` column.
        by: The name of the person who decides, which is recorded with every decision.
        note: A remark on the decisions.
        only: List only samples that are listed for no reasons other than these.
        decided: Whether to list samples that already have a decision, too.
        csv: Write the list to this sheet, which can be filled in; a sheet with decisions or notes
            that are not recorded is not replaced.
        html: Write the list to this HTML page.

    Raises:
        RunStateError: there is no such run, it has not ended, or a takedown has changed it while
            the list for a sheet or page was made.
        UsageError: a reason, a sample or a sheet is not valid, `by` is missing, `by` or `note` is
            given without a decision, or `csv` is a sheet with decisions that are not recorded.
    """
    run, chosen = resolve_run(find_side(source)), _Filter(frozenset(only), decided)
    _check_reasons(only)
    sheet = None if from_csv is None else Path(from_csv)
    filled, recorded = read_sheet(sheet) if sheet else [], None
    _check_outputs(csv, html)
    if html is not None:
        refuse_foreign_output(Path(html), PAGE)
    if csv is not None:
        refuse_unrecorded(Path(csv), run, filled)
    if approve or reject or rest or sheet:
        named = [
            *filled,
            *(Choice(sample=key, verdict="approved") for key in approve),
            *(Choice(sample=key, verdict="rejected") for key in reject),
        ]
        if rest:
            named += _decide_rest(chosen.select(load_review(run)), named, rest)
        choices = [replace(choice, note=choice.note or note) for choice in named]
        recorded = record_choices(run, choices, by=by or "")
    elif by or note:
        raise UsageError(
            "no decision was made",
            where="--by" if by else "--note",
            hint="add --approve ID, --reject ID, --all approve|reject or --from-csv FILE",
        )
    with refuse_takedown(run) if csv or html else nullcontext():
        found = load_review(run)
    result = ReviewResult(
        review=found,
        samples=tuple(chosen.select(found)),
        recorded=recorded,
        csv=None if csv is None else Path(csv),
        html=None if html is None else Path(html),
    )
    if result.csv:
        write_sheet(result.csv, result.samples)
    if result.html:
        write_review_page(result.html, found, result.samples)
    return result


def _check_reasons(only: Sequence[str]) -> None:
    for reason in only:
        if reason not in REASONS:
            raise UsageError(f"{reason!r} is not a reason", where="--only", hint=", ".join(REASONS))


def _check_outputs(*paths: Path | str | None) -> None:
    for path in paths:
        if path is not None and Path(path).is_dir():
            raise UsageError("this is a folder, not a file", where=str(path), hint="name a file")
        if path is not None:
            refuse_foreign_output(Path(path))


@dataclass(frozen=True)
class _Filter:
    """Which of the listed samples to show."""

    only: frozenset[str]
    decided: bool

    def select(self, review: Review) -> list[ReviewEntry]:
        return [
            each
            for each in (review.samples if self.decided else review.open)
            if not self.only or each.reasons <= self.only
        ]


def _decide_rest(
    listed: Sequence[ReviewEntry], named: Sequence[Choice], verdict: Verdict
) -> Iterator[Choice]:
    """Yield a choice for each listed sample without a decision or an explicit choice."""
    known = {choice.sample for choice in named}
    for each in listed:
        if not each.decision and each.sample not in known:
            yield Choice(
                sample=each.sample,
                digest=each.digest,
                verdict="approved" if verdict == "approve" else "rejected",
            )
