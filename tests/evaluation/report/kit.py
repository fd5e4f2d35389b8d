"""A report on a small run made by hand: what it says is known to the letter."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from coreeval.config import load_config
from coreeval.evaluation.agreement import find_memory_evidence
from coreeval.evaluation.answer_codes import code_answers
from coreeval.evaluation.arms import compare_arms
from coreeval.evaluation.pcr import PcrSettings, study
from coreeval.evaluation.pcr.comparison import compare, list_references
from coreeval.evaluation.pcr.comparison_document import (
    comparison_document,
    reference_document,
    settings_document,
)
from coreeval.evaluation.pcr.pairs_from_run import collect_pairs, resample_run_pairs
from coreeval.evaluation.pcr.study import resample_files
from coreeval.evaluation.report.definitions import find_highlights
from coreeval.evaluation.report.provenance import summarize_evidence
from coreeval.evaluation.report.report_document import ReportInput
from coreeval.runs.manifest import read_manifest
from coreeval.runs.quality import measure_quality
from coreeval.schema import Prediction
from coreeval.tasks import load_task
from coreeval.tools.stores.run_store import RunStore
from tests.evaluation.pcr.kit import two_splits
from tests.releases.kit import NOW, make_run

TARGET = "openai:one"
SETTINGS = PcrSettings(metric="accuracy", consistency="exact", draws=200, seed=7)
DRAWN = {"drawn": 60, "reworded": 40, "unchanged": 8, "label_changed": 6, "policy": 4, "failed": 2}


def pcr(*names: str, references: Sequence[str] = ()) -> dict[str, Any]:
    """Return what a run would report of targets of which the last has answered nothing."""
    clean = {name: two_splits((40, 20 + n, 30), (40, 21, 30)) for n, name in enumerate(references)}
    found = study(
        {name: two_splits((40, 38, 22), (40, 20, 32)) for name in names[:-1]},
        SETTINGS,
        references=clean,
    )
    silent = resample_run_pairs(collect_pairs([], {"train": {}, "test": {}}, [1]), SETTINGS)
    found |= compare({names[-1]: silent}, SETTINGS.split_pair, SETTINGS.form)
    listed = list_references(resample_files(clean, SETTINGS), SETTINGS.split_pair, SETTINGS.form)
    return {
        "targets": [{"name": name, **comparison_document(one)} for name, one in found.items()],
        "references": [{"name": name, **reference_document(one)} for name, one in listed.items()],
        "items": {
            "train": {"split": "train", **DRAWN},
            "test": {"split": "validation", "samples": 50, "reworded": 40},
        },
        "settings": settings_document(SETTINGS, None),
    }


def found_in(
    folder: Path,
    *,
    said: Iterable[Prediction] = (),
    manifest: dict[str, Any] | None = None,
    models: dict[str, Any] | None = None,
    **changes: Any,  # noqa: ANN401 - any field of the findings
) -> ReportInput:
    """Return what a run of six samples found, with these changes."""
    made = make_run(Path(mkdtemp(dir=folder)), models=models or {"default": "offline"})
    task, config = load_task("emotion"), load_config(made.files.config)
    known = read_manifest(made.files.manifest)
    with closing(RunStore.open(made.files.store, now=lambda: NOW)) as store:
        store.add_predictions(said)
        gold = {key: label for key, label, *_ in store.figures.fates()}
        targets = [target.model for target in config.models.targets]
        answers = [
            (target, list(store.answers(target, ["original", "updated"]))) for target in targets
        ]
        found = ReportInput(
            manifest=known.model_dump(mode="json")
            | {"models": config.models.model_dump(mode="json", exclude_none=True)}
            | (manifest or {}),
            config=config,
            task=task,
            quality=measure_quality(store, task, withheld=()).model_dump(mode="json"),
            overview=store.listing.overview(),
            attempts=store.figures.attempts(),
            evidence=summarize_evidence(store.figures.evidence_uses(), known.window),
            worth=find_highlights(store, targets),
            arms=compare_arms(answers, gold=gold, labels=[label.name for label in task.labels]),
            parts={"pcr": None, "numleak": None},
            documents={},
            levels=find_memory_evidence(
                targets,
                code_answers(answers, gold=gold, labels=[label.name for label in task.labels]),
                noise=None,
                seed=7,
                others={},
            ),
        )
    return replace(found, **changes)


def says(number: int, source: str, answer: str) -> Prediction:
    """Return what the target said about a text of one sample."""
    return Prediction(
        target=TARGET,
        source=source,
        sample_id=f"emotion/test/{number}",
        template=1,
        answer=answer,
        version="",
    )
