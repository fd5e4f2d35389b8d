"""Notes and tags on samples, and what `review` does with them."""

import os
import time
from pathlib import Path

import pytest

from coreeval.errors import RunCorrupt, UsageError
from coreeval.releases.review import load_review
from coreeval.releases.review.notes import (
    MOST_CHARACTERS,
    NoteLog,
    SampleNote,
    add_note,
    open_notes,
)
from coreeval.runs.manifest import read_manifest
from tests.releases.kit import NOW, Made
from tests.releases.people import make_people, sample_id

THIRD = sample_id(2)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return a run whose third sample gives no reason to be listed."""
    return make_people(tmp_path_factory.mktemp("notes"))


def note(
    run: Made,
    text: str,
    *tags: str,
    sample: str = THIRD,
    by: str = "Ada",
    before: tuple[str, ...] = (),
) -> None:
    """Keep a note."""
    add_note(run.files.root, sample, text, tags, by=by, before=before, now=lambda: NOW)


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
    assert review.remarks[THIRD] == log.read().of(THIRD)
    assert not log.read().of(sample_id(0))


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
    tags = open_notes(read_manifest(run.files.manifest)).read().of(THIRD).tags
    with pytest.raises(UsageError, match=told):
        note(
            run,
            given["text"],
            *tags,
            sample=given.get("sample", THIRD),
            by=given.get("by", "Ada"),
        )
    with pytest.raises(UsageError, match="is not a valid tag"):
        note(run, "x", "two words")
    with pytest.raises(UsageError, match="at most 20 tags"):
        note(run, "x", *map(str, range(21)))
    assert (log.read_bytes() if log.exists() else b"") == before


def test_a_stale_page_removes_no_tags_of_others(run: Made) -> None:
    log = open_notes(read_manifest(run.files.manifest))
    second = sample_id(1)
    note(run, "", "seen", "old", sample=second)
    note(run, "", "seen", "old", "gold-wrong", sample=second, before=("old", "seen"))
    note(run, "fine", "seen", "mine", sample=second, by="Grace", before=("old", "seen"))
    assert log.read().of(second).tags == ("gold-wrong", "mine", "seen")
    with pytest.raises(UsageError, match="nothing to save"):
        note(run, "", "seen", sample=second, before=("old", "seen"))


def test_a_damaged_line_is_left_out_told_and_refused_before_a_release(run: Made) -> None:
    log = open_notes(read_manifest(run.files.manifest))
    note(run, "kept", by="Grace")
    kept = log.path.read_bytes()
    try:
        log.path.write_bytes(kept + b'{"sample": "emotion/test/3"}\n{"sample": "emo')
        number = kept.count(b"\n") + 1
        found = log.read()
        assert found.of(THIRD).notes[-1].note == "kept"
        told = f"lines {number}, {number + 1} are not valid notes"
        assert found.problem and found.problem.message == told
        review = load_review(run.files.root)
        assert THIRD in {each.sample for each in review.samples}
        with pytest.raises(RunCorrupt, match=told):
            review.require_decided()
        note(run, "after the damage")
        assert log.read().of(THIRD).notes[-1].note == "after the damage"
    finally:
        log.path.write_bytes(kept)
    assert log.read().problem is None


def test_a_log_that_is_a_link_or_a_pipe_is_neither_followed_nor_waited_for(
    run: Made, tmp_path: Path
) -> None:
    log = open_notes(read_manifest(run.files.manifest)).path
    log.parent.mkdir(exist_ok=True)
    aside, target = tmp_path / "aside", tmp_path / "elsewhere"
    if log.exists():
        log.rename(aside)
    try:
        for linked in (True, False):
            log.symlink_to(target) if linked else os.mkfifo(log)
            problem = load_review(run.files.root).notes_problem
            assert problem and "which CoreEval never creates" in problem.message
            with pytest.raises(RunCorrupt, match="which CoreEval never creates"):
                note(run, "through it")
            assert not target.exists()
            log.unlink()
    finally:
        if aside.exists():
            aside.rename(log)


def test_very_many_notes_on_one_sample_are_read_in_linear_time(tmp_path: Path) -> None:
    one = SampleNote(sample="a", note="x", tags=("y",), by="Ada", at="2026-11-01T00:00:00+00:00")
    lines = (
        f"{one.model_dump_json()}\n" * 40_000
        + one.model_copy(update={"note": "", "tags": ()}).model_dump_json()
    )
    path = tmp_path / "many.jsonl"
    path.write_text(lines)
    before = time.process_time()
    found = NoteLog(path).read().of("a")
    assert time.process_time() - before < 8  # quadratic: more than 25 s
    assert len(found.notes) == 40_000 and found.tags == ()
