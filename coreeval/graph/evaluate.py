"""Asks targets about the arms of a run that has ended: those of its config, and others."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from coreeval.config import TargetConfig, parse_target
from coreeval.errors import ConfigError, RunStateError
from coreeval.graph.execute import DEFAULT_HOOKS, RunHooks, RunSummary, execute, open_store
from coreeval.graph.run import lock_run, open_run, open_workspace
from coreeval.graph.run_origin import apply_added_targets
from coreeval.graph.setup import Setup, check_targets
from coreeval.runs.manifest import Evaluation, Manifest
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles, command

STAGES = ("evaluate", "pcr", "numleak", "report")


def evaluate(
    run_dir: Path | str,
    *,
    targets: Sequence[str] = (),
    budget_usd: float | None = None,
    around: RunHooks = DEFAULT_HOOKS,
) -> RunSummary:
    """Ask targets about the arms of a run, as far as they have not answered, and report anew.

    A target that is not in the run's config is remembered with the run, so that a later `resume` or
    `retry` knows it. What was answered is kept; after a kill, `resume` or the same call goes on.

    Args:
        run_dir: The run's directory.
        targets: Whom to ask, as `provider:name` or as a YAML mapping of a target's keys; by
            default all targets of the config, and those added before.
        budget_usd: What the run may cost from now on, all that it has cost included.
        around: Progress callback, clock and team builder.

    Raises:
        RunStateError: no run there, or some of its samples have not ended.
        ConfigError: there is no such target, or no target at all.
        UntrustedEndpoint: a variable would be sent where nobody has agreed to.
        RunError: a target left questions without an answer; the others are stored.
    """
    found = prepare_evaluation(run_dir, targets, budget_usd)
    check_targets(found.setup, found.asked_targets, open_workspace(found.manifest))
    with lock_run(found.files):
        with open_store(found.files, around.now) as store:
            refuse_open(store, found.files)
            store.reopen_stages(STAGES)
        return execute(
            found.setup, found.manifest, found.files, open_workspace(found.manifest), around
        )


@dataclass(frozen=True, kw_only=True)
class EvaluationPlan:
    """A run, and whom it is going to ask."""

    files: RunFiles
    manifest: Manifest
    """With who is asked."""
    setup: Setup
    """With the targets that were added."""

    @property
    def asked_targets(self) -> list[TargetConfig]:
        """The targets that are asked."""
        said = self.manifest.evaluation or Evaluation()
        return [one for one in self.setup.config.models.targets if one.model in said.asked]


def prepare_evaluation(
    run_dir: Path | str, targets: Sequence[str], budget_usd: float | None
) -> EvaluationPlan:
    """Return a run with the targets that are named, or all that it knows; nothing is written.

    Raises:
        RunStateError: no run there.
        ConfigError: there is no such target, or no target at all.
    """
    files, manifest, setup = open_run(run_dir, budget_usd)
    known = {target.model: target for target in setup.config.models.targets}
    given = [parse_target(text, base=Path.cwd()) for text in targets]
    for target in given:
        _refuse_other(target, known.setdefault(target.model, target))
    asked = tuple(dict.fromkeys(target.model for target in given)) or tuple(known)
    if not asked:
        raise ConfigError(
            "the run has no target to ask",
            where="models.targets",
            hint="name one: coreeval evaluate RUN --target provider:name",
        )
    config, own = setup.config, {target.model for target in setup.config.models.targets}
    before = manifest.evaluation or Evaluation()
    new = [known[name] for name in asked if name not in own]
    added = (*before.added, *(target.model_dump(mode="json", exclude_none=True) for target in new))
    manifest = manifest.model_copy(update={"evaluation": Evaluation(added=added, asked=asked)})
    return EvaluationPlan(
        files=files,
        manifest=manifest,
        setup=replace(setup, config=apply_added_targets(config, manifest)),
    )


def _refuse_other(target: TargetConfig, known: TargetConfig) -> None:
    """Refuse a target with other settings than the one of its name that the run knows."""
    if target not in (known, TargetConfig(model=known.model)):
        raise ConfigError(
            f"the run has a target {target.model!r} with other settings",
            where="--target",
            hint="its answers are kept by its name; start another run to ask it differently",
        )


def refuse_open(store: RunStore, files: RunFiles) -> None:
    """Refuse a run whose samples have not all ended.

    Raises:
        RunStateError: it is one.
    """
    if store.pending() or not store.total():
        raise RunStateError(
            "the run has not come to its end: its arms are not complete",
            where=str(files.root),
            hint=f"first: {command('resume', files.root)}",
        )
