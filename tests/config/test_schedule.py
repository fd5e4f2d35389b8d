"""Cron times: weekday numbers, day rules, clock changes, and versions made from them."""

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from coreeval.config.schedule import Cron, ScheduleConfig, parse_cron

MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
SPRING = datetime(2026, 3, 28, 12, tzinfo=UTC)
AUTUMN = datetime(2026, 10, 24, 12, tzinfo=UTC)


def walls(cron: Cron, start: datetime, count: int) -> list[str]:
    """Return the next times on the wall clock of the zone."""
    return [
        time.astimezone(cron.zone).strftime("%d %H:%M %z")
        for time in islice(cron.iter_after(start), count)
    ]


@pytest.mark.parametrize(
    ("field", "days"),
    [
        ("0", "Sun"),
        ("7", "Sun"),
        ("1", "Mon"),
        ("sun", "Sun"),
        ("0-1", "Mon Sun"),
        ("5-7", "Fri Sat Sun"),
        ("1-5", "Mon Tue Wed Thu Fri"),
        ("MON,THU", "Mon Thu"),
        ("*/7", "Sun"),
    ],
)
def test_weekdays_are_those_of_cron(field: str, days: str) -> None:
    times = parse_cron(f"0 3 * * {field}", "UTC").iter_after(MONDAY)
    week = takewhile(lambda time: time < MONDAY + timedelta(days=7), times)
    assert [time.strftime("%a") for time in week] == days.split()


@pytest.mark.parametrize(
    ("expression", "start", "expected"),
    [
        ("30 2 * * *", SPRING, ["29 03:00 +0200", "30 02:30 +0200"]),  # skipped: after the gap
        ("0,30 2 * * *", SPRING, ["29 03:00 +0200", "30 02:00 +0200"]),  # once, not twice
        ("30 2 * * *", AUTUMN, ["25 02:30 +0200", "26 02:30 +0100"]),  # repeated: once
        ("30 * * * *", datetime(2026, 10, 25, 0, tzinfo=UTC), ["25 02:30 +0200", "25 02:30 +0100"]),
    ],
)
def test_clock_changes(expression: str, start: datetime, expected: list[str]) -> None:
    assert walls(parse_cron(expression, "Europe/Berlin"), start, 2) == expected


def test_the_newest_time_inside_an_hour_that_comes_twice() -> None:
    cron = parse_cron("30 2 * * *", "Europe/Berlin")
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    for minutes in (0, 10, 45, 75):  # 02:30, 02:40, and on the wall 02:15 and 02:45 once more
        assert cron.find_latest(first + timedelta(minutes=minutes)) == first
    assert cron.find_latest(first - timedelta(microseconds=1)) == first - timedelta(days=1)


@settings(max_examples=40, deadline=None)
@given(
    expression=st.sampled_from(
        ["30 2 * * *", "*/20 * * * *", "0 1-4 * * SUN", "*/30 2 * * *", "15 3 */2 * *"]
    ),
    zone=st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"]),
    at=st.sampled_from(
        ["2026-03-08", "2026-03-29", "2026-04-05", "2026-10-04", "2026-10-25", "2026-11-01"]
    ),
    minute=st.integers(-1500, 3000),
)
def test_the_newest_time_is_the_last_that_comes_forwards(
    expression: str, zone: str, at: str, minute: int
) -> None:
    cron = parse_cron(expression, zone)
    now = datetime.fromisoformat(f"{at}T00:00:01Z") + timedelta(minutes=minute)
    coming = cron.iter_after(now - timedelta(days=8))
    *_, last = takewhile(lambda time: time <= now, coming)
    assert cron.find_latest(now) == last


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("0 3 * * MONN", "'MONN' is not a valid day-of-week"),
        ("0 3 * * FRI-SUN", "Friday to Sunday is 5-7"),
        ("0 3 * * 8", "'8' is not a valid day-of-week"),
        ("0 25 * * *", r"'25' is not a valid hour \(0-23\)"),
        ("0 3 30 2 *", "'30' is not a valid day-of-month"),
        ("0 3 * *", "has 4 fields, not the five"),
        ("0 0 3 * * 1", "has 6 fields"),
        ("@weekly", "has 1 fields"),
        ({"cron": "0 3 * * 1", "timezone": "Europe/Berln"}, "did you mean 'Europe/Berlin'"),
        ({"cron": "0 3 * * 1", "timezone": "Europe"}, "no time zone 'Europe'"),
        ({"cron": "0 3 * * 1", "timezone": "../passwd"}, "no time zone"),
        ({"cron": "0 3 * * 1", "timezone": "Europe/Berlin" * 3_000}, "Europe/Be'; write it as"),
        ({"cron": "0 3 * * 1", "timezone": "Europe/B\u00e4r"}, "no time zone"),
        ({"cron": "0 3 * * 1", "version": "%G.%V" + "%Z" * 500_000}, "but the maximum is 64"),
        (
            {"cron": "0 3 * * 1", "timezone": "Europe/Berlin", "version": "%G.%V" + "%Z" * 29},
            "CET', which is not a valid version",
        ),
        ({"cron": "0 3 * * *", "version": "%G.%V"}, "the same version '2024.01'"),
        ({"cron": "0 3 * * 1", "version": "%V"}, "gives two times"),
        ({"cron": "0 3 * * 1", "version": "%m-%d"}, "gives two times"),
        ({"cron": "0 */6 * * *", "version": "%Y-%m-%d"}, "gives two times"),
        ({"cron": "0 3 * * 1", "version": "%Y/%V"}, "which is not a valid version"),
        (
            {"cron": "0 3 * * *", "version": "%Y-%m-%dT%l"},
            "'2024-01-01T 3', which is not a valid version",
        ),
        ({"cron": "0 0,3 * * *", "version": "%Y-%m-%dT%_I"}, "T 3', which is not a valid version"),
        ({"cron": "0 1,11 * * *", "version": "%Y-%m-%-d%-H"}, "the same version '2024-01-111'"),
        ({"cron": "* * * * *", "version": "%Y-%m-%-d%-H%M"}, "gives two times"),
        ({"cron": "0 3 * * 1", "version": ""}, "which is not a valid version"),
        ({"cron": "0 3 * * 1", "stale_after": "soon"}, "is not an age"),
        (
            {"cron": "0 3 * * 1", "hooks": {"success": [{"tries": 2}]}},
            "a hook needs either a command or a webhook_env",
        ),
        (
            {"cron": "0 3 * * 1", "hooks": {"gate": [{"webhook_env": "https://h.example/k"}]}},
            "takes the NAME of an environment variable",
        ),
    ],
)
def test_what_cannot_work_is_refused(schedule: object, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ScheduleConfig.model_validate(schedule)


def test_an_hour_that_comes_twice_needs_an_offset_in_its_version() -> None:
    with pytest.raises(ValidationError, match=r"the same version '2024-10-27T0200'"):
        ScheduleConfig(cron="0 * * * *", timezone="Europe/Berlin", version="%Y-%m-%dT%H%M")
    assert (
        ScheduleConfig(cron="0 * * * *", version="%Y-%m-%dT%H%M").version_pattern == "%Y-%m-%dT%H%M"
    )


@pytest.mark.parametrize(
    ("cron", "pattern"),
    [
        ("0 3 * * MON", "%G.%V"),
        ("0 3 1 * *", "%G.%V"),
        ("0 3 29 2 *", "%G.%V"),
        ("0 3 * * *", "%Y-%m-%d"),
        ("0 3 * * MON,THU", "%Y-%m-%d"),
        ("0 3 1,15 * *", "%G.%V"),
        ("0 */6 * * *", "%Y-%m-%dT%H%M%z"),
    ],
)
def test_versions_are_as_coarse_as_they_can_be(cron: str, pattern: str) -> None:
    assert ScheduleConfig(cron=cron, timezone="Europe/Berlin").version_pattern == pattern
