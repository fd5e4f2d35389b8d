"""Sheets go out blind, come back scored, and reach the next release's card."""

import asyncio
import csv
import json
import shutil
import sqlite3
import stat
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from coreeval.errors import ReleaseError, RunError, RunStateError, UsageError
from coreeval.evaluation.annotation.criteria import LABEL_STUDY
from coreeval.evaluation.annotation.rating_study import read_key
from coreeval.evaluation.annotation.ratings import Annotation
from coreeval.releases import annotation_sheets
from coreeval.releases.annotation_scores import score_sheets
from coreeval.releases.annotation_sheets import SHEET_FOLDER, export_sheets
from coreeval.releases.review.review import Choice, record_choices
from coreeval.releases.verify import verify
from coreeval.runs.manifest import full_counts, read_original_manifest, write_manifest
from coreeval.tools.stores.run_store import RunStore
from tests.releases.exports.conftest import assemble
from tests.releases.kit import NOW, Made, make_run
from tests.releases.people import copied, sample_id
from tests.support.results import replace_result

ALIKE = (1, 1, 1, 1, 1, 0)
"""Labels of the six samples: five joyful ones can be compared, the angry one with none."""
BEST = {each.name: each.values[-1] for each in LABEL_STUDY.criteria}


@pytest.fixture(scope="session")
def first_rated(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return a run of six accepted samples, three of which are reworded too."""
    made = make_run(tmp_path_factory.mktemp("rated"), labels=ALIKE)
    asyncio.run(accept_all(made, "updated {} "))
    assemble(made)
    return made


@pytest.fixture
def rated(first_rated: Made, tmp_path: Path) -> Made:
    return copied(first_rated, tmp_path)


async def accept_all(made: Made, text: str) -> None:
    """Make every sample an accepted one."""
    store = RunStore.open(made.files.store, now=lambda: NOW)
    for number in range(6):
        before = store.result(sample_id(number))
        assert before
        changes = {"outcome": "accepted", "reason": "", "updated": {"text": text.format(number)}}
        await replace_result(store, before.model_copy(update=changes))
    counts = full_counts(store.total(), store.counts())
    store.close()
    manifest = read_original_manifest(made.files.manifest)
    write_manifest(made.files.manifest, manifest.model_copy(update={"counts": counts}))


def fill(
    folder: Path, changes: Mapping[tuple[str, int], Mapping[str, object]] | None = None
) -> None:
    """Give every text the best ratings but for changes to a rater's n-th row."""
    for path in sorted((folder / SHEET_FOLDER).glob("*.csv")):
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, *rows = csv.reader(file)
        for number, row in enumerate(rows):
            for name, value in (BEST | dict((changes or {}).get((path.stem, number), {}))).items():
                row[header.index(name)] = str(value)
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([header, *rows])


# -- out ----------------------------------------------------------------------------------------


def test_a_takedown_that_ends_while_sheets_are_written_leaves_none(
    rated: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_original_manifest(rated.files.manifest)

    def interrupt(*args: Any) -> Sequence[str]:  # noqa: ANN401
        changed = before.model_copy(update={"status": "interrupted"})
        write_manifest(rated.files.manifest, changed)  # as a takedown does
        return write_files(*args)

    write_files = annotation_sheets._write_files
    monkeypatch.setattr(annotation_sheets, "_write_files", interrupt)
    try:
        with pytest.raises(RunStateError, match="has changed while texts were copied"):
            export_sheets(rated.files.root, tmp_path / "out")
    finally:
        write_manifest(rated.files.manifest, before)
    assert not list(tmp_path.glob("out*"))


def test_sheets_are_blind_and_the_key_is_not_among_them(rated: Made, tmp_path: Path) -> None:
    made = export_sheets(rated.files.root, tmp_path / "out", raters=2)
    assert made.arms == {"original": 2, "semantic": 1, "updated": 2}
    assert made.pool == 6
    assert sorted(path.name for path in (tmp_path / "out" / SHEET_FOLDER).iterdir()) == [
        "guideline.md",
        "rater-1.csv",
        "rater-2.csv",
    ]
    key = read_key(made.key_file)
    assert stat.S_IMODE(made.key_file.stat().st_mode) == 0o600
    for sheet in made.files[:2]:
        text = sheet.read_text("utf-8-sig").replace("original number", "")
        assert not [arm for arm in ("original", "semantic") if arm in text]
        assert not [each.sample for each in key.items if each.sample in text]
        assert "https://example.org/" in text and "joy: " in text
        assert "updated 1 " not in text, "a space at the end would tell the arm"


def test_every_item_has_the_news_of_its_sample(rated: Made, tmp_path: Path) -> None:
    """Samples whose new facts rest on nothing have none, in whichever arm they are."""
    for seed in range(6):
        made = export_sheets(rated.files.root, tmp_path / str(seed), raters=1, seed=seed)
        with made.files[0].open(encoding="utf-8-sig", newline="") as file:
            news = {row["item"]: row["news"] for row in csv.DictReader(file)}
        for each in made.key.items:
            number = int(each.sample.rpartition("/")[2])
            assert news[each.item].count("https://") == {1: 1, 2: 2, 3: 1}.get(number, 0)


def test_a_release_that_may_not_pass_originals_on_asks_for_them(
    rated: Made, tmp_path: Path
) -> None:
    release = rated.release().path
    moved = tmp_path / "moved"
    shutil.copytree(rated.benchmark, moved)
    shutil.rmtree(rated.benchmark)
    with pytest.raises(UsageError) as error:
        export_sheets(release, tmp_path / "out")
    assert "--originals" in error.value.hint
    made = export_sheets(release, tmp_path / "out", originals=moved)
    assert made.key.made_of.kind == "release" and made.arms["original"] == 2


def test_a_release_with_names_that_were_listed_since_has_no_sheets(
    rated: Made, tmp_path: Path
) -> None:
    made = rated.release()
    (rated.folder / ".coreeval" / "takedown.txt").write_text("Ada Roe\n")
    with pytest.raises(ReleaseError, match="names or news on the takedown list"):
        export_sheets(made.path, tmp_path / "listed")
    assert not (tmp_path / "listed").exists()


def test_what_a_person_rejected_is_not_rated(rated: Made, tmp_path: Path) -> None:
    no = [Choice(sample=sample_id(number), verdict="rejected") for number in (0, 2)]
    record_choices(rated.files.root, no, by="Ada")
    made = export_sheets(rated.files.root, tmp_path / "out")
    assert made.pool == 4
    assert not {each.sample for each in made.key.items} & {choice.sample for choice in no}


def test_nothing_to_compare(first_rated: Made, tmp_path: Path) -> None:
    made = copied(first_rated, tmp_path)
    with closing(sqlite3.connect(made.files.store)) as store, store:
        store.execute("UPDATE results SET outcome = 'no_knowledge' WHERE outcome = 'accepted'")
    assemble(made)
    with pytest.raises(UsageError, match="no two of 0 accepted samples"):
        export_sheets(made.files.root, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_places_that_have_no_sheets(rated: Made, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="neither a run nor a release"):
        export_sheets(tmp_path / "bench", tmp_path / "out")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x").touch()
    with pytest.raises(UsageError, match="this folder is not empty"):
        export_sheets(rated.files.root, tmp_path / "out")
    rated.files.manifest.write_text(
        rated.files.manifest.read_text().replace('"complete"', '"running"')
    )
    with pytest.raises(RunStateError, match="unfinished"):
        export_sheets(rated.files.root, tmp_path / "new")


# -- back ---------------------------------------------------------------------------------------


def test_ratings_are_kept_with_the_run_and_reach_its_release(rated: Made, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export_sheets(rated.files.root, out)
    fill(out, {("rater-1", 0): {"fluency": 1}, ("rater-2", 1): {"factuality": 0}})
    found = score_sheets(rated.files.root, [out], now=lambda: NOW)
    assert found.path == rated.files.annotation
    kept = Annotation.model_validate_json(found.path.read_bytes())
    assert kept == found.annotation
    assert (kept.run, kept.items, len(kept.raters), kept.problems) == (
        "weekly/20261120T030000Z",
        5,
        3,
        (),
    )
    assert len(kept.disagreements) == 2
    assert found.replaced is None
    release = rated.release()
    said = release.manifest.annotation
    assert said and (said.raters, said.items, said.study) == (3, 5, kept.study)
    assert said.criteria == kept.criteria
    card = (release.path / "README.md").read_text()
    assert "## Ratings by people" in card and "| fluency, 1 to 3 |" in card
    assert "86.7%" in card, "13 of 15 pairs"
    published = (release.path / "release.json").read_text()
    assert "rater-1" not in published + card
    assert verify(release.path).ok


def test_a_release_counts_only_ratings_of_texts_that_it_contains(
    rated: Made, tmp_path: Path
) -> None:
    made = export_sheets(rated.files.root, tmp_path / "out", raters=2)
    updated = [each.sample for each in made.key.items if each.arm == "updated"]
    fill(tmp_path / "out")
    score_sheets(rated.files.root, [tmp_path / "out"], now=lambda: NOW)
    whole = rated.release("1").manifest.annotation
    assert whole and (whole.items, whole.omitted) == (5, 0)
    no = Choice(sample=updated[0], verdict="rejected")
    record_choices(rated.files.root, [no], by="Ada")
    release = rated.release("2")
    part = release.manifest.annotation
    assert part and (part.items, part.omitted, part.raters) == (4, 1, 2)
    assert {arm: score.n for arm, score in part.criteria[0].arms.items()} == {
        "original": 2, "semantic": 1, "updated": 1
    }  # fmt: skip
    assert part.criteria[0].arms["original"] == whole.criteria[0].arms["original"]
    card = " ".join((release.path / "README.md").read_text().split())
    assert "rated 4 texts" in card
    assert "1 other rated text is not in this release and not counted." in card
    asyncio.run(accept_all(rated, "yet another {}"))
    changed = rated.release("3").manifest.annotation
    assert changed and (changed.items, changed.omitted) == (3, 2)
    assert "updated" not in changed.criteria[0].arms


def test_a_release_without_ratings_says_nothing_of_them(rated: Made) -> None:
    release = rated.release()
    assert release.manifest.annotation is None
    assert "Ratings" not in (release.path / "README.md").read_text()


def test_one_rater_is_said_to_be_one_in_the_card(rated: Made, tmp_path: Path) -> None:
    export_sheets(rated.files.root, tmp_path / "out", raters=1)
    fill(tmp_path / "out")
    score_sheets(rated.files.root, [tmp_path / "out"])
    card = (rated.release().path / "README.md").read_text()
    assert "There was only one rater, so agreement cannot be measured." in card
    assert "| agreement |" not in card


def test_sheets_of_a_release_are_kept_with_its_run(rated: Made, tmp_path: Path) -> None:
    release = rated.release()
    export_sheets(release.path, tmp_path / "out", raters=1, originals=rated.benchmark)
    fill(tmp_path / "out")
    there = score_sheets(
        release.path, [tmp_path / "out"], originals=rated.benchmark, out=tmp_path / "a.json"
    )
    assert there.path == tmp_path / "a.json" and not rated.files.annotation.exists()
    assert there.annotation.run == "weekly/20261120T030000Z"
    sheets, own = [tmp_path / "out"], tmp_path / "own.json"
    own.write_text('{"text": "a"}')
    with pytest.raises(UsageError, match="CoreEval did not write this file"):
        score_sheets(release.path, sheets, originals=rated.benchmark, out=own)
    score_sheets(release.path, sheets, originals=rated.benchmark, out=there.path)


@pytest.mark.parametrize("damage", ["{", '{"version": 1}', "other"])
def test_a_release_is_not_made_of_ratings_that_are_damaged_or_of_another_run(
    rated: Made, tmp_path: Path, damage: str
) -> None:
    if damage == "other":
        export_sheets(rated.files.root, tmp_path / "out")
        fill(tmp_path / "out")
        found = score_sheets(rated.files.root, [tmp_path / "out"]).annotation
        damage = found.model_copy(update={"run": "another/1"}).model_dump_json()
    rated.files.annotation.write_text(damage)
    with pytest.raises(
        ReleaseError, match="the human ratings cannot be included in the release"
    ) as error:
        rated.release()
    assert error.value.where == str(rated.files.annotation)


# -- mistakes -----------------------------------------------------------------------------------


@pytest.fixture
def out(rated: Made, tmp_path: Path) -> Path:
    export_sheets(rated.files.root, tmp_path / "out", raters=2)
    return tmp_path / "out"


def refused(rated: Made, given: Path, **how: Path) -> UsageError:
    with pytest.raises(UsageError) as error:
        score_sheets(rated.files.root, [given], **how)  # type: ignore[arg-type]
    assert not rated.files.annotation.exists()
    return error.value


def test_sheets_that_nobody_filled(rated: Made, out: Path) -> None:
    assert "the sheets contain no ratings" in refused(rated, out).message


def test_a_result_that_cannot_be_written(rated: Made, out: Path, tmp_path: Path) -> None:
    fill(out)
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="cannot be written") as error:
        score_sheets(rated.files.root, [out], out=tmp_path / "file" / "a.json")
    assert "--out FILE" in error.value.hint


@pytest.mark.parametrize("column", ["item", "text"])
def test_a_sheet_of_which_one_column_was_sorted(rated: Made, out: Path, column: str) -> None:
    fill(out)
    sheet = out / SHEET_FOLDER / "rater-1.csv"
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        header, *rows = csv.reader(file)
    place = header.index(column)
    moved = [row[place] for row in rows]
    rows[0][place] = "changed by a rater " if column == "text" else rows[0][place]
    _write(sheet, [header, *rows])
    score_sheets(rated.files.root, [out])
    for row, cell in zip(rows, [*moved[1:], moved[0]], strict=True):
        row[place] = cell
    _write(sheet, [header, *rows])
    with pytest.raises(UsageError, match="has the text of") as error:
        score_sheets(rated.files.root, [out])
    assert error.value.where == "rater-1.csv, line 2"
    _write(
        sheet,
        [[cell for n, cell in enumerate(row) if header[n] != "text"] for row in [header, *rows]],
    )
    score_sheets(rated.files.root, [out])


def _write(sheet: Path, rows: Sequence[Sequence[str]]) -> None:
    with sheet.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


def test_a_folder_without_sheets(rated: Made, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    assert "no sheets were found" in refused(rated, tmp_path / "none").message


def test_a_key_that_is_not_there_or_damaged(rated: Made, out: Path) -> None:
    fill(out)
    shutil.move(out / "key.json", out / "moved.json")
    assert "--key FILE" in refused(rated, out).hint
    assert score_sheets(rated.files.root, [out], key=out / "moved.json").annotation.items == 5
    rated.files.annotation.unlink()
    (out / "moved.json").write_text(json.dumps({"version": 2}))
    assert "key of the sheets is damaged" in refused(rated, out, key=out / "moved.json").message


def test_sheets_of_another_study(rated: Made, out: Path, tmp_path: Path) -> None:
    other = export_sheets(rated.files.root, tmp_path / "other", seed=99)
    fill(out)
    wrong = refused(rated, out, key=other.key_file)
    assert f"a different study than the key ({other.key.study})" in wrong.message


def test_another_study_takes_the_place_of_the_first_and_says_so(
    rated: Made, out: Path, tmp_path: Path
) -> None:
    other = export_sheets(rated.files.root, tmp_path / "other", seed=99, raters=1)
    fill(out)
    fill(other.out)
    first = score_sheets(rated.files.root, [out]).annotation.study
    assert score_sheets(rated.files.root, [out]).replaced is None
    assert score_sheets(rated.files.root, [other.out]).replaced == first


async def test_texts_that_have_changed_since(rated: Made, out: Path) -> None:
    fill(out)
    await accept_all(rated, "yet another {}")
    wrong = refused(rated, out)
    assert "is different" in wrong.message and "weekly" in wrong.hint
