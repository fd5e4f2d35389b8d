"""Builds the graphs from their nodes."""

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, get_args

from langgraph.graph import END, START, StateGraph

from coreeval.graph.state import (
    ASKING_NODES,
    REWORDING_NODES,
    SAMPLE_NODES,
    DetectorNode,
    RunInput,
    RunState,
    SampleInput,
    SampleState,
    Wrap,
)

if TYPE_CHECKING:
    from coreeval.graph.nodes import SampleNodes
    from coreeval.graph.run_nodes import RunNodes


SampleGraph = StateGraph[SampleState, None, SampleInput, SampleState]
RunGraph = StateGraph[RunState, None, RunInput, RunState]


def build_sample_graph(nodes: "SampleNodes", wrap: Wrap) -> SampleGraph:
    """Refresh one sample: extract, reword beside retrieve and replace, compose, check, reflect."""
    builder = StateGraph(SampleState, input_schema=SampleInput)
    for name in SAMPLE_NODES:
        builder.add_node(name, wrap(name, getattr(nodes, name)))
    builder.add_edge(START, "extract")
    builder.add_conditional_edges("extract", _after_extract, ["judge_original", "retrieve", END])
    after_original = ["reword", "retrieve", "replace"]
    builder.add_conditional_edges("judge_original", _after_original, after_original)
    builder.add_edge("reword", "judge_semantic")
    builder.add_edge("judge_semantic", END)
    builder.add_conditional_edges("retrieve", _route, ["judge_original", "replace", END])
    after_plan = ["compose", "check", "replace", "retrieve", END]
    builder.add_conditional_edges("replace", _route, after_plan)
    builder.add_edge("compose", "check")
    back = ["compose", "replace", "retrieve", END]
    builder.add_conditional_edges("check", _route, ["reflect", *back])
    builder.add_conditional_edges("reflect", _route, back)
    return builder


def build_rewording_graph(nodes: "SampleNodes", wrap: Wrap) -> SampleGraph:
    """Reword one train item in the same way as samples, without news."""
    builder = StateGraph(SampleState, input_schema=SampleInput)
    for name in REWORDING_NODES:
        builder.add_node(name, wrap(name, getattr(nodes, name)))
    builder.add_edge(START, "extract")
    builder.add_conditional_edges("extract", _after_extract, ["judge_original", END])
    builder.add_edge("judge_original", "reword")
    builder.add_edge("reword", "judge_semantic")
    builder.add_edge("judge_semantic", END)
    return builder


def build_run_graph(nodes: "RunNodes") -> RunGraph:
    """Return the graph of a run: plan, refresh, write the control arm, assemble, detect, report."""
    builder = StateGraph(RunState, input_schema=RunInput)
    for name in ("plan", "refresh", "control", "assemble", "evaluate", "report"):
        builder.add_node(name, getattr(nodes, name))
    for detector in get_args(DetectorNode):
        builder.add_node(detector, nodes.detector(detector))
    builder.add_edge(START, "plan")
    builder.add_edge("plan", "refresh")
    builder.add_conditional_edges("refresh", _after_refresh, ["control", END])
    builder.add_conditional_edges("control", _after_control, ["assemble", END])
    builder.add_edge("assemble", "evaluate")
    for node, following in pairwise(ASKING_NODES):
        builder.add_conditional_edges(node, _unless_stopped(following), [following, END])
    builder.add_edge("report", END)
    return builder


# Edges of the sample graph are async: LangGraph would call sync functions in a thread.


async def _after_extract(state: SampleState) -> str:
    """End a skipped sample, judge one that ends here, or else follow its route."""
    if state["policy"] == "skip":
        return END
    return "judge_original" if "outcome" in state else state["route"]


async def _after_original(state: SampleState) -> list[Literal["reword", "retrieve", "replace"]]:
    """Reword every sample; retrieve news once for those without an outcome."""
    if "outcome" in state:
        return ["reword"]
    return ["reword", "replace" if "evidence" in state else "retrieve"]


async def _route(state: SampleState) -> str:
    return END if state["route"] == "end" else state["route"]


def _after_refresh(state: RunState) -> str:
    """End the graph while samples are open, because the run was stopped."""
    return END if state["pending"] else "control"


def _after_control(state: RunState) -> str:
    """End the graph while samples of the control pass are open."""
    return END if state["control_pending"] else "assemble"


def _unless_stopped(following: str) -> Callable[[RunState], str]:
    """Return an edge that ends the graph if the run was stopped."""

    def go_on(state: RunState) -> str:
        return END if state["stopped"] else following

    return go_on
