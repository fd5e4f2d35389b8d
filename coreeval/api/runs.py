"""Runs: starting one, going on with it, and looking at its samples, scores and report."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from coreeval.graph.execute import RunSummary

if TYPE_CHECKING:
    pass

RunLike = Path | str | RunSummary
"""A run: its directory, its id, its benchmark's name, `latest`, or the value itself."""
LATEST: Final = "latest"
