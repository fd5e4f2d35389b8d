from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from coreeval.tools.gdelt.parts.postings import (
    Postings,
    Strings,
    members,
    posting_arrays,
    string_arrays,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
LISTS = st.lists(st.dictionaries(st.integers(0, 40), st.booleans(), max_size=12), max_size=6)


@settings(deadline=None)
@given(st.sets(TEXTS), TEXTS)
def test_sorted_texts_are_found(texts: set[str], other: str) -> None:
    ordered = sorted(texts, key=str.encode)
    arrays = string_arrays("x", ordered)
    strings = Strings(arrays["x_starts"], arrays["x_text"])
    assert list(strings) == ordered
    assert [strings.find(text) for text in ordered] == list(range(len(ordered)))
    assert strings.find(other) == (ordered.index(other) if other in texts else None)


@settings(deadline=None)
@given(LISTS, st.sets(st.integers(0, 41)))
def test_lists_and_what_is_in_them(lists: list[dict[int, bool]], asked: set[int]) -> None:
    postings = postings_of(lists)
    numbers = np.array(sorted(asked), np.uint32)
    assert postings.counts(np.arange(len(lists), dtype=np.uint32)).tolist() == [*map(len, lists)]
    for key, expected in enumerate(lists):
        items = postings.of(key)
        assert [(int(item) >> 1, bool(item & 1)) for item in items] == sorted(expected.items())
        if expected:
            there, flags = members(items, numbers)
            assert there.tolist() == [number in expected for number in sorted(asked)]
            assert flags[there].tolist() == [expected[at] for at in sorted(asked & set(expected))]


def postings_of(lists: list[dict[int, bool]]) -> Postings:
    packed: list[Any] = [
        (key << 32) + (number << 1) + flag
        for key, held in enumerate(lists) for number, flag in sorted(held.items())
    ]  # fmt: skip
    arrays = posting_arrays("x", np.array(packed, np.uint64), len(lists))
    return Postings(arrays["x_starts"], arrays["x"])
