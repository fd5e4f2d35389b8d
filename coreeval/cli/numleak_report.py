"""`coreeval detect numleak`: from answers to what is printed, drawn and written on a page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from coreeval.cli.numleak_words import told_lines
from coreeval.cli.output import Document, show
from coreeval.evaluation.numleak.audit import Audit, audit_replies, audits_document
from coreeval.evaluation.numleak.defences.effects import defence_replies_document
from coreeval.evaluation.numleak.defences.utility import UtilityReply
from coreeval.evaluation.numleak.leak import Signal
from coreeval.evaluation.numleak.memory_verdicts import Backtest, assess_trust
from coreeval.evaluation.numleak.replies import Reply
from coreeval.evaluation.numleak.series import Series
from coreeval.evaluation.numleak.statistics import AuditSettings
from coreeval.schema import BadRow


@dataclass(frozen=True, kw_only=True)
class Shown:
    """How results are computed and to be shown."""

    plot: Path | None
    """Folder of the pictures."""
    page: Path | None
    draws: int
    seed: int
    as_json: bool

    @property
    def settings(self) -> AuditSettings:
        """How answers are resampled."""
        return AuditSettings(draws=self.draws, seed=self.seed)


@dataclass(frozen=True, kw_only=True)
class Heard:
    """Answers, and what is known beside them."""

    files: Sequence[Path]
    replies: Sequence[Reply]
    series: Mapping[str, Series]
    cutoffs: Mapping[str, date | None]
    bad: Sequence[BadRow] = ()
    """Lines that were no answer."""
    notes: Sequence[str] = ()
    backtest: Backtest | None = None
    signals: Sequence[Signal] = ()
    """The user's own, to be attributed."""
    utility: Sequence[UtilityReply] = ()
    """Answers to ordinary questions under defences, judged."""
    more: Sequence[str] = field(default=())
    """Lines for people at the end."""


def report(heard: Heard, shown: Shown) -> None:
    """Audit, then print, draw and write as asked; every verdict ends well."""
    audits = audit_replies(
        heard.replies, heard.series, shown.settings, heard.cutoffs, heard.signals
    )
    document = {
        **audits_document(audits, shown.settings, heard.notes),
        "defences": defence_replies_document(
            heard.replies, heard.utility, heard.series, heard.cutoffs
        ),
        "backtest": _backtest(heard.backtest, audits) if heard.backtest else None,
        "responses": [str(path) for path in heard.files],
        "bad_rows": [row.model_dump() for row in (*heard.bad, *_bad_rows(heard.signals))],
    }
    document |= {
        "plots": _drawn(audits, document, shown.plot),
        "page": _page(audits, document, shown.page),
    }
    show(document, shown.as_json, lambda: "\n".join([*told_lines(document), *heard.more]))


def _bad_rows(signals: Sequence[Signal]) -> Iterator[BadRow]:
    for signal in signals:
        yield from signal.bad


def _backtest(backtest: Backtest, audits: Sequence[Audit]) -> Document:
    models = dict.fromkeys(audit.model for audit in audits)
    trusts = [
        assess_trust(
            model,
            {one.definition.name: one.verdict for one in audits if one.model == model},
            backtest,
        )
        for model in models
    ]
    return {
        "start": backtest.start,
        "end": backtest.end,
        "models": [{"model": one.model, "answer": one.answer, "sentence": one.sentence}
                   for one in trusts],
    }  # fmt: skip


def _drawn(audits: Sequence[Audit], document: Document, folder: Path | None) -> list[str]:
    if folder is None:
        return []
    from coreeval.evaluation.numleak.defences.tradeoff import draw_defences
    from coreeval.evaluation.numleak.plots import draw_audits

    drawn = [*draw_audits(folder, audits), *draw_defences(folder, document["defences"])]
    return [str(path) for path in drawn]


def _page(audits: Sequence[Audit], document: Document, path: Path | None) -> str | None:
    if path is None:
        return None
    from coreeval.evaluation.numleak.audit_page import write_page

    return str(write_page(path, audits, document))
