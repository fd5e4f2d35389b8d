"""Both graphs over the bundled demo, for LangGraph Studio and its local API (langgraph.json).

COREEVAL_STUDIO_CONFIG names a config of one's own to step through in its place.

No checkpointer is compiled in: the server brings its own. The graphs are made when the module is
imported, which the server does in a thread; what they write is in a temporary folder.
"""

import os
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from coreeval.config import load_config
from coreeval.graph.build import RunGraph, SampleGraph, build_run_graph, build_sample_graph
from coreeval.graph.bundled import write_configs
from coreeval.graph.job import Job
from coreeval.graph.news import open_news
from coreeval.graph.nodes import SampleNodes
from coreeval.graph.record import InFlight, recorder
from coreeval.graph.refreshing import crew_of
from coreeval.graph.run import first_manifest, source_of
from coreeval.graph.run_nodes import RunNodes
from coreeval.graph.setup import set_up
from coreeval.graph.stages import plan
from coreeval.graph.work import REAL, job_of
from coreeval.tools.env_file import read_env_file
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.workspace import RunFiles, workspace_for

CONFIG = "COREEVAL_STUDIO_CONFIG"


def studio_config(folder: Path, env: Mapping[str, str]) -> Path:
    """Return the config that Studio works on: one's own, or the demo's emotion config.

    Args:
        folder: Where the demo's configs are written.
        env: The environment.
    """
    own = env.get(CONFIG)
    return Path(own).resolve() if own else write_configs(folder)[0]


def _job() -> Job:
    """Prepare a run in a temporary folder; its calls go to the call store beside the config."""
    folder = Path(tempfile.mkdtemp(prefix="coreeval-studio-"))
    config = studio_config(folder, os.environ)
    loaded = load_config(config)
    read_env_file(config.parent, loaded)
    setup = set_up(loaded, datetime.now(UTC))
    workspace, files = workspace_for(config.parent), RunFiles(folder / "run")
    manifest = first_manifest(setup, workspace, files, source_of(config), limit=None)
    files.root.mkdir()
    return job_of(setup, manifest, files, workspace, REAL)


def _sample_graph(job: Job) -> SampleGraph:
    plan(job)
    crew = crew_of(
        job, open_news(job.setup, job.workspace), open_calls(job.workspace.calls, job.payer)
    )
    wrap = recorder(job.store, InFlight(job.now), job.now, job.payer)
    return build_sample_graph(SampleNodes(crew), wrap)


_JOB = _job()
refresh_sample: SampleGraph = _sample_graph(_JOB)
"""Refreshes one sample, e.g. `{"sample_id": "emotion/test/1"}`."""
refresh_run: RunGraph = build_run_graph(RunNodes(_JOB))
"""A whole run over the demo's emotion benchmark."""
