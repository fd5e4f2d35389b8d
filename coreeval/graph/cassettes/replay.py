"""Replays a run from a cassette, byte for byte, without keys, network or a news store."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import yaml

from coreeval.errors import CassetteError, ConfigError, Interrupted, PromptError, TaskError
from coreeval.graph.cassettes.contents import list_versions
from coreeval.graph.cassettes.restore import (
    CassetteInputs,
    build_cassette_inputs,
    build_replay_config,
    iter_rows,
    restore_train,
    write_files,
)
from coreeval.graph.execute import (
    DEFAULT_HOOKS,
    RunHooks,
    RunSummary,
    execute,
    open_control,
    open_store,
)
from coreeval.graph.run import lock_run
from coreeval.graph.setup import Setup, graph_version, prompt_versions, set_up, task_fingerprint
from coreeval.releases.cassettes.format import CassetteOrigin, CassettePass
from coreeval.releases.cassettes.read import (
    Cassette,
    FileComparison,
    compare_files,
    count_fixed_results,
    install_hint,
    open_cassette,
)
from coreeval.runs.manifest import Manifest, write_manifest
from coreeval.tools.cutoffs import DateClaim, TargetDates, find_model_dates, load_built_in_cutoffs
from coreeval.tools.files import write_text
from coreeval.tools.workspace import RunFiles, Workspace

FOLDER = "cassette"
"""The folder in the run's directory with the cassette's files."""


@dataclass(frozen=True, kw_only=True)
class StepFailure:
    """A failed step, for example because the cassette lacks something."""

    stage: CassettePass
    sample: str
    node: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class OutcomeChange:
    """An outcome whose number of samples differs from the recording."""

    stage: CassettePass
    outcome: str
    recorded: int
    found: int


@dataclass(frozen=True, kw_only=True)
class ReplayResult:
    """The result of a replay."""

    run: Path
    cassette: Cassette
    files: tuple[FileComparison, ...]
    shifts: tuple[OutcomeChange, ...]
    missing: tuple[StepFailure, ...]
    changed: tuple[str, ...]
    """Differences from the recording that affect requests: prompts, task, graph."""
    versions: tuple[tuple[str, str, str], ...]
    """Changed software that affects the bytes: name, recorded version, current version."""
    stated: int
    """The number of results copied from the recording."""
    seconds: float

    @property
    def equal(self) -> bool:
        """Return whether every file has the recorded bytes."""
        return all(file.equal for file in self.files)

    @property
    def same(self) -> bool:
        """Return whether all samples also have the same outcome, including those in no file."""
        return self.equal and not self.shifts and not self.missing


def replay(
    cassette: Path | str,
    out: Path | str,
    *,
    dataset: Path | str | None = None,
    around: RunHooks = DEFAULT_HOOKS,
) -> ReplayResult:
    """Replay a run from a cassette and compare its dataset with the recorded one.

    Args:
        cassette: The file.
        out: An empty or new folder, which becomes a run's directory.
        dataset: The benchmark's own files, for a cassette without its texts.
        around: Progress callback and clock.

    Raises:
        CassetteError: it is not a cassette, is damaged or of another version; or `out` is not
            empty.
        DatasetError: the benchmark's own files are not those of the run.
        Interrupted: a signal stopped it.
        RunError: the run could not be completed.
    """
    began, opened = time.monotonic(), open_cassette(Path(cassette).resolve())
    files, own = RunFiles(Path(out).resolve()), Path(dataset).resolve() if dataset else None
    _refuse_taken(files.root)
    is_new = not files.root.exists()
    with lock_run(files):
        try:
            setup, manifest, inputs = _prepare_run(opened, files, own, around)
        except BaseException:
            _clear(files.root)
            if is_new:
                files.root.rmdir()
            raise
        workspace = Workspace(Path(manifest.workspace))
        done = execute(setup, manifest, files, workspace, replace(around, inputs=inputs))
    _refuse_interrupted(done)
    return ReplayResult(
        run=files.root,
        cassette=opened,
        files=tuple(compare_files(opened, files.dataset)),
        shifts=tuple(_list_outcome_changes(opened.head.run, done.manifest)),
        missing=tuple(_iter_missing_steps(files, setup, around)),
        changed=tuple(_list_changes(opened, setup)),
        versions=tuple(_list_version_changes(opened.head.made_with, list_versions(setup.config))),
        stated=count_fixed_results(opened).total(),
        seconds=time.monotonic() - began,
    )


def _refuse_taken(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CassetteError(
            "a cassette is replayed into a new or empty folder, but this one is not empty",
            where=str(folder),
            hint="choose another --out",
        )


def _prepare_run(
    cassette: Cassette, files: RunFiles, dataset: Path | None, around: RunHooks
) -> tuple[Setup, Manifest, CassetteInputs]:
    """Write the run's inputs into its directory."""
    try:
        setup, manifest = _build_start(cassette, files, dataset, around)
        return (
            setup,
            manifest,
            build_cassette_inputs(cassette, restore_train(cassette, setup, dataset)),
        )
    except (ConfigError, PromptError, TaskError) as error:
        raise CassetteError(
            f"this version of CoreEval cannot replay the recording: {error.message}",
            where=str(cassette.path),
            hint=install_hint(cassette.head.made_with.coreeval),
        ) from None


def _clear(folder: Path) -> None:
    """Delete the contents of a folder that was empty or new; the folder may be the user's."""
    for left in folder.iterdir():
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def _parse_moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise CassetteError(
            f"the run's clock in the cassette is not a time: {text[:40]!r}",
            hint="download it again, and compare its digest with the published one",
        ) from None


def _build_start(
    cassette: Cassette, files: RunFiles, dataset: Path | None, around: RunHooks
) -> tuple[Setup, Manifest]:
    folder, recorded = files.root / FOLDER, cassette.head.run
    write_files(cassette, folder)
    config = build_replay_config(cassette, folder, dataset)
    dates = recorded.cutoffs and tuple(map(_doubt_dates, recorded.cutoffs))
    recorded = recorded.model_copy(update={"cutoffs": dates})
    setup = set_up(config, _parse_moment(recorded.now), recorded)
    update = {
        "status": "running",
        "created_at": around.now().isoformat(timespec="seconds"),
        "models": config.models.model_dump(mode="json", exclude_none=True),
        "workspace": str(folder / "workspace"),
        "cassette": cassette.digest,
    }
    manifest = Manifest.model_validate({**dict(recorded), **update})
    with open_store(files, around.now) as store:
        store.add_samples(iter_rows(cassette, setup, "refresh", dataset))
    if setup.control:
        with open_control(files, around.now) as control:
            control.add_samples(iter_rows(cassette, setup, "control", dataset))
    write_text(files.config, yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False))
    write_manifest(files.manifest, manifest)
    return setup, manifest


def _doubt_dates(stated: TargetDates) -> TargetDates:
    """Return a target's dates according to this installation.

    Unknown dates are taken from the cassette and marked as such. If this installation knows later
    dates, they count, because a cassette may make evidence look newer than it is.
    """
    known = find_model_dates(stated.target, load_built_in_cutoffs())
    if known is None:
        return TargetDates(
            target=stated.target,
            cutoff=_attribute(stated.cutoff),
            released=_attribute(stated.released),
        )
    own = TargetDates(target=stated.target, cutoff=known.cutoff, released=known.released)
    if stated.latest and own.latest and own.latest.counts_from < stated.latest.counts_from:
        return stated
    return own


def _attribute(claim: DateClaim | None) -> DateClaim | None:
    return claim and claim.model_copy(update={"source": "the cassette", "confidence": "given"})


def _refuse_interrupted(done: RunSummary) -> None:
    if done.manifest.status != "complete":
        raise Interrupted(
            "stopped: a cassette is always replayed from the beginning",
            where=str(done.run_dir),
            hint="replay it with another --out; this costs nothing",
        )


def _list_outcome_changes(recorded: Manifest, found: Manifest) -> Iterator[OutcomeChange]:
    passes: dict[CassettePass, tuple[dict[str, int], dict[str, int]]] = {
        "refresh": (recorded.counts, found.counts)
    }
    if recorded.control and found.control:
        passes["control"] = (recorded.control.counts, found.control.counts)
    for stage, (then, now) in passes.items():
        for outcome in now:
            if (before := then.get(outcome, 0)) != now[outcome]:
                yield OutcomeChange(
                    stage=stage, outcome=outcome, recorded=before, found=now[outcome]
                )


def _iter_missing_steps(files: RunFiles, setup: Setup, around: RunHooks) -> Iterator[StepFailure]:
    """Yield the steps that failed; a replay of an unchanged run has none."""
    passes: dict[CassettePass, RunFiles] = {"refresh": files}
    if setup.control:
        passes["control"] = files.control
    for stage, place in passes.items():
        with open_store(place, around.now) as store:
            for sample, node, error in store.inputs.step_errors():
                if not error.startswith("CancelledError"):  # another branch of the sample failed
                    yield StepFailure(stage=stage, sample=sample, node=node, reason=error)


def _list_changes(cassette: Cassette, setup: Setup) -> Iterator[str]:
    recorded = cassette.head.run
    for role, version in prompt_versions(setup).items():
        if recorded.prompts.get(role) != version:
            yield f"the prompt of the {role}"
    if task_fingerprint(setup) != recorded.fingerprints.task:
        yield f"the task {setup.task.name}"
    if graph_version(setup) != recorded.fingerprints.graph:
        yield "the graph"
    for stated, used in zip(recorded.cutoffs or (), setup.target_dates, strict=True):
        latest, known = stated.latest, used.latest
        if latest and known and latest.counts_from != known.counts_from:
            yield f"the dates of {stated.target}, which are later than those in the cassette"


def _list_version_changes(
    then: CassetteOrigin, now: CassetteOrigin
) -> Iterator[tuple[str, str, str]]:
    for name, before in then.model_dump().items():
        if before != (after := getattr(now, name)):
            yield name, before, after
