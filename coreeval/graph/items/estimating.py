"""What asking will cost, before it is spent: questions are counted and measured, not sent."""

from collections.abc import Iterator, Sequence
from contextlib import closing

from coreeval.config import ModelConfig
from coreeval.graph.forecast.estimates import Estimate, Line, fit_of, summed
from coreeval.graph.forecast.estimating import REUSED, expected
from coreeval.graph.forecast.history import remembered
from coreeval.graph.forecast.learning import STATED, Seen
from coreeval.graph.forecast.players import Cast, cast_of_targets, name_of
from coreeval.graph.forecast.ranges import Basis, Known, exactly, interval
from coreeval.graph.forecast.reckoning import seconds_of_run
from coreeval.graph.forecast.sizes import Size
from coreeval.graph.forecast.stated import ASKED_AGAIN
from coreeval.graph.items.plan import PARAPHRASE_ROLE, TARGET_ROLE, Plan
from coreeval.prompts import built_in_prompt
from coreeval.schema import Item
from coreeval.tools.clock import Clock, utc_now
from coreeval.tools.stores.calls import open_calls

WIDE = 4
"""Latin letters that one other character counts as where no call of a model was recorded: as many
as make a token. Assumed; the first recorded calls replace it."""
THOUGHTS = (
    "how long answers are is not known: a model that reasons first writes a hundred times as much "
    "as one that names a letter; ask about few items (detect.pcr.samples) and estimate again"
)


def estimate_items(plan: Plan, *, now: Clock = utc_now) -> Estimate:
    """Return what asking all that a plan says will cost; nothing is asked or kept.

    Raises:
        ConfigError: the file of prices cannot be used.
        RunCorrupt: the call store is damaged.
    """
    cast, seen = cast_of_targets(plan.config, plan.asked), remembered(plan.workspace)
    lines = tuple(_lines(plan, cast, seen))
    totals, budget = summed(lines), plan.config.run.budget_usd
    return Estimate(
        name=plan.config.name,
        task=f"PCR of {plan.config.dataset.format}, {plan.modification.replace('_', ' ')}",
        config=str(plan.source),
        made_at=now().isoformat(timespec="seconds"),
        samples=plan.items,
        to_pay=plan.items,
        lines=lines,
        totals=totals,
        seconds=seconds_of_run(
            lines, cast.lanes(), concurrency=cast.concurrency, samples=plan.items
        ),
        concurrency=cast.concurrency,
        unpriced=cast.unpriced(lines),
        budget=fit_of(None if budget is None else max(0.0, budget - _spent(plan)), totals),
        notes=tuple(_notes(plan, lines, seen)),
    )


def _lines(plan: Plan, cast: Cast, seen: Sequence[Seen]) -> Iterator[Line]:
    items = [item for each in plan.drawn for item in each.items]
    rewriter = plan.config.models.rewriter
    if rewriter in plan.asked and rewriter is not None:
        told = len(built_in_prompt("paraphraser").text)
        calls = Known(range=ASKED_AGAIN, basis=STATED)
        size = _size(rewriter, items, seen, fixed=told)
        yield expected(PARAPHRASE_ROLE, rewriter, calls, size, len(items), cast, seen)
    for target in plan.config.models.targets:
        basis = Basis(origin="the benchmark's items and their twins", n=plan.items)
        calls = Known(range=exactly(2), basis=basis)
        size = _size(target, items, seen)
        yield expected(TARGET_ROLE, target, calls, size, plan.items, cast, seen)


def _size(
    model: ModelConfig, items: Sequence[Item], seen: Sequence[Seen], *, fixed: int = 0
) -> Size:
    """Return how long the questions about items are; their twins are about as long."""
    wide = 1 if name_of(model) in {one.model for one in seen} else WIDE
    sizes = [len(item.input) + (wide - 1) * _wide(item.input) for item in items]
    basis = Basis(origin="the benchmark's items", n=len(items))
    return Size(fixed=fixed, varied=Known(range=interval(sizes), basis=basis))


def _wide(text: str) -> int:
    """Return how many characters are beyond the Latin ones."""
    return sum(sign > "\N{LATIN SMALL LETTER EZH WITH CARON}" for sign in text)


def _spent(plan: Plan) -> float:
    if not plan.workspace.calls.exists():
        return 0.0
    with closing(open_calls(plan.workspace.calls, plan.payer)) as calls:
        spent = calls.ledger.spent()
    return spent.billed_usd + spent.unknown_usd


def _notes(plan: Plan, lines: Sequence[Line], seen: Sequence[Seen]) -> Iterator[str]:
    if not plan.twins:
        yield "items whose paraphrase fails are not asked about; the estimate pays for all"
    if any(line.rests_on["answers"] == STATED for line in lines):
        yield THOUGHTS
    if {line.model for line in lines} & {one.model for one in seen}:
        yield REUSED
