"""Dates of models in words: what they are, and who says so."""

from collections.abc import Iterable, Iterator

from coreeval.schema import Window
from coreeval.tools.cutoffs import DateClaim, LatestDate, TargetDates

KINDS = {"cutoff": "training cutoff", "released": "release"}


def date_words(fact: DateClaim) -> str:
    """Return a date with its source."""
    if fact.confidence == "given":
        return f"{fact.date} (config)"
    return f"{fact.date} ({fact.confidence}, {fact.source}, read {fact.as_of})"


def window_lines(window: Window, start: LatestDate | None) -> Iterator[str]:
    """Yield the window, and what its start rests on where that is automatic."""
    yield f"news from {window.start:%Y-%m-%d} to {window.end:%Y-%m-%d} (end excluded)"
    if start:
        yield f"start: auto: {KINDS[start.kind]} of {start.target}: {date_words(start)}"


def target_lines(window: Window, targets: Iterable[TargetDates]) -> Iterator[str]:
    """Yield for each target whether all news of the window is new to it."""
    for target in targets:
        yield f"{target.target}: {_newness(window, target.latest)}"


def _newness(window: Window, latest: LatestDate | None) -> str:
    if latest is None:
        return "its cutoff is not known, so nobody can tell what of this news it was trained on"
    known = f"its {KINDS[latest.kind]}, {date_words(latest)}"
    if window.start >= latest.counts_from:
        return f"all news of the window is after {known}"
    return f"the window starts before {known}: part of its news may be known to it"
