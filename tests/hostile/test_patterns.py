"""No pattern takes more than time in proportion to the text that it searches."""

import re
from collections.abc import Callable, Mapping
from inspect import unwrap
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
from tests.hostile.patterns import Tried, made_elsewhere, patterns, seconds, slowest, texts

SIZE: Final = 4000
AT_ONCE_S: Final = 0.003
"""CPU seconds that are not looked at any closer: in them 4,000 characters cannot be held against
each other, at 0.4 ns for each pair."""
SHARES: Final = 4
"""Parts of the sweep, so that processes can share it."""
LONGER: Final = 16
STEEPEST: Final = 64.0
"""Times the time for `LONGER` times the text: 16 where they are in proportion, 256 where it is
squared; CPU clocks are coarse, so the bound is far from either."""
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
    "tools.gdelt.bigquery.statements: _bounds(table, column)": "it searches our own SQL",
}
"""Why others need not be."""


def is_steep(tried: Callable[[str], object]) -> str:
    """Return of what text four times as much takes far more than four times as long."""
    took, made_of = slowest(tried, SIZE, 0.5)
    if took < AT_ONCE_S:
        return ""
    longer = dict(texts(LONGER * SIZE))[made_of]
    most_s = STEEPEST * max(AT_ONCE_S, min(took, seconds(tried, dict(texts(SIZE))[made_of], 0.5)))
    return made_of if min(seconds(tried, longer, most_s) for _ in range(2)) >= most_s else ""


@pytest.mark.filterwarnings("ignore")  # of packages that are imported here
@pytest.mark.parametrize("share", range(SHARES))
def test_no_pattern_is_slow(share: int) -> None:
    tried = [*patterns().items()][share::SHARES]
    assert {place: of for place, one in tried if (of := is_steep(one))} == {}


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
    assert is_steep(Tried(re.compile(r"\s+x"), "anywhere"))
