import hashlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from coreeval.errors import ConfigError
from coreeval.runs.arms import PROVENANCE, OnReject, shard_name, write_arms
from coreeval.schema import Evidence, Outcome, ReplacedFact, Result, Sample, Triple
from coreeval.tasks import load_task
from coreeval.tools.stores.run_store import RunStore

NOW = datetime(2026, 3, 1, tzinfo=UTC)
TASK = load_task("emotion")
LONG = "A sentence that goes on. " * 20


def _result(number: int, outcome: Outcome, *, reworded: bool) -> Result:
    return Result(
        sample_id=str(number),
        outcome=outcome,
        attempts=1,
        semantic_status="reworded" if reworded else "unchanged",
        semantic={"text": f"reworded {number}"} if reworded else None,
        updated={"text": f"updated {number}"} if outcome == "accepted" else None,
        facts=_facts(number) if outcome == "accepted" else (),
    )


def _facts(number: int) -> tuple[ReplacedFact, ...]:
    new = Triple(head="new", relation="is", tail="here")
    old = Triple(head="old", relation="was", tail="there")
    shared = {"sample_id": str(number), "field": "text", "after": new, "evidence_id": "e1"}
    return (
        ReplacedFact.model_validate(shared | {"before": old, "quote": "q"}),
        ReplacedFact.model_validate(shared | {"before": None, "quote": "q"}),
    )


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[RunStore]:
    opened = RunStore.open(tmp_path / "run.db", now=lambda: NOW)
    opened.add_samples(
        Sample(id=str(n), split="test", fields={"text": f"old {n}"}, label=1, label_text="joy")
        for n in range(5)
    )
    await opened.history.add_evidence(
        [
            Evidence(
                id="e1",
                url="https://example.org/a",
                domain="example.org",
                title="title",
                snippet=LONG,
                published_at=NOW,
                published_precision="url",
                origin="f:1",
            )
        ]
    )
    await opened.commit(_result(0, "accepted", reworded=True))
    await opened.commit(_result(1, "rejected_facts", reworded=True))
    await opened.commit(_result(2, "rejected_form", reworded=False))
    await opened.commit(_result(3, "no_knowledge", reworded=True))
    await opened.commit(_result(4, "unsafe", reworded=False))
    yield opened
    opened.close()


def _rows(folder: Path, arm: str) -> list[dict[str, object]]:
    table = pq.read_table(folder / arm / "test-00000-of-00001.parquet")
    return list(table.to_pylist())


def _texts(folder: Path, arm: str) -> dict[object, object]:
    return {row["id"]: row["text"] for row in _rows(folder, arm)}


@pytest.mark.parametrize(
    ("on_reject", "updated"),
    [
        ("drop", {"0": "updated 0"}),
        ("semantic", {"0": "updated 0", "1": "reworded 1"}),
        ("original", {"0": "updated 0", "1": "old 1", "2": "old 2"}),
    ],
)
def test_the_updated_arm_has_accepted_samples_and_fills_rejected_ones_only_if_told(
    store: RunStore, tmp_path: Path, on_reject: OnReject, updated: dict[str, str]
) -> None:
    counts = write_arms(store, TASK, tmp_path / "d", split="test", on_reject=on_reject)
    assert _texts(tmp_path / "d", "updated") == updated
    assert counts == {"updated": len(updated), "semantic": 3, "provenance": 2}
    outcomes = {row["id"]: row["outcome"] for row in _rows(tmp_path / "d", "updated")}
    assert outcomes["0"] == "accepted"
    assert all(str(outcomes[key]).startswith("rejected") for key in updated if key != "0")


def test_the_semantic_arm_has_every_sample_that_was_reworded(
    store: RunStore, tmp_path: Path
) -> None:
    write_arms(store, TASK, tmp_path / "d", split="test", on_reject="drop")
    assert _texts(tmp_path / "d", "semantic") == {
        "0": "reworded 0",
        "1": "reworded 1",
        "3": "reworded 3",
    }


def test_provenance_has_the_columns_of_the_contract_and_a_short_excerpt(
    store: RunStore, tmp_path: Path
) -> None:
    write_arms(store, TASK, tmp_path / "d", split="test", on_reject="drop")
    replaced, inserted = _rows(tmp_path / "d", "provenance")
    assert tuple(replaced) == PROVENANCE
    assert (replaced["before_head"], replaced["after_tail"]) == ("old", "here")
    assert (inserted["before_head"], inserted["before_relation"]) == ("", "")
    snippet = str(replaced["snippet"])
    assert snippet == LONG[:300]
    assert replaced["snippet_sha256"] == hashlib.sha256(snippet.encode()).hexdigest()
    assert replaced["published_precision"] == "url"
    last = ("text_sha256", "evidence_depth", "source", "licence")
    assert PROVENANCE[-4:] == last
    assert [replaced[name] for name in last] == ["", "description", "gdelt", ""]


def test_datasets_reads_the_arms_with_a_class_label(store: RunStore, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="the extra 'hf' is not installed")
    write_arms(store, TASK, tmp_path / "d", split="test", on_reject="drop")
    file = str(tmp_path / "d" / "updated" / "test-00000-of-00001.parquet")
    loaded = datasets.Dataset.from_parquet(file, cache_dir=str(tmp_path / "cache"))
    assert loaded.features["label"].names == ["anger", "joy", "optimism", "sadness"]
    assert loaded[0]["label_text"] == loaded.features["label"].int2str(loaded[0]["label"])


def test_a_file_that_could_not_be_finished_does_not_appear(
    store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: RunStore, sample_id: str | None = None) -> object:
        raise OSError("disk is not full")

    monkeypatch.setattr(RunStore, "facts", broken)
    with pytest.raises(OSError, match="disk is not full"):
        write_arms(store, TASK, tmp_path / "d", split="test", on_reject="drop")
    assert not (tmp_path / "d" / "provenance").exists() or not list(
        (tmp_path / "d" / "provenance").iterdir()
    )


@pytest.mark.parametrize("split", ["/tmp/victim", "../victim", "a/b", "all"])
def test_a_shard_never_leaves_its_folder(split: str) -> None:
    with pytest.raises(ConfigError, match="is not a valid split name"):
        shard_name(split)
