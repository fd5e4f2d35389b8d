"""Estimating from a few samples that are refreshed for real; their answers are kept and reused."""

from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path

import numpy as np

from coreeval.errors import Interrupted
from coreeval.graph.bench.opening import open_bench
from coreeval.graph.forecast.benchmark import count
from coreeval.graph.forecast.bootstrap import Table, extrapolate
from coreeval.graph.forecast.estimates import (
    RESTS_ON,
    Estimate,
    Line,
    Preview,
    Totals,
    fit_of,
    keep,
)
from coreeval.graph.forecast.estimating import composed
from coreeval.graph.forecast.players import Cast, cast_of, name_of, players, rules_note
from coreeval.graph.forecast.ranges import Basis, Range
from coreeval.graph.forecast.reckoning import Priced
from coreeval.graph.forecast.usage import MEASURES, Bill, BySample, Seat, Used, bill_of
from coreeval.graph.run import refresh
from coreeval.graph.work import REAL, RunSummary, Surroundings
from coreeval.tools.workspace import RunFiles, command

NO_CONTROL = (
    "what the control arm cost in the preview is not in these figures; an estimate without a "
    "preview has it"
)


def preview(
    config: Path,
    samples: int,
    *,
    limit: int | None = None,
    overrides: Sequence[str] = (),
    around: Surroundings = REAL,
) -> Estimate:
    """Refresh the first samples, and return what the others will cost by what these used.

    It is a normal run in the workspace: a later run finds the answers and does not pay for them
    again, and the estimate leaves them out.

    Args:
        config: Path of the YAML config.
        samples: How many, two at least.
        limit: Take only the first so many samples of the benchmark.
        overrides: `key.path=value` settings over the config's.
        around: Progress callback, clock and team builder.

    Raises:
        UsageError: the config, the benchmark, the news or the prices cannot be used.
        RunError: the run could not go on; it can be resumed.
        Interrupted: a signal stopped it; it can be resumed.
    """
    bench = open_bench(config, overrides)
    counted, cast = count(bench.setup, limit), cast_of(bench.setup.config)
    done = refresh(config, limit=min(samples, counted.samples), overrides=overrides, around=around)
    _refuse_stopped(done)
    config_run = bench.setup.config.run
    bill = bill_of(
        RunFiles(done.run_dir),
        bench.workspace,
        cast,
        templates=len(bench.setup.task.templates),
        arms=bench.setup.config.detect.evaluate,
    )
    rest, train = counted.samples - len(bill.by_sample), counted.train - len(bill.by_train)
    forecast = _Forecast(
        bill, cast, run=done.manifest.run, rest=(rest, train), seed=config_run.seed
    )
    made = composed(
        bench,
        counted,
        cast,
        forecast.lines(),
        now=around.now,
        notes=[*rules_note(bench.setup.config), *([NO_CONTROL] if bench.setup.control else [])],
    ).model_copy(
        update={
            "to_pay": rest,
            "totals": forecast.totals(),
            "budget": fit_of(config_run.budget_usd, forecast.totals()),
            "preview": _preview(done, bill, priced=forecast.priced),
        }
    )
    keep(bench.workspace, made)
    return made


def _refuse_stopped(done: RunSummary) -> None:
    if done.manifest.status != "complete":
        raise Interrupted(
            "the preview was stopped; what was answered is kept",
            where=str(done.run_dir),
            hint=f"{command('resume', done.run_dir)}, then estimate again",
        )


def _preview(done: RunSummary, bill: Bill, *, priced: bool) -> Preview:
    return Preview(
        run=str(done.run_dir),
        samples=len(bill.by_sample),
        billed_calls=round(bill.paid.calls),
        usd=bill.paid.usd if priced else None,
        failed=done.manifest.counts["failed"],
    )


class _Forecast:
    """What the other samples will use, each player's and all figures with their own interval.

    `rest` is the number of other samples, and of other items of the train split.
    """

    def __init__(
        self, bill: Bill, cast: Cast, *, run: str, rest: tuple[int, int], seed: int
    ) -> None:
        self._prices = {(role, name_of(model)): cast.priced(model) for role, model in players(cast)}
        self._basis = Basis(origin=f"samples of the run {run}", n=len(bill.by_sample))
        who = list(self._prices)
        found = extrapolate(_table(bill.by_sample, who), rest[0], seed=seed)
        if bill.by_train:
            more = extrapolate(_table(bill.by_train, who), rest[1], seed=seed)
            found = [one + other for one, other in zip(found, more, strict=True)]
        width = len(MEASURES)
        self._parts = [found[at : at + width] for at in range(0, len(found), width)]
        asked = {player for used in (*bill.by_sample, *bill.by_train) for player in used}
        self.priced = all(priced.price for who, priced in self._prices.items() if who in asked)
        """Whether all that were asked have a known price."""

    def lines(self) -> tuple[Line, ...]:
        """Return a line for each player."""
        named = zip(self._prices.items(), self._parts[:-1], strict=True)
        return tuple(self._line(player, priced, part) for (player, priced), part in named)

    def _line(self, player: Seat, priced: Priced, part: Sequence[Range]) -> Line:
        calls, prompt, answer, seconds, usd = part
        return Line(
            role=player[0],
            model=player[1],
            calls=calls.whole(),
            prompt_tokens=prompt.whole(),
            completion_tokens=answer.whole(),
            call_seconds=seconds,
            usd=usd if priced.price else None,
            price=priced.origin,
            rests_on=dict.fromkeys(RESTS_ON, self._basis),
        )

    def totals(self) -> Totals:
        """Return the sums, whose interval is narrower than the sum of intervals."""
        calls, prompt, answer, _, usd = self._parts[-1]
        return Totals(
            calls=calls.whole(),
            prompt_tokens=prompt.whole(),
            completion_tokens=answer.whole(),
            usd=usd if self.priced else None,
            priced_usd=usd,
        )


def _table(by_sample: BySample, who: Sequence[Seat]) -> Table:
    """Return a row for each sample: what each player used, then what all of them used."""
    rows = []
    for used in by_sample:
        each = [used.get(player, Used()) for player in who]
        rows.append([value for one in (*each, sum(each, Used())) for value in astuple(one)])
    return np.array(rows, dtype=np.float64)
