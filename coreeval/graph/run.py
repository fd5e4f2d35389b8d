"""Starts, resumes and retries a run: one process at a time, stopped cleanly by a signal."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Literal

import yaml

from coreeval.config import IN_MEMORY, Config, ConfigLike, load_config, read_config
from coreeval.errors import RunLocked, RunStateError
from coreeval.evaluation.benchmarks.subset import Subset
from coreeval.graph.execute import (
    DEFAULT_HOOKS,
    RunHooks,
    RunSummary,
    create_stores,
    execute,
    open_control,
    open_store,
)
from coreeval.graph.inputs import describe_news, open_news
from coreeval.graph.news_outlook import list_remarks
from coreeval.graph.refresh import describe_control
from coreeval.graph.run_checks import (
    FAILED_SAMPLES,
    explain_repeated,
    refuse_changed_settings,
    refuse_second_run,
    refuse_taken_folder,
    require_answers,
)
from coreeval.graph.run_detectors import check_detectors
from coreeval.graph.run_origin import (
    apply_added_targets,
    apply_free_keys,
    build_lineage,
    find_followed_release,
    hash_file,
    list_changes,
    load_run_config,
    open_followed_release,
    set_budget,
)
from coreeval.graph.setup import (
    Setup,
    check_dataset,
    check_models,
    check_splits,
    check_subset,
    fingerprints,
    load_rules,
    prompt_versions,
    refuse_changed_takedown,
    require_trusted,
    set_up,
)
from coreeval.graph.spans import check_telemetry
from coreeval.graph.state import SPLITS_STAGE
from coreeval.runs.config_source import ConfigSource
from coreeval.runs.manifest import (
    FollowedRelease,
    Manifest,
    full_counts,
    read_manifest,
    reopen_manifest,
    write_manifest,
)
from coreeval.runs.names import short_id
from coreeval.runs.own_task import find_task_file, keep_task_file, refuse_changed_task
from coreeval.tools.clock import utc_now
from coreeval.tools.env_file import hold_env_file, read_env_file
from coreeval.tools.files import hold_lock, write_text
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.terminal import brief
from coreeval.tools.workspace import (
    RunFiles,
    Workspace,
    command,
    workspace_for,
)

IfChanged = Literal["refuse", "keep", "anew"]
"""What a resume does if the config changed: refuse, keep the run's own config, or start anew."""


@hold_env_file()
def refresh(
    config: ConfigLike,
    *,
    limit: int | None = None,
    subset: Subset | None = None,
    run_dir: Path | str | None = None,
    overrides: Sequence[str] = (),
    parent: Path | str | None = None,
    stale_after: str | None = None,
    around: RunHooks = DEFAULT_HOOKS,
) -> RunSummary:
    """Refresh a benchmark: build its semantic and updated arms with evidence for every new fact.

    Args:
        config: the path of a YAML config, or a config in memory.
        limit: take only the first `limit` samples.
        subset: take only these samples, with a limit of its own.
        run_dir: a new or empty folder for the run; by default `.coreeval/runs/<name>/<UTC start>`.
        overrides: `key.path=value` settings that override the config's.
        parent: directory of a release, or `latest`: its samples are kept if they are still valid.
        stale_after: the maximum age of a kept sample's evidence: `90d`, `12w`, `6m`.
        around: progress callback, clock and team builder.

    Raises:
        UsageError: the config, the benchmark, the news, the release or `run_dir` is not usable, or
            a variable would be sent to an unapproved endpoint (UntrustedEndpoint); nothing was
            written.
        RunError: the run could not continue; it can be resumed.
    """
    lineage, given = build_lineage(parent, stale_after), read_config(config, overrides)
    loaded = given.config
    read_env_file(given.folder, loaded)
    workspace = workspace_for(given.folder)
    start = around.now()
    files = RunFiles(Path(run_dir).resolve() if run_dir else workspace.new_run(loaded.name, start))
    refuse_taken_folder(files, workspace)
    if run_dir is None:
        refuse_second_run(workspace, loaded.name)
    setup = set_up(loaded, start, workspace=workspace, base=given.source.parent)
    check_dataset(setup)
    check_models(setup, workspace)
    check_splits(setup)
    check_telemetry(loaded)
    check_detectors(setup, source=given.source, workspace=workspace)
    subset = subset and subset.model_copy(update={"seed": loaded.run.seed})
    chosen = check_subset(setup, subset)
    source = describe_source(given.source, loaded, overrides, workspace=workspace)
    before = find_followed_release(lineage, setup, workspace) if lineage else None
    manifest = build_manifest(setup, workspace, files, source, limit=limit, parent=before)
    if chosen:
        changes = {"subset": subset, "limit": len(chosen)}
        manifest = manifest.model_copy(update=changes)
    if around.remark:
        for remark in list_remarks(setup, workspace, manifest.limit):
            around.remark(remark)
    with lock_run(files):
        refuse_taken_folder(files, workspace)
        _keep_config(files, loaded)
        setup = replace(setup, task_file=keep_task_file(files, manifest, loaded))
        create_stores(setup, files, workspace)
        open_store(files, around.now).close()  # created before the manifest that refers to it
        if setup.control:
            open_control(files, around.now).close()
        setup, manifest = _reread_takedown(setup, manifest, workspace)
        write_manifest(files.manifest, manifest)
        if around.remark:
            named = files.root.is_relative_to(workspace_for(Path.cwd()).runs.resolve())
            word = Path(short_id(files.root)) if named else brief(files.root)
            resumed = command("resume", word)
            around.remark(f"run: {brief(files.root)}; after a stop, continue with: {resumed}")
        return execute(setup, manifest, files, workspace, around)


@hold_env_file()
def resume(
    run_dir: Path | str,
    *,
    if_changed: IfChanged = "refuse",
    budget_usd: float | None = None,
    around: RunHooks = DEFAULT_HOOKS,
) -> RunSummary:
    """Continue a run that was stopped or killed; no answered question is asked again.

    Args:
        run_dir: The run's directory.
        if_changed: What to do if the config has changed since the run began.
        budget_usd: The run's new total budget, including its cost so far.
        around: progress callback, clock and team builder.

    Raises:
        RunStateError: there is no run, its config has changed and `if_changed` says refuse, or the
            takedown list has changed meanwhile.
        UntrustedEndpoint: a variable would be sent to an endpoint that was not approved.
        RunLocked: another process is using it.
        RunCorrupt: a store is damaged; nothing was overwritten.
    """
    keep = if_changed == "keep"
    files, manifest, setup = open_run(run_dir, budget_usd, may_repeat=True, keep=keep)
    if manifest.cassette and (manifest.status == "complete" or _has_open_samples(files)):
        raise explain_repeated(files)
    changed = [] if keep or manifest.cassette else list_changes(manifest, setup)
    if changed and if_changed == "anew":
        source, before, workspace = manifest.source, manifest.parent, open_workspace(manifest)
        release = before and open_followed_release(before, manifest.name, workspace)
        return refresh(
            source.file if source.path else setup.config,
            limit=None if manifest.subset else manifest.limit,
            subset=manifest.subset,
            run_dir=workspace.new_run(setup.config.name, around.now()),
            overrides=source.overrides,
            parent=release.path if release else None,
            stale_after=before.stale_after if before else None,
            around=around,
        )
    if changed:
        raise RunStateError(
            f"the following has changed since the run began: {', '.join(changed)}",
            where=str(manifest.source.file if manifest.source.path else files.root),
            hint="coreeval resume RUN --keep continues with the run's own config, task and "
            "samples; --anew starts a new run with the current ones",
        )
    require_trusted(setup.config, open_workspace(manifest))
    with lock_opened_run(files, manifest, setup):
        return execute(setup, manifest, files, open_workspace(manifest), around)


@hold_env_file()
def retry(
    run_dir: Path | str, *, budget_usd: float | None = None, around: RunHooks = DEFAULT_HOOKS
) -> RunSummary:
    """Retry the samples that failed, and only those.

    Raises:
        RunStateError: there is no run, or the takedown list has changed meanwhile.
        UntrustedEndpoint: a variable would be sent to an endpoint that was not approved.
        RunLocked: another process is using it.
    """
    files, manifest, setup = open_run(run_dir, budget_usd)
    require_answers(files, manifest, open_if=FAILED_SAMPLES)
    require_trusted(setup.config, open_workspace(manifest))
    with lock_opened_run(files, manifest, setup):
        with open_store(files, around.now) as store:
            store.hold()
            reopen_manifest(files.manifest)
            store.forget("failed")
            _forget_control(files, setup, store, around)
            if store.train.forget_failed():
                store.reopen_stages((SPLITS_STAGE, "report"))
            manifest = _include_all_targets(manifest, store)
        return execute(setup, manifest, files, open_workspace(manifest), around)


def _forget_control(files: RunFiles, setup: Setup, store: RunStore, around: RunHooks) -> None:
    """Delete failures of the pass that writes the control arm, and the data based on that arm."""
    if setup.control is None:
        return
    with open_control(files, around.now) as control:
        if control.forget("failed"):
            store.reopen_stages()


def _include_all_targets(manifest: Manifest, store: RunStore) -> Manifest:
    """Return a manifest that asks all targets that have answered so far."""
    said = manifest.evaluation
    if said is None:
        return manifest
    asked = tuple(sorted({*said.asked, *store.targets()}))
    return manifest.model_copy(update={"evaluation": said.model_copy(update={"asked": asked})})


def open_run(
    run_dir: Path | str,
    budget_usd: float | None,
    *,
    may_repeat: bool = False,
    keep: bool = False,
) -> tuple[RunFiles, Manifest, Setup]:
    """Return the files, manifest and setup of an existing run; nothing is written.

    Args:
        run_dir: The run's directory.
        budget_usd: The run's new total budget; it holds until another is given.
        may_repeat: Whether a run that repeats a cassette will do, for work on its arms alone.
        keep: Whether to use the run's own config alone, and take nothing from the current file.

    Raises:
        RunStateError: there is no run, it has lost its config, or it repeats a cassette.
        ConfigError: its telemetry cannot be sent, or the budget cannot be used.
    """
    files = RunFiles(Path(run_dir).resolve())
    began = read_manifest(files.manifest)
    manifest = set_budget(began, budget_usd)
    if manifest.cassette and not may_repeat:
        raise explain_repeated(files)
    if not files.config.exists():
        raise RunStateError(
            "the run's config.yaml is missing",
            where=str(files.root),
            hint="restore it from a backup, or start a new run",
        )
    require_answers(files, manifest)
    config, remarks = load_run_config(files, manifest, keep=keep)
    check_telemetry(config)
    config, moment = apply_added_targets(config, manifest), datetime.fromisoformat(manifest.now)
    workspace, task_file = open_workspace(manifest), find_task_file(files, config)
    setup = set_up(config, moment, manifest, workspace=workspace, task_file=task_file)
    return files, manifest, replace(setup, began=began, remarks=remarks)


def _has_open_samples(files: RunFiles) -> bool:
    with open_store(files, utc_now) as store:
        return bool(store.pending())


def _reread_takedown(
    setup: Setup, manifest: Manifest, workspace: Workspace
) -> tuple[Setup, Manifest]:
    """Return a new run's setup and manifest with the takedown list of this moment.

    A takedown lists its names before it looks for runs. So once run.db exists, either the list has
    the names, or the takedown finds the run and is rejected.
    """
    rules = load_rules(setup.config, workspace)
    listed = {"takedown": len(rules.takedown), "takedown_sha256": rules.takedown.fingerprint}
    knowledge = manifest.knowledge.model_copy(update=listed)
    return replace(setup, rules=rules), manifest.model_copy(update={"knowledge": knowledge})


def _record_paths(config: Config, source: ConfigSource) -> Config:
    """Return a run's config with the paths of its free keys as at the run's start."""
    return config.model_copy(update={"run": config.run.resolve(source.record)})


def _keep_config(files: RunFiles, config: Config) -> None:
    write_text(files.config, yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False))


# -- preparing ----------------------------------------------------------------------------------


def describe_source(
    source: Path,
    config: Config,
    overrides: Sequence[str] = (),
    *,
    workspace: Workspace | None = None,
) -> ConfigSource:
    """Return what identifies the config that a run was started from.

    Args:
        source: The config's file, or `IN_MEMORY`.
        config: The config.
        overrides: The settings that were given in addition.
        workspace: The workspace, beside which a project has its files; None if nothing is stored.
    """
    if source == IN_MEMORY:
        digest = hashlib.sha256(config.model_dump_json().encode()).hexdigest()
        project = str((workspace and workspace.project) or "")
        return ConfigSource(path="", sha256=digest, overrides=tuple(overrides), project=project)
    return ConfigSource(path=str(source), sha256=hash_file(source), overrides=tuple(overrides))


def build_manifest(
    setup: Setup,
    workspace: Workspace,
    files: RunFiles,
    source: ConfigSource,
    *,
    limit: int | None,
    parent: FollowedRelease | None = None,
) -> Manifest:
    """Return the manifest that a run starts with.

    Raises:
        KnowledgeError: there are no news files, or none is in the window.
    """
    with closing(open_news(setup, workspace)) as news:
        used, known = describe_news(setup, news), news.fingerprint
        control = describe_control(setup, news)
    return Manifest(
        run=f"{files.root.parent.name}/{files.root.name}",
        name=setup.config.name,
        task=setup.task.name,
        status="running",
        created_at=setup.now.isoformat(timespec="seconds"),
        now=setup.now.isoformat(),
        window=setup.window,
        window_start=setup.window_start,
        cutoffs=setup.target_dates,
        counts=full_counts(0, {}),
        models=setup.config.models.model_dump(mode="json", exclude_none=True),
        pipeline=_find_pipeline(setup.config),
        prompts=prompt_versions(setup),
        knowledge=used,
        control=control,
        fingerprints=fingerprints(setup, known),
        source=source,
        workspace=str(workspace.root),
        limit=limit,
        batching=setup.config.run.batch is not None,
        plugins=setup.plugins,
        parent=parent,
    )


def _find_pipeline(config: Config) -> str:
    """Return the name of the entity pipeline; empty if a model finds entities."""
    if "extractor" not in config.models.rule_based_roles:
        return ""
    from coreeval.agents.offline.pipeline import pipeline_name  # for few configs

    return pipeline_name()


def open_workspace(manifest: Manifest) -> Workspace:
    """Return the workspace that a run was started in."""
    return Workspace(Path(manifest.workspace))


@contextmanager
def lock_run(files: RunFiles) -> Iterator[None]:
    """Hold the run's lock.

    Raises:
        RunLocked: another process holds it.
    """
    files.root.mkdir(parents=True, exist_ok=True)
    taken = RunLocked(
        "another process is using this run",
        where=str(files.root),
        hint=f"wait until it ends, or check it with: {command('status', files.root)}",
    )
    with hold_lock(files.lock, taken):
        yield


@contextmanager
def lock_opened_run(files: RunFiles, manifest: Manifest, setup: Setup) -> Iterator[None]:
    """Hold the lock of a run that `open_run` has read, and keep its budget and other free keys.

    Raises:
        RunLocked: another process holds it.
        RunStateError: the takedown list has changed since `open_run`, so texts that it read may be
            deleted by now; or another command has changed the run's settings, which would be lost;
            or the run's task has changed. Nothing was written.
    """
    refuse_changed_task(setup.task, manifest, where=setup.task_file)
    with lock_run(files):
        refuse_changed_takedown(setup, open_workspace(manifest), where=files.root)
        recorded = read_manifest(files.manifest)
        refuse_changed_settings(recorded, manifest, setup, files)
        if recorded.source != manifest.source:
            changed = recorded.model_copy(update={"source": manifest.source})
            write_manifest(files.manifest, changed)
        before = load_config(files.config)
        config = _record_paths(apply_free_keys(before, setup.config), manifest.source)
        if config != before:
            _keep_config(files, config)
        yield
