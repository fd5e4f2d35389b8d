"""Putting questions to one model: as many at a time as the config says, until told to stop."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from coreeval.errors import ModelCallError, NoValidAnswer
from coreeval.evaluation.targets import Line
from coreeval.graph.pool import Stop, work_through
from coreeval.graph.progress import Progress, Watch
from coreeval.models import ModelClient, PlainOutput
from coreeval.models.activity import ActiveCalls
from coreeval.models.client import Message
from coreeval.schema import AnswerKind

Asked = TypeVar("Asked", bound=Hashable)
Said = TypeVar("Said")
PLAIN = PlainOutput()


class Words(NamedTuple):
    """What a model said in its own words."""

    kind: AnswerKind
    text: str = ""
    """Where it is no answer: the words of a refusal, the beginning of what was cut off."""
    logprobs: str = ""
    """The first tokens of an answer as its call has them; empty where none came."""


async def in_words(asker: ModelClient, messages: Sequence[Message], *, draw: int = 0) -> Words:
    """Return what a model that settles on its first answer says to a question.

    Args:
        asker: With chains of one draw, so that each is an answer of its own.
        messages: The question.
        draw: Number of a repeated answer, from 0.

    Raises:
        ModelCallError: the question did not get through.
        CoreEvalError: no more can be asked.
    """
    try:
        said, call = await asker.complete(messages, PLAIN, chain=draw)
    except NoValidAnswer as error:
        return Words(error.kind, error.said)
    return Words("answered", said.text, call.logprobs)


class Stopped(asyncio.CancelledError):
    """Asking was told to stop, and what was in flight has come in."""


@dataclass(frozen=True, kw_only=True)
class Desk:
    """What asking shares, whoever is asked."""

    concurrency: int
    watch: Watch
    stop: Stop = field(default_factory=Stop)
    traffic: ActiveCalls = field(default_factory=ActiveCalls)
    """Where each call stands."""

    async def gather(
        self,
        model: str,
        stage: str,
        questions: Sequence[Asked],
        ask: Callable[[Asked], Awaitable[Said]],
        kind: Callable[[Said], str],
    ) -> dict[Asked, Said]:
        """Return what is said to each question.

        Args:
            model: Who is asked, for people.
            stage: What is shown meanwhile.
            questions: Distinct ones.
            ask: Puts one.
            kind: What an answer counts as in what is shown.

        Raises:
            Stopped: a signal stopped it.
            RunError: some questions did not get through.
            CoreEvalError: no more can be asked: no budget, no key, no such model.
        """
        line, counts = Line(lambda: self.stop.asked), Counter[str]()
        found: dict[Asked, Said] = {}

        async def put(question: Asked) -> None:
            if not line.is_open:
                return
            try:
                found[question] = await ask(question)
            except ModelCallError as error:
                line.failed(str(error))
                return
            line.answered()
            counts[kind(found[question])] += 1
            done, total = len(found), len(questions)
            self.watch(Progress(stage=stage, done=done, total=total, counts=dict(counts)))

        self.watch(Progress(stage=stage, note=model))
        await work_through(questions, put, concurrency=self.concurrency, stop=self.stop)
        if self.stop.asked:
            raise Stopped
        if line.troubles:
            left, total = len(questions) - len(found), len(questions)
            raise line.unanswered(model, left, total, where="models")
        return found
