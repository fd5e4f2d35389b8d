"""The detectors that are nodes of the run graph: checks before a run, questions, findings.

Their code is imported when it is needed.
"""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from coreeval.graph.pcr.split_questions import ask_about_splits
from coreeval.graph.run_context import RunContext
from coreeval.graph.state import DetectorNode
from coreeval.tools.workspace import Workspace

if TYPE_CHECKING:
    from coreeval.graph.setup import Setup


def check_detectors(setup: "Setup", *, source: Path, workspace: Workspace) -> None:
    """Check the inputs of a detector besides the benchmark, such as the series of NumLeak.

    Raises:
        UsageError: an input cannot be used.
    """
    if setup.config.detect.asks_series:
        from coreeval.graph.numleak.plan import check_series

        check_series(setup.config, source=source, workspace=workspace, today=setup.now.date())


async def _ask_about_series(run: RunContext) -> list[str]:
    if not run.config.detect.asks_series:
        return []
    from coreeval.graph.numleak.run_audit import audit_series

    return await audit_series(run)


ASK: Final[Mapping[DetectorNode, Callable[[RunContext], Awaitable[list[str]]]]] = {
    "pcr": ask_about_splits,
    "numleak": _ask_about_series,
}
"""Asks the targets a detector's questions, if it is configured; returns the targets asked."""


def score_answers(run: RunContext) -> dict[str, dict[str, Any] | None]:
    """Return each detector's part of the report, or None if it is not configured."""
    from coreeval.graph.pcr.split_comparison import compare_splits

    return {"pcr": compare_splits(run), "numleak": _audit_answers(run)}


def _audit_answers(run: RunContext) -> dict[str, Any] | None:
    if not run.config.detect.asks_series:
        return None
    from coreeval.graph.numleak.run_audit import audit_answers

    return audit_answers(run)
