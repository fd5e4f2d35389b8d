"""The list as a CSV file that a person fills in with a spreadsheet, and back."""

from collections.abc import Sequence
from pathlib import Path

from coreeval.errors import UsageError
from coreeval.releases.review.deciding import Choice
from coreeval.releases.review.decisions import Verdict
from coreeval.releases.review.listed import Listed
from coreeval.tools.files import write_text
from coreeval.tools.text import (
    find_columns,
    format_sheet,
    iter_sheet_rows,
    join_fields,
    unescape_formula,
)

COLUMNS = (
    "id", "decision", "note", "names", "why", "label", "original", "new", "facts", "evidence",
    "decided_by", "decided_at", "text_sha256",
)  # fmt: skip
_READ = ("id", "decision", "note", "text_sha256")
"""Columns that are read back; the others may be changed or taken out."""
_VERDICTS: dict[str, Verdict] = {
    "approve": "approved",
    "approved": "approved",
    "reject": "rejected",
    "rejected": "rejected",
}


def write_sheet(path: Path, samples: Sequence[Listed]) -> None:
    """Write a row for each sample: UTF-8 with a mark by which spreadsheets know it.

    No cell is a formula: one that a spreadsheet would take for one begins with an apostrophe.
    """
    write_text(path, format_sheet(COLUMNS, map(_cells, samples)))


def _cells(each: Listed) -> Sequence[str]:
    said = each.decision
    return (
        each.sample,
        said.verdict if said else "",
        said.note if said else "",
        "; ".join(named.name for named in each.names),
        "; ".join(f"{why.reason}: {why.detail}" for why in each.why),
        each.label,
        join_fields(each.original),
        join_fields(each.new),
        "\n".join(fact.told for fact in each.facts),
        "\n".join(f"{fact.published_at[:10]} {fact.url} {fact.source}" for fact in each.facts),
        said.by if said else "",
        said.at if said else "",
        each.digest,
    )


def read_sheet(path: Path) -> list[Choice]:
    """Return the decisions that a sheet has; rows without one are passed over.

    Raises:
        UsageError: it cannot be read, or a line of it says what is no decision.
    """
    rows = iter_sheet_rows(path)
    _, header = next(rows, (1, []))
    places = find_columns(path, header, _READ)
    choices = (_choice(path, line, cells, places) for line, cells in rows if any(cells))
    return [choice for choice in choices if choice]


def _choice(path: Path, line: int, cells: Sequence[str], places: dict[str, int]) -> Choice | None:
    where = f"{path}, line {line}"
    if len(cells) <= max(places.values()):
        raise UsageError("a row is cut short", where=where, hint="write the sheet again")
    said = {name: unescape_formula(cells[place]) for name, place in places.items()}
    decision = said["decision"].strip().casefold()
    if not decision:
        return None
    if decision not in _VERDICTS:
        raise UsageError(
            f"{said['decision']!r} is no decision",
            where=where,
            hint="write approve or reject, or leave it empty",
        )
    return Choice(
        sample=said["id"],
        verdict=_VERDICTS[decision],
        note=said["note"],
        digest=said["text_sha256"].strip(),
        where=where,
    )
