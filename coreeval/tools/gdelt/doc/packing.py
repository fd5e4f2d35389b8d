"""Many terms in few requests: OR blocks that DOC 2.0 accepts, and slices of the window."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from coreeval.schema import Window
from coreeval.tools.gdelt.doc.archive import held

LANGUAGE = "english"
LONGEST_QUERY = 200
"""Bytes of a whole query: 213 characters were accepted, 290 refused (research: gdelt §1)."""
LONGEST_BLOCK = LONGEST_QUERY - len(f" sourcelang:{LANGUAGE}")
LONGEST_SLICE = timedelta(days=30)
"""A request over a year silently answered for three months (research: gdelt §1)."""
SHORTEST_SLICE = timedelta(hours=1)
"""Shorter spans are refused: `Timespan is too short.`"""


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One request that is to be sent, and how it fared so far."""

    terms: tuple[str, ...]
    span: Window
    depth: int = 0
    """How often the answer was full and its rest asked for anew."""
    throttled: int = 0
    failed: int = 0
    rejected: str = ""
    """What the service said when it refused a larger request with these terms."""
    empty: bool = False
    """Whether it was answered with nothing once, which may be a mistake."""


def block(terms: Sequence[str]) -> str:
    """Return what finds an article with any of the terms; parentheses stand only round ORs."""
    return terms[0] if len(terms) == 1 else f"({' OR '.join(terms)})"


def packed(terms: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield the terms in their order, in blocks that fit into one query each."""
    filling: tuple[str, ...] = ()
    for term in terms:
        if filling and len(block((*filling, term)).encode()) > LONGEST_BLOCK:
            yield filling
            filling = ()
        filling = (*filling, term)
    if filling:
        yield filling


def slices(window: Window, now: datetime) -> list[Window]:
    """Return the parts of a window that can be asked about, newest first."""
    spans = list[Window]()
    for span in held(window, now):
        end = span.end
        while end > span.start:
            start = max(span.start, end - LONGEST_SLICE)
            spans.append(Window(start=min(start, end - SHORTEST_SLICE), end=end))
            end = start
    return spans
