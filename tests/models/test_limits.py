"""Rate-limit headers as they come, and as they should not."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from coreeval.models.limits import Allowance, allowances

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def openai(remaining: str, reset: str, of: str = "requests") -> dict[str, str]:
    return {f"x-ratelimit-remaining-{of}": remaining, f"x-ratelimit-reset-{of}": reset}


def anthropic(remaining: str, reset: str, of: str = "input-tokens") -> dict[str, str]:
    name = f"anthropic-ratelimit-{of}"
    return {f"{name}-remaining": remaining, f"{name}-reset": reset}


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [
        ("1s", 1),
        ("20ms", 0.02),
        ("6m0s", 360),
        ("1h2m3s", 3723),
        ("2d", 172800),
        ("2m59.56s", 179.56),
        ("0s", 0),
    ],
)
def test_durations(reset: str, seconds: float) -> None:
    (found,) = allowances(openai("7", reset), now=NOW)
    assert found.remaining == 7
    assert found.reset_s == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [
        ("2026-03-01T12:00:30Z", 30),
        ("2026-03-01T13:00:30+01:00", 30),
        ("2026-03-01T12:00:30", 30),
        ("2026-03-01T11:00:00Z", 0),
    ],
)
def test_moments(reset: str, seconds: float) -> None:
    assert allowances(anthropic("0", reset), now=NOW) == [Allowance(0, seconds)]


def test_each_limit_has_its_own_reset() -> None:
    headers = openai("0", "1s") | openai("9", "5s", of="tokens") | anthropic("3", NOW.isoformat())
    found = allowances(headers, now=NOW)
    assert set(found) == {Allowance(0, 1), Allowance(9, 5), Allowance(3, 0)}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-ratelimit-limit-requests": "60", "x-ratelimit-reset-requests": "1s"},
        {"x-ratelimit-remaining-requests": "0"},
        {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-tokens": "1s"},
        {"anthropic-ratelimit-requests-remaining": "0"},
        *[openai(number, "1s") for number in ("", "many", "-1", "1.5", "\u00b2", "9" * 5000)],
        *[openai("0", reset) for reset in ("", "soon", "12", "1s!", "1x", "s", "1 s", "-1s")],
        *[anthropic("0", reset) for reset in ("", "soon", "12s", "2026-13-01T00:00:00Z")],
    ],
    ids=lambda headers: " ".join(headers.values())[:30],
)
def test_what_cannot_be_read_says_nothing(headers: Mapping[str, str]) -> None:
    assert allowances(headers, now=NOW) == []


def test_one_that_cannot_be_read_does_not_hide_another() -> None:
    assert allowances(openai("x", "1s") | openai("0", "2s", of="tokens")) == [Allowance(0, 2)]
