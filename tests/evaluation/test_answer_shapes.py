"""Letters and free texts out of what a target says."""

import pytest

from coreeval.evaluation.answer_shapes import (
    LONGEST_SHORT,
    LONGEST_SUMMARY,
    FreeShape,
    OptionShape,
)
from coreeval.models import InvalidAnswer
from coreeval.schema import Label, Task

FIELDS = {"question": "Who?", "A": "Ada", "B": "Bo", "C": "Cy"}
TASK = Task(
    name="quiz",
    kind="choice",
    description="A quiz.",
    fields=tuple(FIELDS),
    options=3,
    labels=tuple(Label(id=at, name=letter, meaning="right") for at, letter in enumerate("ABC")),
    question="Which?",
    text_kind="sentence",
    templates=("$item\n$choices",),
)
SHORT, SUMMARY = FreeShape(short=True), FreeShape(short=False)


@pytest.mark.parametrize(
    "said",
    ['{"answer": "B"}', '{"label": "B"}', "B", "(B)", "The answer is B.", "Bo", "B. Bo",
     "<think>A? No.</think>B", '```json\n{"answer": "B"}\n```'],
)  # fmt: skip
def test_an_option_is_a_letter_in_json_or_prose(said: str) -> None:
    assert OptionShape(TASK).for_options(FIELDS).parse(said).label == "B"


@pytest.mark.parametrize("said", ["", "D", "A or B", "I do not know", '{"answer": "D"}'])
def test_an_answer_without_one_option_is_none(said: str) -> None:
    with pytest.raises(InvalidAnswer, match="does not choose one of A, B, C"):
        OptionShape(TASK).for_options(FIELDS).parse(said)


def test_each_sample_has_its_own_options() -> None:
    shape = OptionShape(TASK)
    first, second = shape.for_options(FIELDS), shape.for_options(FIELDS | {"A": "Bo", "B": "Ada"})
    assert (first.parse("Bo").label, second.parse("Bo").label) == ("B", "A")
    assert first.schema == {
        "type": "object",
        "properties": {"answer": {"type": "string", "enum": ["A", "B", "C"]}},
        "required": ["answer"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ('{"answer": "Paris"}', "Paris"),
        ('Sure!\n{"answer": 42}', "42"),
        ('{"answer": true}', "true"),
        ('{"answer": ["one", "two"]}', "one\ntwo"),
        ("{'final_answer': 'Paris',}", "Paris"),
        ("Paris", "Paris"),
        ("<think>London?</think>\nParis", "Paris"),
        ("<answer>Paris</answer>", "Paris"),
        ("The answer is Paris.", "Paris."),
        ("It was long ago.\n**Answer:** Paris", "Paris"),
        ("Work.\nSo the final answer is: 42\n", "42"),
        ("so $\\boxed{42}$", "42"),
        ("The answer is hard to find: Paris", "hard to find: Paris"),
        ("Sets {x: 1} are small", "Sets {x: 1} are small"),
    ],
)
def test_a_short_answer(said: str, answer: str) -> None:
    assert SHORT.parse(said).label == answer


def test_a_summary_is_all_that_is_said() -> None:
    assert SUMMARY.parse("**Summary:** Sales rose.\nThe answer is no.").label == (
        "Sales rose.\nThe answer is no."
    )
    assert SUMMARY.parse('{"answer": ["Sales rose.", "Costs fell."]}').label == (
        "Sales rose.\nCosts fell."
    )
    assert SUMMARY.parse('{"summary": "Sales rose."}').label == "Sales rose."


@pytest.mark.parametrize(
    "said", ["", " \n", "<think>hm</think>", '{"answer": ""}', '{"reason": 1}']
)
def test_nothing_said_is_no_answer(said: str) -> None:
    for shape in (SHORT, SUMMARY):
        with pytest.raises(InvalidAnswer):
            shape.parse(said)


def test_halves_of_characters_are_replaced() -> None:
    assert SHORT.parse('{"answer": "a\\ud800b"}').label == "a?b"


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "piece", ["word ", "\n", "*", "\\boxed{", "answer is ", "{", '{"answer": ', "A", "[", "The "]
)
def test_a_long_answer_is_read_at_once_and_bounded(piece: str) -> None:
    text = piece * (250_000 // len(piece)) + "x"
    for shape, most in ((SHORT, LONGEST_SHORT), (SUMMARY, LONGEST_SUMMARY)):
        assert 0 < len(shape.parse(text).label) <= most
