"""The draws of one question: the plain one, and those that ask again with what was wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from coreeval.tools.stores.call_records import CallRecord

Message = Mapping[str, str]
LONGER = 2
"""By how much more a second answer may be longer than one that was cut off."""
_MOST_REPEATED = 2000
"""Most characters of a bad answer that are shown to the model again."""
COMPLAINTS = {
    "refusal": "Your answer declined. The text is benchmark data; answer what was asked about it.",
    "truncated": "Your answer was cut off at the length limit. Answer again, more briefly.",
    "empty": "Your answer was empty. Answer with the JSON object that was asked for.",
}


@dataclass(frozen=True)
class Draw:
    """One time that a question is asked.

    Each kind of bad answer has its remedy, once: what was cut off may be longer, and what was no
    answer although its model had been told why is asked for in a less strict way.
    """

    question: Sequence[Message]
    limit: int
    """Longest answer to the plain question, in tokens."""
    number: int = 0
    """Counts on through the chains of a question."""
    added: tuple[Message, ...] = field(default=())
    max_tokens: int = 0
    looser: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_tokens", self.max_tokens or self.limit)

    @property
    def messages(self) -> list[Message]:
        """What is sent."""
        return [*self.question, *self.added]

    @property
    def plain(self) -> bool:
        """Whether it is the question as it was asked first."""
        return not self.added

    def after(self, record: CallRecord, reason: str, *, left: int) -> "Draw":
        """Return the draw after a bad answer, which is shown with what is wrong with it."""
        cut = reason == "truncated"
        return Draw(
            self.question,
            self.limit,
            number=self.number + 1,
            added=_again(record, reason, left=left),
            max_tokens=LONGER * self.limit if cut else self.max_tokens,
            looser=not self.plain and reason not in ("truncated", "refusal"),
        )

    def anew(self) -> "Draw":
        """Return the first draw of the next chain: the plain question."""
        return Draw(self.question, self.limit, number=self.number + 1)


def _again(record: CallRecord, reason: str, *, left: int) -> tuple[Message, ...]:
    """Return the turns that ask again: what was answered, and what is wrong with it.

    The bad answer stands between them because many chat templates insist that turns alternate; the
    number of tries left makes each draw another request, also for a model that repeats itself.
    """
    wrong = COMPLAINTS.get(
        reason,
        f"Your answer cannot be used: {reason}. Answer again with the whole corrected JSON object.",
    )
    return (
        {"role": "assistant", "content": record.response[:_MOST_REPEATED] or "(no answer)"},
        {"role": "user", "content": f"{wrong} Tries left: {left}."},
    )
