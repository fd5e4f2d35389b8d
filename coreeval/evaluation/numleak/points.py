"""What is counted: an answer that was read, beside the published value of its date."""

from dataclasses import dataclass
from datetime import date
from typing import Final, Literal

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.readout.bits import ReadOut
from coreeval.evaluation.numleak.replies import Variant

Status = Literal["parsed", "refused", "truncated", "unparsed"]
Stratum = Literal["pre", "near", "post", "unknown"]
"""Where a date lies to the model's cutoff: before it, within six months of it, after it."""
Side = Literal["first", "second"]
NEAR_MONTHS: Final = 6.0
"""A date so near to the cutoff is neither before nor after it (research: numleak, appendix O)."""
LARGEST: Final = 1e15
"""Beyond it, either way, a value or an answer is a mistake, and doubles lose its units."""


def stratum_of(period: Period, cutoff: date | None) -> Stratum:
    """Return where a date lies to the cutoff."""
    if cutoff is None:
        return "unknown"
    months = period.months_after(cutoff)
    if abs(months) <= NEAR_MONTHS:
        return "near"
    return "pre" if months < 0 else "post"


@dataclass(frozen=True, kw_only=True)
class Point:
    """One question for a value: what was said, and what is true."""

    period: Period
    variant: Variant
    truth: float | None
    """In the unit of the series; None for a fictitious name."""
    estimate: float | None
    """In the same unit; None unless `status` is parsed."""
    status: Status
    why: str = ""
    """Why there is no estimate, or by which rule there is one."""
    stratum: Stratum = "unknown"
    months_after_cutoff: float | None = None
    notable: bool = False
    """Whether the date is one of those that the series names as well known."""
    name: str | None = None
    seed: int = 0
    draw: int = 0
    read_out: ReadOut | None = None
    """How peaked the value's first tokens are; None where no log-probabilities came."""
    phrasing: str | None = None
    """Which other words of the question were used."""
    stated: float | None = None
    """The wrong value that the question states."""
    disputed: bool = False
    """Whether the answer says in words that the value stated is wrong."""
    echoed: bool = False
    """Whether the answer names the value stated beside another."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One question which of two dates was higher: what was chosen, and what is true."""

    first: Period
    second: Period
    variant: Variant
    higher: Side
    """The truth."""
    chosen: Side | None
    """None unless `status` is parsed."""
    status: Status
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Continued:
    """One value of the file that a continuation of it was to have."""

    period: Period
    window: Period
    """Which stretch of the file it belongs to, by the first date asked for."""
    truth: float
    estimate: float | None
    """None unless `status` is parsed."""
    status: Status
    last: float
    """The last value that stands in the question."""
    mean: float
    """The mean of those that do."""
    told: bool
    """Whether the true value is among them: it may then be copied."""
