"""Questions to a target model about a sample, and its answers as predictions.

A target answers every question itself: an answer that is refused, truncated or unreadable counts as
its invalid answer, and no other model answers instead. A question that did not reach the target has
no prediction.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import NamedTuple, Protocol, TypeVar

from pydantic import BaseModel

from coreeval.errors import NoValidAnswer, PromptError
from coreeval.evaluation.grading import scoring_of
from coreeval.models.answers import OutputSchema
from coreeval.schema import AnswerKind, Prediction, Sample, Task
from coreeval.tasks import kind_of
from coreeval.tasks.kinds.choice import option_fields
from coreeval.tools.text import join_fields

Message = dict[str, str]
Answer = TypeVar("Answer", bound=BaseModel)


class TargetClient(Protocol):
    """A `ModelClient` with the call store and the target's parameters."""

    async def ask(self, messages: Sequence[Message], output_schema: OutputSchema[Answer]) -> Answer:
        """Return a valid answer; raise NoValidAnswer for a bad one, ModelCallError for none."""
        ...


@dataclass(frozen=True)
class TargetQuestion:
    """A sample, and the number of the template to ask with."""

    sample: Sample
    template: int


def questions_about(samples: Iterable[Sample], task: Task) -> Iterator[TargetQuestion]:
    """Yield each sample with every template of its task (CoreEval paper, appendix A.2)."""
    for sample in samples:
        for number in range(1, len(task.templates) + 1):
            yield TargetQuestion(sample, number)


def make_predictor(
    target: str, client: TargetClient, *, source: str, task: Task, weights: str = ""
) -> Callable[[TargetQuestion], Awaitable[Prediction]]:
    """Return the function that asks a target one question and returns its prediction.

    An answer that is refused, truncated or unparsed is a prediction of its kind; in graded kinds of
    task, each answer is graded, in a thread and one after the other. The function raises:
        ModelCallError: the question did not reach the target; there is no prediction.
        PromptError: a template names a variable that the task does not have.
        ModelUnusable: the target cannot be used at all.
        CredentialError: the target's key was refused.

    Args:
        target: The target's name as spelled in the config; the predictions carry it.
        client: The target, opened with the parameters of its config.
        source: The source of the texts in the fields of the samples.
        task: Provides the templates and the allowed labels.
        weights: The digest of the target's weights, if they are on this machine.
    """
    scoring, version = scoring_of(task), hash_question(task, weights)
    shape_of, grade = scoring.make_shapes(task), scoring.grade
    grading = asyncio.Lock()

    async def grade_answer(sample: Sample, answer: str) -> tuple[bool | None, float | None]:
        if grade is None:
            return None, None
        if not answer:
            return False, 0.0
        async with grading:  # a document of 400,000 characters takes seconds; it is cached
            return await asyncio.to_thread(grade, sample, answer)

    async def predict(asked: TargetQuestion) -> Prediction:
        try:
            message = make_message(task, asked.sample.fields, asked.template)
            said = _TargetReply((await client.ask([message], shape_of(asked.sample))).label)
        except NoValidAnswer as error:
            said = _TargetReply(kind=error.kind, reason=str(error))
        right, score = await grade_answer(asked.sample, said.label)
        return Prediction(
            target=target,
            source=source,
            sample_id=asked.sample.id,
            template=asked.template,
            answer=said.label,
            kind=said.kind,
            reason=said.reason,
            version=version,
            right=right,
            score=score,
        )

    return predict


class _TargetReply(NamedTuple):
    label: str = ""
    kind: AnswerKind = "answered"
    reason: str = ""


def hash_question(task: Task, weights: str = "") -> str:
    """Return the hash of everything in a question to a target except the text.

    Args:
        task: The task.
        weights: The digest of the target's weights, if they are on this machine: other weights of
            the same name are asked again.
    """
    form = scoring_of(task).format
    words = (*task.templates, form, task.target or "", *(label.name for label in task.labels))
    words += (weights,) if weights else ()
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]


def make_message(task: Task, fields: Mapping[str, str], template: int) -> Message:
    """Return the message that asks about a text with a template, numbered from 1.

    Raises:
        PromptError: the template cannot be filled from the task's fields, labels and target.
    """
    asked = fill_template(task, fields, template)
    return {"role": "user", "content": f"{asked}\n\n{scoring_of(task).format}"}


def show_item(task: Task, fields: Mapping[str, str]) -> dict[str, str]:
    """Return the values of `$item` and `$choices`."""
    known = kind_of(task).template_variables
    letters = option_fields(task.fields) if "choices" in known else []
    shown = {name: fields[name] for name in task.shown_fields if name not in letters}
    values = {
        "item": join_fields(shown),
        "choices": "\n".join(f"{letter}. {fields[letter]}" for letter in letters),
    }
    return {name: values[name] for name in known}


def fill_template(task: Task, fields: Mapping[str, str], template: int) -> str:
    """Fill a template, numbered from 1, with one text.

    Raises:
        PromptError: the template cannot be filled from the task's fields, labels and target.
    """
    known = {
        **{name: fields[name] for name in task.shown_fields},
        **show_item(task, fields),
        "labels": ", ".join(label.name for label in task.labels),
        "target": task.target or "",
    }
    try:
        return Template(task.templates[template - 1]).substitute(known)
    except (KeyError, ValueError) as error:
        problem = f"no variable ${error.args[0]}" if isinstance(error, KeyError) else str(error)
        raise PromptError(
            f"template {template} of the task {task.name!r} cannot be filled: {problem}",
            where=f"templates.{template - 1}",
            hint=f"variables: {', '.join(f'${name}' for name in known)}; $$ writes a dollar sign",
        ) from None
