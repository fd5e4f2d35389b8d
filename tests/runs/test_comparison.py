"""What both arms are compared by is gathered from a run."""

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from coreeval.config import load_config
from coreeval.runs.comparison import (
    ComparedRun,
    compare_with_originals,
    deepest,
    evidence_depth,
    list_references,
)
from coreeval.schema import Evidence, Result
from coreeval.tasks import load_task
from coreeval.tools.stores.run_store import RunStore
from tests.evaluation.report.kit import TARGET, says
from tests.releases.kit import NOW, make_run
from tests.support.results import replace_result

REFERENCE = {"model": TARGET, "role": "reference"}


@contextmanager
def job_of(folder: Path, targets: list[Any], *, asked: bool = True) -> Iterator[ComparedRun]:
    """Open a run of six samples, three accepted, whose target got each original right."""
    made = make_run(folder, models={"default": "offline", "targets": targets})
    with closing(RunStore.open(made.files.store, now=lambda: NOW)) as store:
        if asked:
            due = {key: label for key, label, *_ in store.figures.fates()}
            store.add_predictions(
                says(n, arm, due[f"emotion/test/{n}"] if arm == "original" else "joy")
                for n in (1, 2, 3)
                for arm in ("original", "updated")
            )
        config, task = load_config(made.files.config), load_task("emotion")
        roles = {each.model: each.role for each in config.models.targets}
        yield ComparedRun(store=store, task=task, targets=roles, seed=config.run.seed)


def test_texts_evidence_and_answers_of_the_accepted_samples(tmp_path: Path) -> None:
    with job_of(tmp_path, [REFERENCE, "offline:finetuned"]) as job:
        found = compare_with_originals(job)
    assert found is not None
    assert (found.samples, found.compared, found.verdict) == (3, 3, "cannot_tell")
    assert found.depths == {"description": 3}
    assert sum(int(samples) * events for samples, events in found.events.items()) >= 3
    difficulty = found.find("difficulty")
    assert difficulty is not None and (difficulty.original, difficulty.score.n) == (1.0, 3)
    assert "'none' is not an embedding model" in found.absent["topic"]


def test_why_there_is_no_difficulty(tmp_path: Path) -> None:
    cases: dict[str, list[Any]] = {
        "no target has `role: reference`": [TARGET],
        "have not answered": [REFERENCE, "offline:finetuned"],
    }
    for number, (why, targets) in enumerate(cases.items()):
        (folder := tmp_path / str(number)).mkdir()
        with job_of(folder, targets, asked=False) as job:
            found = compare_with_originals(job)
        assert found is not None and why in found.absent["difficulty"]


def test_a_run_that_accepted_nothing_is_not_compared(tmp_path: Path) -> None:
    with job_of(tmp_path, [], asked=False) as job:
        for number in (1, 2, 3):
            unsafe = Result(sample_id=f"emotion/test/{number}", outcome="unsafe")
            asyncio.run(replace_result(job.store, unsafe))
        assert compare_with_originals(job) is None


@pytest.mark.parametrize(
    ("targets", "references"),
    [
        ([TARGET], []),
        ([TARGET, "offline:clean", "offline:contaminated", "offline:reference-2"],
         ["offline:clean", "offline:reference-2"]),
        (["offline:clean", REFERENCE], [TARGET]),
        (["offline:finetuned", "offline:fluent"], []),
    ],
)  # fmt: skip
def test_who_tells_how_hard_a_text_is(
    tmp_path: Path, targets: list[Any], references: list[str]
) -> None:
    with job_of(tmp_path, targets, asked=False) as job:
        assert list_references(job.targets) == references


def test_evidence_that_does_not_say_how_much_was_read_has_its_headline() -> None:
    plain = Evidence(
        id="e",
        url="https://a.example/b",
        domain="a.example",
        title="t",
        published_at=NOW,
        published_precision="exact",
        origin="o",
    )
    assert evidence_depth(plain) == "headline"
    assert evidence_depth(plain.model_copy(update={"depth": "article"})) == "article"
    assert deepest(["headline", "article", "description"]) == "article"
    assert deepest([]) == "headline"
