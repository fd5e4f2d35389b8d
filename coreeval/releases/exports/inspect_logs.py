"""A run's samples as logs of Inspect, written with its own API; imports inspect_ai (slow)."""

import hashlib
import itertools
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalLog,
    EvalMetric,
    EvalPlan,
    EvalPlanStep,
    EvalResults,
    EvalSample,
    EvalScore,
    EvalSpec,
    EvalStats,
    write_eval_log,
)
from inspect_ai.model import ModelUsage

from coreeval.releases.exports.inspect_events import build_sample
from coreeval.releases.exports.material import Material, task_slug
from coreeval.releases.manifest import Manifest, read_manifest
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.call_store import CallStore, open_calls
from coreeval.tools.stores.run_records import SampleResult
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles, Workspace

SAMPLES_AT_A_TIME = 500
"""Samples in one log, all of which the API wants in memory."""


def write_logs(material: Material, folder: Path) -> int:
    """Write the logs of a run, up to 500 samples in each; return the number of samples."""
    files = RunFiles(material.path)
    manifest, count = read_manifest(files.manifest), 0
    folder.mkdir()
    with (
        closing(RunStore.open(files.require_store(), now=utc_now)) as store,
        _open_calls(manifest) as calls,
    ):
        for number, chunk in enumerate(_chunks(store.sample_results())):
            samples = [build_sample(store, calls, ended) for ended in chunk]
            log = _build_log(material, manifest, samples, number)
            name = f"{material.moment:%Y-%m-%dT%H-%M-%S+00-00}_{task_slug(material.name)}-refresh"
            write_eval_log(log, folder / f"{name}_{log.eval.task_id}.eval")
            count += len(samples)
    return count


@contextmanager
def _open_calls(manifest: Manifest) -> Iterator[CallStore | None]:
    """Open the call store for the block; None where it is gone: opening would create it."""
    path = Workspace(Path(manifest.workspace)).calls
    if not path.exists():
        yield None
        return
    with closing(open_calls(path)) as store:
        yield store


def _chunks(ended: Iterator[SampleResult]) -> Iterator[list[SampleResult]]:
    while chunk := list(itertools.islice(ended, SAMPLES_AT_A_TIME)):
        yield chunk


def _build_log(
    material: Material, manifest: Manifest, samples: list[EvalSample], number: int
) -> EvalLog:
    return EvalLog(
        status="success",
        eval=_build_spec(material, manifest, samples, number),
        plan=EvalPlan(steps=[EvalPlanStep(solver="coreeval_refresh", params={})]),
        results=_results(samples),
        stats=EvalStats(
            started_at=manifest.created_at,
            completed_at=manifest.ended_at,
            model_usage=_usage(samples),
        ),
        samples=samples,
    )


def _build_spec(
    material: Material, manifest: Manifest, samples: list[EvalSample], number: int
) -> EvalSpec:
    return EvalSpec(
        run_id=_stable_id(manifest.payer),
        eval_id=_stable_id(f"{manifest.payer}#{number}"),
        task_id=_stable_id(f"{manifest.payer}#{number}"),
        created=manifest.created_at,
        task=f"{task_slug(material.name)}-refresh",
        task_version=manifest.fingerprints.code,
        dataset=EvalDataset(
            name=material.name,
            location=material.config.dataset.path,
            samples=len(samples),
            sample_ids=[sample.id for sample in samples],
        ),
        model=find_writer(manifest),
        config=EvalConfig(),
        metadata={
            "run": manifest.run,
            "task": manifest.task,
            "window": manifest.window.model_dump(mode="json"),
            "models": manifest.models,
            "prompts": manifest.prompts,
            "fingerprints": manifest.fingerprints.model_dump(mode="json"),
        },
    )


def find_writer(manifest: Manifest) -> str:
    """Return the model that wrote the new texts: the composer's."""
    said = manifest.models.get("composer") or manifest.models.get("default")
    return str(said["model"]) if isinstance(said, dict) else "none"


def _stable_id(text: str) -> str:
    """Return an id that is the same whenever the same run is exported."""
    return hashlib.sha256(text.encode()).hexdigest()[:22]


def _results(samples: list[EvalSample]) -> EvalResults:
    names = dict.fromkeys(name for sample in samples for name in sample.scores or {})
    return EvalResults(
        total_samples=len(samples),
        completed_samples=len(samples),
        scores=[_share(name, samples) for name in names],
    )


def _share(name: str, samples: list[EvalSample]) -> EvalScore:
    found = [(sample.scores or {}).get(name) for sample in samples]
    values = [score.value for score in found if score]
    return EvalScore(
        name=name,
        scorer=name,
        scored_samples=len(values),
        unscored_samples=len(samples) - len(values),
        metrics={"accuracy": EvalMetric(name="accuracy", value=values.count("C") / len(values))},
    )


def _usage(samples: list[EvalSample]) -> dict[str, ModelUsage]:
    used = dict[str, ModelUsage]()
    for model, tokens in (pair for sample in samples for pair in sample.model_usage.items()):
        used[model] = used.get(model, ModelUsage()) + tokens
    return used
