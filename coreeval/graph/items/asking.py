"""Putting questions to one model: as many at a time as the config says, until told to stop."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from coreeval.errors import ModelCallError, NoValidAnswer
from coreeval.evaluation.modifications import Modified, Paraphraser, Unmodified
from coreeval.evaluation.pcr.answered import Answer, Answers
from coreeval.evaluation.pcr.twins import Drawn, Twins, twins_of
from coreeval.evaluation.targets import Line
from coreeval.graph.pool import Stop, work_through
from coreeval.graph.progress import Progress, Watch
from coreeval.models import Asker, PlainShape

Asked = TypeVar("Asked", bound=Hashable)
Said = TypeVar("Said")
PLAIN = PlainShape()


@dataclass(frozen=True, kw_only=True)
class Desk:
    """What asking shares, whoever is asked."""

    concurrency: int
    watch: Watch
    stop: Stop = field(default_factory=Stop)

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
            CancelledError: a signal stopped it.
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
            raise asyncio.CancelledError
        if line.troubles:
            left, total = len(questions) - len(found), len(questions)
            raise line.unanswered(model, left, total, where="models")
        return found


async def answers_of(desk: Desk, asker: Asker, twins: Sequence[Twins]) -> Answers:
    """Ask a target about all items and their twins; equal texts are one question."""

    async def ask(text: str) -> Answer:
        try:
            said = await asker.ask([{"role": "user", "content": text}], PLAIN)
        except NoValidAnswer as error:
            return Answer(error.kind)
        return Answer("answered", said.text)

    pairs = [pair for each in twins for pair in each.pairs]
    texts = list(dict.fromkeys(item.input for pair in pairs for item in pair))
    return await desk.gather(asker.model.name, "ask", texts, ask, lambda answer: answer.kind)


async def paraphrased(
    desk: Desk, model: str, paraphraser: Paraphraser, drawn: Sequence[Drawn]
) -> tuple[Twins, ...]:
    """Have a model write the twin of each item."""
    items = {(each.split, item.id): item for each in drawn for item in each.items}

    async def write(key: tuple[str, str]) -> Modified | Unmodified:
        return await paraphraser(items[key])

    def kind(outcome: Modified | Unmodified) -> str:
        return "reworded" if isinstance(outcome, Modified) else "left out"

    made = await desk.gather(model, "reword", list(items), write, kind)
    return tuple(
        twins_of(each, [made[each.split, item.id] for item in each.items]) for each in drawn
    )
