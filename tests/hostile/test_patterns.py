"""No pattern takes more than time in proportion to the text that it searches."""

import re
from collections.abc import Callable, Mapping
from heapq import nlargest
from inspect import unwrap
from time import perf_counter
from typing import Final

import pytest

from coreeval.agents.offline import word_lists
from coreeval.agents.offline.rewrite import reword
from coreeval.agents.text.numbers import find_numbers
from coreeval.agents.text.words import build_span_pattern
from coreeval.evaluation.numleak.parsing import read_choice
from coreeval.evaluation.numleak.parsing.dates import find_dates, find_mentions
from coreeval.evaluation.numleak.parsing.phrases import is_labelled, strike_other_series
from tests.hostile.parsers import MONTH, NAME
from tests.hostile.patterns import Tried, made_elsewhere, patterns, seconds, texts

SIZE: Final = 1000
AT_ONCE_S: Final = 0.0002
"""Seconds that are not looked at any closer: in them 1,000 characters cannot be held against
each other, at 0.4 ns for each pair."""
LONGER: Final = 32
STEEPEST: Final = 180.0
"""Times the time for `LONGER` times the text: 32 where they are in proportion, 1,024 where it is
squared; clocks are coarse, so the bound is far from either."""
TRIES: Final = 3
"""Times that a text is searched: in most of them no other process has the CPU meanwhile."""
CLOSER: Final = 3
"""The slowest texts of a pattern, which are tried longer."""
_SPAN: Final = build_span_pattern("said 's not - a  b")
assert _SPAN is not None


def _flag_phrases(text: str) -> None:
    for pattern in word_lists.load_flag_patterns().values():
        Tried(pattern, "anywhere")(text)


MADE: Final[Mapping[str, Callable[[str], object]]] = {
    "agents.text.numbers: digits": lambda text: unwrap(find_numbers)(text, "de"),
    "agents.text.numbers: spelled": lambda text: unwrap(find_numbers)(text, "es"),
    "agents.offline.word_lists: '|'.join(map(_phrase_pattern, ordered))": _flag_phrases,
    "agents.offline.rewrite: held": lambda text: reword(text, (), ()),
    "agents.text.words: before + body + after": Tried(_SPAN, "anywhere"),
    "evaluation.numleak.parsing.probe_answers: pattern": lambda text: read_choice(
        text, first=MONTH, second=MONTH.shift(1)
    ),
    "evaluation.numleak.parsing.dates: own": lambda text: find_dates(text, MONTH),
    "evaluation.numleak.parsing.phrases: label": lambda text: is_labelled(text, NAME),
    "evaluation.numleak.parsing.phrases: record": lambda text: strike_other_series(text, NAME),
}
"""What makes patterns while it runs, and so is tried itself."""
ALIKE: Final = {
    "agents.offline.compose: pattern": "a name",
    "agents.safety: pattern": "they stand in a constant of the module, which is tried",
    "agents.edits: '|'.join((f'({pattern.pattern})' for pattern, _, _ in usable))": "spans",
    "evaluation.numleak.parsing.phrases: about": "with `record`",
    "tools.local_paths: FOLDER_START + re.escape(start)": "one folder, and one character before it",
    "tools.gdelt.bigquery.statements: _bounds(table, column)": "it searches our own SQL",
}
"""Why others need not be."""


def is_steep(tried: Callable[[str], object]) -> str:
    """Return of what text 32 times as much takes far more than 32 times as long."""
    slow = [(of, text) for of, text in texts(SIZE) if _least_s(tried, text, 1) >= AT_ONCE_S]
    took = ((_least_s(tried, text, TRIES), of) for of, text in slow)
    longer = dict(texts(LONGER * SIZE))
    for short_s, of in nlargest(CLOSER, (one for one in took if one[0] >= AT_ONCE_S)):
        most_s = STEEPEST * short_s
        if all(seconds(tried, longer[of], most_s) >= most_s for _ in range(TRIES)):
            return of
    return ""


def _least_s(tried: Callable[[str], object], text: str, tries: int) -> float:
    return min(seconds(tried, text, 0.5, perf_counter) for _ in range(tries))


@pytest.mark.filterwarnings("ignore")  # of packages that are imported here
def test_no_pattern_is_slow() -> None:
    assert {place: of for place, one in patterns().items() if (of := is_steep(one))} == {}


@pytest.mark.parametrize("place", MADE)
def test_no_pattern_that_is_made_while_running_is_slow(place: str) -> None:
    assert is_steep(MADE[place]) == ""


@pytest.mark.filterwarnings("ignore")
def test_every_pattern_is_tried() -> None:
    unseen = {place.removeprefix("coreeval.") for place in made_elsewhere()}
    by_form = {place for place in unseen if "for form in _period_forms(period)" in place}
    assert unseen - by_form == MADE.keys() | ALIKE.keys()
    assert is_steep(lambda text: find_mentions(text, MONTH)) == ""


def test_a_slow_pattern_is_found() -> None:
    for slow in (r"\s+x", r"(?:a|b)*c", r"[^@]*@@"):
        assert is_steep(Tried(re.compile(slow), "anywhere")), slow
