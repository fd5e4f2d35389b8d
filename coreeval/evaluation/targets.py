"""Asking a target model: samples in, one prediction for each of them and each template out.

A target answers every question itself: what it refuses, cuts short or garbles is its invalid
answer, never another model's turn. What did not reach it is no answer at all: that prediction is
missing, and whoever asks is told why.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import NamedTuple, Protocol, TypeVar

from pydantic import BaseModel

from coreeval.errors import CoreEvalError, ModelCallError, NoValidAnswer, PromptError, RunError
from coreeval.evaluation.answer_parsers import LabelShape
from coreeval.models.answers import OutputSchema
from coreeval.schema import AnswerKind, Prediction, Sample, Task

Message = dict[str, str]
Item = TypeVar("Item")
Found = TypeVar("Found")
Answer = TypeVar("Answer", bound=BaseModel)

FORMAT = 'Give the label as a JSON object: {"label": "..."}'
"""Put under every template: they say which label, and may ask for it alone; this says in what."""
GIVE_UP_AFTER = 5
"""Questions in a row that did not get through until the target counts as down: a text that its
endpoint chokes on stands alone, while each question put to one that is down costs minutes."""


class TargetClient(Protocol):
    """What answers: a `ModelClient`, through the call store, with the target's parameters."""

    async def ask(self, messages: Sequence[Message], output_schema: OutputSchema[Answer]) -> Answer:
        """Return a valid answer; raise NoValidAnswer for a bad one, ModelCallError for none."""
        ...


class TargetConnection:
    """The line to a target: whether to send more over it, and what did not get through.

    Args:
        hung_up: Tells whether nothing more is to be sent, whatever the target does.
    """

    def __init__(self, hung_up: Callable[[], bool]) -> None:
        self.troubles: list[str] = []
        """Why questions got no answer, in the order of their failures."""
        self._hung_up = hung_up
        self._in_a_row = 0

    @property
    def is_open(self) -> bool:
        """Whether another question may be sent."""
        return self._in_a_row < GIVE_UP_AFTER and not self._hung_up()

    def note_answer(self) -> None:
        """Record that the target was reached."""
        self._in_a_row = 0

    def note_failure(self, reason: str) -> None:
        """Record that a question did not get through."""
        self.troubles.append(reason)
        self._in_a_row += 1

    def error_for_unanswered(self, who: str, left: int, total: int, *, where: str) -> RunError:
        """Return the error for a model that left questions without an answer."""
        return RunError(
            f"{who} left {left} of {total} questions without an answer; "
            f"the first: {self.troubles[0]}",
            where=where,
            hint="see to its endpoint; what was answered is kept",
        )


@dataclass(frozen=True)
class TargetQuestion:
    """A sample, and the number of the template that it is asked about with."""

    sample: Sample
    template: int


def questions_about(samples: Iterable[Sample], task: Task) -> Iterator[TargetQuestion]:
    """Yield each sample with every template of its task (CoreEval paper, appendix A.2)."""
    for sample in samples:
        for number in range(1, len(task.templates) + 1):
            yield TargetQuestion(sample, number)


def ignore_prediction(_: Prediction) -> None:
    """Do nothing with a prediction."""


async def ask_target(
    target: str,
    questions: Sequence[TargetQuestion],
    *,
    source: str,
    task: Task,
    client: TargetClient,
    line: TargetConnection,
    concurrency: int,
    heard: Callable[[Prediction], None] = ignore_prediction,
) -> tuple[Prediction, ...]:
    """Ask one target and return its predictions; unsent or failed questions have none.

    Args:
        target: The target's name as spelled in the config; the predictions carry it.
        questions: The questions, with the texts of the source in the fields of the samples.
        source: The source of the texts.
        task: Provides the templates and the allowed labels.
        client: The target, opened with the parameters of its config.
        line: Decides when to stop sending, and records the questions that did not get through.
        concurrency: Maximum number of open questions.
        heard: Called with each prediction as it arrives.

    Raises:
        PromptError: a template names a variable that the task does not have.
        ModelUnusable: the target cannot be used at all; no prediction is made up for it.
        CredentialError: the target's key was refused.
    """
    output_schema, version = LabelShape(task), hash_question(task)

    async def predict(asked: TargetQuestion) -> Prediction | None:
        said = _TargetReply()
        try:
            message = make_message(task, asked.sample.fields, asked.template)
            said = _TargetReply((await client.ask([message], output_schema)).label)
        except NoValidAnswer as error:
            said = _TargetReply(kind=error.kind, reason=str(error))
        except ModelCallError as error:
            line.note_failure(str(error))
            return None
        line.note_answer()
        prediction = Prediction(
            target=target,
            source=source,
            sample_id=asked.sample.id,
            template=asked.template,
            answer=said.label,
            kind=said.kind,
            reason=said.reason,
            version=version,
        )
        heard(prediction)
        return prediction

    found = await _each(questions, predict, concurrency, lambda: line.is_open)
    return tuple(prediction for prediction in found if prediction)


class _TargetReply(NamedTuple):
    label: str = ""
    kind: AnswerKind = "answered"
    reason: str = ""


def hash_question(task: Task) -> str:
    """Return the hash of everything that a target is asked except the text."""
    words = (*task.templates, FORMAT, task.target or "", *(label.name for label in task.labels))
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]


def make_message(task: Task, fields: Mapping[str, str], template: int) -> Message:
    """Return the message that asks for the label of a text with a template, numbered from 1.

    Raises:
        PromptError: the template cannot be filled from the task's fields, labels and target.
    """
    return {"role": "user", "content": f"{fill_template(task, fields, template)}\n\n{FORMAT}"}


def fill_template(task: Task, fields: Mapping[str, str], template: int) -> str:
    """Fill a template, numbered from 1, with one text.

    Raises:
        PromptError: the template cannot be filled from the task's fields, labels and target.
    """
    known = {
        **{name: fields[name] for name in task.fields},
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
            hint=f"variables: {', '.join(f'${name}' for name in known)}; a dollar sign is $$",
        ) from None


async def _each(
    items: Sequence[Item],
    work: Callable[[Item], Awaitable[Found]],
    concurrency: int,
    go_on: Callable[[], bool],
) -> list[Found]:
    """Work on at most `concurrency` items at a time, taking new ones only while `go_on` is true.

    Return the results in the order of the items. After an error no new item is taken, and running
    work is awaited because a target's answers have been paid for.
    """
    waiting = iter(enumerate(items))
    done: dict[int, Found] = {}
    errors: list[CoreEvalError] = []

    async def worker() -> None:
        while not errors and go_on() and (taken := next(waiting, None)):
            at, item = taken
            try:
                done[at] = await work(item)
            except CoreEvalError as error:
                errors.append(error)

    async with asyncio.TaskGroup() as workers:
        for _ in range(min(concurrency, len(items))):
            workers.create_task(worker())
    if errors:
        raise errors[0]
    return [done[at] for at in sorted(done)]
