"""The inputs of the prompt lab: a config, the bundled demo or a run, and its samples."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from coreeval.config import ConfigLike, read_config
from coreeval.errors import UsageError
from coreeval.evaluation.benchmarks import iter_benchmark
from coreeval.graph.bundled import DATASETS, write_configs
from coreeval.graph.prompt_lab.role_inputs import (
    DryRun,
    FirstRoleInputs,
    RecordedInputs,
    RoleInput,
    RoleInputSource,
    SkippedSample,
    suggest_names,
)
from coreeval.graph.setup import Setup, set_up
from coreeval.prompts import PromptSet, load_prompts
from coreeval.runs.manifest import read_manifest
from coreeval.runs.own_config import load_own_config
from coreeval.runs.own_task import find_task_file
from coreeval.schema import RoleName, Sample
from coreeval.tasks import load_task
from coreeval.tools.clock import utc_now
from coreeval.tools.env_file import read_env_file
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles, Workspace, workspace_for

BUILT_IN = "built-in"
"""The name of the package's prompts, in place of a folder."""
MOST_SAMPLES = 200
"""The number of samples without a call of the role after which the search ends."""


@dataclass(frozen=True, kw_only=True)
class PromptLab:
    """A benchmark with its news and prompts, and the call store."""

    setup: Setup
    config: Path
    """The file of the config."""
    workspace: Workspace


@dataclass(frozen=True, kw_only=True)
class RoleInputs:
    """The inputs of a role for the chosen samples, and their source."""

    found: tuple[RoleInput, ...]
    missed: tuple[SkippedSample, ...]
    made_by: str
    """`sample`, `offline` or `run`."""


def open_lab(config: ConfigLike, overrides: Sequence[str] = ()) -> PromptLab:
    """Read a config; keys come from the environment or the `.env` in its folder.

    Raises:
        UsageError: the config, its task or its prompts cannot be used.
    """
    loaded = read_config(config, overrides)
    workspace = workspace_for(loaded.folder)
    read_env_file(loaded.folder, loaded.config)
    setup = set_up(loaded.config, utc_now(), workspace=workspace, base=loaded.source.parent)
    return PromptLab(setup=setup, config=loaded.source, workspace=workspace)


@contextmanager
def open_bundled_lab(task: str) -> Iterator[PromptLab]:
    """Open the bundled demo of a task in a temporary folder.

    Raises:
        UsageError: the task does not exist, or is one of the user's own.
    """
    if task not in DATASETS:
        load_task(task)  # reports what is wrong with the name
        raise UsageError(
            f"there are no bundled samples for the task {task}", hint="pass a config: --config"
        )
    with TemporaryDirectory(prefix="coreeval-bench-") as folder:
        configs = write_configs(Path(folder))
        yield open_lab(next(path for path in configs if path.stem == task))


def open_run_lab(run: Path) -> PromptLab:
    """Return the lab of a run, including its clock.

    Raises:
        RunStateError: there is no run.
        ConfigError: its config is missing.
    """
    files = RunFiles(run.resolve())
    manifest = read_manifest(files.manifest)
    loaded = load_own_config(files, manifest)
    read_env_file(manifest.config_folder, loaded)
    workspace, now = Workspace(Path(manifest.workspace)), datetime.fromisoformat(manifest.now)
    task_file = find_task_file(files, loaded)
    setup = set_up(loaded, now, manifest, workspace=workspace, task_file=task_file)
    return PromptLab(setup=setup, config=files.config, workspace=workspace)


def use_prompts(lab: PromptLab, folder: str | None) -> PromptLab:
    """Return the lab with the prompts of a folder, or unchanged if no folder is given."""
    if folder is None:
        return lab
    return replace(lab, setup=replace(lab.setup, prompts=load_prompt_folder(folder)))


def load_prompt_folder(folder: str) -> PromptSet:
    """Return the prompts of a folder merged over the built-in ones, or only the built-in ones.

    Raises:
        PromptError: the folder does not exist, or a prompt in it cannot be used.
    """
    return load_prompts(None if folder == BUILT_IN else Path(folder))


async def collect_dry_inputs(
    lab: PromptLab, role: RoleName, ids: Sequence[str], limit: int
) -> RoleInputs:
    """Return the role's inputs when rules play the roles before it.

    Raises:
        UsageError: a sample does not exist, or the role is not asked about any of them.
    """
    setup = lab.setup
    rows = iter_benchmark(setup.config.dataset, setup.task)
    samples = (row for row in rows if isinstance(row, Sample))
    if role in ("extractor", "label_judge"):
        look = FirstRoleInputs(setup, role)
        return await _collect_inputs(
            look, _iter_chosen(samples, ids), limit, made_by="sample", ids=ids
        )
    dry_run = DryRun(setup, role, lab.config, lab.workspace)
    try:
        return await _collect_inputs(
            dry_run, _iter_chosen(samples, ids), limit, made_by="offline", ids=ids
        )
    finally:
        dry_run.close()


def align_with_run(lab: PromptLab, run: Path) -> tuple[PromptLab, Path]:
    """Return the lab with a run's window, and the file with the run's calls.

    Raises:
        UsageError: the run is of another task, or there is none.
    """
    manifest = read_manifest(RunFiles(run.resolve()).manifest)
    if manifest.task != lab.setup.task.name:
        raise UsageError(
            f"the run uses the task {manifest.task}, but the config uses {lab.setup.task.name}",
            where=str(run),
        )
    setup = replace(lab.setup, window=manifest.window)
    return replace(lab, setup=setup), Workspace(Path(manifest.workspace)).calls


async def collect_run_inputs(
    lab: PromptLab, role: RoleName, run: Path, ids: Sequence[str], limit: int
) -> RoleInputs:
    """Return the role's inputs in a run, on the last attempt at each sample.

    Raises:
        UsageError: a sample does not exist, or the role was not asked about any of them.
    """
    with RunStore.open(RunFiles(run.resolve()).require_store(), now=utc_now) as store:
        recorded = RecordedInputs(store, lab.setup, role)
        with closing(_iter_chosen(recorded.samples(), ids)) as chosen:
            return await _collect_inputs(recorded, chosen, limit, made_by="run", ids=ids)


def _iter_chosen(samples: Iterable[Sample], ids: Sequence[str]) -> Generator[Sample, None, None]:
    """Yield the samples with these ids in the given order; all samples if no id is named."""
    if not ids:
        yield from samples
        return
    known = {sample.id: sample for sample in samples}
    for wanted in dict.fromkeys(ids):
        if wanted not in known:
            hint = suggest_names(wanted, list(known))
            raise UsageError(f"there is no sample {wanted!r}", where="--sample", hint=hint)
        yield known[wanted]


async def _collect_inputs(
    source: RoleInputSource,
    samples: Iterable[Sample],
    limit: int,
    *,
    made_by: str,
    ids: Sequence[str],
) -> RoleInputs:
    found, missed = list[RoleInput](), list[SkippedSample]()
    for sample in samples:
        one = await source.situation(sample)
        if isinstance(one, RoleInput):
            found.append(one)
        else:
            missed.append(one)
        if not ids and (len(found) == limit or len(missed) == MOST_SAMPLES):
            break
    if not found:
        raise _no_inputs_error(missed, asked_for=bool(ids))
    return RoleInputs(found=tuple(found), missed=tuple(missed), made_by=made_by)


def _no_inputs_error(missed: Sequence[SkippedSample], *, asked_for: bool) -> UsageError:
    first = f": {missed[0].sample_id}: {missed[0].reason}" if missed else ""
    return UsageError(
        f"the role is not called for any of {len(missed)} samples{first}",
        hint="omit --sample, or take the inputs from a run with --run"
        if asked_for
        else "select samples with --sample, or take the inputs from a run with --run",
    )
