"""What asking will cost, before it is spent: questions are counted and measured, not sent."""

from collections.abc import Iterator, Sequence

from coreeval.config import ModelConfig
from coreeval.graph.forecast.asking import Asking
from coreeval.graph.forecast.estimates import Estimate, Line
from coreeval.graph.forecast.learning import STATED, Seen
from coreeval.graph.forecast.lines import expected
from coreeval.graph.forecast.players import Cast, name_of
from coreeval.graph.forecast.ranges import Basis, Known, exactly, interval
from coreeval.graph.forecast.sizes import Size
from coreeval.graph.forecast.stated import ASKED_AGAIN
from coreeval.graph.items.plan import PARAPHRASE_ROLE, TARGET_ROLE, Plan
from coreeval.prompts import load_built_in_prompt
from coreeval.schema import Item
from coreeval.tools.clock import Clock, utc_now

WIDE = 4
"""Latin letters that one other character counts as where no call of a model was recorded: as many
as make a token. Assumed; the first recorded calls replace it."""


def estimate_items(plan: Plan, *, now: Clock = utc_now) -> Estimate:
    """Return what asking all that a plan says will cost; nothing is asked or kept.

    Raises:
        ConfigError: the file of prices cannot be used.
        RunCorrupt: the call store is damaged.
    """
    asking = Asking(
        source=plan.source,
        config=plan.config,
        workspace=plan.workspace,
        payer=plan.payer,
        task=f"PCR of {plan.config.dataset.format}, {plan.modification.replace('_', ' ')}",
        samples=plan.items,
        asked=plan.asked,
        fewer="detect.pcr.samples",
        notes=[] if plan.twins else [_ALL],
    )
    return asking.estimate(lambda cast, seen: _lines(plan, cast, seen), now=now)


_ALL = "items whose paraphrase fails are not asked about; the estimate pays for all"


def _lines(plan: Plan, cast: Cast, seen: Sequence[Seen]) -> Iterator[Line]:
    items = [item for each in plan.drawn for item in each.items]
    rewriter = plan.config.models.rewriter
    if rewriter in plan.asked and rewriter is not None:
        told = len(load_built_in_prompt("paraphraser").text)
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
