"""Checks of a choice: each bites, and lets through what is right."""

import pytest

from coreeval.agents.kinds import item_kind
from coreeval.agents.kinds.choice import (
    check_length_cue,
    check_option_forms,
    check_options,
    check_right_option,
    check_stem,
    is_negated,
)
from coreeval.schema import Sample
from coreeval.tasks import adapt_task
from tests.agents.kinds.items import choice, found, task, written

TASK = task("choice", "question")
OLD = choice(["Brazil", "Spain", "Ghana", "Japan"], "B")


def options(*texts: str, of: Sample = OLD) -> dict[str, str]:
    return dict(zip("ABCD", texts, strict=False))


@pytest.mark.parametrize(
    ("texts", "defects"),
    [
        (("Peru", "Chile", "Kenya", "India"), []),
        (("Peru", "the Peru.", "Kenya", "India"), ["options"]),
        (("1,000", "2,000", "1000", "3,000"), ["options"]),
        (("5%", "-5%", "$5", "5"), []),
        (("5 per cent", "5%", "6%", "7%"), ["options"]),
        (("+", "-", "*", "/"), []),
        (("a[0]", "a(0)", "a{0}", "a<0>"), []),
        (("Peru", "spain", "Kenya", "India"), ["old_answer"]),
        (("Spain", "Chile", "Kenya", "India"), []),
        (("東京", "大阪", "京都", "東京"), ["options"]),
    ],
)
def test_options_differ_and_the_right_one_is_new(
    texts: tuple[str, ...], defects: list[str]
) -> None:
    assert found(check_options, written(TASK, OLD, options(*texts))) == defects


def test_a_right_number_is_old_only_with_its_sign_and_unit() -> None:
    old = choice(["5%", "-5%", "6%", "7%"], "B")
    assert found(check_options, written(TASK, old, options("1%", "5%", "8%", "9%"))) == []
    assert found(check_options, written(TASK, old, options("1%", "-5.0 %", "8%", "9%"))) == [
        "old_answer"
    ]


def test_options_that_any_question_has_stay() -> None:
    old = choice(["Yes", "No", "Maybe"], "A", "Did it rain?")
    assert found(check_options, written(TASK, old, {"question": "Did the line open?"})) == []


@pytest.mark.parametrize(
    ("right", "defects"),
    [
        ("Bolivia and all of its neighbours", ["length_cue"]),
        ("Peru alone", []),
        ("Bolivia", []),
    ],
)
def test_the_right_option_is_no_longer_than_the_others(right: str, defects: list[str]) -> None:
    item = written(TASK, OLD, options("Peru", right, "Kenya", "India"))
    assert found(check_length_cue, item) == defects


@pytest.mark.parametrize(
    ("texts", "defects"),
    [
        (("in March", "on 5 May", "in June", "in July"), ["type_cue"]),
        (("on 1 March", "in May", "on 2 June", "on 3 July"), ["type_cue"]),
        (("on 1 March", "on 5 May", "in June", "in July"), []),
        (("Peru", "Chile", "Kenya", "None of these"), ["catch_all"]),
        (("Peru", "Chile", "Kenya", "Both of the above."), ["catch_all"]),
        (("Peru", "Chile", "Kenya", "None of the other options"), ["catch_all"]),
        (("Peru", "Chile", "Kenya", "Both of the airports"), []),
    ],
)
def test_options_are_alike(texts: tuple[str, ...], defects: list[str]) -> None:
    assert found(check_option_forms, written(TASK, OLD, options(*texts))) == defects


def test_what_the_original_has_the_new_item_may_have() -> None:
    old = choice(["in March", "on 5 May", "in June", "all of the above"], "B")
    item = written(TASK, old, options("in April", "on 6 May", "in July", "all of the above"))
    assert found(check_option_forms, item) == []


@pytest.mark.parametrize(
    ("question", "defects"),
    [
        ("Which team took the title?", []),
        ("Which team, Chile or another, took the title?", ["answer_told"]),
        ("Peru, Chile, Kenya or India: who took the title?", []),
        ("Which team did not take the title?", ["negation"]),
    ],
)
def test_a_question_does_not_tell_and_keeps_its_form(question: str, defects: list[str]) -> None:
    new = options("Peru", "Chile", "Kenya", "India") | {"question": question}
    assert found(check_stem, written(TASK, OLD, new)) == defects


@pytest.mark.parametrize(
    ("question", "negated"),
    [
        ("Which of these is NOT a port?", True),
        ("All came EXCEPT whom?", True),
        ("Which one doesn't sail?", True),
        ("Welche Stadt ist kein Hafen?", True),
        ("Which is a port?", False),
        ("What is a notable port?", False),
        ("Where were at least 39 people hurt?", False),
        ("Which team is the least known?", True),
    ],
)
def test_questions_for_what_is_not_so(question: str, negated: bool) -> None:
    assert is_negated(question) == negated


@pytest.mark.parametrize(
    ("right", "defects"),
    [
        ("Norvik with 14 ships", []),
        ("Norvik with 15 ships", ["numbers"]),
        ("the firm Globex", ["names"]),
        ("a ferry line", []),
    ],
)
def test_the_right_option_stands_in_the_news(right: str, defects: list[str]) -> None:
    item = written(TASK, OLD, options("Peru", right, "Kenya with 99", "the firm Acme"))
    assert found(check_right_option, item) == defects


def test_the_answer_to_a_negated_question_stands_in_no_news() -> None:
    old = choice(["Brazil", "Spain", "Ghana", "Japan"], "B", "Who did not win?")
    item = written(TASK, old, options("Norvik", "the firm Globex", "Oslo", "Bergen"))
    assert found(check_right_option, item) == []
    kind = item_kind(item.task)
    assert kind.ask_facts(item).fields == {"question": "Who did not win?", "answer": ""}
    plain = written(TASK, OLD, options("Norvik", "Oslo", "Rome", "Bergen"))
    assert kind.ask_facts(plain).fields == {"question": "Who won the cup?", "answer": "Oslo"}


def test_an_option_is_on_one_line_and_a_context_keeps_its_own() -> None:
    of = task("choice", "context", "question")
    old = choice(["Brazil", "Spain"], "A")
    old = old.model_copy(update={"fields": {"context": "One.\nTwo."} | old.fields})
    adapted = adapt_task(of, old.fields)
    fields = item_kind(adapted).finish(
        adapted, old, {"A": "Peru\n  and Chile", "context": "New.\nLines."}, ()
    )
    assert list(fields) == ["context", "question", "A", "B"]
    assert fields["A"] == "Peru and Chile" and fields["context"] == "New.\nLines."
