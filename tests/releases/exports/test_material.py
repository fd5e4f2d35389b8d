"""What harnesses are asked, and the code that goes with it."""

import ast
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coreeval.config import parse_config
from coreeval.errors import PromptError
from coreeval.releases.exports.harness_kinds import HARNESS_KINDS
from coreeval.releases.exports.material import (
    ExportSample,
    Material,
    iter_questions,
    list_arms,
    task_slug,
    write_code,
)
from coreeval.schema import Task, TaskKind
from coreeval.tasks import load_task

CONFIG = {
    "name": "any",
    "task": "stance",
    "dataset": {"format": "tweeteval", "path": "x", "target": "all"},
    "models": {"default": "offline"},
    "knowledge": {"window": {"start": "2026-11-01"}},
}


def _material(task: Task, *ids: str) -> Material:
    def samples() -> Iterator[ExportSample]:
        for sample_id in ids:
            yield ExportSample(
                id=sample_id,
                split="test",
                label=1,
                label_text="against",
                outcome="accepted",
                attempts=1,
                semantic_status="unchanged",
                reason="",
                original=None,
                semantic=None,
                updated={"text": "a {{tweet}} of $5"},
            )

    return Material(
        path=Path("x"),
        kind="run",
        name="any",
        version="1",
        moment=datetime(2026, 11, 20, tzinfo=UTC),
        task=task,
        config=parse_config(CONFIG, where="x", base=Path("/x")),
        folder=Path("x"),
        split="test",
        samples=samples,
    )


def test_each_sample_is_asked_about_its_own_target() -> None:
    ids = ("stance/climate/test/1", "stance/atheism/test/1")
    material = _material(load_task("stance", "all"), *ids)
    assert list_arms(material) == ["updated"]
    climate, atheism = iter_questions(material, "updated")
    assert "climate change is a real concern" in str(climate["prompt"])
    assert "atheism" in str(atheism["prompt"])
    assert "a {{tweet}} of $5" in str(climate["prompt"])
    assert (climate["id"], climate["label_text"]) == (ids[0], "against")


def test_a_template_that_cannot_be_filled_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    task = load_task("stance", "climate").model_copy(update={"templates": ("$tweet?",)})
    monkeypatch.setattr(Material, "task_of", lambda *_: task)
    with pytest.raises(PromptError, match=r"no variable \$tweet"):
        list(iter_questions(_material(task, "1"), "updated"))


@pytest.mark.parametrize("harness", ["lm_eval", "inspect"])
@pytest.mark.parametrize("kind", HARNESS_KINDS)
def test_the_code_beside_the_data_needs_no_coreeval(
    tmp_path: Path, kind: TaskKind, harness: str
) -> None:
    known = HARNESS_KINDS[kind]
    write_code(getattr(known, harness), tmp_path / "code.py", known.copied)
    for path in tmp_path.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        nodes = list(ast.walk(tree))
        imported = [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
        imported += [
            one.name for node in nodes if isinstance(node, ast.Import) for one in node.names
        ]
        assert not any((name or "").startswith("coreeval.") for name in imported)
        defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        assert len(defined) == len(set(defined))


def test_a_name_becomes_part_of_a_task() -> None:
    assert [task_slug(name) for name in ("emotion-weekly", "../é 1", "")] == [
        "emotion_weekly",
        "1",
        "benchmark",
    ]
