"""`coreeval detect numleak --responses`: what recorded answers show, without asking anybody."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from coreeval.cli.numleak_report import Heard, Shown, report
from coreeval.cli.numleak_signals import asked_of, opened_signals
from coreeval.config.dates import DateText
from coreeval.errors import DatasetError, UsageError
from coreeval.evaluation.numleak.audit import infer_series
from coreeval.evaluation.numleak.defences.utility import UtilityReply, read_utility
from coreeval.evaluation.numleak.leak.signals import require_common_dates
from coreeval.evaluation.numleak.replies import Reply, read_replies
from coreeval.evaluation.numleak.series import (
    Series,
    expand_families,
    list_definitions,
    open_series,
)
from coreeval.schema import BadRow
from coreeval.tools.cutoffs import DateClaim, find_model_dates, load_cutoffs
from coreeval.tools.workspace import workspace_for


def audit_files(
    files: Sequence[Path],
    named: Sequence[str],
    cutoffs: Sequence[str],
    shown: Shown,
    signals: Sequence[str] = (),
    *,
    utility: Path | None = None,
) -> None:
    """Audit recorded answers; series are built in, given, or implied by the truth in the files."""
    judged, judged_bad = _judged(utility)
    read = {path: read_replies(path) for path in files}
    replies = [reply for each in read.values() for reply in each.good]
    dates = cutoffs_of_models(dict.fromkeys(reply.model for reply in replies), cutoffs)
    given = opened(named)
    own = opened_signals(signals)
    series = _series(replies, given, files)
    require_common_dates(own, asked_of(replies, series))
    heard = Heard(
        files=files,
        replies=replies,
        series=series,
        cutoffs=dates,
        bad=[row for each in read.values() for row in each.bad] + judged_bad,
        utility=judged,
        notes=[*_unused(given, replies)],
        signals=own,
    )
    report(heard, shown)


def _judged(file: Path | None) -> tuple[tuple[UtilityReply, ...], list[BadRow]]:
    """Return judged answers to ordinary questions, and the lines of their file that are none."""
    if file is None:
        return (), []
    read = read_utility(file)
    return read.good, [*read.bad]


def opened(named: Sequence[str]) -> dict[str, Series]:
    """Open series by `NAME` or `NAME=FILE`, by their ids; a family is all of its members.

    Raises:
        UsageError: no such series, or a file that is none.
    """
    folder, cache = Path.cwd(), workspace_for(Path.cwd()).series
    found = [
        open_series(name, base=folder, cache=cache, file=file)
        for text in named
        for name, file in _parted(text)
    ]
    return {one.definition.id: one for one in found}


def files_of(named: Sequence[str]) -> tuple[list[str], dict[str, Path]]:
    """Return series by name, and the files that were given for some of them."""
    parts = [part for text in named for part in _parted(text)]
    return [name for name, _ in parts], {name: file for name, file in parts if file}


def _parted(text: str) -> Iterator[tuple[str, Path | None]]:
    name, equals, file = text.partition("=")
    if not equals or Path(text).exists():
        yield from ((one, None) for one in expand_families([text]))
    elif not name or not file:
        raise UsageError(f"{text!r} is no NAME=FILE", where="--series")
    else:
        yield name, Path(file)


def cutoffs_of_models(models: Iterable[str], stated: Sequence[str]) -> dict[str, date | None]:
    """Return the last day of each model's training data: as stated, else as the table has it.

    Raises:
        UsageError: what is stated is no date, or is of none of the models.
    """
    table, names = load_cutoffs(), list(models)
    known_rows = {name: find_model_dates(name, table) for name in names}
    found = {
        name: row.cutoff.last_day if row and row.cutoff else None
        for name, row in known_rows.items()
    }
    for text in stated:
        model, said = cutoff_stated(text, names)
        day = DateClaim(date=said, source="--cutoff", confidence="given").last_day
        found |= dict.fromkeys([model] if model else names, day)
    return found


def cutoff_stated(text: str, models: Sequence[str]) -> tuple[str, str]:
    """Return the model, empty for all, and the date of `[MODEL=]DATE`.

    Raises:
        UsageError: it is no date, or of none of the models.
    """
    model, _, said = text.rpartition("=")
    if model and model not in models:
        raise UsageError(
            f"{model!r} answers nothing here", where="--cutoff", hint=f"one of {', '.join(models)}"
        )
    try:
        return model, TypeAdapter(DateText).validate_python(said)
    except ValidationError:
        raise UsageError(
            f"{said!r} is no date", where="--cutoff", hint="such as 2025-03-15 or 2025-03"
        ) from None


# -- which series the answers are about -----------------------------------------------------------


def _series(
    replies: Sequence[Reply], given: Mapping[str, Series], files: Sequence[Path]
) -> dict[str, Series]:
    """Return the series of all answers; published values are fetched only where truth is missing.

    Raises:
        DatasetError: nothing is known of a series, or its values cannot be had.
    """
    said: dict[str, list[Reply]] = {}
    for reply in replies:
        said.setdefault(reply.series, []).append(reply)
    return {
        name: given[name] if name in given else _found(name, each, files)
        for name, each in said.items()
    }


def _found(name: str, replies: Sequence[Reply], files: Sequence[Path]) -> Series:
    definition = {one.id: one for one in list_definitions()}.get(name)
    file = ", ".join(str(path) for path in files)
    if definition is None:
        found = infer_series(name, replies, file=file)
        if found is None:
            raise _unknown(name, file)
        return found
    try:
        return open_series(name, base=Path.cwd(), cache=workspace_for(Path.cwd()).series)
    except DatasetError as error:
        found = infer_series(name, replies, file=file, definition=definition)
        if found is None:
            raise
        note = (
            f"the published values could not be had ({error.message}): the truth is that of the "
            f"file, and little can be compared with it; --series {name}=FILE has them"
        )
        return replace(found, notes=(*found.notes, note))


def _unknown(name: str, file: str) -> DatasetError:
    return DatasetError(
        f"nothing is known of the series {name!r}, and the truth beside its answers makes none: "
        "values of dates, not all the same",
        where=file,
        hint="--series FILE.yaml defines it; built in: "
        + ", ".join(one.id for one in list_definitions()),
    )


def _unused(given: Mapping[str, Series], replies: Sequence[Reply]) -> Iterator[str]:
    """Yield which series were named in vain."""
    for name in given.keys() - {reply.series for reply in replies}:
        yield f"no answer is about the series {name}"
