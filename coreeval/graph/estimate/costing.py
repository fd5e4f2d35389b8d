"""The cost of each line of an estimate (one model in one role), computed on ranges."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import get_args

from coreeval.config import AnyConfig, Config, ModelConfig, PriceConfig
from coreeval.graph.estimate.assignments import (
    ModelPrice,
    ModelThroughput,
    RoleAssignments,
    find_recorded_name,
)
from coreeval.graph.estimate.batches import estimate_batches
from coreeval.graph.estimate.call_figures import (
    CallUsage,
    RoleModel,
    estimate_answer,
    estimate_cached_share,
    estimate_density,
    estimate_duration,
)
from coreeval.graph.estimate.model import (
    RESTS_ON,
    BatchEstimate,
    CostEstimate,
    EstimateLine,
    FigureBasis,
    KnownRange,
    Range,
    Stage,
    between,
    fit_budget,
    sum_lines,
    sum_ranges,
)
from coreeval.graph.estimate.workload import PromptSize
from coreeval.graph.pool import max_open_samples
from coreeval.graph.setup import Setup
from coreeval.models.prompt_cache import FEWEST_TOKENS, find_fewest_tokens
from coreeval.schema import TaskKind
from coreeval.tools.catalogs import (
    cost,
    describe_old_prices,
)

ALONE = ("target", "utility_judge")
"""Prefixes of roles that are asked separately: targets, asked for labels or for text, and the
judges of the cost of defences."""


@dataclass(frozen=True, kw_only=True)
class RoleFigures:
    """Figures for one role and the model that plays it."""

    role: str
    model: str
    stage: Stage = "run"
    samples: int
    calls: KnownRange
    """Calls per sample."""
    fixed: int
    """Characters that are the same in every call: instructions and schema."""
    varied: KnownRange
    """Characters of the rest of a prompt."""
    density: KnownRange
    """Characters per token."""
    answer: KnownRange
    """Tokens per answer."""
    duration: KnownRange
    """Seconds per call."""
    cached_share: float | None = None
    """Share of the prompt tokens so far that came from the provider's cache; None if not known."""
    cached_from: int | None = None
    """The fewest tokens of a prefix that the provider caches; None if its rule is not known."""
    priced: ModelPrice


def cost_line(asked: RoleFigures) -> EstimateLine:
    """Return the cost of a role in the whole run."""
    calls = asked.calls.range.times(asked.samples)
    prompt = calls * _tokens(asked)
    answer = calls * asked.answer.range
    return EstimateLine(
        role=asked.role,
        model=asked.model,
        stage=asked.stage,
        calls=calls.whole(),
        prompt_tokens=prompt.whole(),
        cached_tokens=_estimate_cached_tokens(asked, calls, prompt).whole(),
        completion_tokens=answer.whole(),
        call_seconds=calls * asked.duration.range,
        usd=_usd(asked, calls, prompt, answer),
        price=asked.priced.origin,
        rests_on=dict(zip(RESTS_ON, _bases(asked), strict=True)),
    )


def _bases(asked: RoleFigures) -> list[FigureBasis]:
    figures = (asked.calls, asked.varied, asked.density, asked.answer, asked.duration)
    return [figure.basis for figure in figures]


def _tokens(asked: RoleFigures) -> Range:
    """Return the tokens of a prompt; the low end assumes the most characters per token."""
    varied, density = asked.varied.range, asked.density.range
    return between(
        (asked.fixed + varied.low) / density.high,
        (asked.fixed + varied.likely) / density.likely,
        (asked.fixed + varied.high) / density.low,
    )


def _usd(asked: RoleFigures, calls: Range, prompt: Range, answer: Range) -> Range | None:
    """Return the cost in USD; low if the common prompt prefix is cached, high if nothing is."""
    price = asked.priced.price
    if price is None:
        return None
    repeated = max(0.0, calls.low - 1) * _cached_prefix(asked, asked.density.range.high)
    low = _cost(price, prompt.low, answer.low, cached=min(repeated, prompt.low))
    cached = _estimate_cached_tokens(asked, calls, prompt).likely
    likely = _cost(price, prompt.likely, answer.likely, cached=cached)
    dear = (price.cache_write or 0.0) > price.input
    high = _cost(price, prompt.high, answer.high, written=prompt.high if dear else 0.0)
    return between(min(low, likely), likely, max(likely, high))


def _estimate_cached_tokens(asked: RoleFigures, calls: Range, prompt: Range) -> Range:
    """Return the prompt tokens from the provider's cache; none at the low end.

    The likely number is based on recorded calls, or else on the provider's rule if it is known. At
    the high end, all calls but the first use the cached common prefix.
    """
    density = asked.density.range
    found = max(0.0, calls.likely - 1) * _cached_prefix(asked, density.likely)
    if asked.cached_share is not None:
        found = asked.cached_share * prompt.likely
    elif asked.cached_from is None:
        found = 0.0
    most = max(0.0, calls.high - 1) * _cached_prefix(asked, density.low)
    return between(0.0, found, max(found, min(most, prompt.high)))


def _cached_prefix(asked: RoleFigures, density: float) -> float:
    """Return the tokens of the prompt prefix that a provider caches; 0 if too few."""
    tokens = asked.fixed / density
    return tokens if tokens >= (asked.cached_from or FEWEST_TOKENS) else 0.0


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


def estimate_run_seconds(
    lines: Sequence[EstimateLine],
    lanes: Sequence[ModelThroughput],
    *,
    concurrency: int,
    samples: int,
) -> Range:
    """Return the duration of the run, one stage after the other."""
    stages = [[line for line in lines if line.stage == stage] for stage in get_args(Stage)]
    return sum_ranges(_estimate_stage_seconds(each, lanes, concurrency, samples) for each in stages)


def _estimate_stage_seconds(
    lines: Sequence[EstimateLine], lanes: Sequence[ModelThroughput], concurrency: int, samples: int
) -> Range:
    """Return the duration of a stage: refresh or rewording first, then targets and judges in turn.

    The refresh or rewording takes as long as its slowest model, or as all its calls with the most
    open samples.
    """
    roles = [line for line in lines if not line.role.startswith(ALONE)]
    together = max(1, min(max_open_samples(concurrency), samples))
    paths = [sum_ranges(line.call_seconds for line in roles).times(1 / together)]
    paths += [_estimate_model_seconds([line for line in roles if line.model == lane.model], lane)
              for lane in lanes]  # fmt: skip
    in_turn = [
        _estimate_model_seconds([line], lane)
        for line in lines
        for lane in lanes
        if line.role.startswith(ALONE) and line.model == lane.model
    ]
    return find_longest(paths) + sum_ranges(in_turn)


def _estimate_model_seconds(lines: Sequence[EstimateLine], lane: ModelThroughput) -> Range:
    """Return the duration for one model, given its limits on concurrency and calls per minute."""
    calls, tokens = (
        sum_ranges(line.calls for line in lines),
        sum_ranges(line.prompt_tokens + line.completion_tokens for line in lines),
    )
    ways = [sum_ranges(line.call_seconds for line in lines).times(1 / lane.in_flight)]
    if lane.requests_per_minute:
        ways.append(calls.times(60 / lane.requests_per_minute))
    if lane.tokens_per_minute:
        ways.append(tokens.times(60 / lane.tokens_per_minute))
    return find_longest(ways)


def find_longest(ranges: Sequence[Range]) -> Range:
    """Return the longest of several durations, comparing each end of the ranges separately."""
    return between(
        max(one.low for one in ranges),
        max(one.likely for one in ranges),
        max(one.high for one in ranges),
    )


def build_estimate(
    config: AnyConfig,
    assignments: RoleAssignments,
    lines: tuple[EstimateLine, ...],
    *,
    task: str,
    source: Path,
    samples: int,
    budget_usd: float | None,
    now: datetime,
    notes: Iterable[str],
    to_pay: int | None = None,
    setup: Setup | None = None,
    by_target: Mapping[str, int] | None = None,
) -> CostEstimate:
    """Return an estimate built from lines.

    Args:
        config: The config to estimate.
        assignments: The models that are asked.
        lines: The cost of each model in each role.
        task: The task, or the subject of the questions, in words.
        source: The config's file, or the run's directory.
        samples: The number of samples, items or questions.
        budget_usd: The rest of the budget; None without one.
        now: The current time.
        notes: Remarks on the figures.
        to_pay: The number of paid samples, if not all are paid for.
        setup: The setup of a run, which has a window of news.
        by_target: Samples for each stance target, if there are several.
    """
    totals = sum_lines(lines)

    def time_live(some: Sequence[EstimateLine]) -> Range:
        throughputs = assignments.list_throughputs()
        return estimate_run_seconds(
            some, throughputs, concurrency=assignments.concurrency, samples=samples
        )

    return CostEstimate(
        name=config.name,
        task=task,
        config=str(source),
        made_at=now.isoformat(timespec="seconds"),
        samples=samples,
        to_pay=samples if to_pay is None else to_pay,
        window=setup.window if setup else None,
        window_start=setup.window_start if setup else None,
        by_target=by_target or {},
        lines=lines,
        totals=totals,
        seconds=time_live(lines),
        batch=_estimate_batches(config, assignments, lines, time_live),
        concurrency=assignments.concurrency,
        unpriced=assignments.list_unpriced(lines),
        budget=fit_budget(budget_usd, totals),
        notes=(*notes, *_list_old_prices(config, assignments, now)),
    )


def _estimate_batches(
    config: AnyConfig,
    asked: RoleAssignments,
    lines: Sequence[EstimateLine],
    time_live: Callable[[Sequence[EstimateLine]], Range],
) -> BatchEstimate | None:
    """Return the estimate of a run in batches; None for commands that only ask live."""
    if not isinstance(config, Config):
        return None
    models = (*asked.roles.values(), *asked.targets, *asked.judges)
    return estimate_batches(
        lines,
        {find_recorded_name(model): asked.find_price(model).price for model in models},
        max_attempts=config.run.max_attempts,
        is_alone=lambda line: line.role.startswith(ALONE),
        time_live=time_live,
    )


def _list_old_prices(config: AnyConfig, asked: RoleAssignments, now: datetime) -> list[str]:
    models = (*asked.roles.values(), *asked.targets, *asked.judges)
    return describe_old_prices(config, models, asked.prices, now.date())


def build_role_model(role: str, model: ModelConfig, kind: TaskKind = "labels") -> RoleModel:
    """Return a model in a role, for a task of a kind."""
    return RoleModel(
        role=role,
        model=find_recorded_name(model),
        max_tokens=model.max_tokens,
        effort=model.reasoning_effort,
        kind=kind,
    )


def rules_note(config: Config) -> Sequence[str]:
    """Return a note on the roles that cost nothing."""
    models = config.models
    ruled = models.rule_based_roles
    plugged = [role for role in models.unasked_roles if models.for_role(role).is_plugin]
    rules = [f"roles played by rules, without a call: {', '.join(ruled)}"] if ruled else []
    plugins = f"roles played by plugins, whose cost is not estimated: {', '.join(plugged)}"
    return [*rules, *([plugins] if plugged else [])]


REUSED_NOTE = "questions that are already answered cost nothing, but the estimate includes them"


def estimate_line(
    role: str,
    model: ModelConfig,
    calls: KnownRange,
    size: PromptSize,
    samples: int,
    assignments: RoleAssignments,
    past_calls: Sequence[CallUsage],
    *,
    stage: Stage = "run",
) -> EstimateLine:
    """Return the expected cost of a model in a role, estimated from recorded calls.

    Args:
        role: A role, or `target`.
        model: The model that plays it.
        calls: The number of calls per sample.
        size: The length of its prompts.
        samples: The number of samples.
        assignments: The models that the run asks.
        past_calls: Recorded calls.
        stage: The stage it is asked in.
    """
    player = build_role_model(role, model, size.kind)
    said = estimate_answer(past_calls, player)
    return cost_line(
        RoleFigures(
            role=role,
            model=player.model,
            stage=stage,
            samples=samples,
            calls=calls,
            fixed=size.fixed,
            varied=size.varied,
            density=estimate_density(past_calls, player),
            answer=said,
            duration=estimate_duration(past_calls, player, said.range),
            cached_share=estimate_cached_share(past_calls, player),
            cached_from=find_fewest_tokens(model),
            priced=assignments.find_price(model),
        )
    )
