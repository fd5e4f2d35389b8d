"""Questions in further ways, and questions for a sentiment."""

from collections import Counter
from datetime import date

import pytest

from coreeval.config import NumleakConfig
from coreeval.evaluation.numleak.probes import SeriesQuestion, SeriesQuestionSet, questions_about
from coreeval.evaluation.numleak.probes.date_samples import FAR, draw_wrong_values
from coreeval.evaluation.numleak.probes.wording import PHRASINGS
from coreeval.evaluation.numleak.series import Series
from coreeval.evaluation.numleak.series.excerpt import SHOWN_LINES, WANTED_LINES, find_excerpt
from tests.support.tides import tides

TODAY, CUTOFF = date(2025, 12, 20), date(2020, 6, 30)
FURTHER = ["value", "description", "step_by_step", "phrasing", "contradiction", "continuation"]


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Series:
    return tides(tmp_path_factory.mktemp("series"))


def asked_about(
    series: Series, cutoff: date | None = CUTOFF, **config: object
) -> SeriesQuestionSet:
    asked = NumleakConfig.model_validate(
        {"series": "tides", "probes": FURTHER, "dates": 10, "continuations": 3, **config}
    )
    return questions_about(series, asked, cutoff=cutoff, today=TODAY, seed=7)


def of(asked: SeriesQuestionSet, variant: str) -> list[SeriesQuestion]:
    return [one for one in asked.questions if one.variant == variant]


def words(question: SeriesQuestion) -> str:
    return question.messages[-1]["content"]


def test_each_way_is_asked_about_the_plain_dates(series: Series) -> None:
    asked = asked_about(series)
    assert Counter(one.variant for one in asked.questions) == {
        "value": 10, "description": 10, "step_by_step": 10, "phrasing": 10 * len(PHRASINGS),
        "contradiction": 10, "continuation": 3,
    }  # fmt: skip
    plain = {one.period for one in of(asked, "value")}
    for variant in FURTHER[1:-1]:
        assert {one.period for one in of(asked, variant)} == plain
    assert len(set(asked.questions)) == len(asked.questions)
    assert not asked.notes


def test_none_of_them_is_asked_unless_it_is_named(series: Series) -> None:
    usual = NumleakConfig(series=("tides",))
    found = questions_about(series, usual, cutoff=CUTOFF, today=TODAY, seed=7)
    assert not {one.variant for one in found.questions} & set(FURTHER[1:])


def test_each_wording_has_unit_digits_date_and_name(series: Series) -> None:
    asked = asked_about(series)
    for variant in FURTHER[1:-1]:
        for one in of(asked, variant):
            text = words(one)
            assert one.period.words in text and "the Halcyon tide index" in text
            assert "percent" in text and "2 decimal places" in text
            assert "not the answer" in text or "not the one required" in text
    named = {one.phrasing for one in of(asked, "phrasing")}
    assert named == set(PHRASINGS) and len(named) >= 3


def test_a_contradiction_is_the_plain_question_behind_one_wrong_sentence(series: Series) -> None:
    asked = asked_about(series)
    plain = {one.period: words(one) for one in of(asked, "value")}
    for one in of(asked, "contradiction"):
        first, _, rest = words(one).partition("\n\n")
        assert one.stated is not None and rest.split() == plain[one.period].split()
        assert first.endswith(f" was {one.stated:+.2f}%.")


def test_wrong_values_are_far_off_and_half_have_the_other_sign(series: Series) -> None:
    dates = list(series.values)[:300]
    wrong = draw_wrong_values(dates, series.values, series.definition, seed=3)
    assert wrong == draw_wrong_values(dates, series.values, series.definition, seed=3)
    assert wrong != draw_wrong_values(dates, series.values, series.definition, seed=4)
    far = FAR * max(series.definition.tolerances)
    assert min(abs(wrong[at] - series.values[at]) for at in dates) >= far - 0.01
    turned = [at for at in dates if wrong[at] * series.values[at] < 0]
    assert len(turned) == 150
    level = series.definition.model_copy(update={"sign": "positive"})
    values = {at: abs(value) + 9 for at, value in series.values.items()}
    above = draw_wrong_values(dates, values, level, seed=3)
    assert min(above.values()) > 0
    assert 60 < sum(above[at] < values[at] for at in dates) <= 150


def test_lines_asked_for_follow_those_shown_before_the_cutoff_and_come_once(series: Series) -> None:
    asked = asked_about(series, continuations=12)
    excerpt = find_excerpt(series)
    assert excerpt is not None
    wanted = list[object]()
    for one in of(asked, "continuation"):
        assert one.shown == SHOWN_LINES and len(one.following) == WANTED_LINES and one.truth is None
        at = excerpt.place_of(one.period)
        assert at is not None
        text = words(one)
        shown = "\n".join(
            [excerpt.header, *(line.text for line in excerpt.lines[at - SHOWN_LINES : at])]
        )
        assert f"\n\n{shown}\n\n" in text
        assert one.following == excerpt.lines[at : at + WANTED_LINES]
        assert not any(line.text in text for line in one.following)
        wanted += [period for line in one.following for period, _ in line.places]
        assert all(p.last_day <= CUTOFF for line in one.following for p, _ in line.places)
    assert len(wanted) == len(set(wanted)) == 12 * WANTED_LINES


def test_what_cannot_be_continued_is_said(series: Series) -> None:
    bare = Series(definition=series.definition, values=series.values)
    assert any("asked to continue the file" in note for note in asked_about(bare).notes)
    few = asked_about(series, cutoff=date(1971, 12, 31), continuations=9)
    assert any("stretches of the file are before the cutoff" in note for note in few.notes)


def test_answers_are_recorded_with_what_they_were_asked_with(series: Series) -> None:
    asked = asked_about(series)
    (worded, *_), (told, *_) = of(asked, "phrasing"), of(asked, "contradiction")
    assert worded.reply("m", "1").phrasing == worded.phrasing
    assert told.reply("m", "1").stated == told.stated
    continued = of(asked, "continuation")[0].reply("m", "1")
    assert (continued.shown, continued.wanted) == (SHOWN_LINES, WANTED_LINES)
    rooms = {one.variant: one.room for one in asked.questions}
    assert rooms["value"] == rooms["phrasing"] == 0 < rooms["description"] < rooms["step_by_step"]
