"""The dates of a series (a day, a week, a month, a quarter or a year) and their notations."""

import calendar
import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final, Literal, Self, get_args

Frequency = Literal["daily", "weekly", "monthly", "quarterly", "annual"]
FREQUENCIES: Final[tuple[Frequency, ...]] = get_args(Frequency)
_DAY: Final = re.compile(r"(\d{4})-?(\d{2})-?(\d{2})")
_MONTH: Final = re.compile(r"(\d{4})-?(\d{2})")
_QUARTER: Final = re.compile(r"(\d{4})[- ]?[Qq]([1-4])")
_YEAR: Final = re.compile(r"(\d{4})")
_ORDINALS: Final = ("first", "second", "third", "fourth")
_MONTHS_OF: Final[dict[Frequency, int]] = {"monthly": 1, "quarterly": 3, "annual": 12}
_DAYS_OF: Final[dict[Frequency, int]] = {"daily": 1, "weekly": 7}


@dataclass(frozen=True, order=True)
class Period:
    """One date of a series, identified by its first day; a week by the source's day."""

    start: date
    frequency: Frequency

    @classmethod
    def parse(cls, text: str, frequency: Frequency) -> Self:
        """Read a date in a file format: 2020-03-05, 20200305, 2020-03, 202003, 2020-Q1, 2020.

        A finer date than the frequency counts as the period that contains it.

        Raises:
            ValueError: the text is not a date, or is too coarse for the frequency.
        """
        text = text.strip()
        if found := _DAY.fullmatch(text):
            return cls.of(date(*map(int, found.groups())), frequency)
        if (found := _QUARTER.fullmatch(text)) and frequency in ("quarterly", "annual"):
            return cls.of(date(int(found[1]), 3 * int(found[2]) - 2, 1), frequency)
        if (found := _MONTH.fullmatch(text)) and frequency in _MONTHS_OF:
            return cls.of(date(int(found[1]), int(found[2]), 1), frequency)
        if (found := _YEAR.fullmatch(text)) and frequency == "annual":
            return cls.of(date(int(found[1]), 1, 1), frequency)
        raise ValueError(f"{text!r} is not a date of a {frequency} series")

    @classmethod
    def of(cls, day: date, frequency: Frequency) -> Self:
        """Return the period that contains a day."""
        if frequency in _DAYS_OF:
            return cls(day, frequency)
        months = _MONTHS_OF[frequency]
        return cls(date(day.year, (day.month - 1) // months * months + 1, 1), frequency)

    def __str__(self) -> str:
        """Format the period as in data files: 2020-03-05, 2020-03, 2020-Q1 or 2020."""
        if self.frequency == "monthly":
            return f"{self.start:%Y-%m}"
        if self.frequency == "quarterly":
            return f"{self.start.year}-Q{self.quarter}"
        return str(self.start.year) if self.frequency == "annual" else self.start.isoformat()

    @property
    def words(self) -> str:
        """The period as in a question: March 2020, the third quarter of 2020, 5 March 2020."""
        month = calendar.month_name[self.start.month]
        if self.frequency == "monthly":
            return f"{month} {self.start.year}"
        if self.frequency == "quarterly":
            return f"the {_ORDINALS[self.quarter - 1]} quarter of {self.start.year}"
        if self.frequency == "annual":
            return str(self.start.year)
        day = f"{self.start.day} {month} {self.start.year}"
        return f"the week of {day}" if self.frequency == "weekly" else day

    @property
    def quarter(self) -> int:
        """The quarter of its first day, from 1."""
        return (self.start.month + 2) // 3

    @property
    def days(self) -> int:
        """The number of its days."""
        return (self.last_day - self.start).days + 1

    @property
    def last_day(self) -> date:
        """The last day that belongs to it."""
        return self.shift(1).start - timedelta(days=1)

    def shift(self, count: int) -> Self:
        """Return the period `count` periods later, or earlier if it is negative."""
        if self.frequency in _DAYS_OF:
            step = timedelta(days=count * _DAYS_OF[self.frequency])
            return type(self)(self.start + step, self.frequency)
        months = self.start.year * 12 + self.start.month - 1 + count * _MONTHS_OF[self.frequency]
        return type(self)(date(months // 12, months % 12 + 1, 1), self.frequency)

    def count_until(self, later: "Period") -> int:
        """Return the number of whole periods from this one to a later one."""
        if self.frequency in _DAYS_OF:
            return (later.start - self.start).days // _DAYS_OF[self.frequency]
        months = 12 * (later.start.year - self.start.year) + later.start.month - self.start.month
        return months // _MONTHS_OF[self.frequency]

    def months_after(self, day: date) -> float:
        """Return the months from a day to the period's last day; negative if that is earlier."""
        return (self.last_day - day).days / 30.4375
