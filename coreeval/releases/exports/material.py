"""The data of exports: samples, facts and arms of a run or a release, and arms as questions.

Runs and releases have the same interface. The questions are for evaluation harnesses.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Literal

from coreeval.config import Config, load_config
from coreeval.errors import ReleaseError, RunCorrupt, RunStateError
from coreeval.evaluation.benchmarks import find_target
from coreeval.evaluation.targets import fill_template
from coreeval.releases.exports.harness.grading import PACKAGE
from coreeval.releases.exports.harness_kinds import HARNESS_KINDS
from coreeval.releases.exports.standalone import Roots, write_package
from coreeval.releases.release import MANIFEST, Release, ReleasedArm, read_facts
from coreeval.releases.release_manifest import ArmRow, FactRow
from coreeval.releases.verify import require_whole
from coreeval.runs.arms import original_fields, semantic_fields, shard_name
from coreeval.runs.manifest import read_manifest
from coreeval.runs.open import explain_unfinished
from coreeval.runs.own_config import load_own_config
from coreeval.runs.own_task import find_task_file, load_run_task
from coreeval.schema import Label, Outcome, SemanticStatus, Task, Value
from coreeval.tasks import ALL_TARGETS, BUILT_IN, adapt_task, kind_of, load_task
from coreeval.tasks.kinds import Texts, explain_odd_item
from coreeval.tools.clock import utc_now
from coreeval.tools.files import write_json
from coreeval.tools.stores.heartbeat import REPAIR
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import SampleResult
from coreeval.tools.workspace import RunFiles, command

ARMS: tuple[ReleasedArm, ...] = ("original", "semantic", "updated")
MaterialKind = Literal["run", "release"]


class ExportSample(Value):
    """One sample of the benchmark with its outcome and its texts by arm."""

    id: str
    split: str
    label: int
    label_text: str
    outcome: Outcome
    attempts: int
    semantic_status: SemanticStatus
    reason: str
    original: dict[str, str] | None
    """The original texts; None if there are none, or if the release may not redistribute them."""
    semantic: dict[str, str] | None
    updated: dict[str, str] | None
    """The new texts of an accepted sample; substitutes for a rejected sample are not new texts."""

    def texts(self, arm: ReleasedArm) -> dict[str, str] | None:
        """Return the sample's texts in one arm."""
        by_arm = {"original": self.original, "semantic": self.semantic, "updated": self.updated}
        return by_arm[arm]


@dataclass(frozen=True, kw_only=True)
class Material:
    """A run that has ended, or a release, as the source of an export."""

    path: Path
    kind: MaterialKind
    name: str
    """The benchmark's name in the config."""
    version: str
    """The release's version, or the run's clock."""
    moment: datetime
    """The time at which the release was made, or the run's clock."""
    task: Task
    config: Config
    folder: Path
    """Folder with the arms as Parquet and the dataset card."""
    split: str
    """The split that was refreshed."""
    samples: Callable[[], Iterator[ExportSample]]
    """Streams all samples in the benchmark's order."""

    def facts(self) -> Iterator[FactRow]:
        """Stream the replaced facts, in the benchmark's order.

        Raises:
            ReleaseError: the file is missing or damaged.
        """
        return read_facts(self.folder / "provenance" / shard_name(self.split))

    def task_of(self, sample_id: str, fields: Texts) -> Task:
        """Return the task of a sample with these fields.

        It has the sample's options and, with several stance targets, the sample's target.

        Raises:
            ReleaseError: the task is in a file that the release does not contain.
        """
        if self.config.dataset.target != ALL_TARGETS:
            return adapt_task(self.task, fields)
        if self.kind == "release" and self.config.task not in BUILT_IN:
            raise ReleaseError(
                "the release has several targets, but not the task file that names them",
                where=str(self.path),
                hint="export the run it was made from",
            )
        return load_task(self.config.task, find_target(sample_id), self.config.dataset.language)


def open_material(path: Path) -> Material:
    """Open the directory of a run or a release.

    Raises:
        ReleaseError: it is neither, or the release was altered since it was made.
        RunStateError: the run has not ended, or its task has changed since.
        RunCorrupt: the run's run.db is damaged or missing.
    """
    if (path / MANIFEST).exists():
        return _open_release(require_whole(path))
    files = RunFiles(path)
    if files.manifest.exists():
        return _open_run(files)
    raise ReleaseError(
        f"this is neither a run nor a release: it has no manifest.json and no {MANIFEST}",
        where=str(path),
        hint="use the directory printed by `coreeval refresh` or `coreeval release",
    )


def _open_release(release: Release) -> Material:
    manifest = release.manifest
    return Material(
        path=release.path,
        kind="release",
        name=manifest.name,
        version=manifest.version,
        moment=datetime.fromisoformat(manifest.created_at),
        task=release.task,
        config=load_config(release.path / "config.yaml"),
        folder=release.path,
        split=manifest.split,
        samples=lambda: _iter_release_samples(release),
    )


def _open_run(files: RunFiles) -> Material:
    manifest = read_manifest(files.manifest)
    if why := explain_unfinished(files, manifest):
        raise RunStateError(
            why,
            where=str(files.root),
            hint=f"first: {command('resume', files.root)}",
        )
    config, moment = load_own_config(files, manifest), datetime.fromisoformat(manifest.now)
    task = load_run_task(files, manifest, config)
    return Material(
        path=files.root,
        kind="run",
        name=manifest.name,
        version=f"{moment:%Y-%m-%dT%H:%M:%SZ}",
        moment=moment,
        task=task,
        config=config.model_copy(update={"task": find_task_file(files, config)}),
        folder=files.dataset,
        split=config.dataset.split,
        samples=lambda: _iter_run_samples(files, task),
    )


def _iter_run_samples(files: RunFiles, task: Task) -> Iterator[ExportSample]:
    with RunStore.open(files.require_store(), now=utc_now) as store:
        for ended in store.sample_results():
            sample = _exported_sample(ended)
            _refuse_odd_texts(sample, task)
            yield sample


def _refuse_odd_texts(sample: ExportSample, task: Task) -> None:
    """Raise RunCorrupt if a text of a sample is not of the task's kind."""
    label = Label(id=sample.label, name=sample.label_text, meaning=sample.label_text)
    for arm in ARMS:
        texts = sample.texts(arm)
        if texts and (why := explain_odd_item(task, texts, label)):
            raise RunCorrupt(
                f"run.db contains data that CoreEval does not write: {arm} text of "
                f"{sample.id[:100]!r}: {why[:200]}",
                hint=REPAIR,
            )


def _exported_sample(ended: SampleResult) -> ExportSample:
    sample, result = ended.sample, ended.result
    original, semantic = original_fields(ended), semantic_fields(ended)
    return ExportSample(
        id=sample.id,
        split=sample.split,
        label=sample.label,
        label_text=sample.label_text,
        outcome=result.outcome,
        attempts=result.attempts,
        semantic_status=result.semantic_status,
        reason=result.reason,
        original=dict(original) if original else None,
        semantic=dict(semantic) if semantic else None,
        updated=result.updated if result.outcome == "accepted" else None,
    )


def _iter_release_samples(release: Release) -> Iterator[ExportSample]:
    """Join the table of samples with the arms; all are in the benchmark's order."""
    arms = {arm: _ArmCursor(release.arm(arm)) for arm in ARMS}
    for row in release.samples():
        texts = {arm: rows.texts_of(row.id) for arm, rows in arms.items()}
        if row.outcome != "accepted":
            texts["updated"] = None
        known = row.model_dump(include=set(ExportSample.model_fields))
        yield ExportSample.model_validate(known | texts)


class _ArmCursor:
    """Rows of an arm, which must be requested in order."""

    def __init__(self, rows: Iterator[ArmRow]) -> None:
        self._rows = rows
        self._next = next(rows, None)

    def texts_of(self, sample_id: str) -> dict[str, str] | None:
        """Return the texts of a sample; None if it is not the arm's next sample."""
        row = self._next
        if row is None or row.id != sample_id:
            return None
        self._next = next(self._rows, None)
        return row.fields


TEMPLATE_VERSION = 1
"""Number of the task's template that harnesses use."""
_BETWEEN_MODULES = re.compile(
    r"^from coreeval\.releases\.exports\.harness\S* import (\([^)]*\)|.*)\n", re.MULTILINE
)
"""Import lines between harness modules, which are not needed in a single file."""
Question = dict[str, object]


def iter_questions(material: Material, arm: ReleasedArm) -> Iterator[Question]:
    """Stream a question for each sample in an arm: id, prompt and gold.

    Raises:
        PromptError: the task's first template cannot be filled.
    """
    for sample in material.samples():
        if texts := sample.texts(arm):
            task = material.task_of(sample.id, texts)
            prompt = fill_template(task, texts, TEMPLATE_VERSION)
            due = HARNESS_KINDS[task.kind].values(task, texts, sample.label_text)
            yield {"id": sample.id, "prompt": prompt, **due}


def list_arms(material: Material) -> list[ReleasedArm]:
    """Return the arms that have at least one text."""
    held = set[ReleasedArm]()
    for sample in material.samples():
        held.update(arm for arm in ARMS if sample.texts(arm))
        if len(held) == len(ARMS):
            break
    return [arm for arm in ARMS if arm in held]


def task_slug(name: str) -> str:
    """Return a benchmark's name in a form that is valid in a task name."""
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "benchmark"


def write_description(material: Material, out: Path, files: dict[str, str]) -> None:
    """Write benchmark.json, which the exported code reads."""
    kind = material.task.kind
    graded = {"kind": kind, "columns": [*HARNESS_KINDS[kind].columns]} if kind != "labels" else {}
    said = {
        "name": task_slug(material.name),
        "version": material.version,
        "split": material.split,
        "labels": kind_of(material.task).used_labels(material.task, _iter_texts(material)),
        "arms": files,
        **graded,
    }
    write_json(out / "benchmark.json", said)


def _iter_texts(material: Material) -> Iterator[Texts]:
    """Yield the texts of each sample in one arm."""
    for sample in material.samples():
        if texts := next(filter(None, map(sample.texts, ARMS)), None):
            yield texts


def write_code(modules: Sequence[str], path: Path, copied: Roots) -> None:
    """Write harness modules as one standalone file, and the CoreEval code that they call."""
    folder = resources.files("coreeval.releases.exports.harness")
    both = "\n\n".join(
        folder.joinpath(f"{name}.py").read_text(encoding="utf-8") for name in modules
    )
    path.write_text(_BETWEEN_MODULES.sub("", both), encoding="utf-8")
    if copied:
        write_package(path.with_name(PACKAGE), copied)
