"""Each kind of task: how its targets are asked, and what an answer is worth."""

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import cast, get_args

import pytest
from pydantic import ValidationError

from coreeval.errors import NoValidAnswer, RunCorrupt
from coreeval.evaluation.answer_codes import code_answers
from coreeval.evaluation.arms import compare_arms
from coreeval.evaluation.decomposition import decompose
from coreeval.evaluation.decomposition.losses import macro_f1_cost
from coreeval.evaluation.grading import SCORING, Scoring, define_scores
from coreeval.evaluation.metrics import CONSISTENCY
from coreeval.evaluation.metrics.short_answers import Grade
from coreeval.evaluation.pcr.pairs_from_run import SOURCES, collect_pairs, resample_run_pairs
from coreeval.evaluation.pcr.study import PcrSettings
from coreeval.evaluation.scores import ARM_DEFINITIONS
from coreeval.evaluation.targets import (
    Answer,
    Message,
    TargetQuestion,
    hash_question,
    make_message,
    make_predictor,
)
from coreeval.models import OutputSchema
from coreeval.schema import Arm, Label, Prediction, Sample, Task, TaskKind
from coreeval.tasks import adapt_task
from coreeval.tasks.kinds import KINDS
from coreeval.tools.stores.run_tables import TargetAnswer


def _task(kind: TaskKind, *fields: str, template: str = "$item") -> Task:
    bare = Task(
        name="quiz",
        kind=kind,
        description="A quiz.",
        fields=fields,
        labels=(),
        options=3 if kind == "choice" else 0,
        question="Which?",
        text_kind="sentence",
        templates=(template,),
    )
    return bare.model_copy(update={"labels": KINDS[kind].labels(bare)})


def _sample(label: str, **fields: str) -> Sample:
    return Sample(id="s", split="test", fields=fields, label=0, label_text=label)


CHOICE = _sample("B", question="Who?", A="Ada", B="Bo", C="Cy")
NUMBER = _sample("number", question="How much?", answers="14.5%\n0.145", unit="%", tolerance="0.05")
TEXT = _sample("text", context="Ada met Bo.", question="Who met Bo?", answers="Ada\nAda L.")
SUMMARY = _sample(
    "summary", document="Sales rose 5%. The Leeds plant closed.", summary="Sales rose 5%."
)


class Parrot:
    """Says the same whatever it is asked."""

    def __init__(self, said: str) -> None:
        self.said = said
        self.asked: list[str] = []

    async def ask(self, messages: Sequence[Message], output_schema: OutputSchema[Answer]) -> Answer:
        self.asked.append(messages[0]["content"])
        return output_schema.parse(self.said)


async def _predict(task: Task, sample: Sample, said: str) -> Prediction:
    own = adapt_task(task, sample.fields)
    predict = make_predictor("openai:x", Parrot(said), source="original", task=own)
    return await predict(TargetQuestion(sample, 1))


@pytest.mark.parametrize(
    ("task", "sample", "asked"),
    [
        (_task("choice", "question", template="$item\n$choices"), CHOICE,
         'Who?\nA. Ada\nB. Bo\nC. Cy\n\nGive the letter as a JSON object: {"answer": "..."}'),
        (_task("answer", "question"), NUMBER,
         'How much?\n\nGive the answer as a JSON object: {"answer": "..."}'),
        (_task("answer", "context", "question"), TEXT,
         "context: Ada met Bo.\nquestion: Who met Bo?\n\n"
         'Give the answer as a JSON object: {"answer": "..."}'),
        (_task("summary", "document"), SUMMARY,
         "Sales rose 5%. The Leeds plant closed.\n\n"
         'Give the summary as a JSON object: {"answer": "..."}'),
    ],
)  # fmt: skip
def test_a_target_is_shown_what_is_not_gold(task: Task, sample: Sample, asked: str) -> None:
    message = make_message(adapt_task(task, sample.fields), sample.fields, 1)
    assert message["content"] == asked


@pytest.mark.parametrize(
    ("task", "sample", "said", "answer", "right", "score"),
    [
        (_task("choice", "question"), CHOICE, '{"answer": "B"}', "B", None, None),
        (_task("choice", "question"), CHOICE, "Cy", "C", None, None),
        (_task("answer", "question"), NUMBER, '{"answer": "14.46"}', "14.46", True, 1.0),
        (_task("answer", "question"), NUMBER, "$14.5", "$14.5", False, 0.0),
        (_task("answer", "context", "question"), TEXT, "the Ada", "the Ada", True, 1.0),
        (_task("answer", "context", "question"), TEXT, "Ada Roe", "Ada Roe", False, 2 / 3),
        (_task("summary", "document"), SUMMARY, "Sales rose 5%.", "Sales rose 5%.", True, 1.0),
        # 2 of the 4 words and 2 of the 3 due, so 2 * 2 / 7; 6 is not in the document
        (_task("summary", "document"), SUMMARY, "Sales rose by 6%.", "Sales rose by 6%.", False,
         4 / 7),
        (_task("summary", "document"), SUMMARY, "The Leeds plant closed.",
         "The Leeds plant closed.", True, 0.0),
    ],
)  # fmt: skip
async def test_an_answer_is_graded_when_it_is_given(
    task: Task, sample: Sample, said: str, answer: str, right: bool | None, score: float | None
) -> None:
    found = await _predict(task, sample, said)
    assert (found.answer, found.kind, found.right) == (answer, "answered", right)
    assert found.score == (None if score is None else pytest.approx(score))


class Saying:
    """Gives one answer to every question."""

    async def ask(self, messages: Sequence[Message], output_schema: OutputSchema[Answer]) -> Answer:
        return output_schema.parse("Sales rose.")


async def test_answers_are_graded_in_a_thread_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A long document takes seconds to read, in which the loop must go on."""
    running, most, threads = 0, 0, set[threading.Thread]()

    def grade(sample: Sample, answer: str) -> Grade:
        nonlocal running, most
        running += 1
        most = max(most, running)
        threads.add(threading.current_thread())
        time.sleep(0.01)
        running -= 1
        return Grade(True, 0.5)

    monkeypatch.setitem(
        cast("dict[TaskKind, Scoring]", SCORING),
        "summary",
        replace(SCORING["summary"], grade=grade),
    )
    task = adapt_task(_task("summary", "document"), SUMMARY.fields)
    predict = make_predictor("openai:x", Saying(), source="original", task=task)
    found = await asyncio.gather(*(predict(TargetQuestion(SUMMARY, 1)) for _ in range(4)))
    assert {(each.right, each.score) for each in found} == {(True, 0.5)}
    assert (most, threading.main_thread() in threads) == (1, False)


class Silent:
    """Gives no answer."""

    async def ask(self, messages: Sequence[Message], output_schema: OutputSchema[Answer]) -> Answer:
        raise NoValidAnswer("cut off", kind="truncated")


async def test_no_answer_is_wrong_where_answers_are_graded() -> None:
    for task, sample, grade in (
        (_task("summary", "document"), SUMMARY, (False, 0.0)),
        (_task("choice", "question"), CHOICE, (None, None)),
    ):
        own = adapt_task(task, sample.fields)
        predict = make_predictor("openai:x", Silent(), source="original", task=own)
        found = await predict(TargetQuestion(sample, 1))
        assert (found.kind, found.right, found.score) == ("truncated", *grade)


def test_a_prediction_has_both_grades_or_none() -> None:
    with pytest.raises(ValidationError, match="right or wrong"):
        Prediction(target="t", source="a", sample_id="s", template=1, answer="x", right=True)


def test_the_hash_of_questions_with_labels_stays_and_others_have_their_own_words() -> None:
    task = _task("answer", "question").model_copy(
        update={"kind": "labels", "labels": (Label(id=0, name="a", meaning="x"),)}
    )
    words = ("$item", 'Give the label as a JSON object: {"label": "..."}', "", "a")
    assert hash_question(task) == sha256("\0".join(words).encode()).hexdigest()[:12]
    hashes = {hash_question(task.model_copy(update={"kind": kind})) for kind in SCORING}
    assert len(hashes) == len(SCORING)


def test_every_kind_is_scored_and_named() -> None:
    assert set(SCORING) == set(get_args(TaskKind)) == set(KINDS)
    assert define_scores("labels") == ARM_DEFINITIONS
    for kind, scoring in SCORING.items():
        assert scoring.consistency in CONSISTENCY
        assert set(define_scores(kind)) == set(ARM_DEFINITIONS)
        assert scoring.format.endswith('"..."}')
    graded = {kind for kind, scoring in SCORING.items() if scoring.grade}
    assert graded == {"answer", "summary"}
    assert "token F1" in define_scores("answer")["ranking"]


# -- tables of graded answers ---------------------------------------------------------------------

GOLD = {"1": "text", "2": "number", "3": "number", "4": "text"}
TYPES = ("text", "number", "date", "yes_no")
Grades = Mapping[str, tuple[bool, float]]


def _said(arm: str, grades: Grades, template: int = 1) -> list[TargetAnswer]:
    return [
        (arm, template, key, "some words", "answered", right, score)
        for key, (right, score) in grades.items()
    ]


ORIGINAL: Grades = {"1": (True, 1.0), "2": (True, 1.0), "3": (False, 0.5), "4": (False, 0.0)}
UPDATED: Grades = {"1": (True, 1.0), "2": (False, 0.25), "3": (False, 0.0)}


def test_codes_are_right_and_wrong_and_the_score_is_the_mean() -> None:
    said = _said("original", ORIGINAL) + _said("updated", UPDATED)
    table = compare_arms([("t", said)], gold=GOLD, labels=TYPES, kind="answer", draws=50)
    (target,) = table.targets
    original, updated = target.all_samples.arms
    assert (original.accuracy.estimate, original.macro_f1.estimate) == (0.5, 0.375 + 0.25)
    assert updated.accuracy.estimate == pytest.approx(1 / 3)
    assert updated.macro_f1.estimate == pytest.approx(1.25 / 3)
    (pair,) = target.all_samples.comparisons
    assert pair.macro_f1_difference.estimate == pytest.approx((1.25 - 2.5) / 3)
    assert pair.accuracy_difference.estimate == pytest.approx(-1 / 3)
    assert [(one.label, one.shared, one.total) for one in pair.coverage] == [
        ("text", 1, 2), ("number", 2, 2), ("date", 0, 0), ("yes_no", 0, 0),
    ]  # fmt: skip
    assert original.answers == {"answered": 4, "unparsed": 0, "truncated": 0, "refused": 0}
    assert table.definitions == define_scores("answer")
    assert table.model_dump()["kind"] == "answer"


def test_a_table_of_labels_says_no_kind() -> None:
    said: list[TargetAnswer] = [("original", 1, "1", "text", "answered", None, None)]
    table = compare_arms([("t", said)], gold=GOLD, labels=TYPES, draws=10)
    assert "kind" not in table.model_dump() and table.definitions == ARM_DEFINITIONS


def test_faults_of_graded_answers_are_wrong_and_refusals_are_in_no_score() -> None:
    said = [
        *_said("original", {"1": (True, 1.0)}),
        ("original", 1, "2", "", "truncated", False, 0.0),
        ("original", 1, "3", "", "unparsed", False, 0.0),
        ("original", 1, "4", "", "refused", False, 0.0),
    ]
    (target,) = compare_arms([("t", said)], gold=GOLD, labels=TYPES, kind="answer").targets
    (arm,) = target.all_samples.arms
    assert (arm.accuracy.estimate, arm.macro_f1.estimate, arm.macro_f1.n) == pytest.approx(
        (1 / 3, 1 / 3, 3)
    )
    assert arm.answers == {"answered": 1, "unparsed": 1, "truncated": 1, "refused": 1}


def test_a_task_with_one_label_has_right_and_wrong_too() -> None:
    gold = dict.fromkeys("12", "summary")
    said = _said("original", {"1": (True, 0.5), "2": (False, 0.25)})
    table = compare_arms([("t", said)], gold=gold, labels=("summary",), kind="summary", draws=9)
    arm = table.targets[0].all_samples.arms[0]
    assert (arm.accuracy.estimate, arm.macro_f1.estimate) == (0.5, 0.375)


def test_an_answer_without_its_grade_is_told() -> None:
    said: list[TargetAnswer] = [("original", 1, "1", "words", "answered", None, None)]
    with pytest.raises(RunCorrupt, match="has no grade"):
        compare_arms([("t", said)], gold=GOLD, labels=TYPES, kind="answer")


def test_losses_of_graded_answers_are_bounded_by_the_worst() -> None:
    arms: tuple[Arm, ...] = ("original", "semantic", "updated")
    gold = {str(n): "text" for n in range(40)}
    said = [
        answer
        for arm, right in zip(arms, (30, 20, 10), strict=True)
        for answer in _said(arm, {k: (int(k) < right, float(int(k) < right)) for k in gold})
    ]
    (coded,) = code_answers([("t", said)], gold=gold, labels=("text",), graded=True)
    (view,) = coded.views(("updated",)) or ()
    assert macro_f1_cost(coded.table, view, 0.1) == pytest.approx(0.1)  # 4 of the 30 wrong ones
    found = decompose(coded)
    assert found.macro_f1.steps == found.accuracy.steps
    assert [step.score.estimate for step in found.accuracy.steps] == [0.75, 0.5, 0.25]


def test_pcr_of_a_run_takes_the_grades() -> None:
    items = {split: {f"{split}{n}": "text" for n in range(4)} for split in SOURCES}
    said = [
        (source, 1, item, "Ada" if place == 0 else "the Ada!", "answered", at < 2, 0.25 * at)
        for split, sources in SOURCES.items()
        for place, source in enumerate(sources)
        for at, item in enumerate(items[split])
    ]
    for grade, mean in (("right", 0.5), ("score", 0.375)):
        asked = collect_pairs(said, items, [1], grade=grade)  # type: ignore[arg-type]
        settings = PcrSettings(metric="accuracy", consistency="same_answer", draws=20)
        found = resample_run_pairs(asked, settings)
        scores = found.splits["train"].seen
        assert (float(scores.performance), float(scores.consistency)) == (mean, 1.0)
