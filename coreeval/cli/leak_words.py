"""What `coreeval detect numleak` says in words of signals and what ties them to the truth."""

from collections.abc import Iterator

from coreeval.cli.output import Document, one_line
from coreeval.evaluation.numleak.audit_tables import (
    ROUTE_WORDS,
    AuditRow,
    attribution_rows,
    control_rows,
    control_sentences,
)


def leak_lines(leak: Document | None) -> Iterator[tuple[str, str]]:
    """Yield lines, each with the blanks that it begins with; a row of numbers is whole already."""
    if leak is None:
        return
    for one in leak["signals"]:
        route = ROUTE_WORDS[one["route"]]
        yield f"signal {one_line(one['signal'])}, {one['dates']} dates: {route}", "  "
        yield from (_line(row) for row in attribution_rows(one))
        for sentence in (*one["reasons"], *(f"note: {note}" for note in one["notes"])):
            yield sentence, "    "
    rows = [*control_rows(leak)]
    if rows:
        yield "controls of the model's own signal", "  "
    yield from (_line(row) for row in rows)
    for sentence in (*control_sentences(leak), *(f"note: {note}" for note in leak["notes"])):
        yield sentence, "    "


def _line(row: AuditRow) -> tuple[str, str]:
    return f"{row.what:<58}{row.value:>10}  {row.span:<19}{row.n:>8}".rstrip(), ""
