"""PCR on a benchmark of items: questions about the original and modified items of two splits.

Building a plan makes all checks that are free. Answers go to the call store, so a stop or a kill
loses only the calls in progress.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from coreeval.config import ItemConfig, ModelConfig, load_item_config
from coreeval.errors import ConfigError, DatasetError
from coreeval.evaluation.benchmarks.items import (
    list_item_splits,
    load_defaults,
    load_items,
    load_modified,
)
from coreeval.evaluation.metrics import THRESHOLD
from coreeval.evaluation.modifications import FLOOR, ItemTwin, NoTwin, Paraphraser
from coreeval.evaluation.pcr.pairs_from_items import (
    Answers,
    ItemAnswer,
    ItemSample,
    TargetPairs,
    Twins,
    draw_items,
    make_lookup,
    make_rule,
    match_twins,
    pair_answers,
    refuse_foreign_pairs,
    write_pairs,
)
from coreeval.evaluation.pcr.study import CONSISTENCIES, COSINE, METRICS, PcrSettings
from coreeval.graph.campaign import Campaign, CampaignPlan, ask_text, file_names, run_campaign
from coreeval.graph.embedding_budget import refuse_uncounted_embeddings
from coreeval.graph.monitor import Watch, ignore_progress
from coreeval.graph.setup import check_reachable
from coreeval.models import ModelClient
from coreeval.tools.embeddings import Embedder
from coreeval.tools.env_file import read_env_file
from coreeval.tools.workspace import Workspace, item_payer, workspace_for

PARAPHRASE, RECORDED = "paraphrase", "recorded"
ITEM_ROLE, PARAPHRASE_ROLE = "target_text", "paraphraser"
"""Roles under which the calls are recorded."""


@dataclass(frozen=True, kw_only=True)
class ItemPlan:
    """The items, the targets, and the comparison of answers."""

    source: Path
    """Path of the config file."""
    config: ItemConfig
    workspace: Workspace
    settings: PcrSettings
    modification: str
    """Name of a modification, or `recorded`."""
    drawn: tuple[ItemSample, ...]
    """The drawn samples of the training split, then those of the test split."""
    twins: tuple[Twins, ...]
    """The same samples with their twins; empty if a model has yet to write the twins."""

    @property
    def payer(self) -> str:
        """Return the name of the payer in the call store."""
        return item_payer(self.config.name)

    @property
    def items(self) -> int:
        """Return the number of items to ask about, or its upper bound."""
        if self.twins:
            return sum(len(each.pairs) for each in self.twins)
        return sum(len(each.items) for each in self.drawn)

    @property
    def needs_embeddings(self) -> bool:
        """Return whether paraphrases or answers are compared by meaning."""
        return self.modification == PARAPHRASE or self.settings.consistency == COSINE

    @property
    def models(self) -> list[ModelConfig]:
        """Return all models to ask."""
        rewriter = self.config.models.rewriter
        writes = self.modification == PARAPHRASE and rewriter is not None
        return [*self.config.models.targets, *([rewriter] if rewriter and writes else [])]


def build_item_plan(path: Path, *, overrides: Sequence[str], settings: PcrSettings) -> ItemPlan:
    """Return the plan of a config's questions.

    Args:
        path: The YAML config.
        overrides: `key.path=value` settings that override the config's.
        settings: How results are computed; the config's scores and splits take precedence.

    Raises:
        UsageError: the config, the benchmark, a key or a price cannot be used.
        ModelUnusable: an endpoint does not respond.
    """
    path = path.resolve()
    config = load_item_config(path, overrides)
    read_env_file(path.parent, config)
    modification, chosen = _choose_modification(config), resolve_settings(config, settings)
    drawn = tuple(_draw_items(config, split) for split in (chosen.train, chosen.test))
    _check_options(chosen, drawn)
    plan = ItemPlan(
        source=path,
        config=config,
        workspace=workspace_for(path.parent),
        settings=chosen,
        modification=modification,
        drawn=drawn,
        twins=tuple(_modify_items(config, modification, each) for each in drawn)
        if modification != PARAPHRASE
        else (),
    )
    if plan.needs_embeddings:
        refuse_uncounted_embeddings(config)
    check_reachable(config, plan.models, plan.workspace)
    return plan


def resolve_settings(config: ItemConfig, settings: PcrSettings) -> PcrSettings:
    """Return the settings for computing results, from the config or else from the benchmark.

    Raises:
        ConfigError: a score is missing or unknown, or both splits are the same.
    """
    said, usual = config.detect.pcr, load_defaults().get(config.dataset.format)
    train = said.train_split or (usual.train_split if usual else settings.train)
    test = said.test_split or (usual.test_split if usual else settings.test)
    if train == test:
        raise ConfigError(
            f"both splits are {train!r}",
            where="detect.pcr",
            hint="set train_split and test_split to different splits",
        )
    alpha = said.alpha if said.alpha is not None else usual.alpha if usual else settings.form.alpha
    usual_threshold = usual.threshold if usual else THRESHOLD
    return replace(
        settings,
        metric=_require_known(
            "metric", said.metric or (usual.performance if usual else ""), METRICS
        ),
        consistency=_require_known(
            "consistency", said.consistency or (usual.consistency if usual else ""), CONSISTENCIES
        ),
        threshold=usual_threshold if said.threshold is None else said.threshold,
        form=replace(settings.form, alpha=alpha, scale=said.scale),
        train=train,
        test=test,
        exchangeable=said.exchangeable_splits,
    )


def _require_known(key: str, name: str, known: Sequence[str]) -> str:
    if name not in known:
        problem = f"there is no {key} {name!r}" if name else f"the {key} is missing"
        raise ConfigError(problem, where=f"detect.pcr.{key}", hint=f"use one of {', '.join(known)}")
    return name


def _choose_modification(config: ItemConfig) -> str:
    said, usual = config.detect.pcr, load_defaults().get(config.dataset.format)
    if said.modified:
        return RECORDED
    name = said.modification or (usual.modification if usual else None)
    if name is None:
        raise ConfigError(
            "the modification of items is not set",
            where="detect.pcr",
            hint="set modification: option_shuffle, year_shift or paraphrase; or set modified: "
            "FOLDER",
        )
    if name == PARAPHRASE and config.models.rewriter is None:
        raise ConfigError(
            "paraphrases need a model to write them",
            where="models.rewriter",
            hint='set rewriter: "provider:name", or choose another detect.pcr.modification',
        )
    return name


def _draw_items(config: ItemConfig, split: str) -> ItemSample:
    folder, benchmark = Path(config.dataset.path), config.dataset.format
    if not folder.is_dir():
        raise DatasetError(
            "there is no such folder",
            where=config.dataset.path,
            hint="dataset.path must be the folder with one file per split",
        )
    if split not in (known := list_item_splits(benchmark, folder)) and known:
        raise DatasetError(
            f"the benchmark has no split {split!r}",
            where=config.dataset.path,
            hint=f"available splits: {', '.join(known)}; see detect.pcr.train_split and test_split",
        )
    found = load_items(benchmark, folder, split)
    return draw_items(found, split, most=config.detect.pcr.samples, seed=config.run.seed)


def _modify_items(config: ItemConfig, modification: str, drawn: ItemSample) -> Twins:
    said, benchmark = config.detect.pcr, config.dataset.format
    modify = make_rule(modification, seed=config.run.seed) if not said.modified else make_lookup(
        load_modified(benchmark, Path(said.modified), drawn.split).items
    )  # fmt: skip
    twins = match_twins(drawn, map(modify, drawn.items))
    if said.modified and twins.identical_count == len(twins.pairs):
        raise DatasetError(
            f"none of the {len(drawn.items)} items of {drawn.split!r} has a modified text",
            where=said.modified,
            hint="modified items must have their item's id or position in the file",
        )
    return twins


def _check_options(settings: PcrSettings, drawn: Sequence[ItemSample]) -> None:
    """Raise an error if options are compared and an item has none."""
    if settings.consistency != "option":
        return
    for each in drawn:
        lacking = [item.id for item in each.items if not item.options]
        if lacking:
            raise ConfigError(
                f"{len(lacking)} of {len(each.items)} items of {each.split!r} have no options to "
                f"compare, the first: {lacking[0]}",
                where="detect.pcr.consistency",
                hint=f"use one of {', '.join(name for name in CONSISTENCIES if name != 'option')}",
            )


async def ask_item_answers(
    campaign: Campaign, client: ModelClient, twins: Sequence[Twins]
) -> Answers:
    """Ask a target about all items and their twins; identical texts are asked only once."""

    async def ask(text: str) -> ItemAnswer:
        said = await ask_text(client, [{"role": "user", "content": text}])
        return ItemAnswer(said.kind, said.text if said.kind == "answered" else "")

    pairs = [pair for each in twins for pair in each.pairs]
    texts = list(dict.fromkeys(item.input for pair in pairs for item in pair))
    return await campaign.gather(client.model.name, "ask", texts, ask, lambda answer: answer.kind)


async def write_paraphrases(
    campaign: Campaign, model: str, paraphraser: Paraphraser, drawn: Sequence[ItemSample]
) -> tuple[Twins, ...]:
    """Ask a model to write the twin of each item."""
    items = {(each.split, item.id): item for each in drawn for item in each.items}

    async def write(key: tuple[str, str]) -> ItemTwin | NoTwin:
        return await paraphraser(items[key])

    def kind(outcome: ItemTwin | NoTwin) -> str:
        return "reworded" if isinstance(outcome, ItemTwin) else "left out"

    made = await campaign.gather(model, "reword", list(items), write, kind)
    return tuple(
        match_twins(each, [made[each.split, item.id] for item in each.items]) for each in drawn
    )


@dataclass(frozen=True, kw_only=True)
class ItemAnswers:
    """The results of an item campaign."""

    files: Mapping[str, Path]
    """Files of pairs, by target."""
    asked: Mapping[str, TargetPairs]
    """Results by target."""
    twins: tuple[Twins, ...]
    """Twins of the training split, then those of the test split."""


def ask_items(
    plan: ItemPlan,
    *,
    out: Path | None = None,
    embeds: Embedder | None = None,
    watch: Watch = ignore_progress,
) -> ItemAnswers:
    """Ask each target about the items and their twins, and write its pairs.

    Args:
        plan: The plan, from `build_item_plan`.
        out: The output folder; by default `pcr/<name>` of the workspace.
        embeds: Embeddings that check the similarity floor of paraphrases; only they need it.
        watch: Receives progress.

    Raises:
        UsageError: `out` has a file with a target's name that CoreEval did not write.
        BudgetSpent: another call may cost more than the budget has left.
        Interrupted: a signal stopped it. In these two cases the same call continues.
        RunLocked: another process is running this config.
        RunError: questions got no answer, or a model cannot be used; the answers received are kept.
    """
    folder = plan.workspace.pcr / plan.config.name
    for path in _list_files(plan, out).values() if out else ():
        refuse_foreign_pairs(path)
    campaign = CampaignPlan(
        source=plan.source,
        config=plan.config,
        workspace=plan.workspace,
        payer=plan.payer,
        lock=folder / "pcr.lock",
    )
    return run_campaign(
        campaign, lambda opened: _ask_targets(plan, out or folder, embeds, opened), watch=watch
    )


def _list_files(plan: ItemPlan, out: Path) -> dict[str, Path]:
    """Return the file of each target's pairs."""
    names = file_names(plan.config.models.targets)
    return {target: out / name for target, name in names.items()}


async def _ask_targets(
    plan: ItemPlan, out: Path, embeds: Embedder | None, campaign: Campaign
) -> ItemAnswers:
    """Have a model write twins if needed, then ask one target after the other."""
    twins = plan.twins or await _paraphrase_items(plan, embeds, campaign)
    files, asked = _list_files(plan, out), dict[str, TargetPairs]()
    for target in plan.config.models.targets:
        client = campaign.models.open_client(target, ITEM_ROLE, max_draws=1, settle=True)
        answers = await ask_item_answers(campaign, client, twins)
        found = pair_answers(twins, answers, letters=plan.config.detect.pcr.answer == "letter")
        await asyncio.to_thread(write_pairs, files[target.model], found.pairs)
        asked[target.model] = found
    return ItemAnswers(files=files, asked=asked, twins=twins)


async def _paraphrase_items(
    plan: ItemPlan, embeds: Embedder | None, campaign: Campaign
) -> tuple[Twins, ...]:
    rewriter, floor = plan.config.models.rewriter, plan.config.detect.pcr.floor
    if rewriter is None or embeds is None:
        raise ValueError("a paraphrase needs a model and embeddings")
    client = campaign.models.open_client(rewriter, PARAPHRASE_ROLE, settle=True)
    paraphraser = Paraphraser(client, embeds, floor=FLOOR if floor is None else floor)
    return await write_paraphrases(campaign, rewriter.model, paraphraser, plan.drawn)
