"""What the offline label judge learns from: read where it is needed, and no further."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import yaml

from coreeval.config import load_config
from coreeval.errors import UntrustedEndpoint
from coreeval.graph import inputs
from coreeval.graph.bundled import demo_data
from coreeval.graph.run_context import RunContext
from coreeval.schema import BadRow, Sample
from coreeval.tasks import load_task
from coreeval.tools.endpoints import EndpointPair
from coreeval.tools.trust import TrustRecord
from coreeval.tools.workspace import Workspace
from tests.graph.kit import config_of


def _job(folder: Path, models: dict[str, str], split: str = "train") -> RunContext:
    """Return as much of a job as training looks at."""
    dataset = {"format": "tweeteval", "path": str(demo_data() / "emotion"), "train_split": split}
    changes = {"models": models, "dataset": dataset}
    path = folder / "any.yaml"
    path.write_text(yaml.safe_dump(config_of("http://127.0.0.1:9/v1") | changes))
    return cast(RunContext, SimpleNamespace(config=load_config(path), task=load_task("emotion")))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Put an endless train split in place, of which every other row is bad; return rows read."""
    rows: list[int] = []

    def endless(*_: object, **__: object) -> Iterator[Sample | BadRow]:
        while True:
            rows.append(len(rows))
            if len(rows) % 2:
                yield BadRow(file="f", line=len(rows), reason="no label", text="")
            else:
                yield Sample(
                    id=str(len(rows)), split="train", fields={"text": "x"}, label=0, label_text="a"
                )

    monkeypatch.setattr(inputs, "iter_benchmark", endless)
    monkeypatch.setattr(inputs, "list_splits", lambda _: ["test", "train"])
    monkeypatch.setattr(inputs, "MOST_TRAIN_EXAMPLES", 3)
    return rows


def test_reading_stops_at_the_most_samples(tmp_path: Path, read: list[int]) -> None:
    found = inputs.FILE_INPUTS.train(_job(tmp_path, {"default": "offline"}))
    assert [sample.id for sample in found] == ["2", "4", "6"]
    assert len(read) == 6


def test_embeddings_of_a_provider_are_opened_after_consent_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    @contextmanager
    def open_cached(name: str, _: Workspace) -> Iterator[None]:
        opened.append(name)
        yield None

    monkeypatch.setattr("coreeval.tools.embeddings.open_cached_embeddings", open_cached)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OLLAMA_HOST", "http://models.example:11434")
    config, workspace = _job(tmp_path, {"default": "offline"}).config, Workspace(tmp_path / "w")
    knowledge = config.knowledge.model_copy(update={"embeddings": "ollama:nomic"})
    config = config.model_copy(update={"knowledge": knowledge})
    with pytest.raises(UntrustedEndpoint) as caught, inputs.open_embedder(config, workspace):
        pass
    assert opened == []
    TrustRecord(workspace).trust_endpoints(EndpointPair(*pair) for pair in caught.value.pairs)
    with inputs.open_embedder(config, workspace):
        assert opened == ["ollama:nomic"]


def test_nothing_is_read_for_a_label_judge_that_is_a_model(tmp_path: Path, read: list[int]) -> None:
    models = {"default": "offline", "label_judge": "openai:some"}
    assert inputs.FILE_INPUTS.train(_job(tmp_path, models)) == []
    assert read == []


@pytest.mark.parametrize("split", ["nowhere", "test"])
def test_a_split_that_is_not_there_or_is_being_refreshed_teaches_nothing(
    tmp_path: Path, read: list[int], split: str
) -> None:
    assert inputs.FILE_INPUTS.train(_job(tmp_path, {"default": "offline"}, split)) == []
    assert read == []
