"""A cassette's file: identical bytes each time, and nothing of it is used that is not as made."""

import gzip
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coreeval.errors import CassetteError
from coreeval.releases.cassettes.format import (
    BodyTally,
    CassetteFile,
    CassetteHead,
    CassetteOrigin,
    CassetteSettings,
    CassetteSummary,
    PromptLine,
    RecordedManifest,
    SampleLine,
    write_cassette,
)
from coreeval.releases.cassettes.read import open_cassette
from coreeval.runs.config_source import ConfigSource
from coreeval.runs.manifest import Fingerprints, KnowledgeUsed, full_counts
from coreeval.schema import Coverage, Sample, Window

MOMENT = datetime(2026, 11, 1, tzinfo=UTC)
PRINTS = dict.fromkeys(("config", "task", "prompts", "data", "knowledge", "code", "graph"), "0")
RUN = RecordedManifest(
    run="trial/1",
    name="trial",
    task="emotion",
    status="complete",
    now=MOMENT.isoformat(),
    window=Window(start=MOMENT, end=MOMENT),
    counts=full_counts(1, {"accepted": 1}),
    models={"default": {"model": "offline"}},
    prompts={},
    knowledge=KnowledgeUsed(
        backend="local", path=None, min_precision="crawl", coverage=Coverage(articles=1)
    ),
    fingerprints=Fingerprints(**PRINTS),
    source=ConfigSource(path="", sha256=""),
    workspace="",
)
SETTINGS = CassetteSettings(
    name="trial", task="emotion", dataset={}, knowledge={}, run={}, safety={}
)


def head_of(tally: BodyTally) -> CassetteHead:
    return CassetteHead(
        made_with=CassetteOrigin(coreeval="0.1.0", python="3.11", pyarrow="1"),
        run=RUN,
        config=SETTINGS,
        models={"default": {"model": "offline"}},
        texts=True,
        snippet_chars=600,
        files=(),
        **vars(tally),
    )


def lines(text: str = "a tweet \U0001f600\u2028") -> list[PromptLine | SampleLine]:
    sample = Sample(id="1", split="test", fields={"text": text}, label=0, label_text="joy")
    return [
        PromptLine(role="composer", text="write"),
        SampleLine(sample=sample, texts_sha256="0"),
    ]


@pytest.fixture
def packed(tmp_path: Path) -> CassetteSummary:
    return write_cassette(tmp_path / "a.cassette", lines(), head_of)


def test_the_same_lines_make_the_same_file(packed: CassetteSummary, tmp_path: Path) -> None:
    again = write_cassette(tmp_path / "elsewhere" / "b", lines(), head_of)
    assert again.path.read_bytes() == packed.path.read_bytes()
    assert again.digest == packed.digest
    other = write_cassette(tmp_path / "c", lines("another"), head_of)
    assert other.digest != packed.digest


def test_lines_come_back_as_they_were(packed: CassetteSummary) -> None:
    found = open_cassette(packed.path)
    assert (found.digest, found.head) == (packed.digest, packed.head)
    assert [*found.lines(PromptLine), *found.lines(SampleLine)] == lines()
    assert len(gzip.decompress(packed.path.read_bytes()).splitlines()) == 3


def altered(packed: CassetteSummary, old: bytes, new: bytes) -> None:
    """Change the bytes inside a cassette."""
    inside = gzip.decompress(packed.path.read_bytes())
    assert old in inside
    packed.path.write_bytes(gzip.compress(inside.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b'"write"', b'"WRITE"', "its digest does not match its header"),
        (b'{"kind": "sample"', b'{"kind": "sampls"', "its digest does not match its header"),
        (b'"text": "write"}\n', b'"text": "write"}\n\n', "it contains more than its header says"),
        (
            b'"version": 1',
            b'"version": 2',
            r"format 2, but this[\s\S]*==0.1.0",
        ),
        (b'"version": 1', b'"version": "\\u001b"', "this CoreEval reads 1"),
        (b'"texts": true', b'"texts": 7.5', "its header is malformed: texts"),
        (b'"format"', b'"form"', "not a cassette: its first line"),
        (b'"sample": 1', b'"sample": 2', "its lines do not match its header"),
        (b'{"format"', b"[" * 100_000, "not a cassette: its header is not JSON"),
    ],
)
def test_an_altered_one_is_refused(
    packed: CassetteSummary, old: bytes, new: bytes, says: str
) -> None:
    altered(packed, old, new)
    with pytest.raises(CassetteError, match=says) as caught:
        open_cassette(packed.path)
    assert str(packed.path) in caught.value.where


def test_one_that_is_cut_is_refused(packed: CassetteSummary) -> None:
    whole = packed.path.read_bytes()
    for length in (len(whole) // 2, len(whole) - 4, 5, 0):
        packed.path.write_bytes(whole[:length])
        with pytest.raises(CassetteError, match=r"cut off|not a cassette"):
            open_cassette(packed.path)


@pytest.mark.parametrize("said", [b"", b"PK\x03\x04 a zip", b'{"format": "coreeval cassette"}\n'])
def test_what_is_no_cassette_says_so(tmp_path: Path, said: bytes) -> None:
    path = tmp_path / "a"
    path.write_bytes(said)
    with pytest.raises(CassetteError, match="this is not a cassette"):
        open_cassette(path)
    with pytest.raises(CassetteError, match="No such file"):
        open_cassette(tmp_path / "none")
    with pytest.raises(CassetteError, match="Is a directory"):
        open_cassette(tmp_path)


def test_a_bomb_is_not_unpacked(packed: CassetteSummary) -> None:
    altered(packed, f'"bytes": {packed.head.bytes}'.encode(), b'"bytes": 9000000000000')
    with pytest.raises(CassetteError, match="would unpack to 9,000,000,000,000 bytes"):
        open_cassette(packed.path)


def test_a_line_that_is_none_is_named(tmp_path: Path) -> None:
    class Odd(PromptLine):
        surprise: int = 1

    made = write_cassette(tmp_path / "a", [Odd(role="composer", text="")], head_of)
    with pytest.raises(CassetteError, match="line 2 is malformed: Extra inputs"):
        list(open_cassette(made.path).lines(PromptLine))


def test_half_a_character_is_refused_wherever_it_stands(tmp_path: Path) -> None:
    made = write_cassette(tmp_path / "a", lines("a tweet \ud800"), head_of)
    with pytest.raises(
        CassetteError, match="line 3 is malformed: a text contains an incomplete character"
    ):
        list(open_cassette(made.path).lines(SampleLine))

    def noted(tally: BodyTally) -> CassetteHead:
        run = RUN.model_copy(update={"notes": ("\ud800",)})
        return head_of(tally).model_copy(update={"run": run})

    with pytest.raises(
        CassetteError, match="its header is malformed: a text contains an incomplete character"
    ):
        open_cassette(write_cassette(tmp_path / "b", lines(), noted).path)


@pytest.mark.parametrize("precision", ["", "day"])
def test_a_precision_that_is_none_is_refused(tmp_path: Path, precision: str) -> None:
    def vague(tally: BodyTally) -> CassetteHead:
        knowledge = RUN.knowledge.model_copy(update={"min_precision": precision})
        run = RUN.model_copy(update={"knowledge": knowledge})
        return head_of(tally).model_copy(update={"run": run})

    with pytest.raises(CassetteError, match=r"run\.knowledge\.min_precision"):
        open_cassette(write_cassette(tmp_path / "a", lines(), vague).path)


@pytest.mark.timeout(30)
def test_a_pipe_is_no_cassette(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CassetteError, match="a pipe or device"):
        open_cassette(tmp_path / "pipe")


@pytest.mark.parametrize(
    "name", ["../a.parquet", "updated/../../a.parquet", "/a.parquet", "updated/a"]
)
def test_a_file_of_the_dataset_has_a_plain_name(name: str) -> None:
    told = {"name": name, "rows": 1, "sha256": "0", "columns": ()}
    with pytest.raises(ValueError, match="name"):
        CassetteFile.model_validate(told)
    assert json.loads(
        CassetteFile.model_validate(told | {"name": "updated/a.parquet"}).model_dump_json()
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"evaluation": {"added": [{"model": "openai:x"}]}}, "targets to evaluate"),
        ({"source": {"path": "b/coreeval.yaml", "sha256": ""}}, "a config"),
        ({"source": {"path": "", "sha256": "", "overrides": ["run.prices=x"]}}, "a config"),
        ({"workspace": "/home/a"}, "a workspace"),
        ({"cassette": "f00d"}, "a workspace"),
        ({"cost": {"billed_calls": 3}}, "a cost"),
        ({"knowledge": RUN.knowledge.model_dump() | {"path": "/etc"}}, "a path to news"),
        ({"parent": {"version": "1", "digest": "f", "path": "/etc"}}, "a path to a release"),
        ({"parent": {"version": "1", "digest": "f", "path": "../x"}}, "a path to a release"),
    ],
)
def test_a_recording_states_nothing_that_a_reviewers_machine_would_follow(
    packed: CassetteSummary, changes: dict[str, object], says: str
) -> None:
    whole = packed.head.model_dump(mode="json")
    whole["run"] |= json.loads(json.dumps(changes, default=str))
    body = gzip.decompress(packed.path.read_bytes()).partition(b"\n")[2]
    packed.path.write_bytes(gzip.compress(json.dumps(whole).encode() + b"\n" + body))
    with pytest.raises(CassetteError, match=f"it contains {says}, but a recording never does"):
        open_cassette(packed.path)
