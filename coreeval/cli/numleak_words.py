"""What `coreeval detect numleak` says in words."""

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from coreeval.cli.defence_words import defence_lines
from coreeval.cli.leak_words import leak_lines
from coreeval.cli.output import Document, brief, one_line
from coreeval.evaluation.numleak.audit_tables import (
    AuditRow,
    describe_settings,
    format_value,
    further_rows,
    signature_rows,
    variant_rows,
)
from coreeval.evaluation.numleak.memory_verdicts import verdict_words

SHOWN = 5
"""Bad lines that are listed; `--json` has them all."""
WIDTH = 100
_NAME, _SERIES = 28, 16


def told_lines(document: Document) -> Iterator[str]:
    """Yield each audit, then all of them on a line each, then what a back-test may hope for."""
    found = document["series"]
    for one in found:
        yield from _audit_lines(one)
    if len(found) > 1:
        yield from _summary(found)
    yield from defence_lines(document["defences"])
    yield from bad_lines(document["bad_rows"])
    for note in document["notes"]:
        yield from wrapped(f"note: {note}", "")
    yield from wrapped(describe_settings(document["settings"]), "")
    for path in document["plots"]:
        yield f"picture: {brief(Path(path))}"
    if document["page"]:
        yield f"page: {brief(Path(document['page']))}"
    for trust in document["backtest"]["models"] if document["backtest"] else ():
        yield from wrapped(trust["sentence"], "")


def _audit_lines(one: Document) -> Iterator[str]:
    yield f"-- {one_line(one['model'])}, {one['series']} ".ljust(WIDTH, "-")
    statuses = ", ".join(f"{n} {name}" for name, n in one["statuses"].items() if n)
    cutoff = f"cutoff {one['cutoff']}" if one["cutoff"] else "cutoff unknown"
    yield from wrapped(
        f"{one_line(one['name'])}: {one['n']} questions for a value on {one['dates']} dates "
        f"({statuses or 'none'}); {cutoff}",
        "",
    )
    yield f"  {'':<58}{'value':>10}  {'95 % interval':<19}{'n':>8}"
    for row in (*signature_rows(one), *further_rows(one), *variant_rows(one)):
        yield row_line(row)
    yield from _verdict_lines(one)
    for line, indent in leak_lines(one["leak"]):
        yield from wrapped(line, indent) if indent else [f"  {line}"]
    for note in one["notes"]:
        yield from wrapped(f"note: {note}")
    yield from left_out_lines(one["left_out"])
    yield ""


def row_line(row: AuditRow) -> str:
    """Return a row of numbers on a line."""
    return f"  {cut(row.what, 58):<58}{row.value:>10}  {row.span:<19}{row.n:>8}".rstrip()


def left_out_lines(left_out: Sequence[Document], what: str = "answers") -> Iterator[str]:
    """Yield how many of them could not be counted, with the first reasons."""
    if left_out:
        yield f"    {len(left_out)} {what} are left out"
    for bad in left_out[:SHOWN]:
        about = ", ".join(bad[key] for key in ("variant", "date") if key in bad)
        yield from wrapped(f"{about}: {bad['reason']}", " " * 8)
    if len(left_out) > SHOWN:
        yield f"        and {len(left_out) - SHOWN} more, all of them with --json"


def _verdict_lines(one: Document) -> Iterator[str]:
    verdict = verdict_words(one["verdict"])
    first, *others = one["reasons"] or ["no reason is given"]
    yield from wrapped(f"{verdict}: {first}", "")
    for reason in others:
        yield from wrapped(reason)


def _summary(found: Sequence[Document]) -> Iterator[str]:
    wide = min(_NAME, max(len(one["model"]) for one in found))
    heads = f"{'answered':>10}{'r':>11}{'within':>11}  {'adjusted p':>10}  verdict"
    yield f"{'':<{wide}}  {'series':<{_SERIES}}{heads}"
    for one in found:
        figures = (one[key]["estimate"] for key in ("parse_rate", "pearson_r", "within_tolerance"))
        parse, r, within = map(format_value, figures)
        yield (
            f"{cut(one['model'], wide):<{wide}}  {cut(one['series'], _SERIES):<{_SERIES}}"
            f"{parse:>10}{r:>11}{within:>11}  {format_value(one['p_adjusted']):>10}"
            f"  {verdict_words(one['verdict'])}"
        )
    yield ""


def bad_lines(bad: Sequence[Document]) -> Iterator[str]:
    """Yield how many lines of files are bad, with the first reasons."""
    if bad:
        yield f"{len(bad)} bad lines are left out"
    for row in bad[:SHOWN]:
        yield from wrapped(f"bad line {row['line']} of {row['file']}: {row['reason']}")
    if len(bad) > SHOWN:
        yield f"    and {len(bad) - SHOWN} more, all of them with --json"


def cut(text: str, wide: int) -> str:
    """Return a text from outside on one line, as wide as there is room for."""
    line = one_line(text)
    return line if len(line) <= wide else f"{line[: wide - 1]}…"


def wrapped(text: str, indent: str = "    ") -> list[str]:
    """Return a text from outside in lines of at most `WIDTH` characters."""
    inner = indent + "    "
    return textwrap.wrap(one_line(text), WIDTH, initial_indent=indent, subsequent_indent=inner)
