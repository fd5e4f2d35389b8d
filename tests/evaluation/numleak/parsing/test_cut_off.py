"""Where an answer stops in the middle of a sentence."""

import re

from hypothesis import given
from hypothesis import strategies as st

from coreeval.evaluation.numleak.parsing.phrases import is_cut_off

WORDS = "it was about 3 "


@given(st.text(alphabet="a_1é.!?)]\"'%… \n-\u4e2d", max_size=12))
def test_only_signs_and_spaces_may_stand_behind_the_end(end: str) -> None:
    whole = re.search(r"[.!?)\]\"'%…]\W*$", WORDS + end)
    assert is_cut_off(WORDS + end) is (whole is None)


def test_a_long_row_of_stops_is_read_at_once() -> None:
    """A time that grew with the square of the length would be beyond the limit of a test."""
    assert is_cut_off(WORDS + ". " * 400_000 + "x")
    assert not is_cut_off(WORDS + "x" + ". " * 400_000)
