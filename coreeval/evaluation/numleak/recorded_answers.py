"""Recorded answers about series, and their audits as the document printed by `detect numleak`.

The series are built in, given by the caller, or implied by the truth in the answers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from pydantic import TypeAdapter

from coreeval.config.dates import DateText
from coreeval.errors import DatasetError
from coreeval.evaluation.numleak.audit import (
    Audit,
    Document,
    audit_replies,
    audits_document,
    infer_series,
)
from coreeval.evaluation.numleak.defences.effects import defence_replies_document
from coreeval.evaluation.numleak.defences.utility import UtilityReply
from coreeval.evaluation.numleak.leak import Signal
from coreeval.evaluation.numleak.memory_verdicts import Backtest, assess_trust
from coreeval.evaluation.numleak.periods import Frequency, Period
from coreeval.evaluation.numleak.replies import Reply
from coreeval.evaluation.numleak.series import Series, list_definitions, open_series
from coreeval.evaluation.numleak.statistics import AuditSettings
from coreeval.schema import BadRow
from coreeval.tools.cutoffs import DateClaim, find_model_dates, load_cutoffs
from coreeval.tools.workspace import workspace_for


@dataclass(frozen=True, kw_only=True)
class AuditInput:
    """Answers, with the information needed to score them."""

    sources: Sequence[Path | str]
    """The files of the answers, or a name in angle brackets for answers from memory."""
    replies: Sequence[Reply]
    series: Mapping[str, Series]
    cutoffs: Mapping[str, date | None]
    bad: Sequence[BadRow] = ()
    """Lines that are not answers."""
    notes: Sequence[str] = ()
    backtest: Backtest | None = None
    signals: Sequence[Signal] = ()
    """The user's signals, to be attributed."""
    utility: Sequence[UtilityReply] = ()
    """Judged answers to ordinary questions under defences."""


@dataclass(frozen=True, kw_only=True)
class AuditOutcome:
    """The audits of answers, and their document without pictures and page."""

    audits: tuple[Audit, ...]
    document: Document


def audit_answers(heard: AuditInput, settings: AuditSettings) -> AuditOutcome:
    """Audit each model on each series that it was asked about."""
    audits = audit_replies(heard.replies, heard.series, settings, heard.cutoffs, heard.signals)
    document = {
        **audits_document(audits, settings, heard.notes),
        "defences": defence_replies_document(
            heard.replies, heard.utility, heard.series, heard.cutoffs
        ),
        "backtest": _backtest_document(heard.backtest, audits) if heard.backtest else None,
        "responses": [str(source) for source in heard.sources],
        "bad_rows": [row.model_dump() for row in (*heard.bad, *_bad_rows(heard.signals))],
    }
    return AuditOutcome(audits=audits, document=document)


def _bad_rows(signals: Sequence[Signal]) -> Iterator[BadRow]:
    for signal in signals:
        yield from signal.bad


def _backtest_document(backtest: Backtest, audits: Sequence[Audit]) -> Document:
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


# -- cutoffs --------------------------------------------------------------------------------------


def find_known_cutoffs(models: Iterable[str]) -> dict[str, date | None]:
    """Return the last day of each model's training data if the built-in table has it."""
    table = load_cutoffs()
    known_rows = {name: find_model_dates(name, table) for name in models}
    return {
        name: row.cutoff.last_day if row and row.cutoff else None
        for name, row in known_rows.items()
    }


def find_last_day(stated: str, source: str) -> date:
    """Return the last possible day of training data for a stated cutoff.

    Args:
        stated: A day, a month or a year.
        source: The source of the cutoff.

    Raises:
        pydantic.ValidationError: it is not a date.
    """
    said = TypeAdapter(DateText).validate_python(stated)
    return DateClaim(date=said, source=source, confidence="given").last_day


# -- which series the answers are about -----------------------------------------------------------


def load_series(
    replies: Sequence[Reply], given: Mapping[str, Series], source: str
) -> dict[str, Series]:
    """Return the series of all answers; fetch published values only if the truth is missing.

    Args:
        replies: The answers.
        given: The series that the caller defines, by id.
        source: The source of the answers.

    Raises:
        DatasetError: a series is unknown, or its values are not available.
    """
    said: dict[str, list[Reply]] = {}
    for reply in replies:
        said.setdefault(reply.series, []).append(reply)
    return {
        name: given[name] if name in given else _find_series(name, each, source)
        for name, each in said.items()
    }


def _find_series(name: str, replies: Sequence[Reply], source: str) -> Series:
    definition = {one.id: one for one in list_definitions()}.get(name)
    if definition is None:
        found = infer_series(name, replies, file=source)
        if found is None:
            raise _unknown_series(name, source)
        return found
    try:
        return open_series(name, base=Path.cwd(), cache=workspace_for(Path.cwd()).series)
    except DatasetError as error:
        found = infer_series(name, replies, file=source, definition=definition)
        if found is None:
            raise
        note = (
            f"the published values are not available ({error.message}), so the true values in the "
            "file are used, and comparisons are limited; pass the published values with "
            f"--series {name}=FILE"
        )
        return replace(found, notes=(*found.notes, note))


def _unknown_series(name: str, source: str) -> DatasetError:
    return DatasetError(
        f"the series {name!r} is unknown, and the true values given with its answers cannot "
        "define it: these values must have dates and must not all be equal",
        where=source,
        hint="define the series with --series FILE.yaml; built-in series: "
        + ", ".join(one.id for one in list_definitions()),
    )


def list_unused_series(given: Mapping[str, Series], replies: Sequence[Reply]) -> Iterator[str]:
    """Yield the named series that were not used."""
    for name in given.keys() - {reply.series for reply in replies}:
        yield f"no answer is about the series {name}"


def group_dates(
    replies: Iterable[Reply], series: Mapping[str, Series]
) -> dict[str, tuple[Frequency, list[Period]]]:
    """Return the frequency of each series and the dates whose value was asked for."""
    found = {name: (one.definition.frequency, list[Period]()) for name, one in series.items()}
    for reply in replies:
        frequency, dates = found[reply.series]
        if reply.variant == "value":
            with suppress(ValueError):
                dates.append(Period.parse(reply.date, frequency))
    return found
