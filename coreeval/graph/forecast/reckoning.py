"""From what is known of each role to what it costs: pure arithmetic on ranges."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from coreeval.config import PriceConfig
from coreeval.graph.forecast.estimates import RESTS_ON, Line, Stage
from coreeval.graph.forecast.ranges import Basis, Known, Range, between, total
from coreeval.graph.forecast.stated import CACHED_FROM
from coreeval.graph.pool import open_at_once
from coreeval.tools.catalogs import cost

ALONE = ("target", "utility_judge")
"""How the roles begin that are asked when nobody else is: targets, asked for labels or for text,
and who judges what defences cost."""


@dataclass(frozen=True, kw_only=True)
class Priced:
    """What a model charges, if that is known, and who says so."""

    price: PriceConfig | None
    origin: str = ""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is known of one role and the model that plays it."""

    role: str
    model: str
    stage: Stage = "run"
    samples: int
    calls: Known
    """For each sample."""
    fixed: int
    """Characters that are the same in every call: instructions and schema."""
    varied: Known
    """Characters of the rest of a prompt."""
    density: Known
    """Characters that make a token."""
    answer: Known
    """Tokens of an answer."""
    duration: Known
    """Seconds of a call."""
    cached_share: float = 0.0
    """Share of the prompt tokens that the provider had in its cache so far."""
    priced: Priced


@dataclass(frozen=True, kw_only=True)
class Lane:
    """How fast one model may be asked."""

    model: str
    in_flight: int
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


def line_of(asked: Asked) -> Line:
    """Return what a role costs in the whole run."""
    calls = asked.calls.range.times(asked.samples)
    prompt = calls * _tokens(asked)
    answer = calls * asked.answer.range
    return Line(
        role=asked.role,
        model=asked.model,
        stage=asked.stage,
        calls=calls.whole(),
        prompt_tokens=prompt.whole(),
        completion_tokens=answer.whole(),
        call_seconds=calls * asked.duration.range,
        usd=_usd(asked, calls, prompt, answer),
        price=asked.priced.origin,
        rests_on=dict(zip(RESTS_ON, _bases(asked), strict=True)),
    )


def _bases(asked: Asked) -> list[Basis]:
    figures = (asked.calls, asked.varied, asked.density, asked.answer, asked.duration)
    return [figure.basis for figure in figures]


def _tokens(asked: Asked) -> Range:
    """Return the tokens of a prompt: fewest with many characters a token."""
    varied, density = asked.varied.range, asked.density.range
    return between(
        (asked.fixed + varied.low) / density.high,
        (asked.fixed + varied.likely) / density.likely,
        (asked.fixed + varied.high) / density.low,
    )


def _usd(asked: Asked, calls: Range, prompt: Range, answer: Range) -> Range | None:
    """Return the money; low if what all prompts begin with is cached, high if nothing ever is."""
    price = asked.priced.price
    if price is None:
        return None
    repeated = max(0.0, calls.low - 1) * _kept(asked)
    low = _cost(price, prompt.low, answer.low, cached=min(repeated, prompt.low))
    likely = _cost(price, prompt.likely, answer.likely, cached=asked.cached_share * prompt.likely)
    dear = (price.cache_write or 0.0) > price.input
    high = _cost(price, prompt.high, answer.high, written=prompt.high if dear else 0.0)
    return between(min(low, likely), likely, max(likely, high))


def _kept(asked: Asked) -> float:
    """Return the tokens at the beginning of a prompt that a provider keeps; 0 if too few."""
    tokens = asked.fixed / asked.density.range.high
    return tokens if tokens >= CACHED_FROM else 0.0


def _cost(
    price: PriceConfig, prompt: float, answer: float, *, cached: float = 0.0, written: float = 0.0
) -> float:
    return cost(
        price,
        prompt=round(prompt),
        cached=round(cached),
        written=round(written),
        completion=round(answer),
    )


def seconds_of_run(
    lines: Sequence[Line], lanes: Sequence[Lane], *, concurrency: int, samples: int
) -> Range:
    """Return how long the run takes, one stage after the other."""
    stages = [[line for line in lines if line.stage == stage] for stage in get_args(Stage)]
    return total(_seconds_of_stage(each, lanes, concurrency, samples) for each in stages)


def _seconds_of_stage(
    lines: Sequence[Line], lanes: Sequence[Lane], concurrency: int, samples: int
) -> Range:
    """Return how long a stage takes: the refresh, or rewording, then targets and judges in turn.

    The first is as long as its slowest model, or as all its calls at as many samples a time as are
    open together.
    """
    roles = [line for line in lines if not line.role.startswith(ALONE)]
    together = max(1, min(open_at_once(concurrency), samples))
    paths = [total(line.call_seconds for line in roles).times(1 / together)]
    paths += [_of_model([line for line in roles if line.model == lane.model], lane)
              for lane in lanes]  # fmt: skip
    in_turn = [
        _of_model([line], lane)
        for line in lines
        for lane in lanes
        if line.role.startswith(ALONE) and line.model == lane.model
    ]
    return longest(paths) + total(in_turn)


def _of_model(lines: Sequence[Line], lane: Lane) -> Range:
    """Return how long one model takes, given how many it may be asked at a time and a minute."""
    calls, tokens = (
        total(line.calls for line in lines),
        total(line.prompt_tokens + line.completion_tokens for line in lines),
    )
    ways = [total(line.call_seconds for line in lines).times(1 / lane.in_flight)]
    if lane.requests_per_minute:
        ways.append(calls.times(60 / lane.requests_per_minute))
    if lane.tokens_per_minute:
        ways.append(tokens.times(60 / lane.tokens_per_minute))
    return longest(ways)


def longest(ranges: Sequence[Range]) -> Range:
    """Return the longest of several times, end by end."""
    return between(
        max(one.low for one in ranges),
        max(one.likely for one in ranges),
        max(one.high for one in ranges),
    )
