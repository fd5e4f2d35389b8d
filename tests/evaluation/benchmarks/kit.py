"""What the tests of the loaders share."""

from pathlib import Path

from coreeval.config import DatasetConfig
from coreeval.evaluation.benchmarks import Benchmark, load_benchmark
from coreeval.schema import BadRow, Task
from coreeval.tasks import load_task

EMOTION = load_task("emotion")


def dataset(kind: str, path: Path, split: str = "test", **more: object) -> DatasetConfig:
    return DatasetConfig.model_validate({"format": kind, "path": str(path), "split": split, **more})


def read(kind: str, path: Path, task: Task = EMOTION, **more: object) -> Benchmark:
    split = str(more.pop("split", "test"))
    return load_benchmark(dataset(kind, path, split, **more), task)


def put(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def tweets(folder: Path, texts: str | bytes, labels: str | bytes, split: str = "test") -> Path:
    put(folder / f"{split}_text.txt", texts)
    put(folder / f"{split}_labels.txt", labels)
    return folder


def reasons(rows: tuple[BadRow, ...]) -> list[tuple[int, str]]:
    return [(row.line, row.reason) for row in rows]
