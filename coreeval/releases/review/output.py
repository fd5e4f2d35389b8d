"""The list of samples as a page to read and as a CSV sheet that a person fills in.

The page has no scripts, fetches nothing, and escapes everything in it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from coreeval.errors import UsageError
from coreeval.releases.review.decisions import Decision, PersonMention, ReviewEntry, Verdict
from coreeval.releases.review.persons import SHORTEST_NAME
from coreeval.releases.review.review import Choice, Review, open_log
from coreeval.runs.manifest import read_manifest
from coreeval.tasks.kinds import find_display, title_fields
from coreeval.tools.files import write_text
from coreeval.tools.pages import open_templates
from coreeval.tools.text import (
    find_columns,
    format_sheet,
    iter_sheet_rows,
    join_fields,
    unescape_formula,
)
from coreeval.tools.workspace import RunFiles, command

if TYPE_CHECKING:
    from markupsafe import Markup


def write_review_page(path: Path, review: Review, samples: Sequence[ReviewEntry]) -> None:
    """Write a review's samples as an HTML page."""
    environment = open_templates("coreeval.releases.review")
    environment.filters |= {"marked": _mark_names, "is_web": _is_web, "titled": title_fields}
    environment.filters["label_title"] = lambda texts, label: find_display(texts, label).label_title
    page = environment.get_template("page.html.jinja").render(
        run=str(review.run),
        command=command("review", review.run),
        samples=samples,
        open=len(review.open),
        listed=len(review.samples),
        notes_problem=review.notes_problem,
    )
    write_text(path, page)


def _mark_names(text: str, names: Sequence[PersonMention]) -> "Markup":
    """Return an escaped text with names marked."""
    from markupsafe import Markup, escape

    last = (each.name.split()[-1] for each in names)
    spellings = {
        *(each.name for each in names),
        *(name for name in last if len(name) >= SHORTEST_NAME),
    }
    if not spellings:
        return escape(text)
    longest_first = sorted(map(re.escape, spellings), key=len, reverse=True)
    parts = re.split(rf"(?<!\w)({'|'.join(longest_first)})(?!\w)", text, flags=re.IGNORECASE)
    marked = (
        Markup("<mark>{}</mark>").format(part) if place % 2 else escape(part)
        for place, part in enumerate(parts)
    )
    return Markup("").join(marked)


def _is_web(url: str) -> bool:
    """Return whether an address is a web address; links to others could be harmful."""
    return url.startswith(("https://", "http://"))


SHEET_COLUMNS = (
    "id", "decision", "note", "names", "why", "label", "original", "new", "facts", "evidence",
    "decided_by", "decided_at", "tags", "notes", "text_sha256",
)  # fmt: skip
_READ_COLUMNS = ("id", "decision", "note", "text_sha256")
"""Columns that are read back; the others may be removed."""
_SHOWN_COLUMN = "decided_at"
"""Read if it is there: says which decision the person saw."""
_VERDICT_WORDS: dict[str, Verdict] = {
    "approve": "approved",
    "approved": "approved",
    "reject": "rejected",
    "rejected": "rejected",
}


def write_sheet(path: Path, samples: Sequence[ReviewEntry]) -> None:
    """Write a row for each sample, in UTF-8 with a byte order mark for spreadsheets.

    An apostrophe precedes whatever a spreadsheet could read as a formula (see `escape_formula`).
    """
    write_text(path, format_sheet(SHEET_COLUMNS, map(_sheet_cells, samples)))


def _sheet_cells(each: ReviewEntry) -> Sequence[str]:
    said = each.decision
    return (
        each.sample,
        said.verdict if said else "",
        said.note if said else "",
        "; ".join(named.name for named in each.names),
        "; ".join(f"{why.reason}: {why.detail}" for why in each.why),
        each.label,
        join_fields(title_fields(each.original, each.label)),
        join_fields(title_fields(each.new, each.label)),
        "\n".join(fact.told for fact in each.facts),
        "\n".join(f"{fact.published_at[:10]} {fact.url} {fact.source}" for fact in each.facts),
        said.by if said else "",
        said.at if said else "",
        " ".join(each.remarks.tags),
        "\n".join(f"{one.by}, {one.at[:10]}: {one.note}" for one in each.remarks.notes),
        each.digest,
    )


def refuse_unrecorded(path: Path, run: Path, sheet: Iterable[Choice]) -> None:
    """Refuse to replace a sheet that a person has filled in before its decisions are recorded.

    Args:
        path: The file to write, which may be such a sheet.
        run: The run's directory.
        sheet: The choices that are about to be recorded.

    Raises:
        UsageError: it has a decision or a note that was never recorded, or is not a sheet.
        RunCorrupt: the log of decisions is damaged.
    """
    if not path.is_file() or not path.stat().st_size:
        return
    log = open_log(read_manifest(RunFiles(run).manifest))
    recorded: list[Decision | Choice] = [*log.every(), *sheet]
    verdicts = {(each.sample.strip(), each.digest, each.verdict) for each in recorded}
    notes = {(each.sample.strip(), each.digest, each.note) for each in recorded}
    try:
        rows = list(_iter_rows(path))
    except UsageError as error:
        raise UsageError(
            f"this file exists, and {error.message}",
            where=error.where,
            hint="choose another file for the list",
        ) from None
    for where, said in rows:
        about, decision = (said["id"].strip(), _find_digest(said)), _find_decision(said)
        verdict = _VERDICT_WORDS.get(decision)
        if (decision and (*about, verdict) not in verdicts) or (
            said["note"].strip() and (*about, said["note"]) not in notes
        ):
            raise UsageError(
                "this sheet has a decision or a note that is not recorded",
                where=where,
                hint="record the decisions first (--from-csv FILE --by NAME), or choose another "
                "file; a note is recorded together with a decision",
            )


def read_sheet(path: Path) -> list[Choice]:
    """Return the decisions in a sheet; rows without a decision are skipped.

    Raises:
        UsageError: the sheet cannot be read, or a line has an invalid decision.
    """
    choices = (_read_choice(where, said) for where, said in _iter_rows(path))
    return [choice for choice in choices if choice]


def _iter_rows(path: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the place of each row, and its cells in the columns that are read.

    Raises:
        UsageError: the sheet cannot be read, or a row is incomplete.
    """
    rows = iter_sheet_rows(path)
    _, header = next(rows, (1, []))
    places = find_columns(path, header, _READ_COLUMNS)
    if _SHOWN_COLUMN in header:
        places[_SHOWN_COLUMN] = header.index(_SHOWN_COLUMN)
    for line, cells in rows:
        where = f"{path}, line {line}"
        if any(cells) and len(cells) <= max(places.values()):
            raise UsageError(
                "a row is incomplete", where=where, hint="write the sheet again, to another file"
            )
        if any(cells):
            yield where, {name: unescape_formula(cells[place]) for name, place in places.items()}


def _find_digest(said: Mapping[str, str]) -> str:
    return said["text_sha256"].strip().casefold()


def _find_decision(said: Mapping[str, str]) -> str:
    return said["decision"].strip().casefold()


def _read_choice(where: str, said: Mapping[str, str]) -> Choice | None:
    decision = _find_decision(said)
    if not decision:
        return None
    if decision not in _VERDICT_WORDS:
        raise UsageError(
            f"{said['decision']!r} is not a decision",
            where=where,
            hint="write approve or reject, or leave the cell empty",
        )
    return Choice(
        sample=said["id"],
        verdict=_VERDICT_WORDS[decision],
        note=said["note"],
        digest=_find_digest(said),
        where=where,
        shown=said.get(_SHOWN_COLUMN, "").strip(),
    )
