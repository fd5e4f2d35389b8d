"""The cost and time of a run in batches, compared with live calls.

Batches are sent in rounds: a round ends when all its answers have arrived, and the next one has the
calls that depend on them. Models without a batch price are asked live, and so are the last calls of
a run.

Rounds: the waves of the sample graph, simulated over 100,000 samples with the outcomes of the
quality trials (docs/quality.md). 95 % of the calls are made in 6 rounds and 99 % in 8: four of the
first attempt and two of each further one. Time of a batch: providers promise 24 hours, and say
that most batches end within one (Anthropic's and OpenAI's pages on their batch APIs).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from coreeval.config import PriceConfig
from coreeval.graph.estimate.model import (
    BatchEstimate,
    EstimateLine,
    Range,
    between,
    exactly,
    sum_ranges,
)
from coreeval.tools.catalogs import FREE, cost, find_batch_price

ROUNDS = between(6, 7, 8)
"""Rounds of batches of a refresh with three attempts."""
FIRST_ROUNDS, ROUNDS_OF_ATTEMPT = 2, 2
"""A refresh with N attempts takes at most FIRST_ROUNDS + N * ROUNDS_OF_ATTEMPT rounds."""
TARGET_ROUNDS = between(1, 1, 2)
"""Rounds of a target or judge, whose questions do not wait for each other."""
BATCH_SECONDS = between(15 * 60, 3600, 24 * 3600)
"""The time that a provider takes for one batch, in seconds."""
LIVE_TAIL = 0.01
"""The share of calls that are sent live at the end, when fewer than a batch are left."""


def estimate_batches(
    lines: Sequence[EstimateLine],
    prices: Mapping[str, PriceConfig | None],
    *,
    max_attempts: int,
    is_alone: Callable[[EstimateLine], bool],
    time_live: Callable[[Sequence[EstimateLine]], Range],
) -> BatchEstimate | None:
    """Return the cost and time of a run in batches; None if none of its models has a batch price.

    Args:
        lines: The cost of each model in each role.
        prices: The price of each model, by its recorded name.
        max_attempts: The most attempts of a sample.
        is_alone: Whether a line is asked separately: a target or a judge.
        time_live: Returns how long lines take if they are asked live.
    """
    asked = [line for line in lines if line.calls.high and prices.get(line.model) != FREE]
    batched = [line for line in asked if _batch_price(prices, line)]
    if not batched:
        return None
    others = [line for line in lines if line not in batched]
    costs = [_batch_usd(prices, line) for line in batched] + [line.usd for line in others]
    known = [usd for usd in costs if usd is not None]
    unknown = any(line.usd is None and line.calls.high for line in others)
    rounds = _count_rounds(batched, max_attempts, is_alone)
    live = time_live(others) if others else exactly(0.0)
    tail = time_live(batched).times(LIVE_TAIL)
    return BatchEstimate(
        usd=None if unknown else sum_ranges(known),
        unpriced=tuple(dict.fromkeys(line.model for line in asked if line not in batched)),
        rounds=rounds,
        seconds=rounds * BATCH_SECONDS + live + tail,
    )


def _batch_price(
    prices: Mapping[str, PriceConfig | None], line: EstimateLine
) -> PriceConfig | None:
    price = prices.get(line.model)
    return find_batch_price(price) if price else None


def _batch_usd(prices: Mapping[str, PriceConfig | None], line: EstimateLine) -> Range | None:
    """Return the cost of a line in batches; only its live tail has cache savings."""
    price = _batch_price(prices, line)
    if price is None or line.usd is None:
        return None
    ends = (
        cost(price, prompt=round(prompt), cached=0, written=0, completion=round(answer))
        for prompt, answer in zip(
            _ends(line.prompt_tokens), _ends(line.completion_tokens), strict=True
        )
    )
    return between(*ends).times(1 - LIVE_TAIL) + line.usd.times(LIVE_TAIL)


def _ends(figures: Range) -> tuple[float, float, float]:
    return figures.low, figures.likely, figures.high


def _count_rounds(
    batched: Iterable[EstimateLine], max_attempts: int, is_alone: Callable[[EstimateLine], bool]
) -> Range:
    alone = [is_alone(line) for line in batched]
    most = FIRST_ROUNDS + ROUNDS_OF_ATTEMPT * max_attempts
    rounds = [ROUNDS.at_most(most)] if not all(alone) else []
    return sum_ranges([*rounds, *[TARGET_ROUNDS] * sum(alone)])
