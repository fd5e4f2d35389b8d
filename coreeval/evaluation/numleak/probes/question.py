"""One question about a series as a value, and the questions about a series together."""

from dataclasses import dataclass

from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import Reply, Variant
from coreeval.evaluation.numleak.series.excerpt import FileLine
from coreeval.prompts import Message
from coreeval.schema import AnswerKind


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question about a series; a repeated one is a question for each of its draws."""

    series: str
    """Id; for a fictitious name that of the series which lends it the question."""
    period: Period
    variant: Variant
    text: tuple[tuple[str, str], ...]
    """Role and content of each message."""
    truth: float | None = None
    other: Period | None = None
    """The second date of a comparison."""
    name: str | None = None
    shown_date: Period | None = None
    """The date that stands in a question with figures; it may be scrambled."""
    seed: int = 0
    draw: int = 0
    recent: bool = False
    """Whether it is asked for as one of the last values, and belongs to no drawing."""
    logprobs: bool = False
    """Whether log-probabilities are asked for with it."""
    phrasing: str | None = None
    stated: float | None = None
    shown: int | None = None
    following: tuple[FileLine, ...] = ()
    """The lines of the publisher's file that are asked for."""
    room: int = 0
    """Tokens that the answer is given at least; 0: whatever the target has."""

    @property
    def messages(self) -> list[Message]:
        """What is sent."""
        return [{"role": role, "content": content} for role, content in self.text]

    def reply(self, model: str, response: str | None, kind: AnswerKind = "answered") -> Reply:
        """Return what a model said to it, as a record."""
        return Reply(
            model=model,
            series=self.series,
            date=str(self.period),
            variant=self.variant,
            response=response,
            truth=self.truth,
            other_date=str(self.other) if self.other else None,
            name=self.name,
            shown_date=str(self.shown_date) if self.shown_date else None,
            seed=self.seed,
            draw=self.draw,
            phrasing=self.phrasing,
            stated=self.stated,
            shown=self.shown,
            wanted=len(self.following) or None,
            kind=kind,
        )


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The questions about one series, and what could not be asked."""

    series: str
    questions: tuple[Question, ...]
    notes: tuple[str, ...] = ()
