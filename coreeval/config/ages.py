"""How old evidence may be, as people state it: 90d, 12w or 6m."""

import re
from calendar import monthrange
from datetime import datetime, timedelta
from typing import Literal

from coreeval.schema import Value

_AGE = re.compile(r"([1-9]\d{0,3})([dwm])")
_UNITS = {"d": "day", "w": "week", "m": "month"}


class Age(Value):
    """A number of days, weeks or calendar months."""

    count: int
    unit: Literal["d", "w", "m"]

    def before(self, now: datetime) -> datetime:
        """Return the moment that lies this long before `now`.

        A month before the 31st is the last day of a shorter month.
        """
        if self.unit != "m":
            return now - timedelta(days=self.count * (7 if self.unit == "w" else 1))
        year, month = divmod(now.year * 12 + now.month - 1 - self.count, 12)
        day = min(now.day, monthrange(year, month + 1)[1])
        return now.replace(year=year, month=month + 1, day=day)

    @property
    def words(self) -> str:
        """The age in words: `90 days`."""
        return f"{self.count} {_UNITS[self.unit]}{'' if self.count == 1 else 's'}"

    def __str__(self) -> str:
        return f"{self.count}{self.unit}"


def age_of(stated: str) -> Age:
    """Read an age.

    Raises:
        ValueError: it is none.
    """
    found = _AGE.fullmatch(stated)
    if found is None:
        raise ValueError(f"{stated!r} is no age, such as 90d (days), 12w (weeks) or 6m (months)")
    return Age.model_validate({"count": int(found[1]), "unit": found[2]})
