"""Exports to evaluation harnesses by kind of task: columns, tasks and code."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from coreeval.releases.exports.standalone import Roots
from coreeval.schema import Task, TaskKind
from coreeval.tasks import kind_of
from coreeval.tasks.kinds.answer import split_answers
from coreeval.tasks.kinds.base import Texts
from coreeval.tasks.kinds.choice import option_fields
from coreeval.tools.files import ParquetColumns
from coreeval.tools.text import join_fields

LABEL_TOKENS: Final = 32
"""The token limit, for the longest label and a remark; the harness's default is 256."""
ANSWER_TOKENS: Final = 64
SUMMARY_TOKENS: Final = 512
Row = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class LmEvalTask:
    """A task for an arm in the lm-evaluation-harness."""

    suffix: str
    score: str
    """The function that scores an answer."""
    metrics: Sequence[str]
    choices: Callable[[Task], object] | None = None
    """Returns `doc_to_choice` of a task by likelihood; None for a task by generation."""
    tokens: int = LABEL_TOKENS
    until: Sequence[str] = ("\n\n",)


@dataclass(frozen=True, kw_only=True)
class HarnessKind:
    """A kind of task in the harnesses."""

    columns: ParquetColumns
    """The columns of a question besides its id and prompt."""
    values: Callable[[Task, Texts, str], Row]
    """Returns the values of these columns for the fields and the label's name of a sample."""
    target: str
    """The column with the gold."""
    tasks: Sequence[LmEvalTask]
    lm_eval: Sequence[str]
    """The modules that are combined into one file next to the tasks."""
    inspect: Sequence[str]
    """The modules that are combined into the Inspect task."""
    copied: Roots = field(default_factory=dict)
    """The CoreEval functions that this code calls."""


def _choice_values(task: Task, fields: Texts, label: str) -> Row:
    letters = option_fields(list(fields))
    shown = {name: fields[name] for name in task.shown_fields if name not in letters}
    return {
        "item": join_fields(shown),
        "choices": [fields[letter] for letter in letters],
        "letters": letters,
        "answer": letters.index(label),
        "label_text": label,
    }


def _answer_values(task: Task, fields: Texts, label: str) -> Row:
    return {
        "gold": kind_of(task).gold(fields, label),
        "answers": split_answers(fields),
        "answer_type": label,
        "unit": fields.get("unit", ""),
        "tolerance": fields.get("tolerance", ""),
        "question": fields.get("question", ""),
    }


def _summary_values(task: Task, fields: Texts, label: str) -> Row:
    summary = kind_of(task).gold(fields, label)
    document = "\n".join(fields[name] for name in task.shown_fields)
    return {"gold": summary, "summary": summary, "document": document}


_LABELS = HarnessKind(
    columns={"label_text": "string"},
    values=lambda task, fields, label: {"label_text": label},
    target="label_text",
    tasks=(
        LmEvalTask(
            suffix="mc",
            score="score_choices",
            metrics=("acc", "macro_f1"),
            choices=lambda task: [label.name for label in task.labels],
        ),
        LmEvalTask(suffix="gen", score="score_answer", metrics=("acc", "macro_f1", "unparsed")),
    ),
    lm_eval=("scoring", "grading", "lm_eval_functions"),
    inspect=("scoring", "grading", "inspect_task"),
    copied={"coreeval.evaluation.answer_parsers": ("LabelReader",)},
)
_GRADED: Final = ("scoring", "grading", "lm_eval_functions", "lm_eval_graded")
_READS: Final[dict[str, Sequence[str]]] = {
    "coreeval.evaluation.answer_shapes": ("read_free_answer",)
}
_CHOICE = HarnessKind(
    columns={
        "item": "string",
        "choices": "strings",
        "letters": "strings",
        "answer": "int64",
        "label_text": "string",
    },
    values=_choice_values,
    target="answer",
    tasks=(
        LmEvalTask(
            suffix="mc",
            score="score_choices",
            metrics=("acc", "macro_f1"),
            choices=lambda task: "letters",
        ),
        LmEvalTask(suffix="gen", score="score_letter", metrics=("acc", "macro_f1", "unparsed")),
    ),
    lm_eval=_GRADED,
    inspect=("scoring", "inspect_choice"),
    copied={"coreeval.evaluation.answer_parsers": ("read_choice",)},
)
_ANSWER = HarnessKind(
    columns={
        "gold": "string",
        "answers": "strings",
        "answer_type": "string",
        "unit": "string",
        "tolerance": "string",
        "question": "string",
    },
    values=_answer_values,
    target="gold",
    tasks=(
        LmEvalTask(
            suffix="gen",
            score="score_short_answer",
            metrics=("acc", "score", "exact_match", "f1"),
            tokens=ANSWER_TOKENS,
        ),
    ),
    lm_eval=_GRADED,
    inspect=("scoring", "grading", "inspect_graded"),
    copied={
        **_READS,
        "coreeval.evaluation.metrics.short_answers": ("Accepted", "grade_short_answer"),
        "coreeval.evaluation.metrics.performance": ("compare_squad",),
    },
)
_SUMMARY = HarnessKind(
    columns={"gold": "string", "summary": "string", "document": "string"},
    values=_summary_values,
    target="gold",
    tasks=(
        LmEvalTask(
            suffix="gen",
            score="score_summary",
            metrics=("acc", "rougeL", "supported"),
            tokens=SUMMARY_TOKENS,
            until=(),
        ),
    ),
    lm_eval=_GRADED,
    inspect=("scoring", "grading", "inspect_graded"),
    copied={
        **_READS,
        "coreeval.evaluation.metrics.performance": ("rouge_l",),
        "coreeval.evaluation.metrics.support": ("support_share",),
    },
)
HARNESS_KINDS: Mapping[TaskKind, HarnessKind] = {
    "labels": _LABELS,
    "choice": _CHOICE,
    "answer": _ANSWER,
    "summary": _SUMMARY,
}
