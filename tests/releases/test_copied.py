"""How much of the new texts stands in the old ones, on texts that can be counted."""

from contextlib import closing
from pathlib import Path

import pytest

from coreeval.releases.copied import copied, overlap_of
from coreeval.tools.stores.run_store import RunStore
from tests.releases.kit import NOW, make_run

SIX = "one two three four five six"


@pytest.mark.parametrize(
    ("new", "old", "share", "grams"),
    [
        (SIX, SIX, 1.0, 2),
        (SIX, "ONE, two: three four five!", 0.5, 2),
        (SIX, "two three four five six seven", 0.5, 2),
        (SIX, "six five four three two one", 0.0, 2),
        (SIX + " " + SIX, SIX, 2 / 6, 6),
        ("one two three four", SIX, None, 0),
        ("", "", None, 0),
        ("我今天很开心", "我今天很难过", 0.0, 2),
        ("我今天很开心", "我今天很开了", 0.5, 2),
    ],
)
def test_the_share_of_five_words_in_a_row(
    new: str, old: str, share: float | None, grams: int
) -> None:
    found = overlap_of([({"text": new}, {"text": old})])
    assert (found.share, found.grams, found.texts) == (share, grams, 1)


def test_all_fields_and_samples_count_together() -> None:
    pair = ({"a": SIX, "b": "x"}, {"a": "x", "b": SIX})
    other = ({"a": "p q r s t u v", "b": ""}, {"a": "", "b": ""})
    found = overlap_of([pair, other])
    assert (found.size, found.share, found.grams, found.texts) == (5, 2 / 5, 5, 2)


def test_only_published_texts_count(tmp_path: Path) -> None:
    made = make_run(tmp_path)
    with closing(RunStore.open(made.files.store, now=lambda: NOW)) as store:
        every = copied(store, withheld=())
        fewer = copied(store, withheld={"emotion/test/1"})
    assert (every.texts, fewer.texts) == (3, 2)
