"""Files that are either whole or not there, and what a killed writer leaves."""

import errno
import json
import os
import signal
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from coreeval.errors import UsageError
from coreeval.tools import files
from coreeval.tools.files import (
    append_lines,
    draft_folder,
    limit_batch,
    open_parquet_bounded,
    read_parquet,
    replacing,
    select_parquet_rows,
    write_text,
)
from coreeval.tools.outputs import refuse_foreign_file
from coreeval.tools.parquet_pages import read_pages

DIES = """
import os, signal, sys
from pathlib import Path
from coreeval.tools.files import replacing
with replacing(Path(sys.argv[1])) as draft:
    draft.write_text("half of it")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_drafts_of_killed_writers_do_not_pile_up(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    for _ in range(3):
        died = subprocess.run([sys.executable, "-c", DIES, path], check=False)
        assert died.returncode == -signal.SIGKILL
    assert not path.exists() and len(list(tmp_path.iterdir())) == 1
    write_text(path, "all")
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text() == "all"


def test_a_draft_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    with replacing(path) as slow:
        slow.write_text("slow")
        write_text(path, "fast")
        assert (path.read_text(), slow.read_text()) == ("fast", "slow")
    assert path.read_text() == "slow"
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


HANGS = """
import sys, time
from pathlib import Path
from coreeval.tools.files import draft_folder
with draft_folder(Path(sys.argv[1])) as draft:
    (draft / "texts").write_text("half of them")
    print("writing", flush=True)
    time.sleep(60)
"""


def test_a_draft_folder_is_deleted_only_after_its_writer_has_died(tmp_path: Path) -> None:
    kept = tmp_path / ".coreeval-draft-mine"  # nobody's draft: it has no lock
    kept.mkdir()
    program = [sys.executable, "-c", HANGS, str(tmp_path / "first")]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as writer:
        assert writer.stdout and writer.stdout.readline() == b"writing\n"
        with draft_folder(tmp_path / "second") as draft:
            draft.rename(tmp_path / "second")
        assert len([*tmp_path.glob(".coreeval-draft-*/texts")]) == 1
        writer.kill()
    with draft_folder(tmp_path / "third") as draft, draft_folder(tmp_path / "fourth") as other:
        assert draft.is_dir() and other.is_dir() and draft != other
        assert not [*tmp_path.glob(".coreeval-draft-*/texts")]
    assert {each.name for each in tmp_path.iterdir()} == {"second", kept.name}


def test_a_lock_without_its_draft_leads_nowhere(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "chapter").write_text("the only copy")
    (tmp_path / ".coreeval-draft-a.lock").touch()
    (tmp_path / ".coreeval-draft-a").symlink_to(own)
    (tmp_path / ".coreeval-draft-b.lock").symlink_to(own / "chapter")
    with draft_folder(tmp_path / "new"):
        pass
    assert (own / "chapter").read_text() == "the only copy"


def test_many_writers_of_one_file_at_once(tmp_path: Path) -> None:
    path, texts = tmp_path / "state.json", [str(number) * 5000 for number in range(10)]
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda text: write_text(path, text), texts * 10):
            assert path.read_text() in texts
    assert [each.name for each in tmp_path.iterdir()] == ["state.json"]


def test_trouble_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_text(path, "before")
    with pytest.raises(OSError) as caught, replacing(path) as draft:
        draft.write_text("half")
        raise OSError(28, os.strerror(28))
    assert caught.value.filename == str(path)
    assert path.read_text() == "before"
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize("rights", [0o600, 0o640, 0o664, 0o444])
def test_a_file_that_is_replaced_keeps_its_rights(tmp_path: Path, rights: int) -> None:
    path = tmp_path / "list.txt"
    path.write_text("old")
    path.chmod(rights)
    group = next((each for each in os.getgroups() if each != os.getegid()), os.getegid())
    os.chown(path, -1, group)
    with replacing(path) as draft:
        assert draft.stat().st_mode & 0o077 == rights & 0o077  # nobody else reads what is written
        draft.write_text("new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", rights)
    assert path.stat().st_gid == group


def test_without_locks_each_process_has_a_draft_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    path = tmp_path / "report.html"
    with replacing(path) as draft:
        assert str(os.getpid()) in draft.name
        draft.write_text("all")
    assert path.read_text() == "all"
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


@pytest.fixture(scope="module")
def swollen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small file whose rows share one long text: 3,000 rows of 1 MiB, and as many in lists."""
    path, rows = tmp_path_factory.mktemp("swollen") / "rows.parquet", 3000
    text = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["x" * 2**20]))
    ends = pa.array(range(rows + 1), pa.int32())
    columns = {
        "id": pa.array([f"s{number}" for number in range(rows)]),
        "text": text,
        "texts": pa.ListArray.from_arrays(ends, text),
    }
    pq.write_table(pa.table(columns), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 100_000
    return path


def test_rows_that_share_a_long_text_are_read_one_at_a_time(swollen: Path) -> None:
    tracemalloc.start()
    try:
        lengths = {len(row["text"]) + len(row["texts"][0]) for row in read_parquet(swollen)}
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert lengths == {2**21}
    assert most < 64 * 2**20


def test_more_rows_than_memory_should_hold_are_not_selected(swollen: Path) -> None:
    with pytest.raises(ValueError, match="more than 1 GiB of values"):
        select_parquet_rows(swollen)
    (row,) = select_parquet_rows(swollen, columns=["texts"], ids=["s7", "unknown"])
    assert (list(row), len(row["texts"][0])) == (["texts"], 2**20)
    assert len(select_parquet_rows(swollen, columns=["id"])) == 3000


def test_one_row_with_too_much_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    table = pa.table({"id": ["a"], "texts": [["x" * 2**20] * 65]})
    pq.write_table(table, path, compression="zstd")
    with pytest.raises(ValueError, match="a row has more than 64 MiB of values"):
        list(read_parquet(path))


SHARED = pa.DictionaryArray.from_arrays(pa.array([0] * 65, pa.int32()), pa.array(["x" * 2**20]))
WHOLE = pa.array([0, 65], pa.int32())
SWOLLEN = {
    "a map": pa.MapArray.from_arrays(WHOLE, pa.array([*map(str, range(65))]), SHARED),
    "a list of fixed size": pa.FixedSizeListArray.from_arrays(SHARED, 65),
    "a list of structs": pa.ListArray.from_arrays(
        WHOLE, pa.StructArray.from_arrays([SHARED], ["text"])
    ),
    "zeros": pa.ListArray.from_arrays(pa.array([0, 2**22], pa.int32()), pa.repeat(0, 2**22)),
    "empty texts": pa.ListArray.from_arrays(pa.array([0, 2**22], pa.int32()), pa.repeat("", 2**22)),
    "fixed binary": pa.array([b"x" * (2**26 - 8)]),
}
"""Columns of one row with more than 64 MiB of values, in files of a few kilobytes."""


@pytest.mark.parametrize("kind", SWOLLEN)
def test_values_of_any_type_count(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"values": SWOLLEN[kind]}), path, compression="zstd")
    assert path.stat().st_size < 100_000
    says = "a row has more than 64 MiB of values|bytes unpack to more than 64 MiB"
    with pytest.raises((ValueError, OSError), match=says):
        list(read_parquet(path))


READ = {
    "maps": pa.array([[("a", "b")], None, []], pa.map_(pa.string(), pa.string())),
    "pairs": pa.array([["a", "b"], None, ["c", "d"]], pa.list_(pa.string(), 2)),
    "structs": pa.array([[{"a": 1, "b": "x"}, None], None, []]),
    "dates": pa.array([date(2026, 1, 2), None, date(2026, 3, 4)]),
    "amounts": pa.array([Decimal("1.50"), None, Decimal("2.25")]),
    "digests": pa.array([b"ab", None, b"cd"], pa.binary(2)),
}


def test_values_of_common_types_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    table = pa.table(READ)
    pq.write_table(table, path)
    assert list(read_parquet(path)) == select_parquet_rows(path) == table.to_pylist()


@pytest.mark.parametrize(
    ("column", "says"),
    [
        (pa.array([["a"]], pa.list_view(pa.string())), "'odd' has the type list_view<"),
        (pa.array([None], pa.list_(pa.int64(), 2**24)), r"'odd' has the type fixed_size_list<.*"),
        (pa.array([[["a"]]], pa.list_(pa.list_(pa.string(), 1))), "'odd' has the type list<"),
    ],
)
def test_a_type_that_is_not_read_is_named(tmp_path: Path, column: object, says: str) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": ["a"], "odd": column}), path)
    with pytest.raises(OSError, match=f"{says}.*; write it as texts, numbers, dates"):
        list(read_parquet(path))
    assert select_parquet_rows(path, columns=["id"]) == [{"id": "a"}]


def test_lists_with_more_values_than_bytes_are_not_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "ALLOWED_LIST_VALUES", 10_000)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": ["a"], "a.b": [[0] * 20_000]}), path)
    assert path.stat().st_size < 20_000
    with pytest.raises(OSError, match="its lists have 20,000 values, which is more than its bytes"):
        select_parquet_rows(path, columns=["a.b"])
    assert select_parquet_rows(path, columns=["id"]) == [{"id": "a"}]


def test_a_footer_that_says_less_than_the_pages_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "ALLOWED_LIST_VALUES", 10_000)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": ["a"], "many": pa.array([[0] * 20_000])}), path)
    content = bytearray(path.read_bytes())
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    said, less = b"\xc0\xb8\x02", b"\x94\x80\x00"  # 20,000 and 10 as signed numbers
    content[footer:] = content[footer:].replace(said, less)
    path.write_bytes(content)
    assert pq.ParquetFile(path).metadata.row_group(0).column(1).num_values == 10
    with pytest.raises(OSError, match="its lists have 20,000 values, which is more than its bytes"):
        list(read_parquet(path))


def test_pages_that_unpack_to_far_more_than_the_file_are_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    texts = [f"{row} " + "a" * 1_000_000 for row in range(70)]
    pq.write_table(
        pa.table({"id": ["a"] * 70, "text": texts}), path, compression="zstd", use_dictionary=["id"]
    )
    before = pa.total_allocated_bytes()
    with pytest.raises(OSError, match="bytes unpack to more than 64 MiB; write it again"):
        list(read_parquet(path))
    assert pa.total_allocated_bytes() - before < 1_000_000
    assert len(select_parquet_rows(path, columns=["id"])) == 70


def test_pages_without_values_are_counted(tmp_path: Path) -> None:
    empty = bytes.fromhex("1500150015002c15001500150615060000")  # a data page of no values
    path = tmp_path / "pages"
    path.write_bytes(empty * 2000)
    chunk = SimpleNamespace(
        data_page_offset=0, dictionary_page_offset=None, num_values=1, path_in_schema="x",
        total_compressed_size=path.stat().st_size,
    )  # fmt: skip
    metadata = SimpleNamespace(
        num_row_groups=1, row_group=lambda _: SimpleNamespace(column=lambda _: chunk)
    )
    with pytest.raises(OSError, match="it has more than 1,000 pages without values"):
        list(read_pages(path, metadata, [0]))


@pytest.mark.parametrize("encoding", ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_texts_with_a_count_of_their_own_are_refused_before_memory_is_reserved(
    tmp_path: Path, encoding: str, version: str
) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(
        pa.table({"id": ["a"] * 10, "text": ["b"] * 9 + ["c" * 60]}),
        path,
        compression="none",
        use_dictionary=["id"],
        column_encoding={"text": encoding},
        data_page_version=version,
    )
    content = bytearray(path.read_bytes())
    said, more = b"\x80\x01\x04\x0a", b"\x80\x80\x80\x80\x08\x04\x80\x84\xaf\x5f"  # 200 million
    at = content.index(said)
    content[at : at + len(more)] = more
    path.write_bytes(content)
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(OSError, match=f"'text' has the encoding {encoding}, which is not read"):
        list(read_parquet(path))
    assert pa.default_memory_pool().max_memory() == before
    assert len(select_parquet_rows(path, columns=["id"])) == 10


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip", "brotli", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_ordinary_pages_are_read(
    tmp_path: Path, compression: str, version: str, *, use_dictionary: bool
) -> None:
    path, rows = tmp_path / "rows.parquet", range(3_000)
    table = pa.table(
        {
            "id": [str(row) for row in rows],
            "text": ["x" * (row % 50) or None for row in rows],
            "long": ["y" * 5_000 + str(row % 7) for row in rows],
            "score": [row / 3 for row in rows],
            "right": [row % 2 == 0 for row in rows],
            "options": [["a", None, "c"][: row % 4] for row in rows],
        }
    )
    pq.write_table(
        table,
        path,
        compression=compression,
        data_page_version=version,
        use_dictionary=use_dictionary,
        row_group_size=700,
        data_page_size=1_000,
        write_page_checksum=True,
    )
    assert list(read_parquet(path)) == table.to_pylist()


@pytest.mark.parametrize("at", [4, 5, 6, 8])
def test_a_damaged_page_header_is_named(tmp_path: Path, at: int) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": ["a", "b"]}), path)
    content = bytearray(path.read_bytes())
    content[at] = 0xFF
    path.write_bytes(content)
    with pytest.raises(OSError, match=r"a page of the column 'id' is damaged \(.*\); get the file"):
        list(read_parquet(path))


def test_wide_rows_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(
        pa.table({"id": ["a"], "wide": pa.array([b"x" * 2**20], pa.binary(2**20))}), path
    )
    with open_parquet_bounded(path) as file:
        assert limit_batch(file, 5000) == 63
        assert limit_batch(file, 5000, ["id"]) == 5000


@pytest.mark.parametrize(
    ("columns", "ids", "says"),
    [(["name", "other"], None, "no column 'other'"), (None, ["a"], "no column 'id'")],
)
def test_columns_that_a_file_lacks_are_named(
    tmp_path: Path, columns: list[str] | None, ids: list[str] | None, says: str
) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"name": ["a"]}), path)
    with pytest.raises(ValueError, match=says):
        select_parquet_rows(path, columns=columns, ids=ids)


def test_lines_are_added_all_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    append_lines(path, ["one", "two"])

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        append_lines(path, ["three", "four"])
    monkeypatch.undo()
    assert path.read_text() == "one\ntwo\n"


def test_a_last_line_without_its_end_stays_a_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("one\ntwo")
    append_lines(path, ["three"])
    assert path.read_text() == "one\ntwo\nthree\n"


@pytest.mark.parametrize("text", ["", '["a"]\n', '["a\u2028b"]\n["c"]\n'])
def test_a_file_with_only_own_lines_may_be_replaced(tmp_path: Path, text: str) -> None:
    path = tmp_path / "own.jsonl"
    refuse_foreign_file(path, _write_again)
    path.write_text(text, encoding="utf-8", newline="")
    refuse_foreign_file(path, _write_again)


@pytest.mark.parametrize(
    "content",
    [b'["a"]', b'["a"]\r\n', b'["a"]\n\n', b'[ "a" ]\n', b'["a"]\nnotes\n', b"\xff\n", b"[" * 9999],
)
def test_a_file_of_somebody_else_is_not_replaced(tmp_path: Path, content: bytes) -> None:
    path, pipe = tmp_path / "other.jsonl", tmp_path / "pipe"
    path.write_bytes(content)
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to("nowhere")
    for each in (path, pipe, tmp_path, tmp_path / "link"):
        with pytest.raises(UsageError, match="did not write this file") as error:
            refuse_foreign_file(each, _write_again)
        assert error.value.where == str(each)
    assert path.read_bytes() == content


def _write_again(line: str) -> str:
    return json.dumps(json.loads(line), ensure_ascii=False)
