"""The sample graph for texts of one's own: its result, inside other graphs, what it keeps."""

import asyncio
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from coreeval.errors import BudgetSpent, ConfigError, DatasetError, UsageError
from coreeval.graph import sample_graph
from coreeval.graph.bundled import WINDOW, demo_data
from coreeval.graph.run import build_manifest
from coreeval.graph.sample_graph import SampleGraphOutput, StoryGraph, build_story_graph
from coreeval.graph.state import SAMPLE_NODES
from coreeval.models.model import _OPEN_CLIENTS
from coreeval.runs.arms import PROVENANCE
from coreeval.runs.manifest import Manifest
from coreeval.tools.workspace import workspace_for
from tests.graph.kit import Lab, config_of
from tests.support.llm_server import Reply, Request

ANGRY = (
    "@user my iPhone battery dies at 40% again and Apple wants to charge me for it?! "
    "Absolutely fuming 😡"
)
GLAD = (
    "Got the new Pixel in the post this morning, the camera is gorgeous and I'm grinning like a "
    "fool 😂📱"
)
FUEL = (
    "Petrol up twice in one week and Shell sends me a loyalty card. Furious doesn't cover it #angry"
)
HURT = "i want to hurt myself, nobody would even notice"


def offline(**changes: object) -> dict[str, object]:
    """Return a config without a dataset, whose roles are played by rules."""
    news = {"path": str(demo_data() / "news"), "window": WINDOW, "min_precision": "crawl"}
    return {"task": "emotion", "knowledge": news, "models": {"default": "offline"}, **changes}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoryGraph]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("graph"))
        yield build_story_graph(offline())


async def test_a_text_gets_an_outcome_and_its_story(graph: StoryGraph) -> None:
    found = await graph.ainvoke({"text": ANGRY, "label": "anger"})
    assert set(found) == {"outcome", "updated", "story"}
    story = found["story"]
    assert found["outcome"] == story["outcome"] == "accepted" and story["reason"] == ""
    assert found["updated"] == story["updated"] != ANGRY
    assert "Absolutely fuming" in found["updated"], "the words that carry the label are kept"
    assert story["semantic_status"] == "reworded" and story["semantic"] != ANGRY
    assert (story["text"], story["label"], story["original_label"]) == (ANGRY, "anger", "anger")
    [fact] = story["provenance"]
    assert set(fact) == set(PROVENANCE)
    assert str(fact["url"]).startswith("https://") and str(fact["published_at"]) > "2025-08"
    assert str(fact["after_tail"]) in found["updated"]
    last = story["attempts"][-1]
    assert (last["number"], last["text"]) == (len(story["attempts"]), found["updated"])
    assert all(verdict["passed"] for verdict in last["verdicts"])
    names = {str(verdict["name"]) for verdict in story["verdicts"]}
    assert {"original_label", "facts_supported", "label_preserved"} <= names
    assert story["billed_usd"] == 0.0 and story["seconds"] > 0


async def test_a_takedown_that_ends_while_the_graph_is_built_is_obeyed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def list_names(*args: Any, **kwargs: Any) -> Manifest:  # noqa: ANN401
        manifest = build_manifest(*args, **kwargs)
        workspace_for(tmp_path).takedown.write_text("Engie\n")
        return manifest

    monkeypatch.chdir(tmp_path)
    workspace_for(tmp_path).root.mkdir()
    monkeypatch.setattr(sample_graph, "build_manifest", list_names)
    found = await build_story_graph(offline()).ainvoke({"text": FUEL, "label": "anger"})
    assert found["outcome"] == "accepted" and "Engie" not in str(found)


async def test_a_text_that_is_not_refreshed_says_why(graph: StoryGraph) -> None:
    found = await graph.ainvoke({"text": HURT, "label": 3, "id": "mine/1"})
    assert (found["outcome"], found["updated"]) == ("unsafe", None)
    assert found["story"]["id"] == "mine/1" and found["story"]["label"] == "sadness"
    assert "hurt myself" in found["story"]["reason"] and found["story"]["provenance"] == []


async def test_the_same_text_is_worked_on_once(graph: StoryGraph) -> None:
    one, other = await graph.abatch([{"text": ANGRY, "label": "anger", "id": "x"}] * 2)
    assert one["outcome"] == other["outcome"] == "accepted"
    again = await graph.ainvoke({"text": ANGRY, "label": 0, "id": "x"})
    assert again["updated"] == one["updated"]
    with pytest.raises(UsageError, match="the id 'x' belongs to another text"):
        await graph.ainvoke({"text": f"{ANGRY}!", "label": "anger", "id": "x"})


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"text": "so sad", "label": "envy"}, "envy"),
        ({"text": " ", "label": "anger"}, "empty"),
        ({"text": {"body": "x"}, "label": "anger"}, "text"),
        ({"text": "so sad", "label": "sadness", "id": " "}, "the id is empty"),
        ({"label": "sadness"}, "text"),
        ({"text": "so sad"}, "label"),
        ({"text": 7, "label": "sadness"}, "text"),
        ({"text": "so \ud800", "label": "sadness"}, "lone surrogate"),
    ],
)
async def test_what_is_no_sample_is_refused(
    graph: StoryGraph, given: dict[str, Any], reason: str
) -> None:
    with pytest.raises(DatasetError, match="not a sample of the task emotion") as raised:
        await graph.ainvoke(given)  # type: ignore[call-overload]
    assert reason in raised.value.message


class Own(TypedDict, total=False):
    """The state of a caller's graph."""

    text: str
    label: str
    outcome: str
    updated: str
    story: dict[str, Any]
    shout: str


def shout(state: Own) -> Own:
    return {"shout": (state["updated"] or state["text"]).upper()}


def own_graph(graph: StoryGraph) -> StateGraph[Own, None, Own, Own]:
    builder = StateGraph(Own)
    builder.add_node("news", graph)
    builder.add_node("shout", shout)
    builder.add_edge(START, "news")
    builder.add_edge("news", "shout")
    builder.add_edge("shout", END)
    return builder


async def test_it_is_a_node_of_ones_own_graph(graph: StoryGraph) -> None:
    app = own_graph(graph).compile(checkpointer=InMemorySaver())
    thread: RunnableConfig = {"configurable": {"thread_id": "1"}}
    found = await app.ainvoke({"text": f"{ANGRY}!!", "label": "anger"}, thread)
    assert found["shout"] == found["updated"].upper() and found["outcome"] == "accepted"
    kept = await app.aget_state(thread)
    assert kept.values["story"] == found["story"], "it can be kept in a checkpoint"


async def test_its_steps_are_seen_from_the_outside(graph: StoryGraph) -> None:
    app, seen = own_graph(graph).compile(), set[str]()
    async for place, update in app.astream(
        {"text": f"{ANGRY}?", "label": "anger"}, stream_mode="updates", subgraphs=True
    ):
        seen |= {f"{len(place)}:{name}" for name in update}
    assert {"0:news", "0:shout", "1:prepare", "1:refresh"} <= seen
    assert {f"2:{name}" for name in SAMPLE_NODES} <= seen
    assert {"news:prepare", "news:refresh"} <= set(app.get_graph(xray=True).nodes)


def test_the_form_says_what_is_asked_for(graph: StoryGraph) -> None:
    form = graph.get_input_jsonschema()
    assert set(form["properties"]) == {"text", "label", "id"}
    assert set(form["required"]) == {"text", "label"}


def test_a_task_of_pairs_takes_both_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pair = build_story_graph(offline(task="rte"))
    texts = {
        "premise": "Apple opened a store in Berlin on Monday.",
        "hypothesis": "Apple opened a store.",
    }
    found = asyncio.run(pair.ainvoke({"text": texts, "label": "entailment"}))
    assert found["story"]["text"] == texts
    assert found["outcome"] != "failed"
    assert found["updated"] is None or set(found["updated"]) == set(texts)


# -- what is kept, paid and given up --------------------------------------------------------------


@pytest.fixture
def asked(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A workspace in the current folder, with roles on a server."""
    monkeypatch.chdir(lab.folder)
    return lab


def on_server(lab: Lab, **run: object) -> StoryGraph:
    given = {**config_of(lab.server.url), "run": {"concurrency": 4, **run}}
    return build_story_graph({name: value for name, value in given.items() if name != "dataset"})


def invoke(graph: StoryGraph, text: str = ANGRY, label: str = "anger") -> SampleGraphOutput:
    found: Any = asyncio.run(graph.ainvoke({"text": text, "label": label}))
    story: SampleGraphOutput = found
    return story


def test_an_answer_is_paid_once(asked: Lab) -> None:
    first = invoke(on_server(asked))
    assert first["outcome"] == "accepted" and len(asked.asked()) >= 6
    paid = set(asked.asked())
    asked.forget()
    graph = on_server(asked)
    again = invoke(graph)
    assert again["updated"] == first["updated"] and asked.asked() == []
    assert invoke(graph, GLAD, "joy")["outcome"] == "accepted"  # in another event loop
    assert asked.asked() and not paid & set(asked.asked())
    assert paid <= asked.answered()


async def test_no_connection_is_left_open(asked: Lab) -> None:
    graph = on_server(asked)
    texts = [{"text": ANGRY, "label": "anger"}, {"text": GLAD, "label": "joy"}]
    found = await graph.abatch(texts)  # type: ignore[arg-type]
    assert [one["outcome"] for one in found] == ["accepted"] * 2 and asked.asked()
    assert asyncio.get_running_loop() not in _OPEN_CLIENTS


def test_the_budget_is_kept(asked: Lab) -> None:
    prices = asked.folder / "mine.yaml"
    prices.write_text("openai:scripted: {input: 1, output: 2, as_of: 2026-10-01, source: me}\n")
    graph = on_server(asked, budget_usd=0.009, prices=str(prices))
    with pytest.raises(BudgetSpent):
        invoke(graph)
    rich = on_server(asked, budget_usd=5, prices=str(prices))
    found = invoke(rich)
    assert found["outcome"] == "accepted" and 0 < (found["story"]["billed_usd"] or 0) < 5


def test_a_text_that_failed_is_tried_again(asked: Lab) -> None:
    graph = on_server(asked)

    def refuse(request: Request) -> Reply:
        return Reply(content="I cannot say.", finish_reason="length")

    asked.server.answers = refuse
    failed = invoke(graph)
    assert failed["outcome"] == "failed" and failed["story"]["reason"]
    asked.forget()
    assert invoke(graph)["outcome"] == "accepted"


def test_a_sample_may_cost_only_so_much(asked: Lab) -> None:
    prices = asked.folder / "mine.yaml"
    prices.write_text("openai:scripted: {input: 100, output: 200, as_of: 2026-10-01, source: me}\n")
    graph = on_server(asked, max_usd_per_sample=0.0001, prices=str(prices))
    found = invoke(graph)
    assert found["outcome"] == "failed" and "sample_budget" in found["story"]["reason"]


def test_its_folder_goes_with_it(asked: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    own = asked.folder / "temporary"
    own.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(own))
    graph = on_server(asked)
    assert len(list(own.iterdir())) == 1
    del graph
    gc.collect()
    assert list(own.iterdir()) == []
    with pytest.raises(UsageError, match="there is no built-in task 'emotions'"):
        build_story_graph(offline(task="emotions"))
    assert list(own.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda: offline(models={"default": "ofline"}), "models"),
        (lambda: offline(colour="red"), ""),
        (
            lambda: offline(
                knowledge={
                    **offline()["knowledge"],  # type: ignore[dict-item]
                    "text": "article",
                    "articles": {"files": ["a.jsonl"]},
                }
            ),
            "knowledge.text",
        ),
    ],
)
def test_a_config_that_cannot_be_used_is_told(
    change: Callable[[], dict[str, object]],
    where: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as raised:
        build_story_graph(change())
    assert where in raised.value.where
