"""A plugin's rows become samples and bad rows as those of built-in formats do."""

from pathlib import Path

import pytest

from coreeval.config import DatasetConfig
from coreeval.config.plugins import PluginUse
from coreeval.errors import DatasetError, PluginError, PluginFailed, UnallowedPlugin
from coreeval.evaluation.benchmarks import fingerprint, list_splits, load_benchmark
from coreeval.schema import Task
from coreeval.tasks import load_task
from coreeval.tools.plugins import allow_plugin
from tests.support.plugins import TEMPLATE, Site, site

__all__ = ["site"]
TEXT = "joy\nThe train\ncame.\n\nanger\n\nrage\nAnd went.\n\n\nsadness\nIt rained.\n"


@pytest.fixture
def task() -> Task:
    return load_task("emotion", None, None)


@pytest.fixture
def blocks(site: Site, tmp_path: Path) -> DatasetConfig:
    site.install(TEMPLATE)
    allow_plugin(PluginUse("formats", "blocks"))
    (tmp_path / "test.blocks").write_text(TEXT)
    (tmp_path / "train.blocks").write_text(TEXT)
    return DatasetConfig(format="plugin:blocks", path=str(tmp_path))


def _config(site: Site, tmp_path: Path, body: str, more: str = "") -> DatasetConfig:
    """Return the config of a format whose rows are those of a function's body."""
    site.write(
        "rows_of",
        "from pathlib import Path\nfrom coreeval.plugins import FormatRow\nclass Format:\n"
        f"    plugin_api = 1\n    {more}\n"
        "    def files(self, dataset): return {'test': [Path(dataset.path) / 'test.txt']}\n"
        f"    def rows(self, file, dataset):\n        {body}\n",
    )
    (tmp_path / "test.txt").touch()
    allow_plugin(PluginUse("formats", "rows_of:Format"))
    return DatasetConfig(format="rows_of:Format", path=str(tmp_path))


def test_samples_bad_rows_and_splits(blocks: DatasetConfig, task: Task) -> None:
    assert list_splits(blocks) == ["test", "train"]
    found = load_benchmark(blocks, task)
    assert [(each.id, each.label_text, each.fields["text"]) for each in found.samples] == [
        ("emotion/test/1", "joy", "The train came."),
        ("emotion/test/4", "sadness", "It rained."),
    ]
    label, rage = found.bad_rows
    assert (label.file, label.line, label.reason) == (
        "test.blocks", 5, "the block has a label, but no text",
    )  # fmt: skip
    assert rage.line == 7 and "rage" in rage.reason
    before = fingerprint(blocks)
    Path(blocks.path, "test.blocks").write_text(TEXT + "\njoy\nAgain.\n")
    assert fingerprint(blocks) != before


def test_own_ids_and_clusters(site: Site, tmp_path: Path, task: Task) -> None:
    config = _config(
        site,
        tmp_path,
        "yield FormatRow(1, {'label': 'joy', 'text': 'One.'}, id='a', cluster='c')",
    )
    (sample,) = load_benchmark(config, task).samples
    assert (sample.id, sample.cluster) == ("a", "c")


def test_a_format_of_another_kind_or_without_files(site: Site, tmp_path: Path, task: Task) -> None:
    config = _config(site, tmp_path, "yield None", "kind = 'choice'")
    with pytest.raises(DatasetError, match="rows_of:Format is for tasks of the kind choice"):
        load_benchmark(config, task)
    config = _config(site, tmp_path, "yield None", "kind = 'chioce'")
    with pytest.raises(PluginError, match="kind is 'chioce', but it must be one of labels"):
        load_benchmark(config, task)
    config = _config(site, tmp_path, "yield None", "fields = 'text'")
    with pytest.raises(PluginError, match="fields must be a list of names"):
        load_benchmark(config, task)
    config = _config(site, tmp_path, "yield None", "fields = ('premise',)")
    with pytest.raises(DatasetError, match="has no field 'text', which the task emotion requires"):
        load_benchmark(config, task)
    config = _config(site, tmp_path, "yield None")
    (tmp_path / "test.txt").unlink()
    with pytest.raises(DatasetError, match="needs a file that is missing"):
        load_benchmark(config, task)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("yield {'label': 'joy'}", r"must yield FormatRow\(line="),
        ("yield FormatRow(1, [1])", r"must yield FormatRow\(line="),
        ("yield FormatRow(1, {'label': 'joy', 'text': 'x'}); 1 / 0", "failed in rows: ZeroDiv"),
    ],
)
def test_a_format_that_fails(site: Site, tmp_path: Path, task: Task, body: str, told: str) -> None:
    with pytest.raises(PluginFailed, match=told):
        load_benchmark(_config(site, tmp_path, body), task)


def test_a_format_that_nobody_has_agreed_to(site: Site, task: Task, tmp_path: Path) -> None:
    site.install(TEMPLATE)
    with pytest.raises(UnallowedPlugin, match="plugin:blocks"):
        load_benchmark(DatasetConfig(format="plugin:blocks", path=str(tmp_path)), task)
