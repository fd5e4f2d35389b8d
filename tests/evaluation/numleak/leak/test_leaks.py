"""From recorded answers to attributions: signals, the early era, scrambled dates."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from coreeval.evaluation.numleak.audit import Audit, audit_replies, audits_document
from coreeval.evaluation.numleak.audit_page import leak_section
from coreeval.evaluation.numleak.leak import Leak, Signal
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.plots import draw_transmission
from coreeval.evaluation.numleak.replies import Reply
from coreeval.evaluation.numleak.series import Series
from coreeval.evaluation.numleak.statistics import AuditSettings
from tests.evaluation.numleak.audits import HOSTILE, MONTHS, SETTINGS, knows, series

TIDES = series()
EARLY, LATE = MONTHS[:40], MONTHS[40:160]
RNG = np.random.default_rng(8)
RECALL = {month: TIDES.values[month] + float(RNG.normal(0, 2.0)) for month in LATE}
"""What the model recalls: r about 0.9."""


def reply(month: Period, text: str, **more: object) -> Reply:
    known = {"model": HOSTILE, "series": "tides", "date": str(month), "response": text}
    return Reply.model_validate({**known, **more})


def scores(
    months: Sequence[Period], felt: Callable[[Period], float], shown: int | None = None
) -> list[Reply]:
    """Return scores: of the months alone, or with the month so many later in the question."""
    return [
        reply(
            month,
            f"{np.tanh(felt(month) / 8):+.2f}",
            variant="sentiment",
            shown_date=None if shown is None else str(month.shift(shown)),
        )
        for month in months
    ]


def values(variant: str = "value") -> list[Reply]:
    months = LATE if variant == "value" else EARLY
    said = RECALL if variant == "value" else {month: float(RNG.normal(0, 4)) for month in EARLY}
    return [reply(month, f"{said[month]:+.2f}%", variant=variant) for month in months]


def audit(replies: Sequence[Reply], signals: Sequence[Signal] = ()) -> Audit:
    (one,) = audit_replies(replies, {"tides": TIDES}, SETTINGS, {}, signals)
    return one


def leak(replies: Sequence[Reply], signals: Sequence[Signal] = ()) -> Leak:
    found = audit(replies, signals).leak
    assert found is not None
    return found


def signal(of: Callable[[Period], float], months: Sequence[Period] = MONTHS) -> Signal:
    return Signal(
        name="<b>tone", path=Path("tone.csv"), rows={str(month): of(month) for month in months}
    )


def felt(month: Period) -> float:
    return RECALL[month] + float(RNG.normal(0, 2))


def test_a_score_made_from_recall_is_told_and_counted_among_no_values() -> None:
    plain, asked = audit(values()), audit([*values(), *scores(LATE, felt), *values("placebo")])
    assert asked.measured.overall == plain.measured.overall
    assert plain.leak is None and asked.leak is not None
    (own,) = asked.leak.signals
    assert (own.signal, own.dates, own.route) == ("sentiment", 120, "through_recall")
    assert (asked.leak.asked, asked.leak.parsed) == (120, 120)
    assert own.follows_errors.ci_low > 0.3


def test_a_users_signal_stands_beside_it_and_needs_no_score() -> None:
    honest = signal(lambda month: TIDES.values[month] + float(RNG.normal(0, 3)))
    found = leak([*values(), *scores(LATE, felt)], [honest])
    assert [one.signal for one in found.signals] == ["sentiment", "<b>tone"]
    assert found.signals[1].route == "not_through_recall"
    assert found.signals[1].notes == ("120 of 240 dates of <b>tone have no recalled value",)
    alone = leak(values(), [honest])
    assert [one.signal for one in alone.signals] == ["<b>tone"]
    assert alone.notes[0].startswith("the model was not asked for a sentiment")


def test_the_early_era_ends_with_its_last_date() -> None:
    replies = [*values(), *values("placebo"), *scores(LATE, felt)]
    follows = [*replies, *scores(EARLY, lambda month: TIDES.values[month])]
    found = leak(follows).placebo
    assert found is not None and found.until == EARLY[-1]
    assert (found.early.dates, found.later.dates) == (40, 120)
    assert found.recall_r.ci_high < 0 and found.slope_on_recall.ci_high < 0
    assert "): something other than the recalled value links the date to the score" in found.says
    lost = leak([*replies, *scores(EARLY, lambda month: float(RNG.normal(0, 4)))]).placebo
    assert lost is not None and "and there is no evidence that its score follows" in lost.says


def test_scrambled_dates_tell_the_name_of_a_date_from_the_figures() -> None:
    months = LATE[:60]
    own = scores(months, lambda month: TIDES.values[month], 0)
    by_name = scores(months, lambda month: TIDES.values[month.shift(6)], 6)
    by_figures = scores(months, lambda month: TIDES.values[month], 6)
    named, told = (leak([*values(), *own, *each]).scramble for each in (by_name, by_figures))
    assert named is not None and told is not None
    assert named.shown_r.estimate > 0.9 and named.difference.ci_low > 0
    assert "When the date changes and the stated figures do not" in named.says
    assert told.told_r.estimate > 0.9 and told.difference.ci_high < 0
    assert "the score still follows the stated figures (r" in told.says


def test_a_date_without_a_value_is_left_out_with_its_reason() -> None:
    strange = reply(MONTHS[0].shift(-1), "+0.10", variant="sentiment")
    moved = reply(MONTHS[0], "+0.10", variant="sentiment", shown_date="1999-06")
    found = audit([*values(), strange, moved])
    assert [bad.reason for bad in found.left_out] == [
        "tides has no value for 1999-12", "tides has no value for 1999-06",
    ]  # fmt: skip


def test_answers_that_could_be_no_value_are_no_recall() -> None:
    wild = [reply(LATE[0], "940%"), *values()[1:]]
    (own,) = leak([*wild, *scores(LATE, felt)]).signals
    assert own.dates == 119


def test_the_document_is_json_and_names_are_escaped_on_the_page(tmp_path: Path) -> None:
    replies = [*values(), *values("placebo"), *scores([*EARLY, *LATE], _truth)]
    found = audit([*replies, *scores(LATE[:30], _truth, 6)], [signal(_truth)])
    (one,) = audits_document([found], SETTINGS)["series"]
    assert json.loads(json.dumps(one, allow_nan=False)) == one
    assert one["leak"]["placebo"]["until"] == "2003-04"
    assert one["leak"]["signals"][0]["points"][0]["period"] == "2003-05"
    html = leak_section(one)
    assert "<script" not in html and "<b>tone" not in html and "&lt;b&gt;tone" in html
    assert html.count("<circle") == 2 * (120 + 120)
    assert leak_section({"series": "of an older run"}) == ""
    assert found.leak
    (path,) = draw_transmission(tmp_path / "t.svg", [(HOSTILE, "tides", "percent", found.leak)])
    assert "<script" not in path.read_text(encoding="utf-8")
    assert draw_transmission(tmp_path / "none.svg", []) == []


def _truth(month: Period) -> float:
    return TIDES.values[month]


def test_without_a_value_that_was_read_nothing_is_drawn_and_all_is_undecided(
    tmp_path: Path,
) -> None:
    mute = [reply(month, "I do not know.") for month in LATE]
    found = leak([*mute, *scores(LATE, _truth)])
    assert [(one.route, one.dates) for one in found.signals] == [("undecided", 0)]
    assert draw_transmission(tmp_path / "t.svg", [("m", "tides", "percent", found)]) == []


def test_another_series_in_the_audit_may_have_other_dates() -> None:
    winds: Series = series("winds", 4)
    replies = [*values(), *knows(HOSTILE, winds)]
    known = {"tides": TIDES, "winds": winds}
    tides, other = audit_replies(
        replies, known, AuditSettings(draws=100), {}, [signal(_truth, months=LATE[1::4])]
    )
    assert tides.leak is not None and tides.leak.signals[0].dates == 30
    assert other.leak is not None and other.leak.signals == ()
    assert other.leak.notes[-1].endswith("shares no date with this series' questions")
