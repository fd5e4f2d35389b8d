"""Asks targets about the arms of an ended run: targets of its config, and others."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from coreeval.config import TargetConfig, parse_target
from coreeval.errors import ConfigError, RunStateError
from coreeval.graph.execute import DEFAULT_HOOKS, RunHooks, RunSummary, execute, open_store
from coreeval.graph.run import lock_opened_run, open_run, open_workspace
from coreeval.graph.run_origin import apply_added_targets
from coreeval.graph.setup import Setup, check_targets
from coreeval.graph.state import ASKING_NODES
from coreeval.runs.manifest import Evaluation, Manifest
from coreeval.runs.own_config import use_names_of
from coreeval.tools.env_file import hold_env_file
from coreeval.tools.plugins import allow_target, permit_plugins
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles, command


@hold_env_file()
def evaluate(
    run_dir: Path | str,
    *,
    targets: Sequence[str] = (),
    budget_usd: float | None = None,
    around: RunHooks = DEFAULT_HOOKS,
) -> RunSummary:
    """Ask targets the unanswered questions about a run's arms and write a new report.

    A target that is not in the run's config is stored with the run, so that a later `resume` or
    `retry` knows it. Answers are kept; after a kill, `resume` or the same call continues. Targets
    whose batches the run waits for are asked too: their answers are paid for.

    Args:
        run_dir: The run's directory.
        targets: The targets to ask, as `provider:name` or as a YAML mapping of a target's keys; by
            default all targets of the config, and those added before.
        budget_usd: The run's new total budget, including its cost so far.
        around: Progress callback, clock and team builder.

    Raises:
        RunStateError: there is no run, or some of its samples are unfinished.
        ConfigError: the target does not exist, or there is no target at all.
        UntrustedEndpoint: a variable would be sent to an endpoint that was not approved.
        RunError: a target left questions without an answer; the others are stored.
    """
    found = prepare_evaluation(run_dir, targets, budget_usd)
    check_targets(found.setup, found.asked_targets, open_workspace(found.manifest))
    with lock_opened_run(found.files, found.manifest, found.setup):
        with open_store(found.files, around.now) as store:
            refuse_open(store, found.files)
            store.reopen_stages(ASKING_NODES)
        return execute(
            found.setup, found.manifest, found.files, open_workspace(found.manifest), around
        )


@dataclass(frozen=True, kw_only=True)
class EvaluationPlan:
    """A run, and the targets to ask."""

    files: RunFiles
    manifest: Manifest
    """The run's manifest, with the targets to ask."""
    setup: Setup
    """The run's setup, with the added targets."""

    @property
    def asked_targets(self) -> list[TargetConfig]:
        """Return the targets that are asked."""
        said = self.manifest.evaluation or Evaluation()
        return [one for one in self.setup.config.models.targets if one.model in said.asked]


def prepare_evaluation(
    run_dir: Path | str, targets: Sequence[str], budget_usd: float | None
) -> EvaluationPlan:
    """Return a run with the named targets, or with all its targets; nothing is written.

    Naming a plugin as a target allows it to run.

    Raises:
        RunStateError: there is no run.
        ConfigError: the target does not exist, or there is no target at all.
    """
    given = [parse_target(text, base=Path.cwd()) for text in targets]
    for target in given:  # before the run's config is opened, which may name it as well
        allow_target(target.model)
    files, manifest, setup = open_run(run_dir, budget_usd, may_repeat=True)
    locate, rename = manifest.source.locate, use_names_of(setup.config.models, manifest.source)
    given = [target.resolve(locate, rename) for target in given]
    known = {target.model: target for target in setup.config.models.targets}
    before = manifest.evaluation or Evaluation(asked=tuple(known))
    waiting = before.asked if manifest.status == "waiting" and given else ()
    for target in given:
        _refuse_other(target, known.setdefault(target.model, target))
    asked = tuple(dict.fromkeys((*waiting, *(each.model for each in given)))) or tuple(known)
    if not asked:
        raise ConfigError(
            "the run has no target to evaluate",
            where="models.targets",
            hint="pass one: coreeval evaluate RUN --target provider:name",
        )
    config, own = setup.config, {target.model for target in setup.config.models.targets}
    new = [known[name] for name in asked if name not in own]
    kept = [target.resolve(manifest.source.record, str) for target in new]
    added = (*before.added, *(target.model_dump(mode="json", exclude_none=True) for target in kept))
    manifest = manifest.model_copy(update={"evaluation": Evaluation(added=added, asked=asked)})
    config = apply_added_targets(config, manifest)
    plugins = permit_plugins(config, open_workspace(manifest))
    return EvaluationPlan(
        files=files,
        manifest=manifest.name_plugins(plugins),
        setup=replace(setup, config=config, plugins=tuple(plugins)),
    )


def _refuse_other(target: TargetConfig, known: TargetConfig) -> None:
    """Raise an error if a target's settings differ from those of the run's target of that name."""
    alike = (known, TargetConfig(model=known.model))
    if target.model_dump() not in [each.model_dump() for each in alike]:
        raise ConfigError(
            f"the run already has a target {target.model!r} with different settings",
            where="--target",
            hint="answers are stored by target name; start another run to use different settings",
        )


def refuse_open(store: RunStore, files: RunFiles) -> None:
    """Raise an error if some of a run's samples are unfinished.

    Raises:
        RunStateError: some of its samples are unfinished.
    """
    if store.pending() or not store.total():
        raise RunStateError(
            "the run is unfinished: its arms are incomplete",
            where=str(files.root),
            hint=f"finish it first: {command('resume', files.root)}",
        )
