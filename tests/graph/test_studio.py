import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph

from coreeval.graph.state import RUN_NODES, SAMPLE_NODES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def studio() -> ModuleType:
    return import_module("coreeval.graph.studio")


@pytest.fixture
def no_blocking() -> Iterator[None]:
    """Refuse what a server's event loop refuses: waiting for disks, locks and sockets."""
    blockbuster = pytest.importorskip("blockbuster", reason="the extra 'studio' is not installed")
    guard = blockbuster.BlockBuster()
    guard.activate()
    yield
    guard.deactivate()


@pytest.mark.parametrize(
    ("name", "nodes"), [("refresh_sample", SAMPLE_NODES), ("refresh_run", RUN_NODES)]
)
def test_langgraph_json_names_graphs_that_can_be_drawn(
    studio: ModuleType, name: str, nodes: tuple[str, ...]
) -> None:
    graphs = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))["graphs"]
    module, _, attribute = graphs[name]["path"].partition(":")
    graph = getattr(import_module(module), attribute)
    assert isinstance(graph, StateGraph)
    drawn = graph.compile().get_graph()
    assert set(nodes) < set(drawn.nodes)
    assert all(node in drawn.draw_mermaid() for node in nodes)


def test_the_form_says_what_is_asked_for(studio: ModuleType) -> None:
    form = studio.refresh_sample.compile().get_input_jsonschema()
    asked = form["properties"]["sample_id"]
    assert form["required"] == ["sample_id"]
    assert asked["title"] == "Sample"
    assert studio._JOB.store.sample(asked["examples"][0])
    first, last = "emotion/test/1", "emotion/test/24"
    assert f"{first} to {last}" in asked["description"]
    assert {first, last} <= set(studio._JOB.store.pending())


def test_a_config_of_ones_own_takes_the_place_of_the_demo(
    studio: ModuleType, tmp_path: Path
) -> None:
    own = {studio.CONFIG: str(tmp_path / "own.yaml")}
    assert studio.studio_config(tmp_path, own) == tmp_path / "own.yaml"
    assert studio.studio_config(tmp_path, {}).name == "emotion.yaml"


@pytest.mark.usefixtures("no_blocking")
async def test_a_demo_sample_can_be_stepped_without_blocking_a_server(studio: ModuleType) -> None:
    app = studio.refresh_sample.compile(checkpointer=InMemorySaver(), interrupt_after="*")
    thread = {"configurable": {"thread_id": "t"}}
    await app.ainvoke({"sample_id": "emotion/test/2"}, thread)
    steps = 0
    while (state := await app.aget_state(thread)).next:
        await app.ainvoke(None, thread)
        steps += 1
        assert steps < 40
    assert state.values["outcome"] in {"accepted", "no_knowledge", "rejected_form"}
    assert steps >= 5


@pytest.mark.usefixtures("no_blocking")
async def test_the_whole_demo_run_does_not_block_a_server(studio: ModuleType) -> None:
    ended = await studio.refresh_run.compile().ainvoke({"note": ""})
    assert ended["counts"]["total"] == 24
    assert (ended["pending"], ended["counts"]["failed"]) == (0, 0)
    assert ended["report"].endswith("report.html")
