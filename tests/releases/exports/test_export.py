"""`datasets` reads what is exported for it, as it reads a release."""

import shutil
from pathlib import Path

import pytest
import yaml
from datasets import (  # type: ignore[import-untyped]
    ClassLabel,
    get_dataset_config_names,
    load_dataset,
    load_dataset_builder,
)

from coreeval.errors import RunStateError
from coreeval.releases.exports.export import export
from coreeval.releases.folders import list_names
from coreeval.releases.sample_tables import add_dataset_info, size_category
from coreeval.releases.verify import verify
from tests.releases.exports.conftest import Sources
from tests.releases.kit import make_run

NAMES = ["anger", "joy", "optimism", "sadness"]


def _front(folder: Path) -> dict[str, list[dict[str, object]]]:
    head = (folder / "README.md").read_text("utf-8").split("---\n")[1]
    parsed: dict[str, list[dict[str, object]]] = yaml.safe_load(head)
    return parsed


@pytest.mark.parametrize("source", ["run", "closed"])
def test_every_config_is_read_as_the_card_describes_it(
    sources: Sources, tmp_path: Path, source: str
) -> None:
    made = export(getattr(sources, source), to="hf", out=tmp_path / "out")
    folder, cache = str(made.out), str(tmp_path / "cache")
    assert set(get_dataset_config_names(folder)) == set(made.rows)
    described = {one["config_name"]: one for one in _front(made.out)["dataset_info"]}
    for name, rows in made.rows.items():
        builder = load_dataset_builder(folder, name, cache_dir=cache)
        assert builder.info.splits["test"].num_examples == rows
        assert builder.info.splits["test"].num_bytes > 0
        loaded = load_dataset(folder, name, split="test", cache_dir=cache)
        assert len(loaded) == rows
        assert loaded.features == builder.info.features
        assert described[name]["features"] == loaded.features._to_yaml_list()
    updated = load_dataset(folder, "updated", split="test", cache_dir=cache)
    assert updated.features["label"] == ClassLabel(names=NAMES)
    assert updated[0]["label_text"] == NAMES[updated[0]["label"]]
    assert load_dataset(folder, split="test", cache_dir=cache)["id"] == updated["id"]


def test_the_copy_of_a_release_verifies(sources: Sources, tmp_path: Path) -> None:
    export(sources.closed, to="hf", out=tmp_path / "out")
    assert verify(tmp_path / "out").ok
    card = (sources.closed / "README.md").read_text("utf-8")
    assert add_dataset_info(card, sources.closed, "test") == card


def test_what_a_hub_left_beside_a_release_is_not_copied(sources: Sources, tmp_path: Path) -> None:
    fetched = tmp_path / "fetched"
    shutil.copytree(sources.closed, fetched)
    for name in (".gitattributes", ".cache/huggingface/download/payload.py"):
        (fetched / name).parent.mkdir(parents=True, exist_ok=True)
        (fetched / name).write_text("x")
    assert verify(fetched).ok
    export(fetched, to="hf", out=tmp_path / "out")
    assert [*list_names(tmp_path / "out")] == [*list_names(sources.closed)]


def test_a_dataset_that_is_gone_is_missed(tmp_path: Path) -> None:
    run = make_run(tmp_path).files.root
    with pytest.raises(RunStateError, match="the dataset's files are missing"):
        export(run, to="hf", out=tmp_path / "out")


def test_size_categories_are_those_of_cards() -> None:
    sizes = [size_category(rows) for rows in (0, 999, 1000, 99_999, 10_000_000)]
    assert sizes == ["n<1K", "n<1K", "1K<n<10K", "10K<n<100K", "n>10M"]
