"""The licences that rows of the user's files state, and whether they allow changes."""

import re
from collections.abc import Mapping

_FORBIDDING = re.compile(
    r"no[\W_]?deriv|\bby(?:[\W_]nc)?[\W_]nd\b|all[\W_]rights[\W_]reserved|no[\W_]?reuse|proprietary",
    re.IGNORECASE,
)


def stated_licence(row: Mapping[str, object]) -> str:
    """Return all that a row states about its licence, under either spelling and in lists."""
    told = (row.get(name) for name in ("licence", "license"))
    values = (one for each in told for one in (each if isinstance(each, list) else (each,)))
    return "; ".join(value for value in values if isinstance(value, str) and value)


def forbids_changes(licence: str) -> bool:
    """Return whether a licence forbids derived works."""
    return _FORBIDDING.search(licence) is not None
