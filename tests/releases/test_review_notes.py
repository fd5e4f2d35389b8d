"""Notes and tags on samples, and what `review` does with them."""

from pathlib import Path

import pytest

from coreeval.errors import RunCorrupt, UsageError
from coreeval.releases.review import load_review
from coreeval.releases.review.notes import MOST_CHARACTERS, add_note, open_notes
from coreeval.runs.manifest import read_manifest
from tests.releases.kit import NOW, Made
from tests.releases.people import make_people, sample_id

THIRD = sample_id(2)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return a run whose third sample gives no reason to be listed."""
    return make_people(tmp_path_factory.mktemp("notes"))


def note(run: Made, text: str, *tags: str, sample: str = THIRD, by: str = "Ada") -> None:
    """Keep a note."""
    add_note(run.files.root, sample, text, tags, by=by, now=lambda: NOW)


def test_a_note_lists_its_sample_and_the_last_tags_hold(run: Made) -> None:
    log = open_notes(read_manifest(run.files.manifest))
    before = {each.sample for each in load_review(run.files.root).samples}
    assert THIRD not in before
    assert not log.path.exists()
    note(run, "is the price right?\r\nlook", "price")
    note(run, "", "unsure", "price", "price", by=" Grace ")
    review = load_review(run.files.root)
    listed = {each.sample: each for each in review.samples}
    assert {*listed} == {*before, THIRD}
    assert [(why.reason, why.detail) for why in listed[THIRD].why] == [
        ("noted", "1 note; tagged price, unsure")
    ]
    assert [(one.by, one.note) for one in listed[THIRD].remarks.notes] == [
        ("Ada", "is the price right?\nlook")
    ]
    assert log.find(THIRD) == review.remarks[THIRD] == log.read()[THIRD]
    assert not log.find(sample_id(0))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"text": "x" * (MOST_CHARACTERS + 1)}, "the note has 2,001 characters"),
        ({"text": "x", "by": " "}, "a note needs a name"),
        ({"text": "x", "by": "x" * 101}, "the name has 101 characters"),
        ({"text": "x", "sample": "emotion/test/0"}, "the run has no sample 'emotion/test/0'"),
        ({"text": " "}, "there is nothing to save"),
    ],
)
def test_what_cannot_be_kept_is_one_message(
    tmp_path: Path, run: Made, given: dict[str, str], told: str
) -> None:
    log = open_notes(read_manifest(run.files.manifest)).path
    before = log.read_bytes() if log.exists() else b""
    tags = open_notes(read_manifest(run.files.manifest)).find(THIRD).tags
    with pytest.raises(UsageError, match=told):
        note(run, given["text"], *tags, **{k: v for k, v in given.items() if k != "text"})
    with pytest.raises(UsageError, match="is not a valid tag"):
        note(run, "x", "two words")
    with pytest.raises(UsageError, match="at most 20 tags"):
        note(run, "x", *map(str, range(21)))
    assert (log.read_bytes() if log.exists() else b"") == before


def test_a_damaged_line_is_named(run: Made) -> None:
    log = open_notes(read_manifest(run.files.manifest))
    log.path.parent.mkdir(exist_ok=True)
    kept = log.path.read_bytes() if log.path.exists() else b""
    log.path.write_bytes(kept + b'{"sample": "emotion/test/3"}\n')
    with pytest.raises(RunCorrupt, match="is not a valid note"):
        log.find(THIRD)
    log.path.write_bytes(kept)
