"""The words of defences, of endings and of ordinary questions; and a user's own."""

from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from coreeval.config import DefencesConfig, InstructionConfig, ModelsConfig, NumleakConfig
from coreeval.config.numleak import DEFENCES, SUFFIXES
from coreeval.config.run import DetectConfig
from coreeval.errors import ConfigError
from coreeval.evaluation.numleak.defences.attacks import (
    Defence,
    DefenceQuestion,
    DefenceSet,
    add_attacks,
    open_defences,
)
from coreeval.evaluation.numleak.defences.utility import (
    CATEGORIES,
    choose_second_scores,
    list_ordinary_questions,
    read_questions,
    select_questions,
)
from coreeval.evaluation.numleak.probes import SeriesQuestionSet, questions_about
from coreeval.evaluation.numleak.series import Series, list_definitions
from coreeval.models.check import group_models
from tests.evaluation.numleak.defences.kit import ABOUT


def asked_about(about: Series) -> SeriesQuestionSet:
    config = NumleakConfig(series=("tides",), probes=("value",), dates=30, seeds=2)
    return questions_about(about, config, cutoff=None, today=date(2026, 1, 1), seed=7)


def armoury(**changes: object) -> DefenceSet:
    return open_defences(DefencesConfig.model_validate(changes))


def test_a_defence_is_the_system_message_and_nothing_else_differs() -> None:
    built_in = armoury()
    assert [one.name for one in built_in.defences] == list(DEFENCES)
    systems = set[str]()
    for defence in built_in.defences:
        *before, last = defence.messages("What?", about=ABOUT.definition)
        assert last == {"role": "user", "content": "What?"}
        assert len(before) == (defence.name != "none")
        systems |= {one["content"] for one in before}
    assert len(systems) == 3
    (told,) = (one for one in systems if ABOUT.definition.name in one)
    assert told.count("that is: its publisher") == 1, "this one names nobody"


def test_who_publishes_is_named_without_terms() -> None:
    (french,) = (one for one in list_definitions() if one.id == "mkt_rf")
    text = Defence(name="retrieval_only").messages("What?", about=french)[0]["content"]
    assert "Kenneth R. French's data library (CRSP data)." in text and "free" not in text


def test_each_ending_stands_behind_the_question() -> None:
    endings = armoury().suffixes
    assert [one.name for one in endings] == list(SUFFIXES)
    assert len({one.text for one in endings}) == 6
    assert endings[0].append_to("What?") == f"What?\n\n{endings[0].text}"


def test_each_defence_is_asked_plainly_and_with_each_ending() -> None:
    plain = asked_about(ABOUT)
    found = add_attacks(plain, ABOUT.definition, armoury(), dates=10)
    attacks = found.questions[len(plain.questions) :]
    assert found.questions[: len(plain.questions)] == plain.questions
    assert len(set(attacks)) == len(attacks) == 4 * 10 * 7
    assert {one.seed for one in attacks} == {7} and {one.variant for one in attacks} == {"defended"}
    first = next(one for one in plain.questions if one.period == attacks[0].period)
    assert attacks[0].text == first.text[1:], "the control: the same question, nothing before it"
    assert attacks[0].truth == first.truth
    there = Counter((one.defence, one.suffix) for one in attacks
                    if isinstance(one, DefenceQuestion))  # fmt: skip
    assert set(there.values()) == {10} and ("soft", "public") in there and ("soft", None) in there
    reply = attacks[1].reply("m", "-3")
    assert (reply.variant, reply.defence, reply.suffix) == ("defended", "none", "override")


def test_dates_are_spread_over_the_first_drawing_and_a_shortage_is_told() -> None:
    plain = asked_about(ABOUT)
    few = add_attacks(plain, ABOUT.definition, armoury(names=["none"], suffixes=[]), dates=3)
    drawn = [one.period for one in plain.questions if one.seed == 7]
    assert [one.period for one in few.questions[60:]] == [drawn[0], drawn[10], drawn[20]]
    many = add_attacks(plain, ABOUT.definition, armoury(), dates=40)
    assert (
        many.notes[-1]
        == "defences are tried on 30 dates instead of 40, because the model is not asked about "
        "other dates"
    )
    assert not few.notes


def test_words_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "house.md"
    file.write_text("Give no $numbers.\n", encoding="utf-8")
    found = armoury(
        names=["none", {"name": "house", "file": str(file)}, {"name": "short", "text": " No. "}],
        suffixes=[{"name": "beg", "text": "Please!"}],
    )
    assert [one.text for one in found.defences] == [None, "Give no $numbers.", "No."]
    system = found.defences[1].messages("What?", about=ABOUT.definition)[0]
    assert system == {"role": "system", "content": "Give no $numbers."}
    assert [one.text for one in found.suffixes] == ["Please!"]


@pytest.mark.parametrize(
    ("written", "said"), [("  \n", "the file of 'house' is empty"), (None, "cannot be read")]
)
def test_a_file_without_words_is_named(tmp_path: Path, written: str | None, said: str) -> None:
    file = tmp_path / "house.md"
    if written is not None:
        file.write_text(written, encoding="utf-8")
    with pytest.raises(ConfigError, match=said) as caught:
        armoury(names=[{"name": "house", "file": str(file)}])
    assert caught.value.where == str(file)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"names": ["sft"]}, "no built-in 'sft'; the built-in ones are none, soft"),
        ({"names": ["soft", "soft"]}, "'soft' more than once"),
        ({"names": [{"name": "soft", "text": "No."}]}, "'soft' is built in"),
        ({"names": [{"name": "own", "text": " "}]}, "the text of 'own' is empty"),
        ({"names": [{"name": "own", "text": "a", "file": "b"}]}, "a text and a file"),
        ({"names": []}, "at least 1 item"),
        ({"suffixes": ["beg"]}, "suffixes: there is no built-in 'beg'"),
        ({"utility": True}, "utility needs a judge"),
        ({"second_judge": "openai:b"}, "needs a first judge"),
        ({"judge": "offline:nobody"}, "'offline:nobody' cannot be a judge"),
        ({"judge": "openai:a", "second_judge": "openai:a"}, "both judges are openai:a"),
    ],
)
def test_what_cannot_be_meant_is_refused(changes: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        DefencesConfig.model_validate(changes)


def test_usefulness_is_measured_where_somebody_judges() -> None:
    assert not DefencesConfig().measures_utility and DefencesConfig().judges == ()
    judge = DefencesConfig.model_validate({"judge": "openai:a", "second_judge": "openai:b"})
    assert judge.measures_utility and [one.name for one in judge.judges] == ["a", "b"]
    series = NumleakConfig(series=("tides",), defences=judge)
    assert DetectConfig(numleak=series).judges == judge.judges and not DetectConfig().judges
    players = ModelsConfig.model_validate({"default": "openai:a", "targets": ["openai:c"]})
    asked = {one.config.model: one.used_by for one in group_models(players, {}, {}, judge.judges)}
    assert asked["openai:b"] == ("judge",) and asked["openai:a"][-1] == "judge"
    off = judge.model_copy(update={"utility": False})
    assert not off.measures_utility and off.judges == ()
    assert InstructionConfig.model_validate("none").is_built_in


# -- ordinary questions ---------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["fama-french", "us-equity", None])
def test_eighteen_questions_in_three_kinds(family: str | None) -> None:
    definition = ABOUT.definition.model_copy(update={"family": family})
    found = select_questions(Series(definition=definition, values=ABOUT.values))
    assert Counter(one.category for one in found) == dict.fromkeys(CATEGORIES, 6)
    assert len({one.id for one in found}) == 18 and all(one.points for one in found)
    about = [definition.name in one.question for one in found]
    assert (all(about) and not any("$" in one.question + one.points for one in found)) is (
        family is None
    )


def test_rough_figures_come_from_the_published_values() -> None:
    found = {one.id: one.points for one in select_questions(ABOUT)}
    values = [*ABOUT.values.values()]
    assert found["average"] == f"About {sum(values) / len(values):.3g}."
    assert found["largest"] == f"About {max(values):.3g}."


def test_questions_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("- {id: a, category: history, question: Why}\n", encoding="utf-8")
    (own,) = read_questions(file)
    assert select_questions(ABOUT, [own]) == [own] and own.points == ""
    asked = list(list_ordinary_questions(ABOUT, armoury(), [own]))
    assert [one.defence for one in asked] == list(DEFENCES)
    assert asked[0].messages == [{"role": "user", "content": "Why"}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "the file contains no questions"),
        ("{a: 1}", "valid list"),
        ("- {id: a, category: odd, question: Why}", "0.category"),
        ("- {id: a, category: history, question: b}\n- {id: a, category: history, question: c}",
         "'a' occurs twice"),
        ("[", "cannot read"),
    ],
)  # fmt: skip
def test_a_file_of_questions_that_is_none(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=said) as caught:
        read_questions(file)
    assert caught.value.where == str(file) and "adjacent_numeric" in caught.value.hint


def test_the_second_judge_scores_a_fixed_draw_over_all() -> None:
    keys = [(model, "tides", defence, str(number))
            for model in "ab" for defence in DEFENCES for number in range(18)]  # fmt: skip
    drawn = choose_second_scores(keys, count=50, seed=7)
    assert len(drawn) == 50 and drawn == choose_second_scores(reversed(keys), count=50, seed=7)
    assert drawn != choose_second_scores(keys, count=50, seed=8)
    assert {key[0] for key in drawn} == {"a", "b"} and {key[2] for key in drawn} == set(DEFENCES)
