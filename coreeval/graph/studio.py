"""Both graphs over the bundled demo, for LangGraph Studio and its local API (langgraph.json).

COREEVAL_STUDIO_CONFIG names another config to step through.

The graphs have no checkpointer, because the server has its own. They are built when the module is
imported, which the server does in a thread; they write into a temporary folder.
"""

import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from coreeval.config import load_config
from coreeval.graph.build import RunGraph, SampleGraph, build_run_graph, build_sample_graph
from coreeval.graph.bundled import write_configs
from coreeval.graph.execute import DEFAULT_HOOKS, build_run_context
from coreeval.graph.inputs import open_embedder, open_news
from coreeval.graph.nodes import SampleNodes
from coreeval.graph.recorder import InFlight, build_recorder
from coreeval.graph.refresh import build_node_context
from coreeval.graph.run import build_manifest, describe_source
from coreeval.graph.run_context import RunContext
from coreeval.graph.run_nodes import RunNodes, plan_samples
from coreeval.graph.setup import set_up
from coreeval.tools.env_file import read_env_file
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.workspace import RunFiles, workspace_for

CONFIG = "COREEVAL_STUDIO_CONFIG"


def studio_config(folder: Path, env: Mapping[str, str]) -> Path:
    """Return the config that Studio works on: the user's own, or the demo's emotion config.

    Args:
        folder: Where the demo's configs are written.
        env: The environment.
    """
    own = env.get(CONFIG)
    return Path(own).resolve() if own else write_configs(folder)[0]


def _run() -> RunContext:
    """Prepare a run in a temporary folder; its calls go to the call store beside the config."""
    folder = Path(tempfile.mkdtemp(prefix="coreeval-studio-"))
    config = studio_config(folder, os.environ)
    loaded = load_config(config)
    read_env_file(config.parent, loaded)
    setup = set_up(loaded, datetime.now(UTC))
    workspace, files = workspace_for(config.parent), RunFiles(folder / "run")
    manifest = build_manifest(
        setup, workspace, files, describe_source(config, setup.config), limit=None
    )
    files.root.mkdir()
    return build_run_context(setup, manifest, files, workspace, DEFAULT_HOOKS)


def _sample_graph(run: RunContext) -> SampleGraph:
    plan_samples(run)
    embeds = _OPEN.enter_context(open_embedder(run.config, run.workspace))
    news, calls = open_news(run.setup, run.workspace), open_calls(run.workspace.calls, run.payer)
    context = build_node_context(run, news, calls, embeds)
    wrap = build_recorder(run.store, InFlight(run.now), run.now, run.payer)
    return build_sample_graph(SampleNodes(context), wrap)


_OPEN = ExitStack()
"""Resources that stay open as long as the process."""
_JOB = _run()
refresh_sample: SampleGraph = _sample_graph(_JOB)
"""A graph that refreshes one sample, e.g. `{"sample_id": "emotion/test/1"}`."""
refresh_run: RunGraph = build_run_graph(RunNodes(_JOB))
"""A graph that runs a whole refresh of the demo's emotion benchmark."""
