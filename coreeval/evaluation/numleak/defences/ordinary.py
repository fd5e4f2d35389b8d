"""Ordinary questions under each defence, and which of the answers a second judge scores too."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from coreeval.evaluation.numleak.defences.answers import Scored, UtilityReply
from coreeval.evaluation.numleak.defences.judging import Exhibit
from coreeval.evaluation.numleak.defences.questions import UtilityQuestion, questions_on
from coreeval.evaluation.numleak.defences.wording import Armoury
from coreeval.evaluation.numleak.series import Series
from coreeval.prompts import Message
from coreeval.schema import AnswerKind

Key = tuple[str, str, str, str]
"""A model, the id of a series, a defence, the id of a question."""


@dataclass(frozen=True, kw_only=True)
class OrdinaryQuestion:
    """One ordinary question to a model under a defence."""

    series: str
    defence: str
    asked: UtilityQuestion
    text: tuple[tuple[str, str], ...]
    """Role and content of each message."""

    @property
    def messages(self) -> list[Message]:
        """What is sent."""
        return [{"role": role, "content": content} for role, content in self.text]

    def key(self, model: str) -> Key:
        """Return what no other answer has."""
        return (model, self.series, self.defence, self.asked.id)

    def exhibit(self, answer: str) -> Exhibit:
        """Return what a judge is shown of an answer."""
        return Exhibit(question=self.asked.question, points=self.asked.points, answer=answer)

    def reply(
        self, model: str, response: str | None, kind: AnswerKind, scores: Iterable[Scored]
    ) -> UtilityReply:
        """Return what a model said to it and what judges made of that, as a record."""
        return UtilityReply(
            model=model,
            series=self.series,
            defence=self.defence,
            question=self.asked.id,
            category=self.asked.category,
            asked=self.asked.question,
            points=self.asked.points,
            response=response,
            kind=kind,
            scores=tuple(scores),
        )


def ordinary_questions(
    series: Series, armoury: Armoury, own: Sequence[UtilityQuestion]
) -> Iterator[OrdinaryQuestion]:
    """Yield each question about a series under each defence; `own` comes before the built-in."""
    for defence in armoury.defences:
        for one in questions_on(series, own):
            messages = defence.messages(one.question, about=series.definition)
            yield OrdinaryQuestion(
                series=series.definition.id,
                defence=defence.name,
                asked=one,
                text=tuple((message["role"], message["content"]) for message in messages),
            )


def chosen_again(keys: Iterable[Key], *, count: int, seed: int) -> frozenset[Key]:
    """Return the answers that the second judge scores too, drawn over all alike."""

    def turn(key: Key) -> bytes:
        return hashlib.sha256("\0".join((str(seed), *key)).encode()).digest()

    return frozenset(sorted(set(keys), key=turn)[:count])
