"""The detectors that nodes of the run graph ask for: their checks before a run, and their findings.

Their code is imported when it is needed.
"""

from pathlib import Path
from typing import Any

from coreeval.graph.run_context import RunContext
from coreeval.graph.setup import Setup
from coreeval.tools.workspace import Workspace


def check_detectors(setup: Setup, *, source: Path, workspace: Workspace) -> None:
    """Check what a detector asks about beyond the benchmark, such as the series of NumLeak.

    Raises:
        UsageError: it cannot be asked about.
    """
    if setup.config.detect.numleak:
        from coreeval.graph.numleak.plan import check_series

        check_series(setup.config, source=source, workspace=workspace, today=setup.now.date())


def score_answers(run: RunContext) -> dict[str, dict[str, Any] | None]:
    """Return each detector's part of the report, or None if the config does not ask for it."""
    from coreeval.graph.numleak.run_audit import audit_answers
    from coreeval.graph.pcr.split_comparison import compare_splits

    return {"pcr": compare_splits(run), "numleak": audit_answers(run)}
