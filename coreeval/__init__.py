"""CoreEval keeps a benchmark ahead of the models that it measures.

The public names for scripts and notebooks; docs/python.md describes them:

    import coreeval

    run = coreeval.refresh("coreeval.yaml", limit=50)
    run.samples().to_pandas()
    run.scores()
    release = coreeval.make_release(run, version="2026.47")

Importing the package is fast: each name imports its module on first use.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coreeval.api.annotation import SheetExport, SheetScores, export_sheets, score_sheets
    from coreeval.api.article_texts import find_article_texts
    from coreeval.api.calls import count_calls, delete_calls, export_calls
    from coreeval.api.cassettes import export_cassette, read_cassette, replay_cassette
    from coreeval.api.comparisons import Comparison, diff
    from coreeval.api.configs import Estimate, estimate, load_config
    from coreeval.api.detection import detect
    from coreeval.api.execution import arefresh, evaluate, refresh, resume, retry
    from coreeval.api.exports import Export, export, push
    from coreeval.api.gates import GateReport, gate
    from coreeval.api.model_checks import check_models
    from coreeval.api.news import measure_news_coverage, query_news, sync_news
    from coreeval.api.numleak import NumleakResult, numleak
    from coreeval.api.overlap import OverlapResult, overlap
    from coreeval.api.pcr import PcrResult, pcr
    from coreeval.api.plugins import list_plugins
    from coreeval.api.prompts import list_prompts, render_prompt, try_prompt
    from coreeval.api.releases import Release, load_release, make_release
    from coreeval.api.reviews import ReviewResult, review
    from coreeval.api.runs import Run, Status, delete_run, list_runs, load_run, status, tag_run
    from coreeval.api.sample_graph import sample_graph
    from coreeval.api.samples import SampleTrace
    from coreeval.api.schedules import DueResults, explain_schedules, run_due
    from coreeval.api.tables import CommandResult, Result, Table
    from coreeval.api.takedowns import take_down
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
    "CommandResult",
    "Comparison",
    "Config",
    "CoreEvalError",
    "DueResults",
    "Estimate",
    "Export",
    "GateReport",
    "NumleakResult",
    "OverlapResult",
    "PcrResult",
    "Release",
    "Result",
    "ReviewResult",
    "Run",
    "RunSummary",
    "SampleTrace",
    "SheetExport",
    "SheetScores",
    "Status",
    "Table",
    "Validation",
    "Verification",
    "__version__",
    "arefresh",
    "check_models",
    "count_calls",
    "delete_calls",
    "delete_run",
    "detect",
    "diff",
    "estimate",
    "evaluate",
    "explain_schedules",
    "export",
    "export_calls",
    "export_cassette",
    "export_sheets",
    "find_article_texts",
    "gate",
    "list_plugins",
    "list_prompts",
    "list_runs",
    "load_config",
    "load_originals",
    "load_release",
    "load_run",
    "make_release",
    "measure_news_coverage",
    "numleak",
    "overlap",
    "pcr",
    "push",
    "query_news",
    "read_cassette",
    "read_release",
    "refresh",
    "render_prompt",
    "replay_cassette",
    "resume",
    "retry",
    "review",
    "run_due",
    "sample_graph",
    "score_sheets",
    "status",
    "sync_news",
    "tag_run",
    "take_down",
    "try_prompt",
    "validate",
    "verify",
]

_NAMES = {
    "coreeval.api.annotation": "SheetExport SheetScores export_sheets score_sheets",
    "coreeval.api.article_texts": "find_article_texts",
    "coreeval.api.calls": "count_calls delete_calls export_calls",
    "coreeval.api.cassettes": "export_cassette read_cassette replay_cassette",
    "coreeval.api.comparisons": "Comparison diff",
    "coreeval.api.configs": "Estimate estimate load_config",
    "coreeval.api.detection": "detect",
    "coreeval.api.execution": "arefresh evaluate refresh resume retry",
    "coreeval.api.exports": "Export export push",
    "coreeval.api.gates": "GateReport gate",
    "coreeval.api.model_checks": "check_models",
    "coreeval.api.news": "measure_news_coverage query_news sync_news",
    "coreeval.api.numleak": "NumleakResult numleak",
    "coreeval.api.overlap": "OverlapResult overlap",
    "coreeval.api.pcr": "PcrResult pcr",
    "coreeval.api.plugins": "list_plugins",
    "coreeval.api.prompts": "list_prompts render_prompt try_prompt",
    "coreeval.api.releases": "Release load_release make_release",
    "coreeval.api.reviews": "ReviewResult review",
    "coreeval.api.runs": "Run Status delete_run list_runs load_run status tag_run",
    "coreeval.api.sample_graph": "sample_graph",
    "coreeval.api.samples": "SampleTrace",
    "coreeval.api.schedules": "DueResults explain_schedules run_due",
    "coreeval.api.tables": "CommandResult Result Table",
    "coreeval.api.takedowns": "take_down",
    "coreeval.api.validation": "Check Validation validate",
    "coreeval.api.verification": "Verification verify",
    "coreeval.config": "Config",
    "coreeval.errors": "CoreEvalError",
    "coreeval.releases.release": "read_release",
    "coreeval.releases.sample_tables": "load_originals",
    "coreeval.runs.manifest": "RunSummary",
}
"""The public names by module."""
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """Import a public name on first use; LangGraph alone takes most of a second."""
    if name == "__version__":
        from importlib.metadata import version

        return version("coreeval")
    if name not in _HOMES:
        raise AttributeError(f"module 'coreeval' has no attribute {name!r}")
    from importlib import import_module
    from types import FunctionType

    found = getattr(import_module(_HOMES[name]), name)
    if not isinstance(found, FunctionType):
        return found
    from coreeval.api.door import check_arguments

    return check_arguments(found)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
