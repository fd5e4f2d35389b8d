"""A release that somebody else made: nothing outside its folder is read, hashed or copied."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from coreeval.errors import ReleaseError
from coreeval.releases.exports.export import FORMATS, export
from coreeval.releases.release import hash_file, read_release
from coreeval.releases.verify import verify
from tests.releases.kit import make_run

SECRET = "sk-a-key-of-the-reader"
Plant = Callable[[Path, Path], object]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("run")).release("1").path


@pytest.fixture
def release(original: Path, tmp_path: Path) -> Path:
    """Return a copy that can be written, beside a secret of the reader."""
    copy = Path(shutil.copytree(original, tmp_path / "shelf" / "1"))
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o755)
    return copy


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text(SECRET)
    return file


def signed(release: Path, change: Callable[[dict[str, object]], None]) -> None:
    """Edit release.json and the digest that vouches for it."""
    file = release / "release.json"
    said = json.loads(file.read_text())
    change(said)
    file.write_text(json.dumps(said))
    (release / "release.sha256").write_text(f"{hash_file(file)}  release.json\n")


def listed(release: Path, name: str, file: Path) -> None:
    """Let release.json vouch for a file, as its maker can who knows what it holds."""
    digest = {"sha256": hash_file(file), "bytes": file.stat().st_size}
    signed(release, lambda said: said["files"].update({name: digest}))  # type: ignore[attr-defined]


def linked_file(release: Path, secret: Path) -> None:
    (release / "notes.txt").symlink_to(secret)
    listed(release, "notes.txt", secret)


def linked_folder(release: Path, secret: Path) -> None:
    (release / "more").symlink_to(secret.parent)
    listed(release, "more/secret", secret)


def climbing(release: Path, secret: Path) -> None:
    listed(release, "../../secret", secret)


def absolute(release: Path, secret: Path) -> None:
    listed(release, str(secret), secret)


def hidden_link(release: Path, secret: Path) -> None:
    (release / "extra").symlink_to(secret)


def linked_card(release: Path, secret: Path) -> None:
    secret.write_text((release / "README.md").read_text() + SECRET)
    (release / "README.md").unlink()
    (release / "README.md").symlink_to(secret)
    listed(release, "README.md", secret)


def linked_arm(release: Path, secret: Path) -> None:
    shutil.move(release / "updated", secret.parent / "elsewhere")
    (release / "updated").symlink_to(secret.parent / "elsewhere")


def climbing_split(release: Path, secret: Path) -> None:
    signed(release, lambda said: said.update(split="../../secret"))


PLANTS: tuple[Plant, ...] = (
    linked_file, linked_folder, climbing, absolute, hidden_link, linked_card, linked_arm,
    climbing_split,
)  # fmt: skip


@pytest.mark.parametrize("plant", PLANTS)
def test_verify_names_what_leads_out_of_the_folder(
    release: Path, secret: Path, plant: Plant
) -> None:
    plant(release, secret)
    kinds = {problem.kind for problem in verify(release).problems}
    assert kinds & {"link", "manifest"}, kinds


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("to", ["hf", "jsonl", "spreadsheet"])
def test_nothing_outside_the_folder_is_exported(
    release: Path, secret: Path, plant: Plant, to: str, tmp_path: Path
) -> None:
    plant(release, secret)
    with pytest.raises(ReleaseError) as caught:
        export(release, to=to, out=tmp_path / "out")
    assert SECRET not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("to", sorted(FORMATS))
def test_a_release_that_does_not_verify_is_not_exported(
    release: Path, tmp_path: Path, to: str
) -> None:
    (release / "CHANGELOG.md").write_text("edited")
    with pytest.raises(ReleaseError, match="the release has changed since it was made") as caught:
        export(release, to=to, out=tmp_path / "out")
    assert "coreeval verify" in caught.value.hint
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["release.json", "release.sha256", "task.json", "config.yaml"])
def test_a_device_in_the_place_of_a_file_is_not_read(
    release: Path, tmp_path: Path, name: str
) -> None:
    (release / name).unlink()
    (release / name).symlink_to("/dev/zero")
    assert {problem.kind for problem in verify(release).problems} & {"link", "manifest"}
    with pytest.raises(ReleaseError):
        export(release, to="csv", out=tmp_path / "out")


def test_a_pipe_in_a_release_is_not_waited_for(release: Path) -> None:
    os.mkfifo(release / "pipe")
    assert [(each.kind, each.file) for each in verify(release).problems] == [("special", "pipe")]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", [".gitattributes", ".cache/huggingface/download/x.lock"])
def test_a_name_of_the_hub_is_no_pass_for_links_and_pipes(
    release: Path, secret: Path, name: str, tmp_path: Path
) -> None:
    for kind, make in (("special", os.mkfifo), ("link", lambda path: path.symlink_to(secret))):
        (release / name).parent.mkdir(parents=True, exist_ok=True)
        make(release / name)
        assert [(each.kind, each.file) for each in verify(release).problems] == [(kind, name)]
        with pytest.raises(ReleaseError):
            export(release, to="hf", out=tmp_path / "out")
        (release / name).unlink()


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", ["release.json", "release.sha256", "README.md"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(release: Path, name: str) -> None:
    (release / name).unlink()
    os.mkfifo(release / name)
    (found,) = verify(release).problems
    assert (found.file, found.kind) == (name, "manifest" if name == "release.json" else "special")
    assert "a named pipe" in found.message


@pytest.mark.timeout(30)
def test_a_pipe_in_the_place_of_a_table_is_not_waited_for(release: Path) -> None:
    made = read_release(release)
    for folder in ("samples", "updated"):
        table = made.file(folder)
        table.unlink()
        os.mkfifo(table)
        with pytest.raises(ReleaseError, match="a named pipe"):
            list(made.samples() if folder == "samples" else made.arm("updated"))


@pytest.mark.parametrize("place", ["/etc", "a\\b"])
def test_a_parent_is_named_relative_to_its_child(release: Path, place: str) -> None:
    parent = {"version": "0", "digest": "0" * 64, "path": place}
    signed(release, lambda said: said.update(parent=parent))
    with pytest.raises(ReleaseError, match="relative to the release's folder"):
        read_release(release)


@pytest.mark.parametrize("said", ["x", "2026-11-20T03:00:00"])
def test_the_date_of_a_release_is_a_time_with_a_zone(release: Path, said: str) -> None:
    signed(release, lambda made: made.update(created_at=said))
    with pytest.raises(ReleaseError, match="created_at"):
        read_release(release)


ODD_ROWS = (
    ("samples", "oldest_evidence", "x"),
    ("samples", "newest_evidence", "2026-11-20T03:00:00"),
    ("samples", "rung", "zzz"),
    ("samples", "outcome", "zzz"),
    ("samples", "semantic_status", "zzz"),
    ("samples", "id", None),
    ("provenance", "published_at", "2026-11-20T03:00:00"),
    ("provenance", "published_precision", "zzz"),
    ("updated", "text", None),
)


@pytest.mark.parametrize(("folder", "column", "value"), ODD_ROWS)
def test_an_odd_row_is_named_with_its_number(
    release: Path, folder: str, column: str, value: str | None
) -> None:
    made = read_release(release)
    table = pq.read_table(made.file(folder), partitioning=None)
    rows = table.to_pylist()
    rows[1][column] = value
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), made.file(folder))
    read = {"samples": made.samples, "provenance": made.facts}
    with pytest.raises(ReleaseError, match=rf"row 2: .*{column}"):
        list(read.get(folder, lambda: made.arm("updated"))())


def test_ids_that_are_numbers_are_no_fault(release: Path) -> None:
    made = read_release(release)
    pq.write_table(pa.table({"id": [1, 2]}), made.file("samples"))
    with pytest.raises(ReleaseError, match=r"cannot read .*: its ids are not strings"):
        list(made.samples(["1"]))


def test_a_version_is_a_name(release: Path) -> None:
    signed(release, lambda said: said.update(version="../../x"))
    with pytest.raises(ReleaseError, match="version"):
        read_release(release)


def test_a_table_whose_rows_share_a_long_text_is_described_without_it_in_memory(
    release: Path, tmp_path: Path
) -> None:
    rows, size = 1000, 2**20
    text = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["x" * size]))
    shard = next(release.glob("samples/*.parquet")).name
    table = release / "extra" / shard
    table.parent.mkdir()
    pq.write_table(pa.table({"text": text}), table, compression="zstd", store_schema=False)
    listed(release, f"extra/{shard}", table)
    before = pa.default_memory_pool().max_memory()
    assert export(release, to="hf", out=tmp_path / "out").rows["extra"] == rows
    assert pa.default_memory_pool().max_memory() - before < 300 * size
    assert f"num_bytes: {rows * size // 100_000}" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize("said", [b"[", b"[]", b'{"info": {"features": {"id": {"names": 5}}}}'])
def test_a_tables_description_of_its_columns_may_be_anything(
    release: Path, tmp_path: Path, said: bytes
) -> None:
    shard = next(release.glob("samples/*.parquet")).name
    table = release / "extra" / shard
    table.parent.mkdir()
    schema = pa.schema([("id", pa.string())], metadata={"huggingface": said})
    pq.write_table(pa.table({"id": ["a"]}, schema=schema), table)
    listed(release, f"extra/{shard}", table)
    assert export(release, to="hf", out=tmp_path / "out").rows["extra"] == 1


def test_a_table_that_cannot_be_read_is_named(release: Path, tmp_path: Path) -> None:
    shard = next(release.glob("samples/*.parquet")).name
    table = release / "extra" / shard
    table.parent.mkdir()
    table.write_bytes(b"no table")
    listed(release, f"extra/{shard}", table)
    with pytest.raises(ReleaseError, match="cannot read a table of the dataset") as raised:
        export(release, to="hf", out=tmp_path / "out")
    assert raised.value.where
    assert raised.value.where.endswith(shard)
