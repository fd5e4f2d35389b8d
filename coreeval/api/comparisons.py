"""Comparing two releases or runs."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from coreeval.api.places import SideLike, find_side
from coreeval.api.tables import Result, Row, Table, parse_columns
from coreeval.config.dates import parse_age
from coreeval.errors import UsageError
from coreeval.releases.comparable import open_comparable
from coreeval.releases.diff import Diff, SampleDiff, compare_in_full, write_diff_page
from coreeval.releases.release import MANIFEST
from coreeval.releases.verify import require_whole
from coreeval.tools.clock import utc_now

if TYPE_CHECKING:
    from pydantic import JsonValue


class Comparison(Result, Diff):
    """The differences between two releases or runs: settings, samples, words and facts."""

    @property
    def document(self) -> "dict[str, JsonValue]":
        """The document that `coreeval diff --json` prints, without the path of the page."""
        return self.model_dump(mode="json")

    @property
    def summary(self) -> str:
        """The number of samples that differ in the updated arm, in a line."""
        found = self.samples
        told = f"{found.added} new, {found.changed} changed, {found.kept} kept"
        return f"{self.before} -> {self.after}: {told}, {found.removed} removed"

    @property
    def table(self) -> Table:
        """A row for each sample that differs: the changes, and the word diff in the updated arm."""
        return Table("samples that differ", _DIFF_COLUMNS, map(_diff_row, self.changed))


def _diff_row(one: SampleDiff) -> Row:
    pieces = [piece for each in one.fields if each.arm == "updated" for piece in each.pieces]
    words = {op: [piece.text.strip() for piece in pieces if piece.op == op] for op in _OPS}
    facts = {op: sum(fact.op == op for fact in one.facts) for op in _OPS}
    outcome = next((change for change in one.changes if change.name == "outcome"), None)
    moved = f"{outcome.before} -> {outcome.after}" if outcome else None
    told = [" … ".join(each) for each in words.values()]
    return (one.id, one.updated, moved, *told, *facts.values())


_OPS: Final = ("removed", "added")
_DIFF_COLUMNS: Final = parse_columns(
    "sample updated outcome words_removed words_added facts_removed:integer facts_added:integer"
)


def diff(
    before: SideLike,
    after: SideLike,
    *,
    sample: str | None = None,
    stale_after: str | None = None,
    page: Path | str | None = None,
) -> Comparison:
    """Compare the settings, samples, words and facts of two releases or runs.

    Args:
        before: The earlier side: a directory, a run's id or name, `latest`, or a `Run` or
            `Release`.
        after: The later side.
        sample: Compare only this sample.
        stale_after: List samples of the later side whose evidence is older than this: `90d`, `12w`,
            `6m`.
        page: Also write the result to this HTML page.

    Raises:
        RunStateError: there is no such run or release.
        ReleaseError: a release has changed since it was made, or cannot be read.
        UsageError: the sample does not differ, or the age is not valid.
    """
    sides = find_side(before), find_side(after)
    oldest = _find_oldest_allowed(stale_after)
    for side in sides:
        if (side / MANIFEST).exists():
            require_whole(side)
    found = compare_in_full(*map(open_comparable, sides), oldest=oldest)
    if sample is not None:
        found = _select_sample(found, sample)
    if page is not None:
        write_diff_page(Path(page), found)
    return Comparison.model_validate(found.model_dump())


def _find_oldest_allowed(stale_after: str | None) -> datetime | None:
    try:
        return parse_age(stale_after).subtract_from(utc_now()) if stale_after else None
    except ValueError as error:
        raise UsageError(str(error), where="--stale-after") from None


def _select_sample(found: Diff, sample: str) -> Diff:
    """Return a diff reduced to one of its samples."""
    those = tuple(one for one in found.changed if one.id == sample)
    if not those:
        raise UsageError(
            f"the sample {sample!r} does not differ, or neither side contains it",
            where="--sample",
            hint="omit --sample to see which samples differ",
        )
    stale = tuple(one for one in found.stale if one.id == sample)
    return found.model_copy(update={"changed": those, "stale": stale})
