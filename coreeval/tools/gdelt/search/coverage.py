"""What a store holds inside a window, and what to tell whoever asks where it holds nothing."""

import itertools
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from coreeval.errors import KnowledgeError
from coreeval.schema import Coverage, Window
from coreeval.tools.gdelt.parts.index import Articles
from coreeval.tools.gdelt.parts.shelf import PRECISIONS
from coreeval.tools.gdelt.search.views import seconds

DAY_S = 86_400
Times = NDArray[np.int64]


def times(articles: Articles, worst: int, window: Window | None = None) -> Times:
    """Return the publication times that are at least as certain as `worst`, of a window or all."""
    counts = articles.precision <= worst
    if window:
        counts &= articles.published >= seconds(window.start)
        counts &= articles.published < seconds(window.end)
    return articles.published[counts]


def coverage(articles: Articles, worst: int, window: Window) -> Coverage:
    """Tell what there is inside a window at a precision, and which days have nothing."""
    found = times(articles, worst, window)
    if not len(found):
        return Coverage(articles=0, gaps=_gaps(window, []))
    since = int(found.min()) // DAY_S
    days = (np.flatnonzero(np.bincount(found // DAY_S - since)) + since).tolist()
    return Coverage(
        articles=len(found),
        first=_time(found.min()),
        last=_time(found.max()),
        days=len(days),
        gaps=_gaps(window, [_time(day * DAY_S).date() for day in days]),
    )


def uncovered(articles: Articles, worst: int, window: Window, news: str) -> KnowledgeError:
    """Return the error for a window without articles: what is covered, what may help."""
    less_certain = [
        f"with min_precision {PRECISIONS[less]} there would be {count:,}"
        for less in range(worst + 1, len(PRECISIONS))
        if (count := len(times(articles, less, window)))
    ]
    known = times(articles, worst)
    covers = (
        f"the store covers {_time(known.min()):%Y-%m-%d}..{_time(known.max()):%Y-%m-%d}"
        f" at precision {PRECISIONS[worst]} or better ({len(known):,} articles)"
        if len(known)
        else f"the store has no article at precision {PRECISIONS[worst]} or better"
    )
    return KnowledgeError(
        f"no news between {window.start:%Y-%m-%d} and {window.end:%Y-%m-%d}: {covers}",
        where=news,
        hint="; ".join(less_certain[:1]) or "move the window or add news files for it",
    )


def _time(at: int) -> datetime:
    return datetime.fromtimestamp(int(at), tz=UTC)


def _gaps(window: Window, days: Sequence[date]) -> tuple[str, ...]:
    """Return the spans of whole days without an article, both ends included."""
    first = window.start.astimezone(UTC).date()
    last = (window.end.astimezone(UTC) - timedelta(microseconds=1)).date()
    one = timedelta(days=1)
    edges = [first - one, *days, last + one]
    return tuple(
        f"{left + one}..{right - one}"
        for left, right in itertools.pairwise(edges)
        if right - left > one
    )
