"""The list as a CSV file that a person fills in with a spreadsheet, and back."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from coreeval.errors import UsageError
from coreeval.releases.review.deciding import Choice
from coreeval.releases.review.decisions import Verdict
from coreeval.releases.review.listed import Listed
from coreeval.tools.files import write_text

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
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'", "＝", "＋", "－", "＠")  # noqa: RUF001
"""What makes a spreadsheet take a cell for a formula (OWASP, CSV Injection), and our own mark."""
_SEPARATORS = ",;\t"
"""Spreadsheets of some countries save with another one than they were given."""


def write_sheet(path: Path, samples: Sequence[Listed]) -> None:
    """Write a row for each sample: UTF-8 with a mark by which spreadsheets know it.

    No cell is a formula: one that a spreadsheet would take for one begins with an apostrophe.
    """
    made = io.StringIO(newline="")
    writer = csv.writer(made, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    writer.writerows([_harmless(cell) for cell in _cells(each)] for each in samples)
    write_text(path, f"\ufeff{made.getvalue()}")


def _cells(each: Listed) -> Sequence[str]:
    said = each.decision
    return (
        each.sample,
        said.verdict if said else "",
        said.note if said else "",
        "; ".join(named.name for named in each.names),
        "; ".join(f"{why.reason}: {why.detail}" for why in each.why),
        each.label,
        _texts(each.original),
        _texts(each.new),
        "\n".join(fact.told for fact in each.facts),
        "\n".join(f"{fact.published_at[:10]} {fact.url} {fact.source}" for fact in each.facts),
        said.by if said else "",
        said.at if said else "",
        each.digest,
    )


def _texts(fields: dict[str, str]) -> str:
    if len(fields) == 1:
        return next(iter(fields.values()))
    return "\n".join(f"{name}: {text}" for name, text in fields.items())


def _harmless(cell: str) -> str:
    cell = cell.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def read_sheet(path: Path) -> list[Choice]:
    """Return the decisions that a sheet has; rows without one are passed over.

    Raises:
        UsageError: it cannot be read, or a line of it says what is no decision.
    """
    rows = _rows(path)
    _, header = next(rows, (1, []))
    places = _places(path, header)
    choices = (_choice(path, line, cells, places) for line, cells in rows if any(cells))
    return [choice for choice in choices if choice]


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a sheet with the line that each begins on."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
        first = text.partition("\n")[0]
        reader = csv.reader(
            io.StringIO(text, newline=""), delimiter=max(_SEPARATORS, key=first.count), strict=True
        )
        line = 1
        for cells in reader:
            yield line, cells
            line = reader.line_num + 1
    except UnicodeDecodeError:
        raise _unreadable(path, "it is not UTF-8", "save it as CSV UTF-8") from None
    except (OSError, csv.Error) as error:
        raise _unreadable(path, str(error), "save it as CSV, as it was written") from None


def _unreadable(path: Path, problem: str, hint: str) -> UsageError:
    return UsageError(f"the sheet cannot be read: {problem}", where=str(path), hint=hint)


def _places(path: Path, header: Sequence[str]) -> dict[str, int]:
    names = [name.strip().casefold() for name in header]
    missing = [name for name in _READ if names.count(name) != 1]
    if missing:
        raise _unreadable(
            path, f"it has not one column {missing[0]!r}", "keep the first line as it was written"
        )
    return {name: names.index(name) for name in _READ}


def _choice(path: Path, line: int, cells: Sequence[str], places: dict[str, int]) -> Choice | None:
    where = f"{path}, line {line}"
    if len(cells) <= max(places.values()):
        raise UsageError("a row is cut short", where=where, hint="write the sheet again")
    said = {name: _as_meant(cells[place]) for name, place in places.items()}
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


def _as_meant(cell: str) -> str:
    """Take away the apostrophe that `_harmless` put before a cell."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell
