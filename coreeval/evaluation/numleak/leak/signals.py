"""Signals: a user's CSV file with a date and a value in each row, and a model's own scores."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Final, NamedTuple

from coreeval.config.user_files import MOST_DATA_BYTES, read_text
from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.rows import make_bad_row
from coreeval.evaluation.numleak.leak.mediation import OWN_SIGNAL
from coreeval.evaluation.numleak.parsing import BadReply, read_points
from coreeval.evaluation.numleak.parsing.probe_answers import read_score
from coreeval.evaluation.numleak.periods import FREQUENCIES, Frequency, Period
from coreeval.evaluation.numleak.replies import LARGEST_VALUE, SIGNAL_VARIANTS, Point, Reply, Status
from coreeval.evaluation.numleak.series.definition import Series
from coreeval.schema import BadRow
from coreeval.tools.formatting import format_quantity

DATE, VALUE = "date", "value"
_PROSE: Final = "use a header with the columns `date` and `value`, then one row for each date"


@dataclass(frozen=True, kw_only=True)
class Signal:
    """A signal from a file, with one value per date."""

    name: str
    path: Path
    rows: Mapping[str, float]
    """Values by date, as written in the file and in its order."""
    bad: tuple[BadRow, ...] = ()

    def values(self, frequency: Frequency) -> dict[Period, float]:
        """Return the value of each date of a frequency; dates with several values have none."""
        found = dict[Period, list[float]]()
        for text, value in self.rows.items():
            with suppress(ValueError):
                found.setdefault(Period.parse(text, frequency), []).append(value)
        return {period: each[0] for period, each in found.items() if len(each) == 1}

    @property
    def extent(self) -> str:
        """The number of dates, and the first and last date, as text."""
        first, last = min(self.rows), max(self.rows)
        if first == last:
            return f"one date ({first})"
        return f"{format_quantity(len(self.rows), 'date')} ({first} to {last})"


def read_signal(path: Path, name: str = "") -> Signal:
    """Read a file; rows without a date and a number, and duplicate rows, are bad.

    Args:
        path: A CSV file separated by commas, semicolons or tabs.
        name: The name used in results; by default the name of the file.

    Raises:
        DatasetError: the file cannot be read, lacks a column, or has no good row.
    """
    rows, bad = dict[str, float](), list[BadRow]()
    for line, date, cell, raw in _read_signal_lines(path):
        defect = _defect(date, cell, rows)
        if defect:
            bad.append(make_bad_row(path.name, line, defect, raw))
        else:
            rows[date] = float(cell)
    if not rows:
        first = f"; line {bad[0].line}: {bad[0].reason}" if bad else ""
        raise DatasetError(
            f"the signal has no row with both a date and a number{first}",
            where=str(path),
            hint=_PROSE,
        )
    return Signal(name=_signal_name(name or path.stem, path), path=path, rows=rows, bad=tuple(bad))


def require_common_dates(
    signals: Sequence[Signal], asked: Mapping[str, tuple[Frequency, Sequence[Period]]]
) -> None:
    """Check that each signal shares a date with the questions or answers about some series.

    Raises:
        DatasetError: a signal shares none, or two signals have the same name.
    """
    names = [signal.name for signal in signals]
    for signal in signals:
        if names.count(signal.name) > 1:
            raise DatasetError(
                f"two signals are called {signal.name!r}",
                where=str(signal.path),
                hint="pass one of them with another name, as NAME=FILE",
            )
        shared = [len(signal.values(frequency).keys() & set(dates))
                  for frequency, dates in asked.values()]  # fmt: skip
        if not any(shared):
            raise DatasetError(
                f"the signal {signal.name} has {signal.extent}, but no question is about these "
                f"dates; the questions are about {'; '.join(_describe_dates(asked))}",
                where=str(signal.path),
                hint="use one row for each date of the series, with months written as 2020-03; "
                "if the signal has several values in one period, choose one or use their "
                "mean",
            )


def _describe_dates(asked: Mapping[str, tuple[Frequency, Sequence[Period]]]) -> Iterator[str]:
    for name, (frequency, dates) in asked.items():
        span = f" ({min(dates)} to {max(dates)})" if dates else ""
        yield f"{name}, {frequency}, {format_quantity(len(set(dates)), 'date')}{span}"


def _signal_name(name: str, path: Path) -> str:
    if name == OWN_SIGNAL:
        raise DatasetError(
            f"{OWN_SIGNAL!r} is the name of the model's own signal",
            where=str(path),
            hint="pass this signal with another name, as NAME=FILE",
        )
    return name


def _defect(date: str, cell: str, seen: Mapping[str, float]) -> str:
    if not any(_is_date(date, frequency) for frequency in FREQUENCIES):
        return f"{date!r} is not a date such as 2020-03-05, 2020-03, 2020-Q1 or 2020"
    if date in seen:
        return f"the date {date} occurs twice; the first row is used"
    try:
        value = float(cell)
    except ValueError:
        return f"{cell!r} is not a number" if cell else "the value is missing"
    if not isfinite(value) or abs(value) > LARGEST_VALUE or "_" in cell:
        return f"{cell!r} is not a usable number"
    return ""


def _is_date(text: str, frequency: Frequency) -> bool:
    with suppress(ValueError):
        Period.parse(text, frequency)
        return True
    return False


def _read_signal_lines(path: Path) -> Iterator[tuple[int, str, str, str]]:
    """Yield line number, date, value and full text of each non-blank row below the header."""
    text = _read_signal_text(path)
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    try:
        header = [cell.strip().lower() for cell in next(reader, [])]
        missing = [name for name in (DATE, VALUE) if name not in header]
        if missing:
            raise DatasetError(
                f"the signal has no column {missing[0]!r}; its columns: {', '.join(header)}",
                where=str(path),
                hint=_PROSE,
            )
        places = header.index(DATE), header.index(VALUE)
        for cells in reader:
            if any(cell.strip() for cell in cells):
                padded = [cell.strip() for cell in cells] + [""] * len(header)
                date, value = (padded[place] for place in places)
                yield reader.line_num, date, value, delimiter.join(cells)
    except csv.Error as error:
        raise DatasetError(
            f"line {reader.line_num} cannot be read: {error}", where=str(path), hint=_PROSE
        ) from None


def _read_signal_text(path: Path) -> str:
    try:
        return read_text(path, most_bytes=MOST_DATA_BYTES)
    except OSError as error:
        said = error.strerror or str(error)
        raise DatasetError(
            f"cannot read the signal: {said}", where=str(path), hint="check the path"
        ) from None
    except UnicodeDecodeError:
        raise DatasetError("the signal is not UTF-8 text", where=str(path), hint=_PROSE) from None


class SentimentScore(NamedTuple):
    """One question for a sentiment score."""

    period: Period
    value: float | None
    """The score from -1 to 1; None unless `status` is `parsed`."""
    status: Status
    shown: Period | None
    """The date named in a question with figures; it may differ from the date of the figures."""


@dataclass(frozen=True, kw_only=True)
class SentimentReadings:
    """The parsed answers; each is in one of the three fields."""

    scores: tuple[SentimentScore, ...] = ()
    early: tuple[Point, ...] = ()
    """Answers to value questions about the early era."""
    bad: tuple[BadReply, ...] = ()


def read_scores(replies: Iterable[Reply], series: Series) -> SentimentReadings:
    """Read the answers for attribution; dates that the series does not have are bad."""
    those = [reply for reply in replies if reply.variant in SIGNAL_VARIANTS]
    early = read_points((one for one in those if one.variant == "placebo"), series, None)
    scores, bad = list[SentimentScore](), list(early.bad)
    for reply in those:
        if reply.variant == "sentiment":
            try:
                scores.append(_score(reply, series))
            except ValueError as error:
                bad.append(BadReply(reply, str(error)))
    return SentimentReadings(scores=tuple(scores), early=tuple(early.points), bad=tuple(bad))


def average_scores(scores: Sequence[SentimentScore]) -> dict[Period, float]:
    """Return the mean score of each date that has at least one score."""
    found = dict[Period, list[float]]()
    for score in scores:
        if score.value is not None:
            found.setdefault(score.period, []).append(score.value)
    return {period: sum(values) / len(values) for period, values in found.items()}


def _score(reply: Reply, series: Series) -> SentimentScore:
    frequency = series.definition.frequency
    period = Period.parse(reply.date, frequency)
    shown = Period.parse(reply.shown_date, frequency) if reply.shown_date else None
    for each in (period, shown) if shown else (period,):
        known = each in series.values or (shown is None and reply.truth is not None)
        if not known:
            raise ValueError(f"{series.definition.id} has no value for {each}")
    read = read_score(reply.response, period=shown or period, kind=reply.kind)
    return SentimentScore(period, read.value, read.status, shown)
