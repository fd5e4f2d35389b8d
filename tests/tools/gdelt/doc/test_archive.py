"""What the archive can hold, and how a window is cut for it."""

from datetime import UTC, datetime, timedelta

import pytest

from coreeval.schema import Window
from coreeval.tools.gdelt.doc.archive import HOLE, gaps
from coreeval.tools.gdelt.doc.packing import LONGEST_SLICE, slices

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def window(start: str, end: str) -> Window:
    return Window(
        start=datetime.fromisoformat(start).replace(tzinfo=UTC),
        end=datetime.fromisoformat(end).replace(tzinfo=UTC),
    )


def test_slices_are_short_newest_first_and_leave_no_gap() -> None:
    spans = slices(window("2026-01-01", "2026-11-01"), NOW)
    assert spans[0].end == datetime(2026, 11, 1, tzinfo=UTC)
    assert spans[-1].start == datetime(2026, 1, 1, tzinfo=UTC)
    assert all(span.end - span.start <= LONGEST_SLICE for span in spans)
    assert [span.start for span in spans[:-1]] == [span.end for span in spans[1:]]


def test_nothing_is_asked_about_the_future_the_hole_and_what_lies_before_the_archive() -> None:
    assert slices(window("2027-01-01", "2027-02-01"), NOW) == []
    assert slices(window("2016-01-01", "2016-12-01"), NOW) == []
    assert slices(HOLE, NOW) == []
    assert slices(window("2026-11-01", "2026-10-01"), NOW) == []
    (span,) = slices(window("2026-11-20", "2026-12-20"), NOW)
    assert span.end == NOW
    asked = slices(window("2025-06-01", "2025-07-20"), NOW)
    assert [(span.start, span.end) for span in asked] == [
        (HOLE.end, datetime(2025, 7, 20, tzinfo=UTC)),
        (datetime(2025, 6, 1, tzinfo=UTC), HOLE.start),
    ]


def test_a_very_short_window_is_asked_about_as_an_hour() -> None:
    (span,) = slices(window("2026-06-01T10:00", "2026-06-01T10:05"), NOW)
    assert span.end - span.start == timedelta(hours=1)


@pytest.mark.parametrize(
    ("asked", "missing"),
    [
        (("2026-06-01", "2026-06-30"), ()),
        (("2025-06-01", "2025-08-01"), ("2025-06-15..2025-07-01",)),
        (("2016-12-01", "2017-02-01"), ("2016-12-01..2016-12-31",)),
        (("2026-11-01", "2026-11-25"), ("2026-11-21..2026-11-24",)),
        (("2025-06-20", "2025-06-25"), ("2025-06-20..2025-06-24",)),
    ],
)
def test_gaps_are_whole_days(asked: tuple[str, str], missing: tuple[str, ...]) -> None:
    assert gaps(window(*asked), NOW) == missing
