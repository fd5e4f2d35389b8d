"""Asking all that a plan says, through the call store: a stop or a kill costs what is in flight."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from coreeval.evaluation.numleak.defences.answers import UtilityReply, write_utility
from coreeval.evaluation.numleak.probes import write_replies
from coreeval.evaluation.numleak.replies import Reply
from coreeval.graph.desk import Desk
from coreeval.graph.numleak.asking import replies_of
from coreeval.graph.numleak.defending import judged_answers
from coreeval.graph.numleak.plan import NumleakPlan
from coreeval.graph.numleak.readout import untold
from coreeval.graph.progress import Watch, unwatched
from coreeval.graph.session import Session
from coreeval.models import open_model_pool
from coreeval.tools.stores.call_store import CallStore
from coreeval.tools.trust import load_trusted_endpoints

RESPONSES, UTILITY = "responses.jsonl", "utility.jsonl"


@dataclass(frozen=True, kw_only=True)
class NumleakFound:
    """What came of asking."""

    replies: tuple[Reply, ...]
    """Of one target after the other."""
    file: Path
    """The same as JSON lines: `--responses` gives the same result."""
    plan: NumleakPlan
    utility: tuple[UtilityReply, ...] = ()
    """Answers to ordinary questions under defences, judged."""
    utility_file: Path | None = None
    """The same as JSON lines, for `--utility`; None where none was asked."""

    def notes(self) -> Iterator[str]:
        """Yield what was not asked or told, or not as it was meant, each thing once."""
        yield from self.plan.notes()
        yield from untold(self.plan.audits, self.replies)


def ask_numleak(plan: NumleakPlan, *, watch: Watch = unwatched) -> NumleakFound:
    """Ask each target about the series, and write down what it says.

    Args:
        plan: What is asked; `numleak_plan_of` makes it.
        watch: Told of the progress.

    Raises:
        BudgetSpent: another call may cost more than the budget has left.
        Interrupted: a signal stopped it. In both cases the same call goes on from there.
        RunLocked: another process asks for this config.
        RunError: questions got no answer, or a model cannot be used; what was answered is kept.
    """
    folder = plan.workspace.numleak / plan.config.name
    session = Session(
        source=plan.source,
        lock=folder / "numleak.lock",
        calls=plan.workspace.calls,
        payer=plan.payer,
        concurrency=plan.config.run.concurrency,
        watch=watch,
    )
    replies, utility = session.run(lambda desk, calls: _asked(plan, desk, calls, folder))
    return NumleakFound(
        replies=tuple(replies),
        file=folder / RESPONSES,
        plan=plan,
        utility=tuple(utility),
        utility_file=folder / UTILITY if utility else None,
    )


async def _asked(
    plan: NumleakPlan, desk: Desk, calls: CallStore, folder: Path
) -> tuple[list[Reply], list[UtilityReply]]:
    trusted = load_trusted_endpoints(plan.workspace)
    exchange = open_model_pool(plan.config, calls, trusted=trusted, traffic=desk.traffic)
    replies, utility = list[Reply](), list[UtilityReply]()
    for audit in plan.audits:
        taught, seed = plan.universe.all, plan.config.run.seed
        replies += await replies_of(desk, exchange, audit, taught, seed=seed)
        if audit.judged:
            utility += await judged_answers(desk, exchange, audit.target, audit.judged)
    await asyncio.to_thread(write_replies, folder / RESPONSES, replies)
    if utility:
        await asyncio.to_thread(write_utility, folder / UTILITY, utility)
    return replies, utility
