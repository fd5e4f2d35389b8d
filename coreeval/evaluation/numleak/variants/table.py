"""What further ways of asking show, as rows for people."""

from collections.abc import Iterator
from typing import Final

from coreeval.evaluation.numleak.table import Json, Row, if_asked, row_of

_WAYS: Final = {"description": "in prose", "step_by_step": "step by step"}
OUTCOME_WORDS: Final = {
    "holds": "holds",
    "corrects": "holds, and says that it is wrong",
    "yields": "gives way to it",
    "mixed": "another value, or both",
    "refuses": "declines",
    "unread": "not read",
}
"""How an answer to one who states a wrong value ends."""


def variant_rows(one: Json) -> Iterator[Row]:
    """Yield the rows of each way of asking that was used."""
    found = one["variants"]
    for key, words in _WAYS.items():
        if found[key]:
            yield from _beside(words, found[key])
    if found["phrasing"]:
        yield from _phrased(found["phrasing"])
    if found["contradiction"]:
        yield from _contradicted(found["contradiction"])
    if found["continuation"]:
        yield from _continued(found["continuation"], one)


def _beside(words: str, way: Json) -> Iterator[Row]:
    yield row_of(f"{words}: answered", way["asked"]["parse_rate"])
    if not way["dates"]:
        return
    yield row_of(f"{words}: Pearson r", way["own"]["pearson_r"])
    yield row_of("asked plainly on the same dates: Pearson r", way["plain"]["pearson_r"])
    yield row_of(f"{words}: r minus that of plain answers", way["pearson_r"])
    yield row_of(f"{words}: within tolerance", way["own"]["within_tolerance"])
    yield row_of(f"{words}: within tolerance minus plain", way["within_tolerance"])
    yield row_of(f"{words}: error larger than the plain one", way["worse"])


def _phrased(found: Json) -> Iterator[Row]:
    for name, way in found["wordings"].items():
        yield row_of(f"wording {name}: answered", way["asked"]["parse_rate"])
        yield from if_asked(f"wording {name}: Pearson r", way["asked"]["pearson_r"])
        yield from if_asked(f"wording {name}: within tolerance", way["asked"]["within_tolerance"])
    yield from if_asked("all wordings agree within tolerance on a date", found["agreement"])
    yield from if_asked("spread over wordings within a date", found["spread"])


def _contradicted(found: Json) -> Iterator[Row]:
    for outcome, words in OUTCOME_WORDS.items():
        yield row_of(f"told a wrong value: {words}", found["shares"][outcome])
    yield from if_asked("gives way, of wrong values of the other sign", found["yields_far"])
    yield from if_asked("gives way, of wrong values of the same sign", found["yields_same"])


def _continued(found: Json, one: Json) -> Iterator[Row]:
    yield row_of("file continued: values that came", found["read"])
    yield from if_asked("file continued: exact", found["exact"])
    yield from if_asked("exact, of values not in the question", found["exact_untold"])
    yield from if_asked("exact, repeating the last value shown", found["last_exact"])
    yield from if_asked("exact, saying the mean of those shown", found["mean_exact"])
    yield from if_asked(
        f"file continued: within {one['tolerance']:g} {one['points_name']}",
        found["within_tolerance"],
    )
    yield from if_asked("within it, repeating the last value shown", found["last_within"])
    yield from if_asked("error saved against repeating the last value", found["gain"])
