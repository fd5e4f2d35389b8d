"""A release whose digests are right and whose tables contradict each other, as its maker can."""

import asyncio
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from coreeval.config import load_config
from coreeval.errors import ReleaseError
from coreeval.graph.run_origin import Lineage, find_followed_release
from coreeval.graph.setup import set_up
from coreeval.releases.release import hash_file, read_release
from coreeval.releases.sample_tables import load_originals
from coreeval.releases.verify import verify
from coreeval.tools.workspace import Workspace
from tests.releases.kit import NOW, Made, make_run
from tests.releases.people import rewrite
from tests.releases.test_hostile_release import signed

Rows = list[dict[str, Any]]
Change = Callable[[Rows], object]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return make_run(tmp_path)


@pytest.fixture
def release(made: Made) -> Path:
    path = made.release("1").path
    for each in (path, *path.rglob("*")):
        each.chmod(0o755)
    return path


def rewrite_table(release: Path, folder: str, change: Change) -> str:
    """Change the rows of a table, and every digest that vouches for them."""
    file = read_release(release).file(folder)
    table = pq.read_table(file, partitioning=None)
    rows = table.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), file)
    name = file.relative_to(release).as_posix()
    digest = {"sha256": hash_file(file), "bytes": file.stat().st_size}
    signed(release, lambda said: said["files"].update({name: digest}))  # type: ignore[attr-defined]
    return name


CHANGES: tuple[tuple[str, Change, str], ...] = (
    ("samples", lambda rows: rows.append(rows[0]), "has two rows"),
    ("samples", lambda rows: rows[0].update(label_text="zeal"), "the task has no label"),
    ("samples", lambda rows: rows[0].update(updated_sha256="{"), "updated_sha256"),
    ("samples", lambda rows: rows[0].update(outcome="fine"), "outcome"),
    ("updated", lambda rows: rows[0].update(text="another text"), "from the one in samples/"),
    ("updated", lambda rows: rows[0].update(text=None), "text"),
    ("updated", lambda rows: rows[0].update(label=3), "a different label"),
    ("updated", lambda rows: rows.pop(), "is missing"),
    ("updated", lambda rows: rows.append(rows[0]), "has two rows"),
    (
        "updated",
        lambda rows: rows[0].update(id="emotion/test/99"),
        "samples/ does not contain this text of",
    ),
    ("semantic", lambda rows: rows[0].update(text="another text"), "from the one in samples/"),
    ("provenance", lambda rows: rows[0].update(snippet="Another quotation."), "a quotation of"),
    ("provenance", lambda rows: rows[0].update(id="emotion/test/99"), "samples/ has no"),
    ("provenance", lambda rows: rows[0].update(published_at="today"), "published_at"),
)


@pytest.mark.parametrize(("folder", "change", "message"), CHANGES)
def test_a_table_that_contradicts_the_others_is_named(
    release: Path, folder: str, change: Change, message: str
) -> None:
    assert verify(release).ok
    name = rewrite_table(release, folder, change)
    found = verify(release).problems
    assert [(one.kind, one.file) for one in found[:1]] == [("contents", name)]
    assert message in found[0].message


IDENTIFIERS: tuple[tuple[Change, str], ...] = (
    (lambda rows: rows.append(rows[0]), "has two rows"),
    (lambda rows: rows.pop(), "is missing"),
    (lambda rows: rows[0].update(id="emotion/test/99"), "does not contain this original of"),
    (lambda rows: rows[0].update(sha256="0" * 64), "does not contain this original of"),
    (lambda rows: rows[0].update(sha256="{"), "sha256"),
)


@pytest.mark.parametrize(("change", "message"), IDENTIFIERS)
def test_identifiers_in_place_of_originals_are_compared_too(
    release: Path, change: Change, message: str
) -> None:
    name = rewrite_table(release, "original", change)
    [found] = verify(release).problems
    assert (found.kind, found.file) == ("contents", name)
    assert message in found.message


@pytest.mark.parametrize("redistribute", [True, False])
def test_a_release_without_the_originals_that_the_policy_leaves_out_is_whole(
    tmp_path: Path, redistribute: bool
) -> None:
    made = make_run(tmp_path, dataset={"licence": {"name": "own", "redistribute": redistribute}})
    for number in (0, 4):
        asyncio.run(rewrite(made, number, semantic_status="policy", semantic=None))
    first = made.release("1")
    assert first.manifest.arms["original"] == 4
    assert verify(first.path).problems == ()
    assert len(load_originals(first.path, made.benchmark)) == 4
    assert made.release("2").manifest.parent is not None


STATED: tuple[tuple[str, object, str], ...] = (
    ("counts.total", 1, "counts.total is 1, but the release's tables give "),
    ("counts.accepted", 10**9, "counts.accepted is 1000000000, but the release's tables give "),
    ("kept", 1, "kept is 1, but the release's tables give 0"),
    ("arms.updated", 99, "arms.updated is 99, but the release's tables give "),
    ("arms.provenance", 99, "arms.provenance is 99, but the release's tables give "),
    ("takedown.withheld", 1, "takedown.withheld is 1, but the release's tables give 0"),
    ("quality.by_label", [], "quality.by_label has 0 entries, but the release's tables give 4"),
    ("quality.acceptance.estimate", 0.99, "quality.acceptance.estimate is 0.99, but the release's"),
    ("quality.balance_shift", 0.9, "quality.balance_shift is 0.9, but the release's tables give "),
    ("quality.rungs", [], "quality.rungs has 0 entries, but the release's tables give "),
)


@pytest.mark.parametrize(("key", "value", "message"), STATED)
def test_numbers_of_release_json_that_its_tables_do_not_have_are_named(
    release: Path, key: str, value: object, message: str
) -> None:
    *way, last = key.split(".")

    def change(said: dict[str, Any]) -> None:
        for name in way:
            said = said[name]
        assert said[last] != value
        said[last] = value

    signed(release, change)
    [found] = verify(release).problems
    assert (found.kind, found.file) == ("contents", "release.json")
    assert found.message.startswith(message)


@pytest.mark.parametrize("bound", [-1, 1.5])
def test_a_bound_that_is_no_share_is_damage(release: Path, bound: float) -> None:
    signed(release, lambda said: said["quality"]["label_noise"].update(bound=bound))  # type: ignore[index]
    assert [(one.kind, one.file) for one in verify(release).problems] == [
        ("manifest", "release.json")
    ]


def test_the_last_digits_of_a_share_may_be_of_another_machine(release: Path) -> None:
    def change(said: dict[str, Any]) -> None:
        score = said["quality"]["acceptance"]
        score["ci_low"] = math.nextafter(score["ci_low"], 1)

    signed(release, change)
    assert verify(release).ok


def test_a_release_that_contradicts_itself_is_not_followed(made: Made, release: Path) -> None:
    rewrite_table(release, "updated", lambda rows: rows[0].update(text="another text"))
    setup = set_up(load_config(made.folder / "weekly.yaml"), NOW)
    with pytest.raises(ReleaseError, match="has changed since it was made: updated/"):
        find_followed_release(Lineage(release=release), setup, Workspace(made.folder))


def test_a_task_without_the_texts_of_the_release_is_named(release: Path) -> None:
    task = json.loads((release / "task.json").read_text())
    task["fields"], task["factual_fields"] = ["premise"], []
    (release / "task.json").write_text(json.dumps(task))
    digest = {
        "sha256": hash_file(release / "task.json"),
        "bytes": (release / "task.json").stat().st_size,
    }
    signed(release, lambda said: said["files"].update({"task.json": digest}))  # type: ignore[attr-defined]
    found = verify(release).problems
    assert {one.kind for one in found} == {"contents"}
    assert "does not have the fields of the task" in found[0].message
