"""Questions for a sentiment: of the drawn dates, of an early era, with scrambled dates."""

from collections import Counter
from datetime import date
from pathlib import Path

import pytest
from pydantic import ValidationError

from coreeval.config import NumleakConfig
from coreeval.evaluation.numleak.probes import SeriesQuestion, SeriesQuestionSet, questions_about
from coreeval.evaluation.numleak.series import Series
from tests.support.tides import tides


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Series:
    return tides(tmp_path_factory.mktemp("series"), about="the tides of Halcyon")


def asked_about(series: Series, **leak: object) -> SeriesQuestionSet:
    asked = {"series": "tides", "probes": ["value", "sentiment"], "dates": 20, "leak": leak}
    config = NumleakConfig.model_validate(asked)
    return questions_about(series, config, cutoff=None, today=date(2026, 2, 10), seed=7)


def plain(asked: SeriesQuestionSet) -> list[SeriesQuestion]:
    return [one for one in asked.questions if one.variant == "sentiment" and one.shown_date is None]


def words(question: SeriesQuestion) -> str:
    return question.messages[-1]["content"]


def test_each_drawn_date_is_asked_for_its_mood_and_controls_come_on_top(series: Series) -> None:
    asked = asked_about(series)
    kinds = Counter((one.variant, one.shown_date is not None) for one in asked.questions)
    scrambled = kinds.pop(("sentiment", True))
    assert kinds == {("value", False): 20, ("placebo", False): 30, ("sentiment", False): 50}
    assert scrambled == 40, "each of the 20 dates under its own date and under another"
    dates = {one.period for one in asked.questions if one.variant == "value"}
    early = {one.period for one in asked.questions if one.variant == "placebo"}
    assert {one.period for one in plain(asked)} == dates | early and not dates & early
    assert max(early).start.year <= 1978, "the first 15 % of 56 years"
    assert asked_about(series).questions == asked.questions
    bare = asked_about(series, early=0, scrambled=0)
    assert Counter(one.variant for one in bare.questions) == {"value": 20, "sentiment": 20}


def test_the_early_era_may_be_named_and_be_short(series: Series) -> None:
    asked = asked_about(series, until=1971)
    early = [one for one in asked.questions if one.variant == "placebo"]
    assert all(one.period.start.year <= 1971 for one in early) and len(early) < 30
    assert "the early era has only 24 dates instead of 30, so all of them are used" in asked.notes
    for wrong in ({"early": 4}, {"scrambled": 1}, {"until": 0}, {"era": 1965}):
        with pytest.raises(ValidationError):
            asked_about(series, **wrong)


def test_the_words_of_a_plain_question(series: Series) -> None:
    question = plain(asked_about(series))[0]
    text = words(question)
    assert text.startswith("What was the mood among those who followed the tides of ")
    assert "Halcyon tide index" not in text and text.endswith("-0.27")


def test_the_same_figures_stand_under_two_dates_of_one_year(series: Series) -> None:
    asked = [one for one in asked_about(series).questions if one.shown_date]
    for real, moved in zip(asked[::2], asked[1::2], strict=True):
        assert real.period == real.shown_date == moved.period and moved.shown_date
        assert moved.shown_date.start.year == real.period.start.year
        assert abs(moved.shown_date.start.month - real.period.start.month) == 6
        one, other = words(real), words(moved)
        assert one.replace(real.period.words, "?") == other.replace(moved.shown_date.words, "?")
        figures = [series.values[real.period.shift(back)] for back in (-3, -2, -1)]
        assert f"in the 3 months before it, oldest first, in percent: {figures[0]:+.2f}, " in one
        assert real.reply("m", "0.1").shown_date == str(real.period)


def test_a_yearly_series_names_a_year_further_on(tmp_path: Path) -> None:
    series = tides(
        tmp_path, frequency="annual", notable={}, transform={"combine": "mean"}, about=None
    )
    asked = [one for one in asked_about(series).questions if one.shown_date]
    moved = [(one.period, one.shown_date) for one in asked if one.shown_date != one.period]
    assert moved and all(
        shown and abs(shown.start.year - period.start.year) == 7 for period, shown in moved
    )
    assert "followed the Halcyon tide index" in words(asked[0])
