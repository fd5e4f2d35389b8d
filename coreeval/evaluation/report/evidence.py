"""What the new facts of a run rest on: how many articles, of whom, how old, how surely dated."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import get_args

from coreeval.schema import Precision, Value, Window
from coreeval.tools.stores.run_figures import EvidenceUse

TOP = 10
"""Domains that are named."""
BINS = 16
"""Most spans into which the window is cut for the picture."""
_STEPS = (1, 7, 14, 28, 91, 182, 364, 728)
"""Days that such a span may have: a day, weeks, about months, about years."""


class DomainShare(Value):
    """One publisher."""

    domain: str
    articles: int
    samples: int
    """Accepted samples that cite it; one that cites two of its articles counts twice."""


class Span(Value):
    """A part of the window."""

    start: str
    articles: int


class Ages(Value):
    """How old the articles were at the end of the window, in days."""

    youngest: float
    median: float
    oldest: float


class EvidenceUsed(Value):
    """The evidence that the replaced facts of accepted samples cite, each article once."""

    articles: int
    facts: int
    precision: dict[Precision, int]
    """Articles by how surely their publication time is known."""
    domains: tuple[DomainShare, ...]
    """The most cited ones."""
    domains_in_all: int
    ages: Ages | None
    """None where nothing is cited."""
    span_days: int
    """Days of each part but the last, which ends with the window."""
    spans: tuple[Span, ...]
    """When they were published: the window in parts of equal length."""


def evidence_used(cited: Iterable[EvidenceUse], window: Window) -> EvidenceUsed:
    """Add up cited evidence; where nothing is cited all is 0."""
    found = list(cited)
    times = [datetime.fromisoformat(each.published_at) for each in found]
    precision = Counter(each.precision for each in found)
    step = _step(window)
    return EvidenceUsed(
        articles=len(found),
        facts=sum(each.facts for each in found),
        precision={name: precision[name] for name in get_args(Precision) if precision[name]},
        domains=_domains(found),
        domains_in_all=len({each.domain for each in found}),
        ages=_ages(times, window) if times else None,
        span_days=step,
        spans=_spans(times, window, step) if times else (),
    )


def _domains(found: Sequence[EvidenceUse]) -> tuple[DomainShare, ...]:
    articles, samples = Counter[str](), Counter[str]()
    for each in found:
        articles[each.domain] += 1
        samples[each.domain] += each.samples
    ranked = sorted(samples, key=lambda name: (-samples[name], name))[:TOP]
    return tuple(
        DomainShare(domain=name, articles=articles[name], samples=samples[name]) for name in ranked
    )


def _ages(times: Sequence[datetime], window: Window) -> Ages:
    ages = [(window.end - time) / timedelta(days=1) for time in times]
    return Ages(
        youngest=round(min(ages), 1), median=round(median(ages), 1), oldest=round(max(ages), 1)
    )


def _step(window: Window) -> int:
    days = (window.end - window.start) / timedelta(days=1)
    return next((step for step in _STEPS if days / step <= BINS), int(days // BINS) + 1)


def _spans(times: Sequence[datetime], window: Window, step: int) -> tuple[Span, ...]:
    """Count articles by part; what kept samples cite may be older, and counts in the first."""
    length = timedelta(days=step)
    last = max(0, -(-(window.end - window.start) // length) - 1)
    counted = Counter(min(max(0, (time - window.start) // length), last) for time in times)
    starts = [window.start + place * length for place in range(last + 1)]
    return tuple(
        Span(start=start.date().isoformat(), articles=counted[place])
        for place, start in enumerate(starts)
    )
