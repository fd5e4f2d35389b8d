import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from coreeval.errors import ReleaseError
from coreeval.releases.release import hash_file, read_release
from coreeval.releases.verify import require_whole, verify
from tests.releases.kit import make_run

Edit = Callable[[Path], object]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two releases, the second of which follows the first."""
    made = make_run(tmp_path_factory.mktemp("run"))
    made.release("1")
    made.release("2")
    return made.shelf


@pytest.fixture
def second(shelf: Path, tmp_path: Path) -> Path:
    """Return a copy of the second release beside one of the first; their files can be written."""
    shutil.copytree(shelf, tmp_path / "shelf")
    for path in (tmp_path / "shelf").rglob("*"):
        path.chmod(0o755)
    return tmp_path / "shelf" / "2"


def kinds(release: Path, **how: object) -> list[tuple[str, str]]:
    found = verify(release, **how)  # type: ignore[arg-type]
    return [(problem.kind, problem.file) for problem in found.problems]


def flip(path: Path, at: int = 40) -> None:
    """Change one bit of a file."""
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def rewrite(release: Path, **changes: object) -> None:
    """Edit release.json, and its digest with it."""
    file = release / "release.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    (release / "release.sha256").write_text(f"{hash_file(file)}  release.json\n")


def test_a_release_that_nobody_touched_holds_with_its_chain(second: Path) -> None:
    found = verify(second)
    assert found.ok
    assert (found.version, found.chain, found.digest) == ("2", ("1",), read_release(second).digest)
    files = [second / name for name in read_release(second).manifest.files]
    assert found.files == len(files) == 9
    assert found.bytes == sum(file.stat().st_size for file in files)


def test_of_a_manifest_that_cannot_be_read_nothing_is_told(second: Path) -> None:
    (second / "release.json").write_text("{")
    found = verify(second)
    assert (found.version, found.digest, found.chain) == ("", "", ())
    assert (found.ok, found.files, found.bytes) == (False, 0, 0)


def test_one_flipped_bit_is_found_in_every_file(second: Path, shelf: Path) -> None:
    for name in read_release(second).manifest.files:
        flip(second / name)
        assert kinds(second) == [("changed", name)]
        flip(second / name)
    flip(second / "release.sha256", at=3)
    assert kinds(second) == [("digest", "release.json")]


@pytest.mark.parametrize(
    ("edit", "found"),
    [
        (lambda folder: (folder / "README.md").unlink(), ("missing", "README.md")),
        (lambda folder: (folder / "note.txt").write_text("x"), ("extra", "note.txt")),
        (lambda folder: (folder / "updated" / "x").write_text("x"), ("extra", "updated/x")),
        (
            lambda folder: (folder / ".gitattributes-x.py").write_text("x"),
            ("extra", ".gitattributes-x.py"),
        ),
        (lambda folder: (folder / "CHANGELOG.md").write_text("x"), ("changed", "CHANGELOG.md")),
        (lambda folder: (folder / "release.sha256").unlink(), ("missing", "release.sha256")),
        (lambda folder: (folder / "release.json").unlink(), ("missing", "release.json")),
        (lambda folder: shutil.rmtree(folder.parent / "1"), ("parent_missing", "../1")),
        (lambda folder: rewrite(folder, schema_version=2), ("manifest", "release.json")),
        (lambda folder: rewrite(folder, surprise=1), ("manifest", "release.json")),
    ],
)
def test_what_was_done_to_a_release_is_named(
    second: Path, edit: Edit, found: tuple[str, str]
) -> None:
    edit(second)
    assert kinds(second) == [found]


def test_a_manifest_that_was_edited_by_hand_is_found(second: Path) -> None:
    file = second / "release.json"
    file.write_text(file.read_text().replace('"accepted": 3', '"accepted": 4'))
    assert kinds(second) == [("digest", "release.json")]


def test_a_forged_digest_is_found_by_the_child_or_by_what_was_published(second: Path) -> None:
    first, published = second.parent / "1", hash_file(second.parent / "1" / "release.json")
    rewrite(first, run="another/run")
    assert kinds(first) == []
    assert kinds(first, digest=published) == [("digest", "release.json")]
    assert kinds(second) == [("parent_changed", str(first))]
    assert kinds(second, chain=False) == []


def test_a_release_by_a_newer_version_says_to_update(second: Path) -> None:
    rewrite(second, schema_version=7)
    with pytest.raises(ReleaseError, match="newer CoreEval") as caught:
        read_release(second)
    assert "pip install --upgrade" in caught.value.hint


def test_a_release_can_be_moved_with_its_parent(second: Path, tmp_path: Path) -> None:
    (tmp_path / "else").mkdir()
    moved = shutil.move(second, tmp_path / "else" / "renamed")
    shutil.move(second.parent / "1", tmp_path / "else" / "1")
    assert verify(Path(moved)).ok


def test_a_parent_that_left_its_place_is_found_beside_its_child(second: Path) -> None:
    parent = json.loads((second / "release.json").read_text())["parent"]
    rewrite(second, parent={**parent, "path": "../../archive/1"})
    assert verify(second).chain == ("1",)
    shutil.copytree(second.parent / "1", second.parent.parent / "archive" / "1")
    shutil.rmtree(second.parent / "1")
    assert verify(second).chain == ("1",)


def test_a_parent_that_stood_elsewhere_is_looked_for_beside_its_child(second: Path) -> None:
    parent = json.loads((second / "release.json").read_text())["parent"]
    rewrite(second, parent={**parent, "path": None})
    assert verify(second).chain == ("1",)


def test_of_a_changed_file_it_is_told_whether_its_size_changed(second: Path) -> None:
    size = (second / "README.md").stat().st_size
    flip(second / "README.md")
    (problem,) = verify(second).problems
    assert problem.message == "the file has the right size but different content"
    (second / "README.md").write_text("xyz")
    (problem,) = verify(second).problems
    assert problem.message == f"the file has 3 bytes, not {size}"


def test_a_whole_release_is_opened_and_any_other_is_refused_with_its_first_problem(
    second: Path,
) -> None:
    shutil.rmtree(second.parent / "1")  # its ancestors are not looked at
    assert require_whole(second) == read_release(second)
    (second / "README.md").unlink()
    (second / "updated" / "x").write_text("x")
    with pytest.raises(ReleaseError, match=r"README\.md: the file is missing") as caught:
        require_whole(second)
    assert "coreeval verify" in caught.value.hint


def test_what_is_no_release_is_refused(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ReleaseError, match="no release"):
            verify(place)


def test_a_damaged_table_is_an_error_that_names_the_file(second: Path) -> None:
    release = read_release(second)
    (second / "samples" / "test-00000-of-00001.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(ReleaseError, match="cannot read a file of the release") as caught:
        list(release.samples())
    assert "samples" in caught.value.where


def test_a_snapshot_of_the_hubs_cache_is_told_as_such(second: Path, tmp_path: Path) -> None:
    """As `hf download` leaves it: links into a folder of blobs, whose names are digests."""
    blobs, snapshot = tmp_path / "cache" / "blobs", tmp_path / "cache" / "snapshots" / "4e1f"
    blobs.mkdir(parents=True)
    for file in (each for each in second.rglob("*") if each.is_file()):
        blob, link = blobs / hash_file(file), snapshot / file.relative_to(second)
        shutil.copy(file, blob)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(blob)
    (problem,) = verify(snapshot).problems
    assert (problem.kind, problem.file) == ("link", "release.json")
    assert "hf download REPOSITORY --repo-type dataset --local-dir DIR" in problem.message
    shutil.rmtree(second)
    shutil.copytree(snapshot, second)  # follows the links
    assert verify(second).ok


def test_only_links_in_the_hubs_cache_are_told_as_its_snapshot(
    second: Path, tmp_path: Path
) -> None:
    (tmp_path / "blobs").mkdir()
    plain = Path(shutil.copytree(second, tmp_path / "snapshots" / "2"))
    assert verify(plain, chain=False).ok
    (second / "release.json").rename(tmp_path / "elsewhere.json")
    (second / "release.json").symlink_to(tmp_path / "elsewhere.json")
    (problem,) = verify(second).problems
    assert problem.kind == "manifest" and "a link" in problem.message
