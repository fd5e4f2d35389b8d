"""The rows of a table of measures, for pages and cards, and the comparability in a report."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from coreeval.evaluation.comparability.verdict import (
    LIMITS,
    Comparability,
    Measure,
    Word,
    format_estimate,
    format_number,
    format_range,
    format_span,
)

NO_VALUE: Final = ""


class MeasureRow(NamedTuple):
    """A measure, formatted for readers."""

    title: str
    original: str
    updated: str
    value: str
    span: str
    """The ends of its interval; empty if there is none."""
    n: int
    range: str
    word: Word
    notes: tuple[str, ...]
    """The meaning of its numbers, and its purpose, if they are not obvious."""


class RangeSource(NamedTuple):
    """The source of a measure's range."""

    title: str
    source: str


def read_comparability(report: Mapping[str, Any]) -> Comparability | None:
    """Return a report's comparability of the arms; None if this version cannot read it."""
    try:
        found = Comparability.model_validate(report.get("comparability"))
    except ValidationError:
        return None
    known = tuple(each for each in found.measures if each.name in LIMITS)
    return found.model_copy(update={"measures": known})


def list_rows(found: Comparability) -> list[MeasureRow]:
    """Return a row for each measure."""
    return [
        MeasureRow(
            title=LIMITS[each.name].title,
            original=_format_mean(each, each.original),
            updated=_format_mean(each, each.updated),
            value=format_estimate(each),
            span=format_span(each),
            n=each.score.n,
            range=format_range(each),
            word=each.word,
            notes=_notes(each),
        )
        for each in found.measures
    ]


def _notes(measure: Measure) -> tuple[str, ...]:
    field = f"field {measure.part}" if measure.part else ""
    purpose = "" if measure.decides else "informative only"
    return tuple(each for each in (field, LIMITS[measure.name].means, purpose) if each)


def _format_mean(measure: Measure, value: float | None) -> str:
    """Format the value of one arm; a ratio is of words, a share of distances."""
    if value is None:
        return NO_VALUE
    unit = LIMITS[measure.name].unit
    return format_number(value, "accuracy" if unit == "accuracy" else "number")


def list_sources(found: Comparability) -> list[RangeSource]:
    """Return the source of each measure's range, once for each source."""
    titles = dict[str, list[str]]()
    for name in dict.fromkeys(each.name for each in found.measures):
        titles.setdefault(LIMITS[name].source, []).append(LIMITS[name].title)
    return [RangeSource("; ".join(own), source) for source, own in titles.items()]


def list_absent(found: Comparability) -> list[RangeSource]:
    """Return the missing measures, each with the reason."""
    return [
        RangeSource(LIMITS[name].title, why) for name, why in found.absent.items() if name in LIMITS
    ]


def describe_reuse(found: Comparability) -> str:
    """Describe how many samples use one event; "" if none uses any."""
    if not found.most_reused:
        return ""
    told = "; ".join(
        f"{_count(events, 'event')} {'supports' if events == 1 else 'support'} "
        f"{_count(int(samples), 'sample')}{' each' if events > 1 else ''}"
        for samples, events in found.events.items()
    )
    return f"{told}."


def describe_depths(found: Comparability) -> str:
    """Describe how much was read of the articles, by the deepest one of each sample."""
    told = [
        f"{count:,} {'rests' if count == 1 else 'rest'} on {_DEPTHS.get(depth, depth)}"
        for depth, count in found.depths.items()
    ]
    return " and ".join([*filter(None, [", ".join(told[:-1])]), *told[-1:]])


_DEPTHS: Final[Mapping[str, str]] = {
    "headline": "a headline alone",
    "description": "a description",
    "article": "an article's text",
}


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}" if number == 1 else f"{number:,} {name}s"
