"""Other probes of `coreeval detect recitation`: their questions, findings and tables."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from coreeval.evaluation.detectors.base import (
    Detector,
    DetectorInputs,
    DetectorQuestion,
    Json,
    TextAnswer,
)
from coreeval.evaluation.scores import Score
from coreeval.tools.formatting import format_estimate
from coreeval.tools.tables import Foreign, Table, numbers, texts

if TYPE_CHECKING:
    from coreeval.evaluation.recitation_quiz import QuizItem

QUIZ_QUESTION: Final = (
    'One of the two texts below is from the published benchmark "{task}", word for word; the other '
    "one says the same in other words. What the benchmark is about: {description}\n\n"
    "A) {A}\n\nB) {B}\n\n"
    "Which one is the published text? If you do not know, choose the more likely one. Answer with "
    "its letter alone."
)


def _make_verdict_table(document: Json, question: str) -> Table:
    heads = [texts("target", most=40), texts("verdict", gap=2, most=40), texts("why", gap=2)]
    rows = [
        (Foreign(each["target"]), each["verdict"], Foreign(each["reason"]))
        for each in document["targets"]
    ]
    return Table(heads, rows, question)


def _format_score(value: Json | None) -> str:
    return format_estimate(Score.model_validate(value), ".2f") if value else "-"


# -- the quiz -------------------------------------------------------------------------------------


def _choose_quiz(inputs: DetectorInputs) -> "list[QuizItem]":
    from coreeval.evaluation.recitation_quiz import choose_quiz_items

    return choose_quiz_items(
        ((sample.id, arms) for sample, arms in inputs.texts()), seed=inputs.seed
    )


def _ask_quiz(inputs: DetectorInputs) -> Iterator[DetectorQuestion]:
    from coreeval.evaluation.recitation_quiz import ORDERS

    task = inputs.task
    for item in _choose_quiz(inputs):
        for first in ORDERS:
            question = QUIZ_QUESTION.format(
                task=task.name, description=task.description, **item.order(first)
            )
            yield DetectorQuestion(f"{first}:{item.id}", question)


def _score_quiz(inputs: DetectorInputs, answers: Mapping[str, TextAnswer]) -> Json:
    from coreeval.evaluation.recitation_quiz import ORDERS, judge_quiz

    items = _choose_quiz(inputs)
    said = {
        (item.id, first): (answers[key].kind, answers[key].text)
        for item in items
        for first in ORDERS
        if (key := f"{first}:{item.id}") in answers
    }
    return judge_quiz(items, said).model_dump(mode="json")


_QUIZ_COLUMNS: Final = (
    texts("target", most=40),
    *(numbers(head, gap=2, most=40) for head in ("texts", "original", "reworded", "first", "last")),
    *(texts(head, gap=2, most=40) for head in ("originals picked", "beyond chance")),
    numbers("p", gap=2, most=40),
)
_QUIZ_COUNTS: Final = ("items", "original", "reworded", "first", "last")


def _make_quiz_tables(document: Json) -> Sequence[Table]:
    rows = [
        (
            Foreign(each["target"]),
            *(str(each[count]) for count in _QUIZ_COUNTS),
            *(_format_score(each[part]) for part in ("picked", "beyond_chance")),
            f"{each['p_value']:.2g}",
        )
        for each in document["targets"]
    ]
    title = (
        "What was picked in both orders, and the share of originals in all answers (chance 0.5)."
    )
    return [_make_verdict_table(document, QUIZ.question), Table(_QUIZ_COLUMNS, rows, title)]


QUIZ: Final = Detector(
    name="recitation_quiz",
    title="recitation: the quiz",
    question="Does the target pick the original text rather than its rewording?",
    access="answers",
    arguments=("recitation", "--probe", "quiz"),
    verdicts={
        "picks_originals": "cannot_tell",  # style gives originals away as well
        "no_preference": "not_shown",
        "too_few": "cannot_tell",
        "refusing": "cannot_tell",
    },
    questions=_ask_quiz,
    score=_score_quiz,
    tables=_make_quiz_tables,
)
PROBES: Final[Mapping[str, Detector]] = {"quiz": QUIZ}
"""By the value of `--probe`."""
