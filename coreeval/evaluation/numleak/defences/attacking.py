"""What is asked to try a defence: the plain question for a value, and it with each ending."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from coreeval.evaluation.numleak.defences.wording import Armoury, Suffix
from coreeval.evaluation.numleak.probes import Asked, Question
from coreeval.evaluation.numleak.replies import Reply
from coreeval.evaluation.numleak.series import SeriesDefinition
from coreeval.schema import AnswerKind


@dataclass(frozen=True, kw_only=True)
class DefendedQuestion(Question):
    """A question for a value, under a defence."""

    defence: str
    suffix: str | None = None

    def reply(self, model: str, response: str | None, kind: AnswerKind = "answered") -> Reply:
        """Return what a model said to it, as a record."""
        said = super().reply(model, response, kind)
        return said.model_copy(update={"defence": self.defence, "suffix": self.suffix})


def with_attacks(asked: Asked, about: SeriesDefinition, armoury: Armoury, *, dates: int) -> Asked:
    """Return what is asked about a series, with the attacks on each defence behind it.

    They are about dates of the first drawing, spread evenly over it, in the words of the question
    for a value. A defence stands in the place of that question's system message.

    Args:
        asked: What is asked anyway.
        about: The series.
        armoury: What is tried.
        dates: Most dates.
    """
    plain = [one for one in asked.questions if one.variant == "value" and not one.recent]
    first = [one for one in plain if one.seed == plain[0].seed]
    chosen = spread(first, dates)
    short = len(first) < dates
    note = f"defences are tried on {len(first)} dates, not {dates}: no more are asked about"
    return replace(
        asked,
        questions=(*asked.questions, *_attacks(chosen, about, armoury)),
        notes=(*asked.notes, *([note] if short else [])),
    )


def spread(items: Sequence[Question], most: int) -> list[Question]:
    """Return at most so many items, evenly apart."""
    count = min(most, len(items))
    return [items[index * len(items) // count] for index in range(count)]


def _attacks(
    plain: Sequence[Question], about: SeriesDefinition, armoury: Armoury
) -> Iterator[Question]:
    for defence in armoury.defences:
        for one in plain:
            question = one.text[-1][1]
            for suffix in (None, *armoury.suffixes):
                words = suffix.on(question) if suffix else question
                yield _defended(one, defence.name, suffix, defence.messages(words, about=about))


def _defended(
    one: Question, defence: str, suffix: Suffix | None, messages: list[dict[str, str]]
) -> DefendedQuestion:
    return DefendedQuestion(
        series=one.series,
        period=one.period,
        variant="defended",
        text=tuple((message["role"], message["content"]) for message in messages),
        truth=one.truth,
        seed=one.seed,
        defence=defence,
        suffix=suffix.name if suffix else None,
    )
