"""CoreEval keeps a benchmark ahead of the models that it measures.

What a script or a notebook may import; docs/python.md says more:

    import coreeval

    run = coreeval.refresh("coreeval.yaml", limit=50)
    run.samples().to_pandas()
    run.scores()
    release = coreeval.make_release(run, version="2026.47")

Importing the package is cheap: each name imports its own module when it is first used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coreeval.api.comparisons import Comparison, diff
    from coreeval.api.configs import Estimate, estimate, load_config
    from coreeval.api.execution import arefresh, evaluate, refresh, resume, retry
    from coreeval.api.exports import Export, export
    from coreeval.api.gates import GateReport, gate
    from coreeval.api.numleak import NumleakResult, numleak
    from coreeval.api.overlap import OverlapResult, overlap
    from coreeval.api.pcr import PcrResult, pcr
    from coreeval.api.releases import Release, load_release, make_release
    from coreeval.api.runs import Run, Status, list_runs, load_run, status
    from coreeval.api.sample_graph import sample_graph
    from coreeval.api.samples import SampleTrace
    from coreeval.api.tables import Result, Table
    from coreeval.api.validation import Check, Validation, validate
    from coreeval.api.verification import Verification, verify
    from coreeval.config import Config
    from coreeval.errors import CoreEvalError
    from coreeval.releases.release import read_release
    from coreeval.releases.sample_tables import load_originals
    from coreeval.runs.manifest import RunSummary

    __version__: str

__all__ = [
    "Check",
    "Comparison",
    "Config",
    "CoreEvalError",
    "Estimate",
    "Export",
    "GateReport",
    "NumleakResult",
    "OverlapResult",
    "PcrResult",
    "Release",
    "Result",
    "Run",
    "RunSummary",
    "SampleTrace",
    "Status",
    "Table",
    "Validation",
    "Verification",
    "__version__",
    "arefresh",
    "diff",
    "estimate",
    "evaluate",
    "export",
    "gate",
    "list_runs",
    "load_config",
    "load_originals",
    "load_release",
    "load_run",
    "make_release",
    "numleak",
    "overlap",
    "pcr",
    "read_release",
    "refresh",
    "resume",
    "retry",
    "sample_graph",
    "status",
    "validate",
    "verify",
]

_NAMES = {
    "coreeval.api.comparisons": "Comparison diff",
    "coreeval.api.configs": "Estimate estimate load_config",
    "coreeval.api.execution": "arefresh evaluate refresh resume retry",
    "coreeval.api.exports": "Export export",
    "coreeval.api.gates": "GateReport gate",
    "coreeval.api.numleak": "NumleakResult numleak",
    "coreeval.api.overlap": "OverlapResult overlap",
    "coreeval.api.pcr": "PcrResult pcr",
    "coreeval.api.releases": "Release load_release make_release",
    "coreeval.api.runs": "Run Status list_runs load_run status",
    "coreeval.api.sample_graph": "sample_graph",
    "coreeval.api.samples": "SampleTrace",
    "coreeval.api.tables": "Result Table",
    "coreeval.api.validation": "Check Validation validate",
    "coreeval.api.verification": "Verification verify",
    "coreeval.config": "Config",
    "coreeval.errors": "CoreEvalError",
    "coreeval.releases.release": "read_release",
    "coreeval.releases.sample_tables": "load_originals",
    "coreeval.runs.manifest": "RunSummary",
}
"""The names of each module."""
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """Import a name of the door when it is first used: LangGraph alone takes most of a second."""
    if name == "__version__":
        from importlib.metadata import version

        return version("coreeval")
    if name not in _HOMES:
        raise AttributeError(f"module 'coreeval' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
