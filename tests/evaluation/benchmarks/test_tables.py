"""A user's own files: JSON lines, CSV, TSV, Parquet."""

import csv
import gzip
import json
import os
import sys
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen
from types import ModuleType, SimpleNamespace

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from coreeval.errors import DatasetError, UsageError
from coreeval.evaluation.benchmarks import fingerprint, hub_process, iter_benchmark, list_splits
from coreeval.evaluation.benchmarks.arrow import read_parquet_records
from coreeval.schema import Sample
from coreeval.tasks import load_task
from tests.evaluation.benchmarks.kit import EMOTION, dataset, put, read, reasons

ROWS: list[dict[str, object]] = [
    {"id": "a", "text": "so happy ", "label": "joy"},
    {"id": "b", "text": 'say "hi"\u2028there, all', "label": 0},
]


def as_json(path: Path) -> Path:
    return put(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS))


def as_csv(path: Path) -> Path:
    return put(
        path, '\ufeffid,text,label\r\na,so happy ,joy\r\nb,"say ""hi""\u2028there, all",0\r\n'
    )


def as_tsv(path: Path) -> Path:
    return put(path, 'id\ttext\tlabel\na\tso happy \tjoy\nb\tsay "hi"\u2028there, all\t0\n')


def as_parquet(path: Path) -> Path:
    texts = [{name: str(value) for name, value in row.items()} for row in ROWS]
    pq.write_table(pa.Table.from_pylist(texts), path)
    return path


WRITERS = {"jsonl": as_json, "csv": as_csv, "tsv": as_tsv, "parquet": as_parquet}


@pytest.mark.parametrize("kind", WRITERS)
def test_every_format_gives_the_same_samples(tmp_path: Path, kind: str) -> None:
    path = WRITERS[kind](tmp_path / f"mine.{kind}")
    found = read(kind, path)
    assert [(s.id, s.fields["text"], s.label) for s in found.samples] == [
        ("a", "so happy", 1),
        ("b", 'say "hi"\u2028there, all', 0),
    ]
    assert found.bad_rows == () and found.note is None


def test_lists_in_small_row_groups_are_read(tmp_path: Path) -> None:
    path, options = tmp_path / "mine.parquet", [[str(row), "b"] for row in range(25)]
    pq.write_table(pa.table({"options": options}), path, row_group_size=10)
    records = list(read_parquet_records(path, columns={"options"}))
    assert [(record.line, record.values) for record in records] == [
        (line, {"options": one}) for line, one in enumerate(options, start=1)
    ]


@pytest.mark.parametrize("kind", WRITERS)
def test_a_folder_has_a_file_for_each_split(tmp_path: Path, kind: str) -> None:
    WRITERS[kind](tmp_path / f"test.{kind}")
    WRITERS[kind](tmp_path / f"train-00000-of-00001.{kind}")
    config = dataset(kind, tmp_path)
    assert list_splits(config) == ["test", "train"]
    assert [found.split for found in iter_benchmark(config, EMOTION, split="train")
            if isinstance(found, Sample)] == ["train", "train"]  # fmt: skip
    with pytest.raises(DatasetError, match="no split 'dev'") as caught:
        iter_benchmark(config, EMOTION, split="dev")
    assert "test, train" in caught.value.hint


@pytest.mark.parametrize("kind", WRITERS)
def test_columns_by_other_names(tmp_path: Path, kind: str) -> None:
    path = WRITERS[kind](tmp_path / f"test.{kind}")
    renamed = load_task("emotion").model_copy(update={"fields": ("tweet",)})
    found = read(kind, path, renamed, columns={"tweet": "text", "id": "text"})
    assert found.samples[0].fields == {"tweet": "so happy"}
    assert found.samples[0].id == "so happy "
    with pytest.raises(DatasetError, match="no column 'tweet'") as caught:
        read(kind, path, renamed)
    assert "text" in caught.value.hint
    with pytest.raises(DatasetError, match="no column 'txt'") as near:
        read(kind, path, columns={"text": "txt"})
    assert "did you mean 'text'?" in near.value.hint
    with pytest.raises(DatasetError, match="names 'texts', which the task emotion"):
        read(kind, path, columns={"texts": "text"})


@pytest.mark.parametrize("kind", WRITERS)
def test_nothing_there(tmp_path: Path, kind: str) -> None:
    with pytest.raises(DatasetError, match="no such file or folder") as caught:
        read(kind, tmp_path / "none")
    assert f"test.{kind}" in caught.value.hint
    with pytest.raises(DatasetError, match=f"has no \\*.{kind}"):
        read(kind, tmp_path)
    put(tmp_path / f"test.{kind}", "")
    with pytest.raises(DatasetError, match=r"empty|not a Parquet file"):
        read(kind, tmp_path)


def test_ids_made_from_rows_and_lines(tmp_path: Path) -> None:
    table = read("csv", put(tmp_path / "a.csv", "text,label\nx,7\n\ny,1\n"))
    lines = read("jsonl", put(tmp_path / "a.jsonl", '\n{"text":"x","label":1}\n'))
    assert [sample.id for sample in table.samples] == ["emotion/test/2"]
    assert [row.line for row in table.bad_rows] == [2]
    assert [sample.id for sample in lines.samples] == ["emotion/test/2"]


def test_parts_are_numbered_through(tmp_path: Path) -> None:
    for part in range(2):
        put(tmp_path / f"test-0000{part}-of-00002.csv", f"text,label\np{part},1\n")
        put(tmp_path / f"test-0000{part}-of-00002.jsonl", f'{{"text":"p{part}","label":1}}\n')
    for kind in ("csv", "jsonl"):
        found = read(kind, tmp_path)
        assert [(s.id, s.fields["text"]) for s in found.samples] == [
            ("emotion/test/1", "p0"),
            ("emotion/test/2", "p1"),
        ]
    (tmp_path / "test-00000-of-00002.csv").unlink()
    with pytest.raises(DatasetError, match="are incomplete: 1 of 2"):
        read("csv", tmp_path)


def test_blank_lines_at_the_end_of_a_part_count_in_the_ids_of_the_next(tmp_path: Path) -> None:
    put(tmp_path / "test-00000-of-00002.jsonl", '{"text":"p0","label":1}\n\n\n')
    put(tmp_path / "test-00001-of-00002.jsonl", '{"text":"p1","label":1}\n')
    found = read("jsonl", tmp_path)
    assert [sample.id for sample in found.samples] == ["emotion/test/1", "emotion/test/4"]


def test_bad_json_lines(tmp_path: Path) -> None:
    lines = [
        b'{"id": 1, "text": "ok", "label": "joy"}',
        b"{broken",
        b"[1, 2]",
        b'{"id": 2, "text": 5, "label": "joy"}',
        b'{"id": 3, "label": "joy"}',
        b'{"id": 1, "text": "again", "label": "joy"}',
        b'{"id": 4, "text": "half \\ud800", "label": "joy"}',
        b'{"id": 5, "text": "bad \xff", "label": "joy"}',
        b'{"id": null, "text": "x", "label": "joy"}',
        b'{"id": 6, "text": "x", "label": null}',
        b"[" * 100_000,
        b'{"id": "\\ud800", "text": "x", "label": "joy"}',
        b'{"id": "' + b"x" * 1_001 + b'", "text": "x", "label": "joy"}',
        b'{"id": "' + b"x" * 1_000 + b'", "text": "x", "label": "joy"}',
    ]
    found = read("jsonl", put(tmp_path / "x.jsonl", b"\n".join(lines)))
    assert [sample.id for sample in found.samples] == ["1", "x" * 1_000]
    assert [row.line for row in found.bad_rows] == list(range(2, 14))
    told = [row.reason for row in found.bad_rows]
    assert told[0].startswith("not JSON") and told[9].startswith("not JSON")
    assert told[10:] == [
        "the id contains an incomplete character (a lone surrogate)",
        "the id has more than 1,000 characters",
    ]
    assert told[1:9] == [
        "the value is not a JSON object",
        "the text field must be a text, not int",
        "the text field is missing",
        "the id '1' occurs twice",
        "the text field contains an incomplete character (a lone surrogate)",
        "the line is not UTF-8",
        "the id is empty",
        "the label is missing",
    ]


def test_a_json_line_with_a_key_twice_is_a_bad_row(tmp_path: Path) -> None:
    lines = ['{"text": "a", "label": "joy", "label": "anger"}', '{"text": "b", "label": "joy"}']
    found = read("jsonl", put(tmp_path / "x.jsonl", "\n".join(lines)))
    [bad] = found.bad_rows
    assert (bad.line, bad.reason) == (1, "the key 'label' occurs twice in an object")
    assert len(found.samples) == 1


@pytest.mark.parametrize("form", ["{}\n{}", "[{},\n{}]"])
def test_a_key_twice_is_refused_where_it_is_read(tmp_path: Path, form: str) -> None:
    unread = '{"text": "b", "label": "joy", "meta": {"id": 1, "id": 1}}'
    for bad in ('{"text": "a", "label": "joy", "label": "anger"}',
                '{"text": "a", "label": {"name": "joy", "name": "anger"}}'):  # fmt: skip
        found = read("jsonl", put(tmp_path / "x.jsonl", form.format(bad, unread)))
        [row] = found.bad_rows
        assert row.line == 1 and row.reason.endswith("occurs twice in an object")
        assert [sample.fields["text"] for sample in found.samples] == ["b"]


def test_one_json_document_is_not_json_lines(tmp_path: Path) -> None:
    path = put(tmp_path / "x.jsonl", json.dumps({"rows": ROWS}, indent=1))
    with pytest.raises(DatasetError, match="no line of the file is a JSON object") as caught:
        read("jsonl", path)
    assert "one list of objects" in caught.value.hint


@pytest.mark.parametrize("name", ["x.json", "x.json.gz", "x.jsonl.gz"])
def test_a_list_is_read_in_place_of_lines_and_both_may_be_packed(tmp_path: Path, name: str) -> None:
    rows = [*ROWS, 7]
    lines = [json.dumps(row) for row in rows]
    text = "\n".join(lines) if "jsonl" in name else f"\ufeff [\n{', '.join(lines)}]"
    content = gzip.compress(text.encode()) if name.endswith(".gz") else text.encode()
    found = read("jsonl", put(tmp_path / name, content))
    plain = read("jsonl", put(tmp_path / "plain.jsonl", "\n".join(lines)))
    assert [(each.id, each.fields) for each in found.samples] == [
        (each.id, each.fields) for each in plain.samples
    ]
    (bad,) = found.bad_rows
    assert (bad.file, bad.reason) == (name, "the value is not a JSON object")


def test_csv_reads_on_after_a_quotation_mark_that_is_never_closed(tmp_path: Path) -> None:
    rows = 'text,label\n"two\nlines",1\n"open,1\nplain,0\n"quoted, too",2\nshort\n"a" b,1\nlast,3\n'
    found = read("csv", put(tmp_path / "x.csv", rows))
    assert [(s.id, s.fields["text"]) for s in found.samples] == [
        ("emotion/test/1", "two\nlines"),
        ("emotion/test/3", "plain"),
        ("emotion/test/4", "quoted, too"),
        ("emotion/test/7", "last"),
    ]
    assert [row.line for row in found.bad_rows] == [4, 7, 8]
    assert found.bad_rows[1].reason == "the line has 1 column, but the header has 2"


def test_csv_with_an_open_quotation_mark_to_the_end(tmp_path: Path) -> None:
    rows = "".join(f"t{number},1\n" for number in range(300))
    found = read("csv", put(tmp_path / "x.csv", f'text,label\n"open,1\n{rows}'))
    assert len(found.samples) == 300
    assert reasons(found.bad_rows) == [(2, "a quotation mark is never closed")]


def test_csv_bytes_that_are_no_text(tmp_path: Path) -> None:
    rows = b'text,label\nbad \xff,1\n"two\nbad \xff",1\ngood,1\n'
    found = read("csv", put(tmp_path / "x.csv", rows))
    assert reasons(found.bad_rows) == [(2, "the line is not UTF-8"), (3, "the line is not UTF-8")]
    assert len(found.samples) == 1


def test_a_tsv_that_a_program_quoted(tmp_path: Path) -> None:
    rows = [('He said "so"', "anger"), ("two\nlines, joy", "joy"), ("a\ttab", "joy"), ("b", "1")]
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL):
        with (tmp_path / "x.tsv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter="\t", quoting=quoting).writerows([("text", "label"), *rows])
        found = read("tsv", tmp_path / "x.tsv")
        assert [s.fields["text"] for s in found.samples] == [text for text, _ in rows]
        assert not found.bad_rows


@pytest.mark.parametrize(
    ("rows", "texts"),
    [
        ('"two\nlines"\tjoy\nb\tanger\n', ["two\nlines", "b"]),
        ('"a\ttab"\tjoy\n', ["a\ttab"]),
        ('"say ""so"""\tjoy\nb\tanger\n', ['say "so"', "b"]),
        ('"Hello"\tjoy\nb\tanger\n', ['"Hello"', "b"]),
        ('"Hello\tjoy\nb\tanger\nthe end"\tjoy\n', ['"Hello', "b", 'the end"']),
        ('"say ""so"""\tjoy\nhe said "no"\tanger\n', ['"say ""so"""', 'he said "no"']),
        ('"Hello" she said\tjoy\n', ['"Hello" she said']),
        ('"Hello\tjoy\nb\tanger\n', ['"Hello', "b"]),
    ],
)
def test_a_tsv_counts_as_quoted_only_if_it_certainly_is(
    tmp_path: Path, rows: str, texts: list[str]
) -> None:
    found = read("tsv", put(tmp_path / "x.tsv", f"text\tlabel\n{rows}"))
    assert [s.fields["text"] for s in found.samples] == texts
    assert not found.bad_rows


def test_a_header_that_names_a_column_twice(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="two columns have the same name"):
        read("tsv", put(tmp_path / "x.tsv", "text\ttext\tlabel\n"))


def test_parquet_with_integers_nulls_and_broken_text(tmp_path: Path) -> None:
    broken = pa.array([b"ok", b"\xff", b"fine"]).cast(pa.binary()).view(pa.string())
    table = pa.table({"text": broken, "label": pa.array([1, 2, None], pa.int64())})
    pq.write_table(table, tmp_path / "x.parquet")
    found = read("parquet", tmp_path / "x.parquet")
    assert [(s.id, s.label) for s in found.samples] == [("emotion/test/1", 1)]
    assert reasons(found.bad_rows) == [
        (2, "a text of the row is not UTF-8"),
        (3, "the label is missing"),
    ]


def test_answers_of_32_bits_keep_their_digits(tmp_path: Path) -> None:
    answers = pa.array([[1.1, 0.3]], pa.list_(pa.float32()))
    table = pa.table({"answers": answers, "tolerance": pa.array([0.1], pa.float32())})
    pq.write_table(table, tmp_path / "test.parquet")
    [record] = read_parquet_records(tmp_path / "test.parquet", columns=table.column_names)
    told = hub_process.answer(hub_process.HubQuestion(str(tmp_path), None, "test"))
    assert isinstance(next(told), hub_process.HubColumns)
    for row in (record.values, next(told)):
        assert row == {"answers": [1.1, 0.3], "tolerance": 0.1}


def test_rows_that_share_a_long_text_are_read_one_at_a_time(tmp_path: Path) -> None:
    """2 GiB of texts in a file of a few kilobytes."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 1024, pa.int32()), ["x" * 2**21])
    path = tmp_path / "mine.parquet"
    table = pa.table({"text": text, "label": [1] * 1024})
    pq.write_table(table, path, store_schema=False, dictionary_pagesize_limit=2**22)
    tracemalloc.start()
    try:
        records = read_parquet_records(path, columns=["text"])
        lengths = {len(str(record.values["text"])) for record in records}
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert lengths == {2**21}
    assert most < 64 * 2**20


def test_a_parquet_row_with_too_much_text_is_a_bad_row(tmp_path: Path) -> None:
    table = pa.table({"text": ["so happy", "x" * (2**26 + 1)], "label": [1, 1]})
    pq.write_table(table, tmp_path / "x.parquet", compression="snappy")
    found = read("parquet", tmp_path / "x.parquet")
    assert len(found.samples) == 1
    assert reasons(found.bad_rows) == [(2, "the row has more than 64 MiB of values")]


def test_a_damaged_parquet_file(tmp_path: Path) -> None:
    texts = [f"text {number}" for number in range(5000)]
    pq.write_table(pa.table({"text": texts, "label": [1] * 5000}), tmp_path / "x.parquet")
    content = bytearray((tmp_path / "x.parquet").read_bytes())
    content[4:400] = bytes(396)
    put(tmp_path / "x.parquet", bytes(content))
    with pytest.raises(DatasetError, match="damaged"):
        read("parquet", tmp_path / "x.parquet")


def test_streams(tmp_path: Path) -> None:
    def lines() -> Iterator[str]:
        for number in range(3000):
            yield f'{{"id": "{number}", "text": "t", "label": 1}}\n'

    stream = iter_benchmark(dataset("jsonl", put(tmp_path / "x.jsonl", "".join(lines()))), EMOTION)
    first = next(stream)
    assert isinstance(first, Sample) and first.id == "0"
    assert sum(1 for _ in stream) == 2999


def test_fingerprint_is_of_the_content(tmp_path: Path) -> None:
    config = dataset("csv", tmp_path)
    put(tmp_path / "test.csv", "text,label\na,1\n")
    put(tmp_path / "train.csv", "text,label\na,1\n")
    before = fingerprint(config)
    put(tmp_path / "train.csv", "text,label\nz,1\n")
    assert fingerprint(config) == before != fingerprint(config, "train")
    put(tmp_path / "test.csv", "text,label\nb,1\n")
    assert fingerprint(config) != before
    with pytest.raises(DatasetError, match="no split 'dev'"):
        fingerprint(config, "dev")


HUB_ROWS: list[dict[str, object]] = [
    {"idx": 7, "tweet": "so happy", "label": 1},
    {"idx": 8, "tweet": "so sad", "label": -1},
]
HUB_COLUMNS = {"text": "tweet", "id": "idx"}


class Stream:
    features = SimpleNamespace(arrow_schema=pa.schema([]))

    def __init__(self, column_names: list[str] | None, breaks: Exception | None) -> None:
        self.column_names = column_names
        self.breaks = breaks

    def decode(self, enable: bool) -> "Stream":
        assert not enable, "what rows name would be opened"
        return self

    def __iter__(self) -> Iterator[dict[str, object]]:
        yield from HUB_ROWS
        if self.breaks:
            raise self.breaks


class Package(ModuleType):
    declared: list[str] | None = None
    breaks: Exception | None = None
    data_files = SimpleNamespace(resolve_pattern=None)

    def get_dataset_split_names(self, path: str, subset: str | None) -> list[str]:
        if path == "empty/answer":
            raise KeyError("id")  # as huggingface_hub does where the answer is {}
        if path == "no/such":
            raise FileNotFoundError("not on the hub")
        return ["train", "test"]

    def load_dataset(self, path: str, subset: str | None, *, split: str, streaming: bool) -> Stream:
        assert streaming and subset == "emotion"
        return Stream(self.declared, self.breaks)


@pytest.fixture(params=[None, ["idx", "tweet", "label"]])
def package(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Package:
    package = Package("datasets")
    package.declared = request.param
    monkeypatch.setitem(sys.modules, "datasets", package)
    monkeypatch.setattr(hub_process, "ask_apart", hub_process.answer)
    return package


@pytest.mark.usefixtures("package")
def test_rows_of_the_hub() -> None:
    found = read("hf", Path("tweet_eval"), subset="emotion", columns=HUB_COLUMNS)
    assert [(s.id, s.label_text) for s in found.samples] == [("7", "joy")]
    assert [line for line, _ in reasons(found.bad_rows)] == [2]
    assert list_splits(dataset("hf", Path("tweet_eval"))) == ["test", "train"]


@pytest.mark.usefixtures("package")
def test_what_goes_wrong() -> None:
    with pytest.raises(DatasetError, match="cannot be opened: not on the hub"):
        read("hf", Path("no/such"))
    with pytest.raises(DatasetError, match="cannot be opened: 'id'"):
        read("hf", Path("empty/answer"))
    with pytest.raises(DatasetError, match="no column 'text'") as caught:
        read("hf", Path("tweet_eval"), subset="emotion")
    assert caught.value.where == "tweet_eval (emotion)"


@pytest.mark.parametrize(
    "error",
    [
        pa.ArrowInvalid("JSON parse error: Invalid value. in row 150000"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        OSError("Corrupt snappy compressed data."),
        EOFError("Compressed file ended before the end-of-stream marker was reached"),
        zlib.error("Error -3 while decompressing data"),
    ],
)
def test_a_hub_whose_data_break_off_says_after_which_row(
    package: Package, error: Exception
) -> None:
    package.breaks = error
    config = dataset("hf", Path("tweet_eval"), subset="emotion", columns=HUB_COLUMNS)
    for use in (lambda: list(iter_benchmark(config, EMOTION)), lambda: fingerprint(config)):
        with pytest.raises(DatasetError, match="cannot be read after row 2: ") as caught:
            use()
        assert caught.value.where == "tweet_eval (emotion)" and caught.value.hint


@pytest.mark.usefixtures("package")
def test_fingerprint_is_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    config = dataset("hf", Path("tweet_eval"), subset="emotion")
    before = fingerprint(config)
    assert fingerprint(config) == before
    monkeypatch.setitem(HUB_ROWS[0], "tweet", "other")
    assert fingerprint(config) != before


def test_the_hubs_address_is_looked_at_before_its_package_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://[")
    with pytest.raises(UsageError, match="the address of the hub is not an http address"):
        read("hf", Path("tweet_eval"))


def test_a_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    monkeypatch.setattr(hub_process, "ask_apart", hub_process.answer)
    with pytest.raises(DatasetError, match="not installed") as caught:
        read("hf", Path("tweet_eval"))
    assert "coreeval[hf]" in caught.value.hint


# -- the hub's own package, on folders that somebody else made -------------------------------------

FOREIGN = """---
dataset_info:
  features:
  - name: text
    dtype: string
  - name: label
    dtype: {}
---
"""


def foreign_folder(folder: Path, readme: str, label: str) -> Path:
    folder.mkdir()
    (folder / "README.md").write_text(readme)
    pq.write_table(pa.table({"text": ["so happy"], "label": [label]}), folder / "test.parquet")
    return folder


@pytest.mark.timeout(60)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["image", "audio", "video", "pdf"])
def test_what_a_row_of_the_hub_names_is_not_opened(tmp_path: Path, kind: str) -> None:
    os.mkfifo(tmp_path / "pipe")  # whoever opens it waits for ever
    folder = foreign_folder(tmp_path / "set", FOREIGN.format(kind), str(tmp_path / "pipe"))
    with pytest.raises(DatasetError, match=r"no valid sample|cannot be opened"):
        read("hf", folder)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "readme", ["---\nfoo: [\n---\n", "---\nfoo: !!python/name:os.system\n---\n"]
)
def test_a_card_of_the_hub_that_is_no_yaml_is_told(tmp_path: Path, readme: str) -> None:
    with pytest.raises(DatasetError, match="cannot be opened"):
        read("hf", foreign_folder(tmp_path / "set", readme, "joy"))


@pytest.mark.timeout(120)
def test_a_file_that_crashes_the_package_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    deep = "[" * 100_000 + "]" * 100_000
    lines = f'{{"text": "so happy", "label": "joy", "more": {deep}}}\n'
    (tmp_path / "set" / "test.jsonl").write_text(lines)
    with pytest.raises(DatasetError, match=r"unexpectedly: signal 11[\s\S]*check the file"):
        read("hf", tmp_path / "set")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
@pytest.mark.timeout(120)
def test_a_file_that_swells_is_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of 16 MB that 1,000 rows share: 16 GB, where the process may have 2."""
    module = hub_process.__name__
    monkeypatch.setattr(
        hub_process,
        "start_serving",
        lambda _: Popen(
            [sys.executable, "-c", f"import {module} as m; m.MOST_MEMORY = 2 << 30; m.serve()"],
            stdin=PIPE,
            stdout=PIPE,
        ),
    )
    (tmp_path / "set").mkdir()
    shared = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), ["x" * (16 << 20)])
    table = pa.table({"text": shared, "label": ["joy"] * 1000})
    pq.write_table(table, tmp_path / "set" / "test.parquet", store_schema=False)
    with pytest.raises(DatasetError, match=r"read after row 0|ended unexpectedly") as caught:
        read("hf", tmp_path / "set")
    assert caught.value.hint


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("test.csv", "text,label\nso happy,joy\n"),
        ("test.json", '[{"text": "so happy", "label": "joy"}]'),
    ],
)
def test_a_file_without_declared_types_is_read(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / name).write_text(text)
    assert [each.label_text for each in read("hf", tmp_path / "set").samples] == ["joy"]


def test_rows_come_through_the_process(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    rows = [{"text": f"so happy {number}", "label": "joy"} for number in range(3000)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "set" / "test.jsonl").write_text(text)
    config = dataset("hf", tmp_path / "set")
    assert len(read("hf", tmp_path / "set").samples) == 3000
    rows_of_it = iter_benchmark(config, EMOTION)
    assert isinstance(next(rows_of_it), Sample), (
        "and the process ends with whoever reads no further"
    )
    rows_of_it.close()  # type: ignore[attr-defined]
    assert fingerprint(config) == fingerprint(config)
