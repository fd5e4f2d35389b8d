"""Cassettes made otherwise: a recorded one with some lines changed, its head put right."""

from collections.abc import Callable, Iterator
from pathlib import Path

from coreeval.releases.cassettes.format import (
    AnswerLine,
    BadRowLine,
    BodyTally,
    CassetteLine,
    CassetteSummary,
    EvidenceLine,
    NameLine,
    OfferLine,
    PromptLine,
    RowLine,
    SampleLine,
    TakedownLine,
    TaskLine,
    TrainLine,
    write_cassette,
)
from coreeval.releases.cassettes.read import Cassette

Change = Callable[[CassetteLine], CassetteLine | None]
KINDS: tuple[type[CassetteLine], ...] = (
    PromptLine, TaskLine, TakedownLine, NameLine, TrainLine, BadRowLine, SampleLine, EvidenceLine,
    OfferLine, AnswerLine, RowLine,
)  # fmt: skip


def lines_of(cassette: Cassette) -> Iterator[CassetteLine]:
    """Yield all lines of a cassette, in their order."""
    for kind in KINDS:
        yield from cassette.lines(kind)


def remade(cassette: Cassette, path: Path, change: Change, **head: object) -> CassetteSummary:
    """Write a cassette again as if it had been made so; None in the place of a line drops it."""
    kept = (new for line in lines_of(cassette) if (new := change(line)))

    def head_of(tally: BodyTally) -> object:
        return cassette.head.model_copy(update=vars(tally) | head)

    return write_cassette(path, kept, head_of)  # type: ignore[arg-type]
