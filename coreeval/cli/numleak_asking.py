"""`coreeval detect numleak CONFIG` or `--backtest`: estimates, asks and audits."""

import hashlib
import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coreeval.cli.app import pause_garbage_collection
from coreeval.cli.detect_numleak import WHERE
from coreeval.cli.numleak_output import AuditDisplay, report_audits
from coreeval.cli.numleak_recorded import parse_cutoff, read_signals, split_series_options
from coreeval.cli.options import budget_arguments, budget_overrides, with_trusted_endpoints
from coreeval.cli.output import brief, note, show
from coreeval.errors import UsageError
from coreeval.evaluation.numleak.leak.signals import Signal, require_common_dates
from coreeval.evaluation.numleak.memory_verdicts import Backtest
from coreeval.evaluation.numleak.recorded_answers import AuditInput
from coreeval.evaluation.numleak.statistics import AuditSettings

if TYPE_CHECKING:
    from coreeval.graph.numleak.plan import NumleakPlan
    from coreeval.graph.numleak.series_questions import NumleakAnswers


PROBES = ("value", "fictitious", "forced_choice")
"""The probes of a back-test; others ask about dates, series or words that it does not trade on."""
DATES = 120
"""The most dates per series: ten years of months, as in NumLeak's own temporal sweep."""


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A back-test to audit without a config."""

    period: str
    models: tuple[str, ...]
    series: tuple[str, ...]
    cutoffs: tuple[str, ...]
    dates: int | None

    @property
    def backtest(self) -> Backtest:
        """Return the period.

        Raises:
            UsageError: it is not START:END.
        """
        start, colon, end = self.period.partition(":")
        if not (colon and start and end):
            raise UsageError(
                f"{self.period!r} is not of the form START:END",
                where="--backtest",
                hint="write two years, months or days, such as 2015-01:2020-12",
            )
        return Backtest(start=start, end=end)


@dataclass(frozen=True, kw_only=True)
class AuditRequest:
    """What to ask, and how to show the result."""

    config: Path | None
    preset: Preset
    """Settings that apply if there is no config."""
    overrides: Sequence[str]
    budget: float | None
    allow_unpriced: bool
    dry_run: bool
    trust_endpoints: bool
    shown: AuditDisplay
    signals: tuple[str, ...] = ()
    """The user's signals from `--signal`."""


def ask_and_audit(asking: AuditRequest) -> None:
    """Ask the targets of a config or a back-test about series, and audit their answers."""
    with pause_garbage_collection():
        from coreeval.api.configs import summarize_estimate
        from coreeval.api.progress import show_progress
        from coreeval.cli.estimate import estimate_document, estimate_lines
        from coreeval.graph.estimate.numleak_lines import estimate_numleak
        from coreeval.graph.numleak.series_questions import ask_numleak

    plan = with_trusted_endpoints(asking.trust_endpoints, lambda: _plan(asking))
    signals = _signals(asking, plan)
    made = estimate_numleak(plan)
    if asking.dry_run:
        lines = estimate_lines(made, _format_command(asking))
        show(estimate_document(made), asking.shown.as_json, lambda: "\n".join(lines))
        return
    note(summarize_estimate(made))
    with show_progress() as watch:
        found = ask_numleak(plan, watch=watch)
    again = [
        *_repeat_lines(plan, found),
        *_signal_options(signals),
        *_display_options(asking.shown),
    ]
    report_audits(
        _make_input(asking, found, signals), asking.shown, [f"again: {shlex.join(again)}"]
    )


def _plan(asking: AuditRequest) -> "NumleakPlan":
    from coreeval.graph.numleak.plan import build_numleak_plan, plan_series

    if asking.config:
        money = budget_overrides(asking.budget, asking.allow_unpriced)
        return build_numleak_plan(asking.config, overrides=(*asking.overrides, *money))
    from coreeval.config import parse_series_config
    from coreeval.tools.env_file import read_env_file

    folder = Path.cwd()
    config = parse_series_config(_preset(asking), where="--backtest", base=folder)
    read_env_file(folder, config)
    return plan_series(config, source=folder, base=folder)


def _preset(asking: AuditRequest) -> dict[str, Any]:
    """Return the config of a back-test."""
    preset = asking.preset
    period = preset.backtest
    for option, given in (("--series", preset.series), ("--model", preset.models)):
        if not given:
            raise UsageError(
                f"{option} is missing",
                where="--backtest",
                hint="use --series NAME and --model PROVIDER:NAME (both repeatable)",
            )
    series, files = split_series_options(preset.series)
    cutoffs = dict(parse_cutoff(text, preset.models) for text in preset.cutoffs)
    asked = {
        "models": {"targets": [_target(model, cutoffs) for model in preset.models]},
        "detect": {
            "numleak": {
                "series": series,
                "files": {name: str(file) for name, file in files.items()},
                "probes": list(PROBES),
                "dates": preset.dates or DATES,
                "period": {"start": period.start, "end": period.end},
            }
        },
    }
    run = {"budget_usd": asking.budget, "allow_unpriced": asking.allow_unpriced}
    digest = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:8]
    name = f"backtest-{period.start}-{period.end}-{digest}"
    return {"name": name, "run": run, **asked}


def _target(model: str, cutoffs: dict[str, str]) -> dict[str, str]:
    said = cutoffs.get(model) or cutoffs.get("")
    return {"model": model, **({"cutoff": said} if said else {})}


def _make_input(
    asking: AuditRequest, found: "NumleakAnswers", signals: Sequence[Signal]
) -> AuditInput:
    plan = found.plan
    return AuditInput(
        sources=[found.file],
        replies=found.replies,
        series={one.definition.id: one for one in plan.universe.all},
        cutoffs=plan.cutoffs,
        notes=[*found.notes()],
        backtest=None if asking.config else asking.preset.backtest,
        utility=found.utility,
        signals=signals,
    )


def _signals(asking: AuditRequest, plan: "NumleakPlan") -> list[Signal]:
    """Return the signals of config and options after checking that each has common dates."""
    signals = [*plan.signals, *read_signals(asking.signals)]
    require_common_dates(signals, plan.asked_dates)
    return signals


def _signal_options(signals: Sequence[Signal]) -> Iterator[str]:
    for one in signals:
        yield from ("--signal", f"{one.name}={brief(one.path)}")


def _format_command(asking: AuditRequest) -> str:
    """Return the command that asks the estimated questions."""
    words = [*WHERE.split()]
    if asking.config:
        words.append(str(brief(asking.config)))
        words += [word for each in asking.overrides for word in ("--set", each)]
    else:
        preset = asking.preset
        words += ["--backtest", preset.period]
        for option, values in (
            ("--series", preset.series), ("--model", preset.models), ("--cutoff", preset.cutoffs)
        ):  # fmt: skip
            words += [word for value in values for word in (option, value)]
        words += ["--dates", str(preset.dates)] if preset.dates else []
    words += [word for each in asking.signals for word in ("--signal", each)]
    words += budget_arguments(asking.budget)
    return shlex.join([*words, *(["--allow-unpriced"] if asking.allow_unpriced else [])])


def _repeat_lines(plan: "NumleakPlan", found: "NumleakAnswers") -> Iterator[str]:
    """Yield the words of the command that gives the same result from the recorded answers."""
    yield from (*WHERE.split(), "--responses", str(brief(found.file)))
    if found.utility_file:
        yield from ("--utility", str(brief(found.utility_file)))
    files = plan.config.detect.numleak.files
    for name, path in files.items():
        yield from ("--series", f"{name}={brief(Path(path))}")
    for name in plan.config.detect.numleak.series:
        if name.endswith((".yaml", ".yml")) and name not in files:
            yield from ("--series", str(brief(Path(name))))
    for model, day in plan.cutoffs.items():
        if day:
            yield from ("--cutoff", f"{model}={_format_day(day)}")


def _display_options(shown: AuditDisplay) -> Iterator[str]:
    """Yield the options for resampling answers that differ from their defaults."""
    usual, chosen = AuditSettings(), shown.settings
    if chosen.draws != usual.draws:
        yield from ("--draws", str(chosen.draws))
    if chosen.seed != usual.seed:
        yield from ("--seed", str(chosen.seed))


def _format_day(last: date) -> str:
    """Return a cutoff in its usual form, given its last day."""
    after = last + timedelta(days=1)
    return f"{last:%Y-%m}" if after.day == 1 else after.isoformat()
