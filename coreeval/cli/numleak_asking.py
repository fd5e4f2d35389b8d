"""`coreeval detect numleak CONFIG` or `--backtest`: what asking costs, the asking, its result."""

import hashlib
import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coreeval.cli.arguments import of_money
from coreeval.cli.detect_numleak import WHERE
from coreeval.cli.loading import loading
from coreeval.cli.numleak_recorded import cutoff_stated, files_of
from coreeval.cli.numleak_report import Heard, Shown, report
from coreeval.cli.numleak_signals import opened_signals
from coreeval.cli.output import brief, note, show
from coreeval.cli.trust import with_trusted_endpoints
from coreeval.errors import UsageError
from coreeval.evaluation.numleak.leak.signals import Signal, require_common_dates
from coreeval.evaluation.numleak.memory_verdicts import Backtest
from coreeval.evaluation.numleak.statistics import AuditSettings

if TYPE_CHECKING:
    from coreeval.graph.numleak.plan import NumleakPlan
    from coreeval.graph.numleak.series_questions import NumleakAnswers

PROBES = ("value", "fictitious", "forced_choice")
"""What a back-test asks: all else would be about other dates, series or words than it trades on."""
DATES = 120
"""Most dates of each series: ten years of months; so many are NumLeak's own temporal sweep."""


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A back-test that is to be audited without a config."""

    period: str
    models: tuple[str, ...]
    series: tuple[str, ...]
    cutoffs: tuple[str, ...]
    dates: int | None

    @property
    def backtest(self) -> Backtest:
        """The period.

        Raises:
            UsageError: it is no START:END.
        """
        start, colon, end = self.period.partition(":")
        if not (colon and start and end):
            raise UsageError(
                f"{self.period!r} is no START:END",
                where="--backtest",
                hint="two years, months or days: 2015-01:2020-12",
            )
        return Backtest(start=start, end=end)


@dataclass(frozen=True, kw_only=True)
class Asking:
    """What is to be asked, and how it is to be shown."""

    config: Path | None
    preset: Preset
    """Holds where there is no config."""
    overrides: Sequence[str]
    budget: float | None
    allow_unpriced: bool
    dry_run: bool
    trust_endpoints: bool
    shown: Shown
    signals: tuple[str, ...] = ()
    """Of the user, as `--signal` has them."""


def ask_and_audit(asking: Asking) -> None:
    """Ask the targets of a config, or of a back-test, about series, and audit what they say."""
    with loading():
        from coreeval.cli.estimate_words import estimate_document, estimate_lines, in_short
        from coreeval.cli.progress import watching
        from coreeval.graph.estimate.campaign_estimate import estimate_numleak
        from coreeval.graph.numleak.series_questions import ask_numleak

    plan = with_trusted_endpoints(asking.trust_endpoints, lambda: _plan(asking))
    signals = _signals(asking, plan)
    made = estimate_numleak(plan)
    if asking.dry_run:
        lines = estimate_lines(made, _command(asking))
        show(estimate_document(made), asking.shown.as_json, lambda: "\n".join(lines))
        return
    note(in_short(made))
    with watching() as watch:
        found = ask_numleak(plan, watch=watch)
    report(_heard(asking, found, signals), asking.shown)


def _plan(asking: Asking) -> "NumleakPlan":
    from coreeval.graph.numleak.plan import build_numleak_plan, plan_series

    if asking.config:
        money = of_money(asking.budget, asking.allow_unpriced)
        return build_numleak_plan(asking.config, overrides=(*asking.overrides, *money))
    from coreeval.config import parse_series_config
    from coreeval.tools.env_file import read_env_file

    folder = Path.cwd()
    config = parse_series_config(_preset(asking), where="--backtest", base=folder)
    read_env_file(folder, config)
    return plan_series(config, source=folder, base=folder)


def _preset(asking: Asking) -> dict[str, Any]:
    """Return what the config of a back-test would say."""
    preset = asking.preset
    period = preset.backtest
    for option, given in (("--series", preset.series), ("--model", preset.models)):
        if not given:
            raise UsageError(
                f"{option} is missing",
                where="--backtest",
                hint="give --series NAME and --model PROVIDER:NAME, each as often as needed",
            )
    series, files = files_of(preset.series)
    cutoffs = dict(cutoff_stated(text, preset.models) for text in preset.cutoffs)
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


def _heard(asking: Asking, found: "NumleakAnswers", signals: Sequence[Signal]) -> Heard:
    plan = found.plan
    again = [*_again(plan, found), *_given(signals), *_counted(asking.shown)]
    return Heard(
        files=[found.file],
        replies=found.replies,
        series={one.definition.id: one for one in plan.universe.all},
        cutoffs=plan.cutoffs,
        notes=[*found.notes()],
        backtest=None if asking.config else asking.preset.backtest,
        utility=found.utility,
        signals=signals,
        more=[f"again: {shlex.join(again)}"],
    )


def _signals(asking: Asking, plan: "NumleakPlan") -> list[Signal]:
    """Return the config's signals and those given, once each is known to have dates in common."""
    signals = [*plan.signals, *opened_signals(asking.signals)]
    require_common_dates(signals, plan.asked_dates)
    return signals


def _given(signals: Sequence[Signal]) -> Iterator[str]:
    for one in signals:
        yield from ("--signal", f"{one.name}={brief(one.path)}")


def _command(asking: Asking) -> str:
    """Return the command that asks what was estimated."""
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
    words += ["--budget", f"{asking.budget:g}"] if asking.budget is not None else []
    return shlex.join([*words, *(["--allow-unpriced"] if asking.allow_unpriced else [])])


def _again(plan: "NumleakPlan", found: "NumleakAnswers") -> Iterator[str]:
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
            yield from ("--cutoff", f"{model}={_stated(day)}")


def _counted(shown: Shown) -> Iterator[str]:
    """Yield the words of how answers are resampled, where that is not as usual."""
    usual, chosen = AuditSettings(), shown.settings
    if chosen.draws != usual.draws:
        yield from ("--draws", str(chosen.draws))
    if chosen.seed != usual.seed:
        yield from ("--seed", str(chosen.seed))


def _stated(last: date) -> str:
    """Return a cutoff as it is stated, from the last day before it is over."""
    after = last + timedelta(days=1)
    return f"{last:%Y-%m}" if after.day == 1 else after.isoformat()
