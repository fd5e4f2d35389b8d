"""What a run leaves to be looked at: figures that add up, also after a kill, and whole stories."""

import sqlite3
from contextlib import closing

import pytest

from coreeval.tools.clock import utc_now
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.run_overview import Overview
from coreeval.tools.stores.run_store import RunStore
from coreeval.viewer.story import sample_story
from tests.graph.kit import Lab, Undisturbed

BILLED = "SELECT count(*), sum(prompt_tokens) FROM (SELECT DISTINCT key, prompt_tokens FROM calls)"
STEPS = "SELECT node, count(*) FROM steps GROUP BY node"
VERDICTS = "SELECT name, sum(passed), sum(NOT passed) FROM verdicts GROUP BY name"


def _overview(lab: Lab) -> Overview:
    with closing(RunStore.open(lab.files.store, now=utc_now)) as store:
        return store.listing.overview()


def _assert_adds_up(lab: Lab) -> None:
    """Assert that what is kept count of is what there is."""
    found, cost = _overview(lab), lab.manifest.cost
    billed = [one for one in found.calls if not one.cached]
    assert {**found.outcomes, "total": found.total}.items() <= lab.manifest.counts.items()
    assert sum(one.calls for one in billed) == cost.billed_calls
    assert sum(one.prompt_tokens for one in billed) == cost.prompt_tokens
    with closing(sqlite3.connect(lab.files.store)) as db:
        assert (cost.billed_calls, cost.prompt_tokens) == db.execute(BILLED).fetchone()
        assert {one.node: one.steps for one in found.nodes} == dict(db.execute(STEPS).fetchall())
        assert {(one.name, one.passed, one.failed) for one in found.verdicts} == set(
            db.execute(VERDICTS).fetchall()
        )


def test_figures_of_a_run_add_up(undisturbed: Undisturbed) -> None:
    _assert_adds_up(undisturbed.lab)


def test_figures_of_a_resumed_run_add_up(killed: Lab) -> None:
    killed.resume()
    _assert_adds_up(killed)


@pytest.mark.parametrize("outcome", ["accepted", "no_knowledge"])
def test_a_story_is_whole(undisturbed: Undisturbed, outcome: str) -> None:
    lab = undisturbed.lab
    chosen = next(key for key, one in undisturbed.results.items() if one.outcome == outcome)
    with (
        closing(RunStore.open(lab.files.store, now=utc_now)) as store,
        closing(open_calls(lab.workspace.calls)) as calls,
    ):
        story = sample_story(store, calls, chosen, prompts=lab.manifest.prompts)
    made = [call for step in story.steps for call in step.calls]
    assert made
    for call in made:
        assert (call.gone, call.prompt) == (False, call.role)
        assert call.messages
        assert call.answer
    did = {step.node: step.did for step in story.steps}
    asked = did["retrieve"]["asked"]
    assert asked
    assert all(bool(query["found"]) != bool(query["why_none"]) for query in asked)
    if outcome == "accepted":
        assert {each["supported"] for each in did["reflect"]["statements"]} <= {"yes", "not_needed"}
        assert story.evidence.keys() >= {
            fact.evidence_id for fact in undisturbed.results[chosen].facts
        }
