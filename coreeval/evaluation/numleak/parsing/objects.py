"""JSON in an answer as lines of words: `{"date": "2020-03", "value": 1}` as `2020-03, value: 1`."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from coreeval.models.answer_text import iter_objects

_DEEPEST: Final = 6
_ASIDE: Final = frozenset({
    "confidence", "probability", "certainty", "likelihood", "low", "high", "lower", "upper", "min",
    "max", "lower_bound", "upper_bound", "ci_low", "ci_high", "std", "error", "margin", "id",
    "seed", "index", "n", "count", "rank", "page", "decimals", "unit", "units",
})  # fmt: skip
"""Keys whose numbers are not the value."""
_REASONS: Final = frozenset({
    "reason", "reasoning", "explanation", "rationale", "analysis", "thought", "thoughts", "notes",
    "note", "comment", "justification", "context", "source",
})  # fmt: skip
_DATES: Final = ("date", "observation_date", "month", "period", "quarter", "year", "time")
_NAMES: Final = ("series", "name", "factor", "metric", "indicator", "variable", "symbol")
_MONTH_KEY: Final = re.compile(r"0?[1-9]|1[0-2]")
_YEAR_KEY: Final = re.compile(r"(?:1[5-9]|20)\d{2}")
_DECODER: Final = json.JSONDecoder(parse_float=str, parse_int=str)


def with_objects_told(text: str) -> str:
    """Return an answer with its JSON objects as lines that tell the same; others as they are."""
    parts, at = list[str](), 0
    for value, start, end in iter_objects(text, _DECODER):
        parts += [text[at:start], *_told(value, ())]
        at = end
    return "\n".join([*parts, text[at:]]).strip("\n") if parts else text


def _told(value: object, labels: tuple[str, ...]) -> Iterator[str]:
    if len(labels) > _DEEPEST:
        return
    if isinstance(value, dict):
        yield from _object_told(value, labels)
    elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
        for one in value:
            yield from _told(one, labels)
    elif isinstance(value, list):
        yield _line(" or ".join(str(one) for one in value), labels)
    elif not isinstance(value, bool):
        yield _line("not available" if value is None else value, labels)


def _line(said: object, labels: tuple[str, ...]) -> str:
    return f"{' '.join(labels)}: {said}" if labels else str(said)


def _object_told(value: Mapping[str, object], labels: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of an object: whatever says which date and series it is about comes first."""
    keys = {key.lower(): said for key, said in value.items()}
    about = [str(keys[key]) for key in _NAMES if isinstance(keys.get(key), str)]
    date = _date(keys)
    unit = next((f" {keys[key]}" for key in ("unit", "units") if keys.get(key)), "")
    told = {key: said for key, said in value.items()
            if key.lower() not in _ASIDE.union(_REASONS, _NAMES, _DATES)}  # fmt: skip
    if not told and (date or about):
        yield f"answer: {' '.join([*date, *about])}"
    for key, said in (told or _reasons(value)).items():
        scalar = isinstance(said, str)
        own = unit or (" percent" if key.lower().endswith(("pct", "percent")) else "")
        yield from _told(f"{said}{own}" if scalar else said, _labels(key, labels, date + about))


def _labels(key: str, labels: tuple[str, ...], about: list[str]) -> tuple[str, ...]:
    """Return what a value is labelled with; a month's number goes with the year above it."""
    if _MONTH_KEY.fullmatch(key) and labels and _YEAR_KEY.fullmatch(labels[-1]):
        return (*labels[:-1], f"{labels[-1]}-{int(key):02d}", *about)
    return (*labels, *about, key)


def _reasons(value: Mapping[str, object]) -> dict[str, object]:
    return {key: said for key, said in value.items() if key.lower() in _REASONS}


def _date(keys: Mapping[str, object]) -> list[str]:
    """Return the date of a record; a month as a number stands with its year."""
    found = {key: str(keys[key]) for key in _DATES if isinstance(keys.get(key), str)}
    year, month = found.get("year"), found.get("month", "")
    if year and month.isdecimal():
        return [f"{year}-{int(month):02d}"]
    if year and month and year not in month:
        return [f"{month} {year}"]
    return [text for key, text in found.items() if key != "year" or len(found) == 1]
