"""CoreEval keeps a benchmark ahead of the models that it measures.

What a script may import:

    from coreeval import evaluate, refresh, resume, retry
    done = refresh("coreeval.yaml", limit=50)
    print(done.run_dir, done.manifest.counts)

    from coreeval import load_originals, make_release, read_release, verify
    release = make_release(done.run_dir, version="2026.47")
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coreeval.graph.evaluate import evaluate
    from coreeval.graph.execute import RunSummary
    from coreeval.graph.run import refresh, resume, retry
    from coreeval.releases.create import make_release
    from coreeval.releases.release import read_release
    from coreeval.releases.sample_tables import load_originals
    from coreeval.releases.verify import verify

__all__ = [
    "RunSummary",
    "evaluate",
    "load_originals",
    "make_release",
    "read_release",
    "refresh",
    "resume",
    "retry",
    "verify",
]

_HOMES = {
    "RunSummary": "coreeval.graph.execute",
    "evaluate": "coreeval.graph.evaluate",
    "load_originals": "coreeval.releases.sample_tables",
    "make_release": "coreeval.releases.create",
    "read_release": "coreeval.releases.release",
    "refresh": "coreeval.graph.run",
    "resume": "coreeval.graph.run",
    "retry": "coreeval.graph.run",
    "verify": "coreeval.releases.verify",
}


def __getattr__(name: str) -> object:
    """Import a name of the door when it is first used: LangGraph alone takes most of a second."""
    if name not in _HOMES:
        raise AttributeError(f"module 'coreeval' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
