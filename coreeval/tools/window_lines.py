"""Describes a news window and the dates of targets, for commands and checks."""

from collections.abc import Iterable, Iterator

from coreeval.schema import Window
from coreeval.tools.cutoffs import DateClaim, LatestDate, TargetDates

DATE_KINDS = {"cutoff": "training cutoff", "released": "release"}


def format_date(fact: DateClaim) -> str:
    """Return a date with its source."""
    if fact.confidence == "given":
        return f"{fact.date} (config)"
    return f"{fact.date} ({fact.confidence}, {fact.source}, read {fact.as_of})"


def window_lines(window: Window, start: LatestDate | None) -> Iterator[str]:
    """Yield the window, and the basis of its start if that is automatic."""
    yield f"news from {window.start:%Y-%m-%d} to {window.end:%Y-%m-%d} (end excluded)"
    if start:
        yield f"start (auto): {DATE_KINDS[start.kind]} of {start.target}, {format_date(start)}"


def target_lines(window: Window, targets: Iterable[TargetDates]) -> Iterator[str]:
    """Yield for each target whether all news of the window is new to it."""
    for target in targets:
        yield f"{target.target}: {_describe_newness(window, target.latest)}"


def _describe_newness(window: Window, latest: LatestDate | None) -> str:
    if latest is None:
        return "its cutoff is unknown, so it may have been trained on this news"
    known = f"its {DATE_KINDS[latest.kind]}, {format_date(latest)}"
    if window.start >= latest.counts_from:
        return f"all news in the window was published after {known}"
    return f"the window starts before {known}, so the target may know part of the news"
