"""Tasks of the kinds beside labels, and reading benchmarks for them."""

import json
from collections.abc import Sequence
from pathlib import Path

from coreeval.schema import Sample, Task
from coreeval.tasks.task_file import TaskFile, parse_task_file
from tests.evaluation.benchmarks.kit import put


def make_task(kind: str, **more: object) -> Task:
    raw = {"name": "own", "kind": kind, "description": "Something to try."}
    found = parse_task_file(raw | more)
    assert isinstance(found, TaskFile), found
    return found.to_task()


QUIZ = make_task("choice", options=26)
READING = make_task("answer", fields=["context", "question"])
CLOSED_BOOK = make_task("answer")
SUMMARIES = make_task("summary")


def options_of(sample: Sample) -> list[str]:
    return [text for name, text in sample.fields.items() if len(name) == 1]


def answers_of(sample: Sample) -> list[str]:
    return sample.fields["answers"].split("\n")


def as_json(path: Path, rows: Sequence[object]) -> Path:
    return put(path, "".join(f"{json.dumps(row)}\n" for row in rows))
