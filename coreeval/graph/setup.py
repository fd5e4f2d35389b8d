"""Builds and checks everything a run needs from its config, before anything is written or spent."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Final, Literal

from coreeval import tasks
from coreeval.agents.kinds import item_kind
from coreeval.agents.safety import DEFAULT_POLICY, SafetyRules, load_active_takedown
from coreeval.agents.team import llm_roles, prompt_names
from coreeval.config import (
    ROLES,
    AnyConfig,
    Config,
    DatasetConfig,
    ModelConfig,
    ModelsConfig,
    TargetConfig,
)
from coreeval.errors import ConfigError, DatasetError, RunStateError
from coreeval.evaluation.benchmarks import fingerprint, iter_benchmark, list_splits, resolve_split
from coreeval.evaluation.benchmarks.subset import Subset, choose_ids
from coreeval.evaluation.embedded_targets import check_embedded, is_classifier
from coreeval.graph.embedding_budget import refuse_uncounted_embeddings
from coreeval.graph.money import check_money
from coreeval.graph.state import SAMPLE_NODES
from coreeval.graph.window import resolve_window, restore_window
from coreeval.graph.worker_shares import check_workers
from coreeval.languages import ENGLISH, LANGUAGES
from coreeval.models import preflight
from coreeval.prompts import ROLES_OF_PROMPT, PromptSet, load_prompts
from coreeval.runs.manifest import Fingerprints, Manifest
from coreeval.runs.own_config import name_takedown_lists
from coreeval.schema import BadRow, Sample, Task, Window
from coreeval.tasks import load_task
from coreeval.tools.catalogs import Prices
from coreeval.tools.cutoffs import LatestDate, TargetDates
from coreeval.tools.endpoints import (
    is_agreed,
    model_pairs,
    refuse_untrusted,
    run_pairs,
    service_pairs,
)
from coreeval.tools.extras import check_extra
from coreeval.tools.plugin_origin import PluginOrigin
from coreeval.tools.plugins import permit_plugins
from coreeval.tools.trust import TrustRecord
from coreeval.tools.workspace import Workspace

Untrusted = Literal["refuse", "skip"]
"""What to do with a model whose key may not be sent to its endpoint yet."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A config resolved at one moment."""

    config: Config
    task: Task
    task_file: str
    """The name or path of the task; an existing run has a copy of the user's file."""
    prompts: PromptSet
    window: Window
    window_start: LatestDate | None
    """The basis of `window.start: auto`; None if the config gives the date."""
    control: Window | None = None
    """The news window of the control arm; None if there is none."""
    target_dates: tuple[TargetDates, ...]
    now: datetime
    rules: SafetyRules
    plugins: tuple[PluginOrigin, ...] = ()
    """The plugins of the config, which the user has allowed to run."""
    began: Manifest | None = None
    """The run's manifest when this command began; None for a new run."""
    remarks: tuple[str, ...] = ()
    """Remarks for the user, told when the run goes on."""


def set_up(
    config: Config,
    now: datetime,
    began: Manifest | None = None,
    *,
    workspace: Workspace | None = None,
    task_file: str | None = None,
    base: Path = Path(),
) -> Setup:
    """Load the task and prompts and fix the window.

    Args:
        config: The config.
        now: The time at which it is read.
        began: Manifest of the run that it belongs to, whose window is kept.
        workspace: Its takedown list applies in addition to the config's, and it stores which
            plugins may run.
        task_file: The file that has the run's task; None for the config's.
        base: The folder of a new run's config, to which public names of local files are relative.

    Raises:
        UnallowedPlugin: nobody has agreed to run a plugin that the config names.
        UsageError: something in the config is not valid.
    """
    plugins = permit_plugins(config, workspace)
    prompts = load_prompts(Path(config.prompts) if config.prompts else None)
    task_file = task_file or config.task
    task = load_task(task_file, config.dataset.target, config.dataset.language)
    _check_pipeline(config, prompts, task)
    fixed = restore_window(began, config) if began else resolve_window(config, now, base)
    return Setup(
        config=config,
        task=task,
        task_file=task_file,
        prompts=prompts,
        window=fixed.window,
        window_start=fixed.start,
        control=fixed.control,
        target_dates=fixed.targets,
        now=now,
        rules=load_rules(config, workspace, began),
        plugins=tuple(plugins),
        began=began,
    )


def _check_pipeline(config: Config, prompts: PromptSet, task: Task) -> None:
    """Raise an error if the lean pipeline would ignore a configured model or prompt."""
    if config.run.pipeline != "lean":
        return
    for role, player in llm_roles(config.run, task).items():
        name = player.prompt_name(task)
        both = ROLES_OF_PROMPT[name]
        models = [config.models.for_role(one) for one in both]
        if all(model.is_rule_based for model in models) and not item_kind(task).plain_text:
            continue  # rules cannot play these roles at all, which `_check_rules_fit` says
        asked = {repr(model) for model in models if model.provider != "replay"}
        others = [one for one in both if not config.models.for_role(one).is_asked]
        if others:
            raise ConfigError(
                f"the lean pipeline needs a model for {' and '.join(others)}",
                where=f"run.pipeline and models.{role}",
                hint="set a model (provider:name), or set run.pipeline: full",
            )
        if len(asked) > 1:
            raise ConfigError(
                f"{' and '.join(both)} share one call, so both need the same model",
                where=f"run.pipeline and models.{role}",
                hint="use the same model for both, or set run.pipeline: full",
            )
        passed_over = sorted(prompts.own & set(both))
        if len(both) > 1 and passed_over and name not in prompts.own:
            raise ConfigError(
                f"first texts use {name}.md, so your {passed_over[0]}.md would be ignored",
                where="run.pipeline and prompts",
                hint=f"add your own {name}.md to the folder, or set run.pipeline: full",
            )


def load_rules(
    config: Config, workspace: Workspace | None = None, began: Manifest | None = None
) -> SafetyRules:
    """Return the rules about real people from config and workspace, with defaults filled in.

    Args:
        config: The config.
        workspace: Its takedown list applies, too.
        began: Manifest of the run that has the config; None for a new run. The list that its config
            file names by now applies, too.

    Raises:
        ConfigError: a takedown list cannot be read.
    """
    own, source = [workspace.takedown] if workspace else [], began.source if began else None
    return SafetyRules(
        policy={**DEFAULT_POLICY, **config.safety.flag_policies()},
        takedown=load_active_takedown(name_takedown_lists(config, source), *own),
    )


def refuse_changed_takedown(setup: Setup, workspace: Workspace, *, where: Path) -> None:
    """Refuse to go on with texts that a takedown may have deleted since they were read.

    Raises:
        RunStateError: the takedown list has changed since the setup was made.
    """
    rules = load_rules(setup.config, workspace, setup.began)
    if rules.takedown.fingerprint != setup.rules.takedown.fingerprint:
        raise RunStateError(
            "the takedown list has changed since this command began",
            where=str(where),
            hint="repeat the command, which then uses the new list",
        )


def check_dataset(setup: Setup) -> Sample:
    """Return the first sample of the benchmark.

    Raises:
        DatasetError: the files do not exist or contain no valid sample.
    """
    bad: list[BadRow] = []
    for row in iter_benchmark(setup.config.dataset, setup.task):
        if isinstance(row, Sample):
            return row
        bad.append(row)
    first = f"; the first: line {bad[0].line}: {bad[0].reason}" if bad else ""
    raise DatasetError(
        f"the split {setup.config.dataset.split!r} contains no valid sample "
        f"({len(bad)} bad rows{first})",
        where=setup.config.dataset.path,
        hint="check dataset.format, dataset.split and the task's labels",
    )


def check_subset(setup: Setup, subset: Subset | None) -> frozenset[str]:
    """Return the sample ids of a subset; none without a subset.

    Raises:
        DatasetError: the benchmark lacks a named id or label.
    """
    if subset is None:
        return frozenset()
    return choose_ids(iter_benchmark(setup.config.dataset, setup.task), subset)


def check_models(
    setup: Setup,
    workspace: Workspace,
    *,
    untrusted: Untrusted = "refuse",
    prices: Prices | None = None,
) -> None:
    """Check every model without cost: keys, endpoints, prices, and what targets need.

    Args:
        setup: The setup built from a config.
        workspace: Stores which variables may be sent to which endpoints.
        untrusted: What to do with models whose key may not be sent yet: refuse them, or skip
            their endpoint.
        prices: Prices of models; None to read the config's price file.

    Raises:
        UntrustedEndpoint: a variable would be sent to an endpoint that was not approved.
        CredentialError: a key is missing.
        ModelUnusable: an endpoint does not respond.
        ConfigError: a provider or an embedded target does not exist.
        DatasetError: there is no train split to fit an embedded target on.
    """
    config = setup.config
    targets = config.models.targets if config.detect.asks_targets else ()
    judges = config.detect.judges if targets else ()
    _check_rule_based(config.models, setup.task.language)
    _check_rules_fit(config.models, setup.task)
    refuse_uncounted_embeddings(config)
    check_workers(config, workspace)
    _check_reachable_targets(
        setup, [*_list_role_models(config), *targets, *judges], workspace, untrusted, prices
    )


def check_targets(setup: Setup, targets: Sequence[TargetConfig], workspace: Workspace) -> None:
    """Check the given targets without cost, as `check_models` does, and no other models.

    Raises:
        UntrustedEndpoint: a variable would be sent to an endpoint that was not approved.
        CredentialError: a key is missing.
        ModelUnusable: an endpoint does not respond.
        ConfigError: a provider or an embedded target does not exist.
        DatasetError: there is no train split to fit an embedded target on.
    """
    _check_reachable_targets(setup, targets, workspace)


def require_trusted(config: Config, workspace: Workspace) -> None:
    """Raise an error if a run would send a variable to an endpoint that was not approved.

    Raises:
        UntrustedEndpoint: it would be sent.
    """
    record = TrustRecord(workspace)
    refuse_untrusted(run_pairs(config, os.environ), record.endpoints(), record=record.path)


def _check_reachable_targets(
    setup: Setup,
    models: Sequence[ModelConfig],
    workspace: Workspace,
    untrusted: Untrusted = "refuse",
    prices: Prices | None = None,
) -> None:
    asked = [model for model in models if not model.is_rule_based]
    check_reachable(setup.config, asked, workspace, untrusted=untrusted, prices=prices)
    for target in models:
        if isinstance(target, TargetConfig) and target.is_embedded:
            _check_embedded(setup, target)


def _check_rule_based(models: ModelsConfig, language: str) -> None:
    """Raise an error if a role is played by rules that cannot play it.

    Their packages may be missing, and they only support English.
    """
    if models.rule_based_roles and language != ENGLISH:
        roles = ", ".join(models.rule_based_roles)
        raise ConfigError(
            f"the benchmark is in {LANGUAGES[language]}, but the rules that play {roles} know "
            "only English",
            where="models",
            hint=f"set a model for {roles}; offline and spacy are for English benchmarks",
        )
    providers = {models.for_role(role).provider for role in models.rule_based_roles}
    if providers:
        check_extra("demo", "spacy", "a role that rules play", where="models")
    if "offline" in providers:
        check_extra("demo", "sklearn", "a role that rules play", where="models")


def _check_rules_fit(models: ModelsConfig, task: Task) -> None:
    """Raise an error if offline rules play a role that they cannot play for this task."""
    ruled = [
        role for role in models.rule_based_roles if models.for_role(role).provider == "offline"
    ]
    fields, labels = len(task.fields), len(task.labels)
    if ruled and not item_kind(task).plain_text:
        raise ConfigError(
            f"the offline rules work on texts with labels; {task.name} is of the kind {task.kind}",
            where=", ".join(f"models.{role}" for role in ruled),
            hint="set a model (provider:name) for these roles; see `coreeval docs models`",
        )
    if ruled and fields > 2:
        raise ConfigError(
            f"the offline rules work on texts of one or two fields; {task.name} has {fields}",
            where=", ".join(f"models.{role}" for role in ruled),
            hint="set a model (provider:name) for these roles; see `coreeval docs models`",
        )
    if "label_judge" in ruled and fields == 2 and labels != 2:
        raise ConfigError(
            f"the offline label judge distinguishes two labels of a pair; {task.name} has {labels}",
            where="models.label_judge",
            hint="set a model (provider:name) for the label judge; see `coreeval docs models`",
        )


def _check_embedded(setup: Setup, target: TargetConfig) -> None:
    """Check an embedded target: a persona if it is asked about series, else a classifier."""
    if setup.config.detect.asks_series and not is_classifier(target.model):
        from coreeval.evaluation.numleak.personas import check_persona  # numpy

        check_persona(target.model)
        return
    check_embedded(target.model)
    if not item_kind(setup.task).plain_text:
        raise ConfigError(
            f"{target.model} answers with labels; {setup.task.name} is of the kind "
            f"{setup.task.kind}",
            where="models.targets",
            hint="use a language model (provider:name); see `coreeval docs models`",
        )
    dataset = setup.config.dataset
    _refuse_same_split(dataset, dataset.train_split, _FIT_PROBLEM, "dataset.train_split")


def check_reachable(
    config: AnyConfig,
    models: Sequence[ModelConfig],
    workspace: Workspace,
    *,
    untrusted: Untrusted = "refuse",
    prices: Prices | None = None,
) -> None:
    """Check without cost that models can be asked and paid for; see `check_models`.

    Raises:
        UntrustedEndpoint: a variable would be sent to an endpoint that was not approved.
        UnallowedPlugin: nobody has agreed to run a plugin that the config names.
        CredentialError: a key is missing.
        ModelUnusable: an endpoint does not respond.
        ConfigError: a provider does not exist, or the budget cannot be kept.
    """
    permit_plugins(config, workspace)
    record = TrustRecord(workspace)
    trusted, env = record.endpoints(), os.environ
    if untrusted == "refuse":
        pairs = (*model_pairs(models, env), *service_pairs(config, env))
        refuse_untrusted(pairs, trusted, record=record.path)
    distinct = {
        (model.model, model.base_url, model.key_variable): model for model in reversed(models)
    }
    for model in reversed(distinct.values()):
        if all(is_agreed(pair, trusted) for pair in model_pairs([model], env)):
            preflight(model, trusted=trusted)
    check_money(config, models, prices)


_FIT_PROBLEM = "an embedded target would be trained on its test split"
_PCR_PROBLEM = "PCR would compare a split with itself"


def check_splits(setup: Setup) -> None:
    """Check that PCR has a split to compare with, if the config enables PCR.

    Raises:
        DatasetError: the split does not exist, or is the one that is refreshed.
    """
    config = setup.config
    if config.detect.compares_splits:
        _refuse_same_split(
            config.dataset, config.pcr_train_split, _PCR_PROBLEM, config.pcr_split_key
        )


def _refuse_same_split(dataset: DatasetConfig, other: str, problem: str, where: str) -> None:
    """Raise an error if the train split does not exist, or is the split that is refreshed."""
    train, split = resolve_split(dataset, other), resolve_split(dataset)
    same_files = not dataset.is_on_hub and (
        fingerprint(dataset, train) == fingerprint(dataset, split)
    )
    if train == split or same_files:
        raise DatasetError(
            f"{problem}, {split!r}",
            where=where,
            hint=f"choose another split: {', '.join(list_splits(dataset))}",
        )


def _list_role_models(config: Config) -> list[ModelConfig]:
    """Return the models that play roles."""
    roles = (config.models.for_role(role) for role in ROLES)
    return [model for model in roles if model.is_asked]


def graph_version(setup: Setup) -> str:
    """Return the hash of node names and prompts: a thread is resumed only in the same graph."""
    return _hash(*SAMPLE_NODES, *prompt_versions(setup).values())[:12]


_NOT_IN_FINGERPRINT: Final[dict[str, bool | set[str]]] = {
    "schedule": True,
    "telemetry": True,
    "run": {"engine", "workers", "ray"},
}


def fingerprints(setup: Setup, knowledge: str) -> Fingerprints:
    """Return the hashes of everything that determines the result."""
    versions = prompt_versions(setup)
    return Fingerprints(
        config=_hash(setup.config.model_dump_json(exclude=_NOT_IN_FINGERPRINT)),
        prompts=_hash(*versions.values()),
        task=task_fingerprint(setup),
        data=data_fingerprint(setup),
        knowledge=knowledge,
        code=metadata.version("coreeval"),
        graph=graph_version(setup),
    )


def task_fingerprint(setup: Setup) -> str:
    """Return the hash of the task: its labels, its fields and its instructions to roles."""
    return tasks.hash_task(setup.task)


def data_fingerprint(setup: Setup) -> str:
    """Return the hash of the benchmark's files.

    Raises:
        DatasetError: they do not exist.
    """
    return fingerprint(setup.config.dataset, setup.config.dataset.split)


def prompt_versions(setup: Setup) -> dict[str, str]:
    """Return the hash of each role's wording for this task."""
    run, prompts, task = setup.config.run, setup.prompts, setup.task
    versions = dict[str, str]()
    for role, names in prompt_names(run, prompts, task).items():
        each = [prompts.version_for(name, task) for name in names]
        versions[role] = each[0] if len(each) == 1 else _hash(*each)[:12]
    return versions


def _hash(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
