"""From a config to what would be asked: checked as far as that is free, nothing is spent."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from coreeval.config import ItemConfig, ModelConfig, load_item_config
from coreeval.config.env_file import load_env_file
from coreeval.errors import ConfigError, DatasetError
from coreeval.evaluation.benchmarks.defaults import defaults
from coreeval.evaluation.benchmarks.items import item_splits, load_items, load_modified
from coreeval.evaluation.pcr.study import CONSISTENCIES, METRICS, Settings
from coreeval.evaluation.pcr.twins import Drawn, Twins, by_rule, draw, recorded, twins_of
from coreeval.evaluation.scoring import THRESHOLD
from coreeval.graph.setup import check_reached
from coreeval.tools.workspace import Workspace, item_payer, workspace_for

PARAPHRASE, RECORDED = "paraphrase", "recorded"
TARGET_ROLE, PARAPHRASE_ROLE = "target_text", "paraphraser"
"""What the calls are noted as."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is asked of whom, and how it is compared."""

    source: Path
    """The config's file."""
    config: ItemConfig
    workspace: Workspace
    settings: Settings
    modification: str
    """Name of a modification, or `recorded`."""
    drawn: tuple[Drawn, ...]
    """Of the training split, then of the test split."""
    twins: tuple[Twins, ...]
    """The same with their twins; empty where a model has to write these first."""

    @property
    def payer(self) -> str:
        """Who pays in the call store."""
        return item_payer(self.config.name)

    @property
    def items(self) -> int:
        """Items that are asked about, or may be."""
        if self.twins:
            return sum(len(each.pairs) for each in self.twins)
        return sum(len(each.items) for each in self.drawn)

    @property
    def asked(self) -> list[ModelConfig]:
        """The models that are asked anything."""
        rewriter = self.config.models.rewriter
        writes = self.modification == PARAPHRASE and rewriter is not None
        return [*self.config.models.targets, *([rewriter] if rewriter and writes else [])]


def plan_of(path: Path, *, overrides: Sequence[str], settings: Settings) -> Plan:
    """Return what a config asks for.

    Args:
        path: The YAML config.
        overrides: `key.path=value` settings over the config's.
        settings: How results are computed; scores and splits in them give way to the config's.

    Raises:
        UsageError: the config, the benchmark, a key or a price cannot be used.
        ModelUnusable: an endpoint does not answer.
    """
    path = path.resolve()
    load_env_file(path.parent)
    config = load_item_config(path, overrides)
    modification, chosen = _modification(config), settings_of(config, settings)
    drawn = tuple(_drawn(config, split) for split in (chosen.train, chosen.test))
    _check_options(chosen, drawn)
    plan = Plan(
        source=path,
        config=config,
        workspace=workspace_for(path.parent),
        settings=chosen,
        modification=modification,
        drawn=drawn,
        twins=tuple(_twins(config, modification, each) for each in drawn)
        if modification != PARAPHRASE
        else (),
    )
    check_reached(config, plan.asked, plan.workspace)
    return plan


def settings_of(config: ItemConfig, settings: Settings) -> Settings:
    """Return how a config's results are computed: by its own keys, else as the benchmark has it.

    Raises:
        ConfigError: a score is missing or unknown, or both splits are one.
    """
    said, usual = config.detect.pcr, defaults().get(config.dataset.format)
    train = said.train_split or (usual.train_split if usual else settings.train)
    test = said.test_split or (usual.test_split if usual else settings.test)
    if train == test:
        raise ConfigError(
            f"both splits are {train!r}",
            where="detect.pcr",
            hint="name two: train_split, test_split",
        )
    alpha = said.alpha if said.alpha is not None else usual.alpha if usual else settings.form.alpha
    usual_threshold = usual.threshold if usual else THRESHOLD
    return replace(
        settings,
        metric=_named("metric", said.metric or (usual.performance if usual else ""), METRICS),
        consistency=_named(
            "consistency", said.consistency or (usual.consistency if usual else ""), CONSISTENCIES
        ),
        threshold=usual_threshold if said.threshold is None else said.threshold,
        form=replace(settings.form, alpha=alpha, scale=said.scale),
        train=train,
        test=test,
        exchangeable=said.exchangeable_splits,
    )


def _named(key: str, name: str, known: Sequence[str]) -> str:
    if name not in known:
        problem = f"there is no {key} {name!r}" if name else f"the {key} is missing"
        raise ConfigError(problem, where=f"detect.pcr.{key}", hint=f"one of {', '.join(known)}")
    return name


def _modification(config: ItemConfig) -> str:
    said, usual = config.detect.pcr, defaults().get(config.dataset.format)
    if said.modified:
        return RECORDED
    name = said.modification or (usual.modification if usual else None)
    if name is None:
        raise ConfigError(
            "nothing says how items are modified",
            where="detect.pcr",
            hint="modification: option_shuffle, year_shift or paraphrase; or modified: FOLDER",
        )
    if name == PARAPHRASE and config.models.rewriter is None:
        raise ConfigError(
            "a paraphrase needs a model that writes it",
            where="models.rewriter",
            hint='rewriter: "provider:name"; or take another detect.pcr.modification',
        )
    return name


def _drawn(config: ItemConfig, split: str) -> Drawn:
    folder, benchmark = Path(config.dataset.path), config.dataset.format
    if not folder.is_dir():
        raise DatasetError(
            "there is no such folder",
            where=config.dataset.path,
            hint="dataset.path is the folder that has a file for each split",
        )
    if split not in (known := item_splits(benchmark, folder)) and known:
        raise DatasetError(
            f"the benchmark has no split {split!r}",
            where=config.dataset.path,
            hint=f"there are {', '.join(known)}: see detect.pcr.train_split and test_split",
        )
    found = load_items(benchmark, folder, split)
    return draw(found, split, most=config.detect.pcr.samples, seed=config.run.seed)


def _twins(config: ItemConfig, modification: str, drawn: Drawn) -> Twins:
    said, benchmark = config.detect.pcr, config.dataset.format
    modify = by_rule(modification, seed=config.run.seed) if not said.modified else recorded(
        load_modified(benchmark, Path(said.modified), drawn.split).items
    )  # fmt: skip
    twins = twins_of(drawn, map(modify, drawn.items))
    if said.modified and twins.unchanged == len(twins.pairs):
        raise DatasetError(
            f"not one of {len(drawn.items)} items of {drawn.split!r} has a modified text there",
            where=said.modified,
            hint="modified items have their item's id, or its place in the file",
        )
    return twins


def _check_options(settings: Settings, drawn: Sequence[Drawn]) -> None:
    """Check that items have options where these are compared."""
    if settings.consistency != "option":
        return
    for each in drawn:
        lacking = [item.id for item in each.items if not item.options]
        if lacking:
            raise ConfigError(
                f"{len(lacking)} of {len(each.items)} items of {each.split!r} have no options to "
                f"compare, the first: {lacking[0]}",
                where="detect.pcr.consistency",
                hint=f"one of {', '.join(name for name in CONSISTENCIES if name != 'option')}",
            )
