"""How figures read on a page."""

from datetime import datetime

UNKNOWN = "\N{EN DASH}"


def number(value: float | None) -> str:
    """Return a count with its thousands set apart; a dash for what is not known."""
    return UNKNOWN if value is None else f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def percent(share: float | None) -> str:
    """Return a share of one as a percentage with one digit."""
    return UNKNOWN if share is None else f"{100 * share:.1f} %"


def usd(value: float | None) -> str:
    """Return US dollars with as many digits as say something."""
    if value is None:
        return "not known"
    return f"${value:,.2f}" if value == 0 or value >= 1 else f"${value:.4f}"


def seconds(value: float | None) -> str:
    """Return a time span in the unit that fits it."""
    if value is None:
        return UNKNOWN
    if value < 0.9995:
        return f"{1000 * value:.0f} ms"
    if value < 120:
        return f"{value:.{1 if value < 10 else 0}f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


def when(stamp: str | datetime) -> str:
    """Return a moment to the minute, UTC; empty for none."""
    moment = datetime.fromisoformat(stamp) if isinstance(stamp, str) and stamp else stamp
    return f"{moment:%Y-%m-%d %H:%M}" if isinstance(moment, datetime) else ""


def words(name: str) -> str:
    """Return a name of ours as words: `rejected_facts` is "rejected facts"."""
    return name.replace("_", " ")
