"""What is asked about a series, word by word."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from coreeval.config import NumleakConfig
from coreeval.errors import DatasetError
from coreeval.evaluation.numleak.probes import (
    SeriesQuestion,
    SeriesQuestionSet,
    questions_about,
    sibling_questions,
    write_replies,
)
from coreeval.evaluation.numleak.probes.wording import Wording
from coreeval.evaluation.numleak.replies import Reply
from coreeval.evaluation.numleak.series import Series
from tests.support.tides import tides

TODAY = date(2025, 12, 20)
CUTOFF = date(2020, 6, 30)


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Series:
    return tides(tmp_path_factory.mktemp("series"))


def asked_about(
    series: Series, cutoff: date | None = CUTOFF, **config: object
) -> SeriesQuestionSet:
    asked = NumleakConfig.model_validate({"series": "tides", **config})
    return questions_about(series, asked, cutoff=cutoff, today=TODAY, seed=7)


def of(asked: SeriesQuestionSet, variant: str) -> list[SeriesQuestion]:
    return [one for one in asked.questions if one.variant == variant]


def words(question: SeriesQuestion) -> str:
    return "\n".join(message["content"] for message in question.messages)


def counted(asked: SeriesQuestionSet) -> Counter[str]:
    return Counter(one.variant for one in asked.questions)


def test_every_probe_has_its_questions(series: Series) -> None:
    asked = asked_about(series)
    recent = len(of(asked, "value")) - 40
    assert 0 < recent <= 14
    assert counted(asked) == {
        "value": 40 + recent,
        "blind": 40,
        "fictitious": 30,
        "repeated": 80,
        "pair": 60,
        "forced_choice": 60,
    }
    assert len(set(asked.questions)) == len(asked.questions)
    assert counted(asked_about(series, probes=["value"])) == {"value": 40}
    assert asked_about(series).questions == asked.questions


def test_a_question_says_unit_sign_digits_and_an_example_that_is_no_answer(series: Series) -> None:
    question = of(asked_about(series), "value")[0]
    text = words(question)
    assert f"the monthly change of the Halcyon tide index for {question.period.words}?" in text
    assert "in percent to 2 decimal places, with a minus sign if it is negative" in text
    (example,) = re.findall(r"which is not the answer: (-\d+\.\d\d)$", text)
    assert all(abs(value - float(example)) > 1 for value in series.values.values())
    assert question.truth == series.values[question.period]


@pytest.mark.parametrize(
    ("sign", "decimals", "said"),
    [("positive", 0, "as a whole number, without a sign"), ("positive", 1, "to 1 decimal place,")],
)
def test_words_follow_the_definition(series: Series, sign: str, decimals: int, said: str) -> None:
    changed = series.definition.model_copy(update={"sign": sign, "decimals": decimals})
    wording = Wording.of(changed, [12.0, 23.5, 34.0, 46.0, 57.0, 123.0])
    period = next(iter(series.values))
    assert said in wording.value(period)[1]["content"]
    assert float(wording.example) == {0: 235, 1: 234.6}[decimals]


def test_a_fictitious_question_is_the_real_one_but_for_the_name(series: Series) -> None:
    asked = asked_about(series)
    real = {one.period: words(one) for one in of(asked, "value")}
    made_up = of(asked, "fictitious")
    for one in made_up:
        assert one.name is not None and one.truth is None and one.series == "tides"
        assert words(one) == real[one.period].replace("the Halcyon tide index", one.name)
    assert set(Counter(one.name for one in made_up).values()) == {15}


def test_the_blind_question_has_the_description_in_place_of_the_name(series: Series) -> None:
    asked = asked_about(series)
    for one in of(asked, "blind"):
        assert "Halcyon" not in words(one) and "the tide in a harbour town" in words(one)
        assert one.name is None and one.truth is not None


def test_a_forced_choice_allows_exactly_the_two_dates(series: Series) -> None:
    asked = asked_about(series)
    free, forced = of(asked, "pair"), of(asked, "forced_choice")
    assert [(one.period, one.other) for one in free] == [(one.period, one.other) for one in forced]
    for one in forced:
        assert one.other is not None
        assert words(one).endswith(f"nothing else:\n\n{one.period.words}\n{one.other.words}")
    drawn = {one.period for one in of(asked, "blind")}
    assert {each for one in free for each in (one.period, one.other)} <= drawn


def test_repeated_questions_are_the_same_words_and_distinct_draws(series: Series) -> None:
    asked = asked_about(series, draws=3)
    real = {one.period: words(one) for one in of(asked, "value")}
    repeated = of(asked, "repeated")
    assert Counter(one.draw for one in repeated) == {0: 40, 1: 40, 2: 40}
    assert all(words(one) == real[one.period] for one in repeated)


def test_recent_values_are_the_last_after_the_cutoff_and_published(series: Series) -> None:
    dates = sorted(one.period for one in of(asked_about(series, recent=5), "value"))
    assert [str(each) for each in dates[-5:]] == [
        "2025-06", "2025-07", "2025-08", "2025-09", "2025-10"
    ]  # fmt: skip
    late = asked_about(series, cutoff=date(2025, 8, 31), probes=["value", "recent"])
    assert "only 2 values were published after the cutoff, but 14 were requested" in late.notes


def test_without_a_cutoff_recent_values_are_the_last_and_that_is_said(series: Series) -> None:
    asked = asked_about(series, cutoff=None, recent=3, probes=["value", "recent"])
    assert {"2025-08", "2025-09", "2025-10"} <= {str(one.period) for one in asked.questions}
    (note,) = asked.notes
    assert "cutoff is not known" in note


def test_a_period_bounds_all_but_the_recent_values(series: Series) -> None:
    asked = asked_about(series, dates=10, recent=2, period={"start": 2001, "end": "2005-06"})
    early = [one.period for one in asked.questions if one.period.start < date(2020, 1, 1)]
    assert {each.start.year for each in early} <= set(range(2001, 2006))
    late = {str(one.period) for one in asked.questions} - set(map(str, early))
    assert late == {"2025-09", "2025-10"}
    with pytest.raises(DatasetError, match="tides has no published value from 2030") as caught:
        asked_about(series, period={"start": 2030})
    notes = asked_about(series, period={"start": 2001, "end": 2030}).notes
    assert any("values only from 1970-01 to 2025-12" in each for each in notes)
    assert not any("values only" in each for each in asked.notes)
    assert caught.value.hint == "values are available from 1970-01 to 2025-12"


def test_what_a_definition_lacks_is_not_asked_and_said(tmp_path: Path) -> None:
    bare = tides(tmp_path, blind=None, fictitious=[])
    asked = asked_about(bare)
    assert counted(asked).keys() == {"value", "repeated", "pair", "forced_choice"}
    assert any("its name is never withheld" in note for note in asked.notes)
    assert any("no fictitious" in note for note in asked.notes)


def test_a_sibling_is_asked_for_the_same_dates(series: Series, tmp_path: Path) -> None:
    like, sibling = asked_about(series), tides(tmp_path, id="waves", name="the wave index")
    short = {at: value for at, value in sibling.values.items() if at.start.year > 1999}
    asked = sibling_questions(replace(sibling, values=short), like, today=TODAY)
    wanted = [one.period for one in of(like, "value")]
    assert [one.period for one in asked.questions] == [each for each in wanted if each in short]
    assert all("the wave index" in words(one) for one in asked.questions)
    assert asked.notes == (f"it has no value on {len(wanted) - len(asked.questions)} of the "
                           f"{len(wanted)} dates of tides",)  # fmt: skip


def test_replies_are_written_as_they_are_read(series: Series, tmp_path: Path) -> None:
    questions: Sequence[SeriesQuestion] = asked_about(series).questions
    replies = [one.reply("m", "\N{MINUS SIGN}1,5 %\n") for one in questions]
    replies[0] = questions[0].reply("m", None, "refused")
    write_replies(tmp_path / "new" / "r.jsonl", replies)
    lines = (tmp_path / "new" / "r.jsonl").read_text(encoding="utf-8").splitlines()
    assert [Reply.model_validate_json(line) for line in lines] == replies
    assert '"response": null' in lines[0] and '"variant": "value"' in lines[0]
