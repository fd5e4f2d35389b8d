"""The output of `coreeval detect numleak`: text, JSON, plots and the page.

Audits, signals with their relation to the truth, and defences.
"""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from coreeval.cli.output import Document, brief, one_line, show
from coreeval.evaluation.numleak.audit import Audit
from coreeval.evaluation.numleak.audit_tables import (
    ROUTE_WORDS,
    AuditRow,
    attribution_rows,
    audit_table,
    control_rows,
    control_sentences,
    describe_settings,
    further_rows,
    signature_rows,
    variant_rows,
)
from coreeval.evaluation.numleak.defences.tradeoff import (
    CATEGORY_WORDS,
    DefenceTable,
    defence_tables,
    describe_agreement,
)
from coreeval.evaluation.numleak.memory_verdicts import verdict_words
from coreeval.evaluation.numleak.recorded_answers import AuditInput, audit_answers
from coreeval.evaluation.numleak.statistics import AuditSettings
from coreeval.tools.formatting import format_measure, format_quantity, plural
from coreeval.tools.tables import Row, Table, intervals, numbers, text_lines, texts

_DEFENCE_WIDTH: Final = 100
_COLUMNS: Final = (
    texts(width=14, most=14), numbers("plain", 8), numbers("any end", 8), numbers("blocked", 9),
    intervals(15), numbers("near", 5), numbers("r", 6), numbers("useful", 7),
    *(numbers(words, len(words) + 1) for words in CATEGORY_WORDS.values()),
)  # fmt: skip


def defence_lines(defences: Document | None) -> Iterator[str]:
    """Yield the findings on each defence, as tables and sentences."""
    if defences is None:
        return
    for group in defence_tables(defences):
        yield from _group_lines(group)
    if line := describe_agreement(defences["agreement"]):
        yield from _wrap_line(line)
    left = defences["left_out"]
    if left:
        yield from _wrap_line(
            f"{format_quantity(len(left), 'answer')} under defences "
            f"{plural(len(left), 'is', 'are')} excluded; the reason for the first: "
            f"{left[0]['reason']}"
        )
    for note in defences["notes"]:
        yield from _wrap_line(note)
    yield ""


def _group_lines(group: DefenceTable) -> Iterator[str]:
    yield f"-- defences: {one_line(group.title)} ".ljust(_DEFENCE_WIDTH, "-")
    rows = [(*row[:-1], *row.categories) for row in group.rows]
    yield from text_lines(Table(_COLUMNS, rows), "  ")
    for sentence in group.sentences:
        yield from _wrap_line(sentence)
    if group.endings:
        names = ", ".join(row.defence for row in group.rows)
        yield from _wrap_line(f"questions answered with a number, by ending ({names}):")
    columns = (texts(width=20, most=20), *(numbers(width=10) for _ in group.rows))
    endings = [(ending, *counts) for ending, counts in group.endings]
    yield from text_lines(Table(columns, endings), "    ", heads=False)
    yield ""


def _wrap_line(text: str) -> list[str]:
    return textwrap.wrap(one_line(text), _DEFENCE_WIDTH, subsequent_indent="    ")


def leak_lines(leak: Document | None) -> Iterator[tuple[str, str]]:
    """Yield lines, each with its indentation; a row of numbers is already complete."""
    if leak is None:
        return
    for one in leak["signals"]:
        route = ROUTE_WORDS[one["route"]]
        yield f"signal {one_line(one['signal'])}, {one['dates']} dates: {route}", "  "
        yield from _row_lines(attribution_rows(one))
        for sentence in (*one["reasons"], *(f"note: {note}" for note in one["notes"])):
            yield sentence, "    "
    rows = [*control_rows(leak)]
    if rows:
        yield "controls for the model's own signal", "  "
    yield from _row_lines(rows)
    for sentence in (*control_sentences(leak), *(f"note: {note}" for note in leak["notes"])):
        yield sentence, "    "


def _row_lines(rows: Iterable[AuditRow]) -> Iterator[tuple[str, str]]:
    yield from ((line, "") for line in text_lines(audit_table(rows), heads=False))


SHOWN = 5
"""The most bad lines listed; `--json` has them all."""
WIDTH = 100
_NAME, _SERIES = 28, 16


def audits_lines(document: Document) -> Iterator[str]:
    """Yield each audit, then a line for each, then the outlook for a back-test."""
    found = document["series"]
    for one in found:
        yield from _audit_lines(one)
    if len(found) > 1:
        yield from _summary(found)
    yield from defence_lines(document["defences"])
    yield from bad_lines(document["bad_rows"])
    for note in document["notes"]:
        yield from wrap_line(f"note: {note}", "")
    yield from wrap_line(describe_settings(document["settings"]), "")
    for path in document["plots"]:
        yield f"picture: {brief(Path(path))}"
    if document["page"]:
        yield f"page: {brief(Path(document['page']))}"
    for trust in document["backtest"]["models"] if document["backtest"] else ():
        yield from wrap_line(trust["sentence"], "")


def _audit_lines(one: Document) -> Iterator[str]:
    yield f"-- {one_line(one['model'])}, {one['series']} ".ljust(WIDTH, "-")
    statuses = ", ".join(f"{n} {name}" for name, n in one["statuses"].items() if n)
    cutoff = f"cutoff {one['cutoff']}" if one["cutoff"] else "cutoff unknown"
    yield from wrap_line(
        f"{one_line(one['name'])}: {one['n']} questions about values on {one['dates']} dates "
        f"({statuses or 'none'}); {cutoff}",
        "",
    )
    rows = (*signature_rows(one), *further_rows(one), *variant_rows(one))
    yield from text_lines(audit_table(rows), "  ")
    yield from _verdict_lines(one)
    for line, indent in leak_lines(one["leak"]):
        yield from wrap_line(line, indent) if indent else [f"  {line}"]
    for note in one["notes"]:
        yield from wrap_line(f"note: {note}")
    yield from left_out_lines(one["left_out"])
    yield ""


def left_out_lines(left_out: Sequence[Document], what: str = "answers") -> Iterator[str]:
    """Yield the number of entries that could not be counted, with the first reasons."""
    if left_out:
        yield f"    {len(left_out)} {what} are excluded"
    for bad in left_out[:SHOWN]:
        about = ", ".join(bad[key] for key in ("variant", "date") if key in bad)
        yield from wrap_line(f"{about}: {bad['reason']}", " " * 8)
    if len(left_out) > SHOWN:
        yield f"        and {len(left_out) - SHOWN} more; --json lists them all"


def _verdict_lines(one: Document) -> Iterator[str]:
    verdict = verdict_words(one["verdict"])
    first, *others = one["reasons"] or ["no reason given"]
    yield from wrap_line(f"{verdict}: {first}", "")
    for reason in others:
        yield from wrap_line(reason)


def _summary(found: Sequence[Document]) -> Iterator[str]:
    columns = (texts(most=_NAME), texts("series", _SERIES, gap=2, most=_SERIES),
               numbers("answered", 10), numbers("r", 11), numbers("within", 11),
               numbers("adjusted p", 10, gap=2), texts("verdict", gap=2))  # fmt: skip
    yield from text_lines(Table(columns, [*map(_summary_row, found)]))
    yield ""


def _summary_row(one: Document) -> Row:
    metrics = (one[key]["estimate"] for key in ("parse_rate", "pearson_r", "within_tolerance"))
    figures = map(format_measure, (*metrics, one["p_adjusted"]))
    return (one["model"], one["series"], *figures, verdict_words(one["verdict"]))


def bad_lines(bad: Sequence[Document]) -> Iterator[str]:
    """Yield the number of bad lines in files, with the first reasons."""
    if bad:
        yield f"{len(bad)} bad lines are skipped"
    for row in bad[:SHOWN]:
        yield from wrap_line(f"bad line {row['line']} of {row['file']}: {row['reason']}")
    if len(bad) > SHOWN:
        yield f"    and {len(bad) - SHOWN} more; --json lists them all"


def wrap_line(text: str, indent: str = "    ") -> list[str]:
    """Return an external text in lines of at most `WIDTH` characters."""
    inner = indent + "    "
    return textwrap.wrap(one_line(text), WIDTH, initial_indent=indent, subsequent_indent=inner)


@dataclass(frozen=True, kw_only=True)
class AuditDisplay:
    """How to compute and show results."""

    plot: Path | None
    """The folder for plots; None for no plots."""
    page: Path | None
    draws: int
    seed: int
    as_json: bool

    @property
    def settings(self) -> AuditSettings:
        """Return the settings for resampling answers."""
        return AuditSettings(draws=self.draws, seed=self.seed)


def report_audits(heard: AuditInput, shown: AuditDisplay, more: Sequence[str] = ()) -> None:
    """Audit, then print, plot and write as requested; every verdict exits with success.

    Args:
        heard: The answers.
        shown: How to compute and show results.
        more: Additional lines at the end of the readable output.
    """
    found = audit_answers(heard, shown.settings)
    audits, document = found.audits, dict(found.document)
    document |= {
        "plots": _draw_plots(audits, document, shown.plot),
        "page": _write_page(audits, document, shown.page),
    }
    show(document, shown.as_json, lambda: "\n".join([*audits_lines(document), *more]))


def _draw_plots(audits: Sequence[Audit], document: Document, folder: Path | None) -> list[str]:
    if folder is None:
        return []
    from coreeval.evaluation.numleak.defences.tradeoff import draw_defences
    from coreeval.evaluation.numleak.plots import draw_audits

    drawn = [*draw_audits(folder, audits), *draw_defences(folder, document["defences"])]
    return [str(path) for path in drawn]


def _write_page(audits: Sequence[Audit], document: Document, path: Path | None) -> str | None:
    if path is None:
        return None
    from coreeval.evaluation.numleak.audit_page import write_page

    return str(write_page(path, audits, document))
