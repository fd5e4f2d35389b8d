"""Adding up what the passes of a run used."""

from collections.abc import Iterable

from coreeval.tools.stores.sqlite import Row

_SUMMED = ("calls", "prompt_tokens", "cached_tokens", "completion_tokens", "priced")


def added_up(rows: Iterable[Row]) -> list[Row]:
    """Return one row for each model, paid and found apart, of rows from several stores."""
    found: dict[tuple[str, bool], Row] = {}
    for row in rows:
        key = row["model"], bool(row["cached"])
        found[key] = _both(found[key], row) if key in found else row
    return list(found.values())


def _both(one: Row, other: Row) -> Row:
    known = [each["usd"] for each in (one, other) if each["usd"] is not None]
    sums = {name: one[name] + other[name] for name in _SUMMED}
    return one | sums | {"usd": sum(known) if known else None}
