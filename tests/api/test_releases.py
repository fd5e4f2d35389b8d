"""Releases from Python: the same values and documents as the commands have."""

import json
from pathlib import Path

import pytest

from coreeval.api.comparisons import diff
from coreeval.api.execution import refresh
from coreeval.api.exports import export
from coreeval.api.gates import gate
from coreeval.api.releases import Release, load_release, make_release
from coreeval.api.runs import Run
from coreeval.api.verification import verify
from coreeval.errors import ConfigError, GateNotMet, ReleaseError, UsageError
from coreeval.releases.release import Release as ReadRelease
from coreeval.releases.sample_tables import load_originals
from tests.cli.kit import DEMO, Shell


@pytest.fixture
def run(shell: Shell) -> Run:
    return refresh(shell.config(), limit=5)


@pytest.fixture
def made(run: Run) -> Release:
    return make_release(run, version="1", out="first")


def test_a_release_is_the_document_of_the_command(shell: Shell, run: Run, made: Release) -> None:
    said = shell(
        "release", run.run_dir, "--version", "1", "--out", "second", "--parent", "none", "--json"
    ).document
    for key in ("created_at", "release", "digest"):
        assert said.pop(key) and made.document[key]
    assert {key: made.document[key] for key in said} == said
    assert isinstance(made, ReadRelease)
    assert made.path == shell.folder / "first"
    assert repr(made).startswith("release trial 1: ")


def test_a_release_is_loaded_by_path_by_run_or_as_itself(run: Run) -> None:
    made = make_release(run.id, version="1")
    for given in (made.path, str(made.path), run.id, "latest", made):
        assert load_release(given).digest == made.digest
    with pytest.raises(ReleaseError, match="there is no release or run 'trail'"):
        load_release("trail")


@pytest.mark.parametrize("broken", ["release.json", "samples/*.parquet"])
def test_a_release_is_described_without_its_damaged_parent(
    run: Run, made: Release, broken: str
) -> None:
    follows = make_release(run, version="2", out="second", parent=made)
    assert follows.manifest.parent
    [file] = made.path.glob(broken)
    file.chmod(0o600)
    file.write_bytes(file.read_bytes()[:50])
    assert load_release(follows.path).document["other_samples"] is None
    file.unlink()
    assert load_release(follows.path).document["other_samples"] is None


def test_its_tables_are_its_files(run: Run, made: Release) -> None:
    assert made.table["id"] == tuple(row.id for row in made.samples())
    assert len(made.table) == 5 and made.to_arrow().num_rows == 5
    updated = made.arm_table("updated")
    assert len(updated) == made.manifest.arms["updated"] > 0
    texts = {row["sample"]: row["updated_text"] for row in run.samples()}
    assert {row["id"]: row["text"] for row in updated} == {
        each: text for each, text in texts.items() if text
    }
    facts = made.facts_table()
    assert len(facts) == made.manifest.arms["provenance"] > 0
    assert facts.to_pandas()["url"].str.startswith("http").all()
    assert len(load_originals(made.path, DEMO / "emotion")) == 5


def test_a_change_is_found_by_both(shell: Shell, made: Release) -> None:
    assert verify(made).ok and verify("first").ok and verify(str(made.path)) == verify(made)
    assert "is unchanged" in repr(verify(made))
    card = made.path / "README.md"
    card.chmod(0o644)
    card.write_text("<script>alert(1)</script>", encoding="utf-8")
    found, said = verify(made), shell("verify", "first", "--json")
    assert said.code == 1 and not found.ok
    assert {**found.document, "release": "first"} == said.document
    assert found.table["file"] == ("README.md",)
    assert "<script" not in found._repr_html_()


def test_gates_are_checked_as_by_the_command(shell: Shell, made: Release) -> None:
    found, said = gate(made), shell("gate", "first", "--json")
    assert {key: said.document[key] for key in found.document} == {
        **found.document,
        "release": said.document["release"],
    }
    assert said.code == (0 if found.passed else GateNotMet.exit_code)
    assert list(found.table["gate"]) == [each["gate"] for each in said.document["gates"]]
    path = shell.write("gates.yaml", json.dumps({"gates": {"acceptance": {"min": 0.0}}}))
    assert gate(made, gates=path).passed and gate(made, gates="gates.yaml").passed
    with pytest.raises(ConfigError, match="acceptence") as caught:
        gate(made, gates={"gates": {"acceptence": {"min": 0.5}}})
    assert caught.value.where.startswith("<gates>")
    assert gate(made, gates="default").document == found.document


def test_a_release_that_misses_its_gates_is_not_made(shell: Shell, run: Run) -> None:
    with pytest.raises(GateNotMet):
        make_release(run, version="1", out="first", gates={"gates": {"acceptance": {"min": 1.0}}})
    assert not Path("first").exists()


def test_a_difference_is_the_document_of_the_command(shell: Shell, run: Run) -> None:
    other = refresh(shell.config(), limit=3, run_dir="other")
    said = shell("diff", run.run_dir, "other", "--json").document
    found = diff(run, "other", page="diff.html")
    assert Path("diff.html").exists()
    assert said.pop("page") is None
    assert {**found.document, "after": said["after"]} == said
    assert len(found.table) == len(found.changed) > 0
    assert found.table["sample"] == tuple(one.id for one in found.changed)
    one = diff(run, other, sample=found.changed[0].id)
    assert len(one.table) == 1
    with pytest.raises(UsageError, match="does not differ"):
        diff(run, other, sample="nowhere")
    assert len(diff(run, run).table) == 0


def test_an_export_is_the_document_of_the_command(shell: Shell, run: Run, made: Release) -> None:
    found = export(made, to="jsonl", out="a")
    said = shell("export", made.path, "--to", "jsonl", "--out", "b", "--json").document
    assert {**found.document, "out": "b"} == said
    assert dict(zip(found.table["what"], found.table["rows"], strict=True)) == said["rows"]
    assert sorted(p.name for p in Path("a").iterdir()) == sorted(
        p.name for p in Path("b").iterdir()
    )
    assert export(run, to="hf", out="c").document["kind"] == "run"
    with pytest.raises(UsageError, match="'xls' is not a format"):
        export(run, to="xls", out="d")
