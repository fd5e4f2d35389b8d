"""CSV, JSON lines and JUnit say of each sample what the run or the release does."""

import csv
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from coreeval.errors import ReleaseError, RunError, RunStateError, UsageError
from coreeval.releases import folders
from coreeval.releases.exports.export import export
from coreeval.releases.exports.tables import escape_cell
from coreeval.releases.verify import verify
from coreeval.schema import TaskKind
from tests.releases.exports.conftest import Sources, changed_run
from tests.releases.kinds import make_kind_run
from tests.releases.kit import make_run

TAMED = '\'=HYPERLINK("http://x")\N{REPLACEMENT CHARACTER}, "quoted"\nnext line'
HOSTILE = '=HYPERLINK("http://x")\x0b, "quoted"\r\nnext line'


def _csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def _lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_csv_and_json_lines_hold_the_same(sources: Sources, tmp_path: Path) -> None:
    made = export(sources.run, to="csv", out=tmp_path / "csv")
    export(sources.run, to="jsonl", out=tmp_path / "jsonl")
    assert made.rows == {"samples": 6, "facts": 4}
    rows, told = _csv(tmp_path / "csv/samples.csv"), _lines(tmp_path / "jsonl/samples.jsonl")
    first, rejected = rows[0], rows[3]
    assert (first["id"], first["label"], first["label_text"]) == ("emotion/test/1", "0", "anger")
    assert first["original_text"] == "old tweet number 0"
    assert first["updated_text"] == "Ada Roe opened it"
    assert (rejected["updated_text"], rejected["outcome"]) == ("", "rejected_facts")
    assert "Ada Roe was arrested" in rejected["reason"]
    assert [row["semantic"] for row in told[:2]] == [{"text": "reworded 0"}, None]
    assert [row["id"] for row in told] == [row["id"] for row in rows]
    facts, fact_lines = _csv(tmp_path / "csv/facts.csv"), _lines(tmp_path / "jsonl/facts.jsonl")
    assert [fact["after_head"] for fact in facts] == [fact["after_head"] for fact in fact_lines]
    assert facts[0]["url"] == "https://example.org/0"


def test_a_release_gives_what_it_may(sources: Sources, tmp_path: Path) -> None:
    export(sources.closed, to="jsonl", out=tmp_path / "closed")
    export(sources.free, to="jsonl", out=tmp_path / "free")
    closed, free = (_lines(tmp_path / name / "samples.jsonl") for name in ("closed", "free"))
    assert {row["original"] is None for row in closed} == {True}
    assert free[5]["original"] == {"text": "old tweet number 5"}
    assert [row["updated"] for row in closed] == [row["updated"] for row in free]
    assert [row["updated"] is not None for row in closed] == [True] * 3 + [False] * 3
    assert closed[3]["reason"] == ""
    assert [row["semantic"] is not None for row in free] == [True, False] * 3


@pytest.mark.parametrize("to", ["csv", "spreadsheet"])
def test_a_hostile_text_comes_back_as_it_was_but_for_a_spreadsheet(tmp_path: Path, to: str) -> None:
    run = changed_run(tmp_path, outcome="accepted", updated={"text": HOSTILE})
    export(run, to=to, out=tmp_path / "out")
    text = _csv(tmp_path / "out/samples.csv")[0]["updated_text"]
    assert text == {"csv": HOSTILE, "spreadsheet": TAMED}[to]


def test_a_spreadsheet_knows_the_encoding(sources: Sources, tmp_path: Path) -> None:
    """Without a byte order mark LibreOffice and Excel take UTF-8 for a code page."""
    for to, mark in (("csv", b""), ("spreadsheet", b"\xef\xbb\xbf")):
        export(sources.run, to=to, out=tmp_path / to)
        for name in ("samples.csv", "facts.csv"):
            first = (tmp_path / to / name).read_bytes()[:3]
            assert (first == b"\xef\xbb\xbf") == bool(mark)


def test_only_what_a_spreadsheet_would_run_is_marked() -> None:
    assert [escape_cell(cell) for cell in ("=1+1", "@x", "-1", "a=b", "", -1)] == [
        "'=1+1", "'@x", "'-1", "a=b", "", -1,
    ]  # fmt: skip
    assert [escape_cell(cell) for cell in ("a;=1", "a\t-1", "a\n@x", 'a,"+1"', "a, -1; b")] == [
        "a;'=1", "a\t'-1", "a\n'@x", "a,'\"+1\"", "a, -1; b",
    ]  # fmt: skip


def test_junit_has_a_case_for_each_sample(sources: Sources, tmp_path: Path) -> None:
    export(sources.run, to="junit", out=tmp_path / "out")
    root = ET.parse(tmp_path / "out/junit.xml").getroot()
    suite = root.find("testsuite")
    assert suite is not None
    cases = suite.findall("testcase")
    assert len(cases) == int(suite.attrib["tests"]) == 6
    assert len(suite.findall("testcase/skipped")) == int(suite.attrib["skipped"]) == 3
    assert suite.attrib["failures"] == root.attrib["failures"] == "0"
    assert suite.attrib["timestamp"] == "2026-11-20T03:00:00"
    assert cases[0].attrib == {"classname": "weekly.test", "name": "emotion/test/1"}
    skipped = cases[3].find("skipped")
    assert skipped is not None
    assert skipped.attrib["type"] == "rejected_facts"
    assert skipped.attrib["message"].startswith("rejected_facts: the text says 'Ada Roe")


def test_a_failed_sample_is_a_failure_and_its_reason_is_xml(tmp_path: Path) -> None:
    run = changed_run(tmp_path, outcome="failed", reason=f"it said {HOSTILE} <&>")
    export(run, to="junit", out=tmp_path / "out")
    failure = ET.parse(tmp_path / "out/junit.xml").getroot().find("testsuite/testcase/failure")
    assert failure is not None
    assert failure.attrib["message"].startswith('failed: it said =HYPERLINK("http://x")\ufffd,')
    assert failure.attrib["message"].endswith("<&>")


def test_what_cannot_be_exported(sources: Sources, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'xml' is not a format"):
        export(sources.run, to="xml", out=tmp_path / "out")
    with pytest.raises(ReleaseError, match="neither a run nor a release"):
        export(tmp_path, to="csv", out=tmp_path / "out")
    stopped = make_run(tmp_path, status="stopped").files.root
    with pytest.raises(RunStateError, match=r"unfinished \(stopped\)"):
        export(stopped, to="csv", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_exists_keeps_its_rights_and_is_filled_in_place(
    sources: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be private, shared, a link, the current folder, or a volume."""
    private, link = tmp_path / "private", tmp_path / "link"
    private.mkdir(mode=0o700)
    link.symlink_to(private)
    before = private.stat()
    export(sources.run, to="csv", out=link)
    assert (private.stat().st_ino, private.stat().st_mode) == (before.st_ino, before.st_mode)
    assert link.is_symlink()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    export(sources.run, to="csv", out=Path())
    assert {each.name for each in Path.cwd().iterdir()} == {each.name for each in private.iterdir()}
    assert {each.name for each in tmp_path.iterdir()} == {"private", "link", "here"}


def test_a_folder_that_exists_gets_all_files_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, rename = tmp_path / "out", Path.rename
    out.mkdir()
    with (
        pytest.raises(UsageError, match="meanwhile"),
        folders.create_export_folder(out) as draft,
    ):
        (draft / "a").write_text("")
        (out / "foreign").write_text("")
    assert [each.name for each in out.iterdir()] == ["foreign"]
    (out / "foreign").unlink()

    def stop(path: Path, target: Path) -> Path:
        if target == out / "b":
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", stop)
    with (
        pytest.raises(RunError, match="No space left"),
        folders.create_export_folder(out) as draft,
    ):
        (draft / "a").write_text("")
        (draft / "b").write_text("")
    assert not [*out.iterdir()]
    killed = out / ".coreeval-draft-1"
    killed.mkdir()
    killed.with_suffix(".lock").write_text("")
    with folders.create_export_folder(out) as draft:
        (draft / "a").write_text("")
    assert [each.name for each in out.iterdir()] == ["a"]


def test_nothing_is_written_into_a_release(sources: Sources) -> None:
    for source in (sources.run, sources.free):
        with pytest.raises(ReleaseError, match="nothing can be written into it"):
            export(source, to="csv", out=sources.free / "new" / "csv")
    assert verify(sources.free).ok


def test_out_is_empty_or_new_and_whole(
    sources: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    export(sources.run, to="csv", out=out)
    with pytest.raises(UsageError, match="this folder is not empty"):
        export(sources.run, to="csv", out=out)
    with pytest.raises(UsageError, match="this is not a folder"):
        export(sources.run, to="csv", out=out / "facts.csv")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="this is not a folder"):
        export(sources.run, to="csv", out=tmp_path / "gone")
    (tmp_path / "gone").unlink()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(RunError, match="cannot make the export: No space left"):
        export(sources.run, to="csv", out=tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("kind", "gold", "cell"),
    [
        ("choice", "choices", '["Di Ray", "Ada Roe"]'),
        ("answer", "answers", '["3", "three"]'),
        ("summary", "summary", "A dam was opened."),
    ],
)
def test_tables_have_the_columns_of_the_kind(
    tmp_path: Path, kind: TaskKind, gold: str, cell: str
) -> None:
    run = make_kind_run(tmp_path, kind).files.root
    export(run, to="csv", out=tmp_path / "csv")
    export(run, to="jsonl", out=tmp_path / "jsonl")
    first, second = _csv(tmp_path / "csv/samples.csv")[:2]
    assert (first[f"updated_{gold}"], second[f"updated_{gold}"]) == (cell, "")
    line = _lines(tmp_path / "jsonl/samples.jsonl")[0]
    updated = line["updated"]
    assert isinstance(updated, dict)
    assert updated[gold] == (json.loads(cell) if cell.startswith("[") else cell)
    assert "label" not in updated
