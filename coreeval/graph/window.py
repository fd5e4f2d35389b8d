"""The window that news must come from, and what its targets can know of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from coreeval.config import Config
from coreeval.errors import ConfigError, KnowledgeError
from coreeval.graph.control_window import control_window
from coreeval.releases.manifest import Manifest
from coreeval.schema import Window
from coreeval.tools.cutoffs import (
    LatestDate,
    TargetDates,
    load_run_cutoffs,
    load_target_dates,
    suggest_models,
)

AUTO = "knowledge.window.start"


@dataclass(frozen=True, kw_only=True)
class Dated:
    """A window with everything that decided it."""

    window: Window
    start: LatestDate | None
    """What `start: auto` rests on; None where the config gives the start."""
    targets: tuple[TargetDates, ...]
    """Until when each target was trained and when it came out; embedded ones are left out."""
    control: Window | None = None
    """Of the news for the control arm; None where there is none."""


def dated(config: Config, now: datetime) -> Dated:
    """Return the window with `auto` and `now` written out (paper §3.2, footnote 2).

    Raises:
        ConfigError: `auto` has no target to go by, or one of which nothing is known.
        KnowledgeError: the window lies in the future, runs backwards or is empty.
    """
    targets, chosen = load_target_dates(config), config.knowledge.window
    latest: LatestDate | None = None
    if chosen.start == "auto":
        latest = _latest(config, targets)
        start = latest.counts_from
    else:
        start = chosen.start
    end = now if chosen.end == "now" else chosen.end
    if start >= min(now, end):
        raise _no_window(start, end, now, latest)
    window = Window(start=start, end=end)
    control = control_window(config, targets, window)
    return Dated(window=window, start=latest, targets=targets, control=control)


def recorded(manifest: Manifest, config: Config) -> Dated:
    """Return the window of a run that was begun, whatever has become known since."""
    known = manifest.cutoffs
    targets = load_target_dates(config) if known is None else known
    return Dated(
        window=manifest.window,
        start=manifest.window_start,
        targets=targets,
        control=manifest.control.window if manifest.control else None,
    )


def _latest(config: Config, targets: Sequence[TargetDates]) -> LatestDate:
    known = [latest for each in targets if (latest := each.latest)]
    if not targets:
        raise ConfigError(
            f"{AUTO} is auto, but models.targets names no model with a cutoff",
            where=AUTO,
            hint="name a target that is not embedded, or write the day: {start: 2026-01-01}",
        )
    if len(known) < len(targets):
        raise _unknown(config, next(each.target for each in targets if not each.latest))
    return max(known, key=lambda one: one.counts_from)


def _unknown(config: Config, model: str) -> ConfigError:
    near = suggest_models(model, load_run_cutoffs(config))
    listed = f"known are {', '.join(near)}; " if near else ""
    return ConfigError(
        f"{AUTO} is auto, but there is no cutoff for {model!r}: neither until when it was trained "
        "nor when it came out is known",
        where=AUTO,
        hint=f"{listed}give the target a cutoff or released date, list it in the file "
        "knowledge.cutoffs, or write the day on which the window starts",
    )


def _no_window(
    start: datetime, end: datetime, now: datetime, latest: LatestDate | None
) -> KnowledgeError:
    """Return the error for a window in which there can be no news."""
    why = f" (auto: {latest.kind} of {latest.target}, {latest.source})" if latest else ""
    if start >= now:
        said, hint = f"lies in the future: now is {now:%Y-%m-%d}", "wait for news, or start earlier"
    elif start > end:
        said, hint = f"runs backwards: it ends {end:%Y-%m-%d}", "its end must come after its start"
    else:
        said, hint = "is empty: it ends where it starts", "its end must come after its start"
    return KnowledgeError(
        f"the knowledge window starts {start:%Y-%m-%d}{why} and {said}",
        where="knowledge.window",
        hint=hint,
    )
