"""The window of the control arm: news that every target may have seen."""

from collections.abc import Sequence

from coreeval.config import Config
from coreeval.errors import ConfigError
from coreeval.schema import Window
from coreeval.tools.cutoffs import TargetDates

KEY = "run.control_window"


def control_window(config: Config, targets: Sequence[TargetDates], window: Window) -> Window | None:
    """Return the window of the control arm; None where the config wants none.

    Args:
        config: The config.
        targets: What is known of the targets that were trained elsewhere.
        window: Of the news for the updated arm.

    Raises:
        ConfigError: it runs backwards, or ends after a cutoff or inside `window`, or a target has
            no known cutoff.
    """
    chosen = config.run.control_window
    if chosen is None:
        return None
    if chosen.start >= chosen.end:
        raise ConfigError(
            f"the control window starts {chosen.start:%Y-%m-%d} and ends {chosen.end:%Y-%m-%d}",
            where=KEY,
            hint="its end must come after its start",
        )
    found = Window(start=chosen.start, end=chosen.end)
    for target in targets:
        _refuse_unknown(target, found)
    if found.end > window.start:
        raise ConfigError(
            f"the control window ends {found.end:%Y-%m-%d}, after the start of the window of the "
            f"updated arm, {window.start:%Y-%m-%d}",
            where=f"{KEY}.end",
            hint="end it there or earlier: its news must not be new",
        )
    return found


def _refuse_unknown(target: TargetDates, window: Window) -> None:
    """Refuse a target that cannot have seen all news of the window, or may not have."""
    cutoff = target.cutoff
    if cutoff is None:
        raise ConfigError(
            f"there is no cutoff for {target.target!r}: nobody can tell whether news is from "
            "before it",
            where=KEY,
            hint="give the target a cutoff, list it in the file knowledge.cutoffs, or leave "
            f"{KEY} out",
        )
    if window.end > cutoff.counts_from:
        raise ConfigError(
            f"the control window ends {window.end:%Y-%m-%d}, after the cutoff of "
            f"{target.target}, {cutoff.date} ({cutoff.source})",
            where=f"{KEY}.end",
            hint=f"end it {cutoff.counts_from:%Y-%m-%d} or earlier: what the target cannot know "
            "is no control",
        )
