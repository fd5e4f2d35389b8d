"""JSON as GDELT writes it: stray backslashes and control characters inside strings."""

import json
import re

_STRAY = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')


def lenient_object(text: str) -> dict[str, object] | None:
    """Parse a JSON object, stray backslashes kept as characters (research: gdelt §1).

    Returns None for what is no object even then.
    """
    try:
        value = json.loads(_escaped(text), strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _escaped(text: str) -> str:
    """Double the backslashes that begin no escape of JSON, pairs of them left alone."""
    return "\\\\".join(_STRAY.sub(r"\\\\", part) for part in text.split("\\\\"))
