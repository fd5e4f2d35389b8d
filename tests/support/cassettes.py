"""Cassettes made otherwise: a recorded one with some lines changed, its head put right."""

from collections.abc import Callable, Iterator
from pathlib import Path

from coreeval.releases.cassettes.lines import (
    AnswerLine,
    BadRowLine,
    EvidenceLine,
    Line,
    NameLine,
    OfferLine,
    PromptLine,
    RowLine,
    SampleLine,
    TakedownLine,
    TaskLine,
    TrainLine,
)
from coreeval.releases.cassettes.opening import Cassette
from coreeval.releases.cassettes.packing import Packed, Tally, pack

Change = Callable[[Line], Line | None]
KINDS: tuple[type[Line], ...] = (
    PromptLine, TaskLine, TakedownLine, NameLine, TrainLine, BadRowLine, SampleLine, EvidenceLine,
    OfferLine, AnswerLine, RowLine,
)  # fmt: skip


def lines_of(cassette: Cassette) -> Iterator[Line]:
    """Yield all lines of a cassette, in their order."""
    for kind in KINDS:
        yield from cassette.lines(kind)


def remade(cassette: Cassette, path: Path, change: Change, **head: object) -> Packed:
    """Write a cassette again as if it had been made so; None in the place of a line drops it."""
    kept = (new for line in lines_of(cassette) if (new := change(line)))

    def head_of(tally: Tally) -> object:
        return cassette.head.model_copy(update=vars(tally) | head)

    return pack(path, kept, head_of)  # type: ignore[arg-type]
