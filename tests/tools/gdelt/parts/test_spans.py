from datetime import date, timedelta

from coreeval.tools.gdelt.parts.spans import CLOSED_ROWS, Span, spans

START = date(2026, 5, 24)  # an aligned stretch of ten days begins here


def days(count: int, rows: int, start: date = START) -> dict[date, int]:
    return {start + timedelta(days=at): rows for at in range(count)}


def on(first: int, last: int, grows: bool) -> Span:
    return Span(START + timedelta(days=first), START + timedelta(days=last), grows)


def test_a_small_store_is_one_part_however_long() -> None:
    assert spans({START: 5, date(2015, 2, 18): 7}) == [Span(date(2015, 2, 18), START, grows=True)]
    assert spans({}) == []


def test_days_that_no_longer_grow_are_put_together() -> None:
    assert START.toordinal() % 10 == 0
    assert spans(days(24, 130_000)) == [
        on(0, 9, False), on(10, 19, False), on(20, 20, False),
        on(21, 21, True), on(22, 22, True), on(23, 23, True),
    ]  # fmt: skip


def test_a_new_day_moves_no_border_behind() -> None:
    before, after = spans(days(24, 130_000)), spans(days(25, 130_000))
    assert before[:2] == after[:2]
    assert after[2] == on(20, 21, False)


def test_days_with_very_many_rows_stay_alone() -> None:
    found = spans(days(12, CLOSED_ROWS - 1))
    assert found == [on(at, at, at > 8) for at in range(12)]


def test_a_span_is_compared_with_its_neighbours() -> None:
    two = timedelta(days=2)
    assert on(0, 9, False).reach == (START - two, START + timedelta(days=9) + two)
    assert on(9, 9, True).reach == (START + timedelta(days=7), START + timedelta(days=9))
