"""What a response's headers say about how much more may be asked."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

_REMAINING = re.compile(
    r"x-ratelimit-remaining-(?P<openai>[a-z-]+)"
    r"|anthropic-ratelimit-(?P<anthropic>[a-z-]+)-remaining"
)
_COUNT = re.compile(r"[0-9]{1,18}")
_PART = re.compile(r"(?P<number>\d{1,18}(?:\.\d{1,18})?)(?P<unit>ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True)
class Allowance:
    """What is left of one limit, and the seconds until it is full again."""

    remaining: int
    reset_s: float


def allowances(headers: Mapping[str, str], *, now: datetime | None = None) -> list[Allowance]:
    """Return what the headers say; those that cannot be read say nothing.

    Args:
        headers: By lower-case name: OpenAI's `x-ratelimit-remaining-requests` and
            `x-ratelimit-reset-requests` ("6m0s"), Anthropic's `anthropic-ratelimit-requests-…`
            with a moment in RFC 3339.
        now: For tests.
    """
    found = []
    for name, value in headers.items():
        match = _REMAINING.fullmatch(name)
        if match is None or not _COUNT.fullmatch(value):
            continue
        reset = headers.get(_reset_name(match), "")
        seconds = _duration(reset) if match["openai"] else _until(reset, now or datetime.now(UTC))
        if seconds is not None:
            found.append(Allowance(int(value), seconds))
    return found


def _reset_name(match: re.Match[str]) -> str:
    if match["openai"]:
        return f"x-ratelimit-reset-{match['openai']}"
    return f"anthropic-ratelimit-{match['anthropic']}-reset"


def _duration(text: str) -> float | None:
    parts = list(_PART.finditer(text))
    if not parts or "".join(part.group() for part in parts) != text:
        return None
    return sum(float(part["number"]) * _SECONDS[part["unit"]] for part in parts)


def _until(text: str, now: datetime) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (aware - now).total_seconds())
