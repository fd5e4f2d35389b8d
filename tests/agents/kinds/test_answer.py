"""Checks of a question with answers: each bites, and lets through what is right."""

import pytest

from coreeval.agents.kinds import item_kind
from coreeval.agents.kinds.answer import (
    check_accepted_answers,
    check_answer,
    check_answer_form,
    check_answer_support,
    check_program,
    is_accepted,
)
from coreeval.schema import Sample, Task
from coreeval.tasks import adapt_task
from tests.agents.builders import news
from tests.agents.kinds.items import CLOSED, OPEN, answer, found, written

ASKED = "Which firm opened the line in March 2026?"
OLD = answer("Acme\nAcme Ltd", question="Which firm closed the plant?")
READ = answer("Acme", question="Which firm closed?", context="The firm Acme closed.")


@pytest.mark.parametrize(
    ("changes", "defects"),
    [
        ({"answers": "Norvik"}, []),
        ({"answers": "the Acme."}, ["old_answer"]),
        ({"answers": "Norvik", "question": "Which firm is Norvik?"}, ["answer_told"]),
    ],
)
def test_a_closed_book_answer_is_new_and_not_told(
    changes: dict[str, str], defects: list[str]
) -> None:
    item = written(CLOSED, OLD, {"question": ASKED} | changes)
    assert found(check_answer, item) == defects


@pytest.mark.parametrize(
    ("context", "gold", "defects"),
    [
        ("Norvik opened.", "Norvik", []),
        ("Norviken opened.", "Norvik", ["answer_missing"]),
        ("公司在北京市成立。", "北京", []),
        ("公司在上海成立。", "北京", ["answer_missing"]),
    ],
)
def test_an_answer_stands_in_its_context(context: str, gold: str, defects: list[str]) -> None:
    changes = {"context": context, "question": ASKED, "answers": gold}
    assert found(check_answer, written(OPEN, READ, changes)) == defects


def test_a_number_stands_in_a_context_where_the_old_one_did() -> None:
    old = answer("12", "number", "How many?", context="Now 12 ships sail.")
    changes = {"context": "Now 14 ships sail.", "question": "How many sail?"}
    assert found(check_answer, written(OPEN, old, changes | {"answers": "14"})) == []
    assert found(check_answer, written(OPEN, old, changes | {"answers": "15"})) == [
        "answer_missing"
    ]
    worked_out = answer("2", "number", "How many more?", context="Now 12 sail, and 10 before.")
    assert found(check_answer, written(OPEN, worked_out, changes | {"answers": "4"})) == []


def test_yes_and_no_may_stay_and_may_stand_in_the_question() -> None:
    old = answer("no", "yes_no", "Did it close?")
    assert found(check_answer, written(CLOSED, old, {"question": "Is there no ferry?"})) == []


@pytest.mark.parametrize(
    ("kind", "old", "gold", "defects"),
    [
        ("number", "12", "fourteen", []),
        ("number", "12", "a lot", ["answer_type"]),
        ("yes_no", "no", "Yes", []),
        ("yes_no", "no", "perhaps", ["answer_type"]),
        ("text", "Acme", "Norvik of Bergen in Norway", []),
        ("text", "Acme", "the firm that opened a line to Oslo", ["answer_length"]),
        ("text", "北京", "在北京市成立的一家公司的总部", ["answer_length"]),
    ],
)
def test_an_answer_has_the_form_of_the_old(
    kind: str, old: str, gold: str, defects: list[str]
) -> None:
    item = written(CLOSED, answer(old, kind), {"answers": gold})
    assert found(check_answer_form, item) == defects


def test_accepted_answers_are_few_and_the_same_number() -> None:
    many = written(CLOSED, OLD, {"answers": "\n".join("abcdef")})
    assert found(check_accepted_answers, many) == ["answers"]
    old = answer("12%", "number", unit="%", tolerance="1%")
    near = written(CLOSED, old, {"answers": "14.46%\n14.5 percent"})
    assert found(check_accepted_answers, near) == []
    far = written(CLOSED, old, {"answers": "14.46%\n15%"})
    assert found(check_accepted_answers, far) == ["answers"]


@pytest.mark.parametrize(("gold", "defects"), [("5.2", []), ("5.3", ["answer_words"])])
def test_the_unit_of_an_answer_may_belong_to_its_number(gold: str, defects: list[str]) -> None:
    item = written(CLOSED, answer("12", "number", unit="million kroner"), {"answers": gold})
    assert found(check_answer_support, item) == defects


@pytest.mark.parametrize(
    ("unit", "gold", "defects"),
    [
        ("kilometres", "95", []),
        ("kilometres", "95 km", []),
        ("kilometres", "95 km/h", ["answer_type"]),
        ("km/h", "95 kilometres per hour", []),
        ("", "95 km/h", []),
        ("billion dollars", "$55 billion", []),
        ("billion dollars", "55 million", ["answer_type"]),
        ("dollars", "55 million", []),
        ("ships", "95 ships", []),
        ("ships", "95 km", ["answer_type"]),
        ("m", "95 metres", []),
        ("m", "95 m", []),
        ("m", "95 ft", ["answer_type"]),
        ("km\u00b2", "95 square kilometres", []),
    ],
)
def test_an_answer_has_the_unit_that_is_kept(unit: str, gold: str, defects: list[str]) -> None:
    item = written(CLOSED, answer("12", "number", unit=unit), {"answers": gold})
    assert found(check_answer_form, item) == defects


@pytest.mark.parametrize(
    ("unit", "gold", "said", "right"),
    [
        ("billion dollars", "55", "55 million", False),
        ("billion dollars", "55", "55 billion", True),
        ("billion dollars", "55", "$55,000,000,000", True),
        ("billion dollars", "55", "54.8", True),
        ("billion dollars", "55", "54 billion dollars", False),
        ("billion dollars", "55 billion", "55", True),
        ("billion dollars", "55", "55 billion euros", False),
        ("$ in millions", "55", "55 million", True),
        ("kilometres", "55", "55 km/h", False),
        ("m", "55", "55 m", True),
        ("m", "55", "55 meters", True),
        ("m/s", "55", "55 metres per second", True),
        ("km\u00b2", "55", "55 km\u00b2", True),
        ("kg", "55", "55 lbs", False),
        ("hours", "55", "55 min", False),
        ("MW", "55", "55 GW", False),
        ("million tonnes", "55", "55 Mt", True),
        ("", "55", "55 million", True),
    ],
)
def test_a_number_is_accepted_in_its_unit(unit: str, gold: str, said: str, right: bool) -> None:
    sample = answer(gold, "number", unit=unit, tolerance="0.5")
    task = adapt_task(CLOSED, sample.fields)
    assert is_accepted(task, sample, sample.fields, said) is right


@pytest.mark.parametrize(
    ("kind", "gold", "defects"),
    [
        ("text", "Norvik", []),
        ("text", "Globex", ["answer_words"]),
        ("number", "14", []),
        ("number", "15", ["answer_words"]),
        ("yes_no", "yes", []),
    ],
)
def test_a_closed_book_answer_stands_in_the_news(kind: str, gold: str, defects: list[str]) -> None:
    item = written(CLOSED, answer("12", kind), {"answers": gold})
    assert found(check_answer_support, item) == defects


@pytest.mark.parametrize(
    ("kind", "accepted", "said", "right"),
    [
        ("text", "Bank of England", "the Bank of England", True),
        ("text", "Bank of England", "Bank of Scotland", False),
        ("text", "Emmanuel Macron", "Macron", True),
        ("text", "Emmanuel Macron", "Brigitte Macron", False),
        ("text", "Norvik\nNorvik Lines", "Norvik Lines of Bergen", True),
        ("text", "France", "France and Germany", False),
        ("text", "Paris", "not Paris", False),
        ("text", "vitamin A", "vitamin C", False),
        ("text", "Paris", "unclear", False),
        ("text", "unclear", "unclear", False),
        ("text", "Paris", "", False),
        ("text", "北京", "北京市", True),
        ("text", "北京", "上海", False),
        ("date", "3 May 2026", "May 3, 2026", True),
        ("date", "3 May 2026", "May 2026", False),
        ("number", "5.2", "5.20", True),
        ("number", "14.46%", "14.5 percent", True),
        ("number", "14.46%", "15%", False),
        ("number", "-3.2%", "3.2%", False),
        ("number", "-3.2%", "a fall of 3.2%", True),
        ("number", "966", "966 million", True),
        ("number", "3", "3000", False),
        ("number", "five", "5", True),
        ("yes_no", "no", "No, it did not", True),
        ("yes_no", "no", "Yes", False),
    ],
)
def test_what_a_judge_says_is_held_against_the_accepted_answers(
    kind: str, accepted: str, said: str, right: bool
) -> None:
    sample = answer(accepted, kind, tolerance="1%")
    assert is_accepted(adapt_task(CLOSED, sample.fields), sample, sample.fields, said) == right


TABLE = "Ships by year\n | 2025 | 2026\nferries | 10 | 14\ncost ( net ) | $ 5.2 | $ (1.3)"
CALCULATED = answer(
    "40%\n40.00000%", "number", "How much?", context="Sales: 10 and 14.",
    program="subtract(14, 10), divide(#0, 10)", unit="%", tolerance="1%",
)  # fmt: skip


@pytest.mark.parametrize(
    ("program", "answers", "defects"),
    [
        ("subtract(14, 10), divide(#0, 10)", "40%", []),
        ("subtract(14, 10), divide(#0, 10)", "0.4", []),
        ("subtract(14, 10), divide(#0, 10)", "41%", ["program"]),
        ("subtract(14, 10), divide(#0, 14)", "29%\n28.57143%", []),
        ("subtract(14, 10), divide(#0, 14)", "29%", ["program"]),
        ("subtract(14, 10), divide(#0, 10)", "-40%", ["program"]),
        ("subtract(14, 11), divide(#0, 10)", "30%", ["program"]),
        ("divide(10, 0)", "40%", ["program"]),
        ("the sum of both", "40%", ["program"]),
        ("table_sum(ferries, none), divide(#0, const_100)", "24%", []),
        ("table_min(cost ( net ), none)", "-1.3", []),
        ("table_sum(trains, none)", "24", ["program"]),
    ],
)
def test_a_program_computes_the_gold_from_its_context(
    program: str, answers: str, defects: list[str]
) -> None:
    changes = {"context": TABLE, "program": program, "answers": answers}
    assert found(check_program, written(OPEN, CALCULATED, changes)) == defects


def test_a_program_may_say_yes_or_no() -> None:
    old = answer("yes", "yes_no", context="10 and 14", program="greater(14, 10)")
    same = written(OPEN, old, {"context": TABLE})
    assert found(check_program, same) == []
    assert found(check_program, written(OPEN, old, {"context": TABLE, "answers": "no"})) == [
        "program"
    ]


def test_a_calculated_answer_needs_no_evidence_and_unit_and_tolerance_are_carried() -> None:
    item = written(OPEN, CALCULATED, {"context": TABLE})
    kind = item_kind(item.task)
    assert kind.ask_facts(item).fields["answer"] == ""
    assert item.task.carried_fields == ("unit", "tolerance")
    said = {"answers": " 14 \n\n14\n 15", "unit": "$", "tolerance": "90%"}
    fields = kind.finish(item.task, CALCULATED, said, ())
    assert fields["answers"] == "14\n15"
    assert (fields["unit"], fields["tolerance"]) == ("%", "1%")
    assert set(kind.written(item.task)).isdisjoint({"unit", "tolerance"})


@pytest.mark.parametrize(
    ("of", "original", "title", "fits"),
    [
        (CLOSED, answer("14", "number"), "Norvik buys 14 ships", True),
        (CLOSED, answer("14", "number"), "Norvik buys twenty ships in 2026", True),
        (CLOSED, answer("14", "number"), "Norvik buys ships in 2026", False),
        (CLOSED, answer("5 May 2020", "date"), "Norvik buys ships in June", True),
        (CLOSED, answer("5 May 2020", "date"), "Norvik buys ships", False),
        (CLOSED, answer("Ann Lee"), "Norvik buys ships", True),
        (OPEN, answer("14", "number", context="He has 14."), "Norvik buys 12 ships", True),
        (OPEN, answer("14", "number", context="He has 5 and 9."), "Norvik buys 12 ships", False),
        (OPEN, answer("14", "number", context="He has 5 and 9."), "It buys 12 of 30 ships", True),
    ],
)
def test_an_answer_needs_news_of_its_type(
    of: Task, original: Sample, title: str, fits: bool
) -> None:
    assert item_kind(of).has_material(of, original, [news(title)]) == fits
