"""The windows of news: the run's, and the control arm's.

A window is stored with the dates that determined it, such as those of targets. The news of the
control arm are from a window that every target may have seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from coreeval.config import Config
from coreeval.errors import ConfigError, KnowledgeError
from coreeval.runs.manifest import Manifest
from coreeval.schema import Window
from coreeval.tools.cutoffs import (
    LatestDate,
    TargetDates,
    load_run_cutoffs,
    load_target_dates,
    suggest_models,
)

CONTROL_KEY = "run.control_window"


def find_control_window(
    config: Config, targets: Sequence[TargetDates], window: Window
) -> Window | None:
    """Return the window of the control arm; None if the config has none.

    Args:
        config: The config.
        targets: The known facts about targets that were trained elsewhere.
        window: The window of the news for the updated arm.

    Raises:
        ConfigError: it ends before it starts, after a cutoff or inside `window`, or a target has no
            known cutoff.
    """
    chosen = config.run.control_window
    if chosen is None:
        return None
    if chosen.start >= chosen.end:
        raise ConfigError(
            f"the control window starts on {chosen.start:%Y-%m-%d} and ends on "
            f"{chosen.end:%Y-%m-%d}",
            where=CONTROL_KEY,
            hint="its end must come after its start",
        )
    found = Window(start=chosen.start, end=chosen.end)
    for target in targets:
        _refuse_unknown(target, found)
    if found.end > window.start:
        raise ConfigError(
            f"the control window ends on {found.end:%Y-%m-%d}, after the start of the updated "
            f"arm's window ({window.start:%Y-%m-%d})",
            where=f"{CONTROL_KEY}.end",
            hint="end it on that day or earlier: the targets must already know its news",
        )
    return found


def _refuse_unknown(target: TargetDates, window: Window) -> None:
    """Raise an error if a target has not, or may not have, seen all news of the window."""
    cutoff = target.cutoff
    if cutoff is None:
        raise ConfigError(
            f"there is no cutoff for {target.target!r}, so it is unknown whether news predates it",
            where=CONTROL_KEY,
            hint="set a cutoff for the target, list it in the file knowledge.cutoffs, or remove "
            f"{CONTROL_KEY}",
        )
    if window.end > cutoff.counts_from:
        raise ConfigError(
            f"the control window ends on {window.end:%Y-%m-%d}, after the cutoff of "
            f"{target.target}: {cutoff.date} ({cutoff.source})",
            where=f"{CONTROL_KEY}.end",
            hint=f"end it on {cutoff.counts_from:%Y-%m-%d} or earlier: news that the target "
            "cannot know is not a control",
        )


AUTO = "knowledge.window.start"


@dataclass(frozen=True, kw_only=True)
class DatedWindow:
    """A window with everything that determined it."""

    window: Window
    start: LatestDate | None
    """The basis of `start: auto`; None if the config gives the start."""
    targets: tuple[TargetDates, ...]
    """Training cutoff and release date of each target; embedded targets are left out."""
    control: Window | None = None
    """The news window of the control arm; None if there is none."""


def resolve_window(config: Config, now: datetime, *bases: Path) -> DatedWindow:
    """Return the window with `auto` and `now` resolved to dates (paper §3.2, footnote 2).

    Raises:
        ConfigError: `auto` has no target to use, or one whose cutoff is unknown.
        KnowledgeError: the window is in the future, ends before it starts, or is empty.
    """
    targets, chosen = load_target_dates(config, *bases), config.knowledge.window
    latest: LatestDate | None = None
    if chosen.start == "auto":
        latest = _find_latest_cutoff(config, targets)
        start = latest.counts_from
    else:
        start = chosen.start
    end = now if chosen.end == "now" else chosen.end
    if start >= min(now, end):
        raise _empty_window_error(start, end, now, latest)
    window = Window(start=start, end=end)
    control = find_control_window(config, targets, window)
    return DatedWindow(window=window, start=latest, targets=targets, control=control)


def restore_window(manifest: Manifest, config: Config) -> DatedWindow:
    """Return the window of a started run, unaffected by anything learnt since."""
    known = manifest.cutoffs
    targets = load_target_dates(config) if known is None else known
    return DatedWindow(
        window=manifest.window,
        start=manifest.window_start,
        targets=targets,
        control=manifest.control.window if manifest.control else None,
    )


def _find_latest_cutoff(config: Config, targets: Sequence[TargetDates]) -> LatestDate:
    known = [latest for each in targets if (latest := each.latest)]
    if not targets:
        raise ConfigError(
            f"{AUTO} is auto, but models.targets names no model with a cutoff",
            where=AUTO,
            hint="add a target that is not embedded, or set the day: {start: 2026-01-01}",
        )
    if len(known) < len(targets):
        raise _unknown_cutoff_error(
            config, next(each.target for each in targets if not each.latest)
        )
    return max(known, key=lambda one: one.counts_from)


def _unknown_cutoff_error(config: Config, model: str) -> ConfigError:
    near = suggest_models(model, load_run_cutoffs(config))
    listed = f"similar known models: {', '.join(near)}; " if near else ""
    return ConfigError(
        f"{AUTO} is auto, but there is no cutoff for {model!r}: neither its training cutoff nor "
        "its release date is known",
        where=AUTO,
        hint=f"{listed}set cutoff or released for the target, list the model in the file "
        "knowledge.cutoffs, or set the start day of the window",
    )


def _empty_window_error(
    start: datetime, end: datetime, now: datetime, latest: LatestDate | None
) -> KnowledgeError:
    """Return the error for a window that cannot contain news."""
    why = f" (auto: {latest.kind} of {latest.target}, {latest.source})" if latest else ""
    if start >= now:
        said, hint = f"is in the future: now is {now:%Y-%m-%d}", "wait for news, or start earlier"
    elif start > end:
        said, hint = f"is reversed: it ends on {end:%Y-%m-%d}", "its end must come after its start"
    else:
        said, hint = "is empty: its end equals its start", "its end must come after its start"
    return KnowledgeError(
        f"the knowledge window starts on {start:%Y-%m-%d}{why} and {said}",
        where="knowledge.window",
        hint=hint,
    )
