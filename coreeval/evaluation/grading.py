"""How the answers of targets are read and scored: one entry for each kind of task.

Labels and choices are scored by comparing the answer with the label. Short answers and summaries
are graded when they are given, because the gold is available only then: right or wrong, and a score
from 0 to 1. This module does not import numpy before an answer is graded.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from coreeval.evaluation.answer_parsers import LabelShape, TargetAnswer
from coreeval.evaluation.answer_shapes import FreeShape, OptionShape
from coreeval.evaluation.scores import ARM_DEFINITIONS
from coreeval.models.answers import OutputSchema
from coreeval.schema import Sample, Task, TaskKind
from coreeval.tasks.kinds.answer import split_answers
from coreeval.tasks.kinds.summary import SUMMARY

if TYPE_CHECKING:
    from coreeval.evaluation.metrics.short_answers import Accepted, Grade

Grader = Callable[[Sample, str], "Grade"]
ShapeOf = Callable[[Sample], OutputSchema[TargetAnswer]]
"""A function that returns the shape of the answer to a question about a sample."""


@dataclass(frozen=True, kw_only=True)
class ScoreTerm:
    """The name and definition of a measure for readers."""

    name: str
    definition: str


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """The scoring of a kind of task."""

    make_shapes: Callable[[Task], ShapeOf]
    """A function that returns the shapes of the answers for one task; called once for many
    samples."""
    format: str
    """Text added to every template: templates ask for an answer, and this text defines its form."""
    grade: Grader | None = None
    """The grader of an answer; None if the answer is compared with the label."""
    consistency: str = "exact"
    """The comparison in PCR of the answers to a text and to its rewording: a name in
    `CONSISTENCY`."""
    accuracy: ScoreTerm
    """The share of right answers."""
    score: ScoreTerm
    """The second score, in place of the macro-F1 of labels."""
    headline: Literal["accuracy", "macro_f1"] = "macro_f1"
    """The key of the score that a summary of a run names."""

    @property
    def headline_name(self) -> str:
        """The name of the score that a summary of a run names."""
        return (self.accuracy if self.headline == "accuracy" else self.score).name


def scoring_of(task: Task) -> Scoring:
    """Return how the answers of a task's samples are scored."""
    return SCORING[task.kind]


def _label_shapes(task: Task) -> ShapeOf:
    shape = LabelShape(task)
    return lambda sample: shape


def _option_shapes(task: Task) -> ShapeOf:
    shape = OptionShape(task)
    return lambda sample: shape.for_options(sample.fields)


def _free_shapes(*, short: bool) -> Callable[[Task], ShapeOf]:
    shape = FreeShape(short=short)
    return lambda task: lambda sample: shape


def read_accepted(fields: Mapping[str, str], answer_type: str) -> "Accepted":
    """Return the accepted answers to a question, by its fields and the name of its label."""
    from coreeval.evaluation.metrics.short_answers import Accepted

    return Accepted(
        answers=split_answers(fields),
        type=answer_type,  # type: ignore[arg-type]  # checked when the benchmark is read
        unit=fields.get("unit", ""),
        tolerance=fields.get("tolerance", ""),
        question=fields.get("question", ""),
    )


def _grade_short(sample: Sample, answer: str) -> "Grade":
    from coreeval.evaluation.metrics.short_answers import grade_short_answer

    return grade_short_answer(answer, read_accepted(sample.fields, sample.label_text))


def _grade_summary(sample: Sample, answer: str) -> "Grade":
    from coreeval.evaluation.metrics.performance import rouge_l
    from coreeval.evaluation.metrics.short_answers import Grade
    from coreeval.evaluation.metrics.support import support_share

    document = "\n".join(text for name, text in sample.fields.items() if name != SUMMARY)
    right = support_share(document, answer) == 1
    return Grade(right, rouge_l(sample.fields[SUMMARY], answer))


_MEAN = "averaged over the task's templates"
_RIGHT = ScoreTerm(name="accuracy", definition=ARM_DEFINITIONS["accuracy"])
_MACRO_F1 = ScoreTerm(name="macro-F1", definition=ARM_DEFINITIONS["macro_f1"])
SCORING: Final[Mapping[TaskKind, Scoring]] = {
    "labels": Scoring(
        make_shapes=_label_shapes,
        format='Give the label as a JSON object: {"label": "..."}',
        accuracy=_RIGHT,
        score=_MACRO_F1,
    ),
    "choice": Scoring(
        make_shapes=_option_shapes,
        format='Give the letter as a JSON object: {"answer": "..."}',
        accuracy=_RIGHT,
        headline="accuracy",  # a letter that is never correct lowers the macro-F1 of few samples
        score=ScoreTerm(
            name="macro-F1",
            definition="mean of the F1 of each letter (0 for a letter that no answer gives and "
            f"that is correct for no sample), {_MEAN}",
        ),
    ),
    "answer": Scoring(
        make_shapes=_free_shapes(short=True),
        format='Give the answer as a JSON object: {"answer": "..."}',
        grade=_grade_short,
        consistency="same_answer",
        accuracy=ScoreTerm(
            name="right",
            definition=f"share of answers that equal an accepted answer, {_MEAN}: texts are "
            "compared as in SQuAD 1.1; numbers must be equal within the tolerance and have the "
            "same unit; dates, yes and no must be the same",
        ),
        score=ScoreTerm(
            name="token F1",
            definition="mean, over the answers, of SQuAD 1.1's token F1 with the best-matching "
            f"accepted answer (for a number, yes or no: 1 if it is right, otherwise 0), {_MEAN}",
        ),
    ),
    "summary": Scoring(
        make_shapes=_free_shapes(short=False),
        format='Give the summary as a JSON object: {"answer": "..."}',
        grade=_grade_summary,
        consistency="jaccard",
        accuracy=ScoreTerm(
            name="supported",
            definition="share of summaries in which the document supports every sentence (its "
            f"numbers and names, and half of its other content words), {_MEAN}",
        ),
        score=ScoreTerm(
            name="ROUGE-L",
            definition="mean, over the summaries, of the F-measure of the longest common "
            f"subsequence with the reference (Lin 2004), {_MEAN}",
        ),
    ),
}


def define_scores(kind: TaskKind) -> dict[str, str]:
    """Return the definitions of the columns of a table of arms, by key."""
    scoring = SCORING[kind]
    found = ARM_DEFINITIONS | {
        "accuracy": scoring.accuracy.definition,
        "macro_f1": scoring.score.definition,
    }
    if scoring.grade is None:
        return found
    name = scoring.score.name
    none = "empty answers, or objects without an answer; they are wrong, with a score of 0"
    return found | {
        "unparsed": none,
        "truncated": "answers cut off at the length limit; they are wrong, with a score of 0",
        "ranking": found["ranking"].replace("macro-F1", name),
    }
