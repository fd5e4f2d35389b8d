"""Asking all that a plan says, through the call store: a stop or a kill costs what is in flight."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from coreeval.config import TargetConfig
from coreeval.evaluation.modifications import Paraphraser
from coreeval.evaluation.modifications.paraphrase import FLOOR
from coreeval.evaluation.pcr.answered import TargetAsked, asked_of, write_pairs
from coreeval.evaluation.pcr.twins import Twins
from coreeval.graph.desk import Desk
from coreeval.graph.items.asking import answers_of, paraphrased
from coreeval.graph.items.plan import PARAPHRASE_ROLE, TARGET_ROLE, Plan
from coreeval.graph.progress import Watch, unwatched
from coreeval.graph.session import Session
from coreeval.models import ModelPool, open_model_pool
from coreeval.tools.embeddings import Embedder
from coreeval.tools.stores.call_store import CallStore
from coreeval.tools.trust import load_trusted_endpoints


@dataclass(frozen=True, kw_only=True)
class Found:
    """What came of asking."""

    files: Mapping[str, Path]
    """Of pairs, by target."""
    asked: Mapping[str, TargetAsked]
    """By target."""
    twins: tuple[Twins, ...]
    """Of the training split, then of the test split."""


def ask_items(
    plan: Plan, *, out: Path | None = None, embeds: Embedder | None = None, watch: Watch = unwatched
) -> Found:
    """Ask each target about the items and their twins, and write its pairs.

    Args:
        plan: What is asked; `plan_of` makes it.
        out: Folder of the files; by default `pcr/<name>` of the workspace.
        embeds: Hold paraphrases to their floor; no other modification needs them.
        watch: Told of the progress.

    Raises:
        BudgetSpent: another call may cost more than the budget has left.
        Interrupted: a signal stopped it. In both cases the same call goes on from there.
        RunLocked: another process asks for this config.
        RunError: questions got no answer, or a model cannot be used; what was answered is kept.
    """
    folder = plan.workspace.pcr / plan.config.name
    session = Session(
        source=plan.source,
        lock=folder / "pcr.lock",
        calls=plan.workspace.calls,
        payer=plan.payer,
        concurrency=plan.config.run.concurrency,
        watch=watch,
    )
    return session.run(lambda desk, calls: _asked(plan, out or folder, embeds, desk, calls))


async def _asked(
    plan: Plan, out: Path, embeds: Embedder | None, desk: Desk, calls: CallStore
) -> Found:
    """Have twins written where a model has to, then ask one target after the other."""
    trusted = load_trusted_endpoints(plan.workspace)
    exchange = open_model_pool(plan.config, calls, trusted=trusted, traffic=desk.traffic)
    twins = plan.twins or await _paraphrased(plan, exchange, embeds, desk)
    names, asked = file_names(plan.config.models.targets), dict[str, TargetAsked]()
    files = {target: out / name for target, name in names.items()}
    for target in plan.config.models.targets:
        asker = exchange.open_client(target, TARGET_ROLE, max_draws=1, settle=True)
        answers = await answers_of(desk, asker, twins)
        found = asked_of(twins, answers, letters=plan.config.detect.pcr.answer == "letter")
        await asyncio.to_thread(write_pairs, files[target.model], found.pairs)
        asked[target.model] = found
    return Found(files=files, asked=asked, twins=twins)


async def _paraphrased(
    plan: Plan, exchange: ModelPool, embeds: Embedder | None, desk: Desk
) -> tuple[Twins, ...]:
    rewriter, floor = plan.config.models.rewriter, plan.config.detect.pcr.floor
    if rewriter is None or embeds is None:
        raise ValueError("a paraphrase needs a model and embeddings")
    asker = exchange.open_client(rewriter, PARAPHRASE_ROLE, settle=True)
    paraphraser = Paraphraser(asker, embeds, floor=FLOOR if floor is None else floor)
    return await paraphrased(desk, rewriter.model, paraphraser, plan.drawn)


def file_names(targets: Sequence[TargetConfig]) -> dict[str, str]:
    """Return the name of each target's file, without what a file system may not bear."""
    names = dict[str, str]()
    for target in targets:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "_", target.model)[-100:]
        taken = sum(name.casefold() == plain.casefold() for name in names.values())
        names[target.model] = f"{plain}-{len(names) + 1}" if taken else plain
    return {target: f"{name}.jsonl" for target, name in names.items()}
