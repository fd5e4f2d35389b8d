"""What the owner of a benchmark decides about real people holds in every arm."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from coreeval.errors import ConfigError, RunStateError
from coreeval.graph import run
from coreeval.graph.run import retry
from coreeval.schema import Flag, Policy, ReplacedFact
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles
from tests.graph.kit import MOMENT, Lab, Undisturbed, config_of, ended
from tests.support.wire import Prompted

SCREENED: tuple[Flag, ...] = ("self_harm", "sexual_violence", "protected_group")


def _unsafe(undisturbed: Undisturbed) -> set[str]:
    found = {key for key, result in undisturbed.results.items() if result.outcome == "unsafe"}
    assert found
    return found


def _shown(lab: Lab, block: str) -> str:
    prompts = [Prompted(request) for request in lab.server.requests]
    return "\n".join(prompt.user for prompt in prompts if f"<{block}>" in prompt.user)


@pytest.mark.parametrize("policy", ["semantic_only", "skip"])
def test_no_news_is_written_into_an_unsafe_sample(
    lab: Lab, undisturbed: Undisturbed, policy: Policy
) -> None:
    lab.write(safety=dict.fromkeys(SCREENED, policy))
    lab.refresh()
    results, unsafe = lab.results(), _unsafe(undisturbed)
    rows = {str(row["id"]) for row in lab.arms()["semantic"]}
    for key in unsafe:
        assert results[key].outcome == "unsafe"
        assert results[key].updated is None
        if policy == "skip":
            assert results[key].semantic_status == "policy"
            assert results[key].semantic is None and key not in rows
        else:
            assert results[key] == undisturbed.results[key]
    assert not any(r.semantic_status == "policy" for k, r in results.items() if k not in unsafe)


def test_a_sample_to_skip_costs_one_call(lab: Lab, undisturbed: Undisturbed) -> None:
    lab.write(safety=dict.fromkeys(SCREENED, "skip"))
    lab.refresh()
    store = RunStore.open(lab.files.store, now=utc_now)
    try:
        for key in _unsafe(undisturbed):
            assert [step.node for step in store.history.steps(key)] == ["extract"]
    finally:
        store.close()


def test_what_is_allowed_is_no_longer_unsafe(lab: Lab, undisturbed: Undisturbed) -> None:
    lab.write(safety=dict.fromkeys(SCREENED, "allow"))
    lab.refresh()
    results = lab.results()
    assert not any(results[key].outcome == "unsafe" for key in _unsafe(undisturbed))


def _list(lab: Lab, *entries: str) -> None:
    """Write a takedown list, and a config that names it."""
    (lab.folder / "takedown.txt").write_text("# by request\n" + "\n".join(entries) + "\n")
    news = config_of(lab.server.url)["knowledge"]
    assert isinstance(news, dict)
    lab.write(knowledge=news | {"takedown": "takedown.txt"})


def _facts(undisturbed: Undisturbed) -> list[ReplacedFact]:
    return [fact for result in undisturbed.results.values() for fact in result.facts]


def test_news_that_was_taken_down_is_never_offered(lab: Lab, undisturbed: Undisturbed) -> None:
    fact = _facts(undisturbed)[0]
    _list(lab, fact.evidence_id)
    lab.refresh()
    results = lab.results()
    assert all(one.evidence_id != fact.evidence_id for r in results.values() for one in r.facts)
    assert results[fact.sample_id] != undisturbed.results[fact.sample_id]
    assert fact.quote not in _shown(lab, "news")
    assert lab.manifest.knowledge.takedown == 1
    assert lab.manifest.knowledge.takedown_sha256


@pytest.mark.parametrize("listed_before", [True, False])
def test_a_list_that_grew_holds_when_a_killed_run_goes_on(
    lab: Lab, undisturbed: Undisturbed, listed_before: bool
) -> None:
    if listed_before:
        _list(lab, "Nobody In Particular")
    assert ended(lab.child("refresh", die=MOMENT)) == -9
    before = lab.results()
    gone = {fact.evidence_id for fact in _facts(undisturbed)}
    _list(lab, *gone)
    lab.resume("refuse" if listed_before else "keep")
    later = {key: result for key, result in lab.results().items() if key not in before}
    assert later
    assert all(fact.evidence_id not in gone for r in later.values() for fact in r.facts)


def test_a_takedown_list_that_is_not_there(lab: Lab) -> None:
    _list(lab)
    (lab.folder / "takedown.txt").unlink()
    with pytest.raises(ConfigError, match="takedown list cannot be read"):
        lab.refresh()
    assert not lab.files.root.exists()


def _list_before_the_lock(lab: Lab, entries: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a takedown write its list, and end, after a command has read the list."""
    lock = run.lock_run

    @contextmanager
    def lock_late(files: RunFiles) -> Iterator[None]:
        lab.workspace.takedown.parent.mkdir(exist_ok=True)
        lab.workspace.takedown.write_text("\n".join(sorted(entries)))
        with lock(files):
            yield

    monkeypatch.setattr(run, "lock_run", lock_late)


def test_a_list_written_while_a_refresh_prepares_holds(
    lab: Lab, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = {fact.evidence_id for fact in _facts(undisturbed)}
    _list_before_the_lock(lab, gone, monkeypatch)
    lab.refresh()
    assert all(fact.evidence_id not in gone for r in lab.results().values() for fact in r.facts)
    assert lab.manifest.knowledge.takedown == len(gone)
    assert len(lab.manifest.knowledge.takedown_sha256) == 64


@pytest.mark.parametrize("work", [Lab.resume, lambda lab: retry(lab.files.root)])
def test_a_list_written_while_a_resume_prepares_stops_it(
    killed: Lab,
    undisturbed: Undisturbed,
    monkeypatch: pytest.MonkeyPatch,
    work: Callable[[Lab], object],
) -> None:
    before = killed.results()
    gone = {fact.evidence_id for fact in _facts(undisturbed)}
    _list_before_the_lock(killed, gone, monkeypatch)
    with pytest.raises(RunStateError, match="takedown list has changed") as told:
        work(killed)
    assert "repeat the command" in told.value.hint
    assert killed.asked() == [] and killed.results() == before
    work(killed)
    later = {key: result for key, result in killed.results().items() if key not in before}
    assert later
    assert all(fact.evidence_id not in gone for r in later.values() for fact in r.facts)


def test_no_rewording_names_somebody_on_the_list(lab: Lab, undisturbed: Undisturbed) -> None:
    gone = {key for key, one in undisturbed.results.items() if "once more" in str(one.semantic)}
    assert gone
    _list(lab, "once more")
    lab.refresh()
    results = lab.results()
    assert {results[key].semantic_status for key in gone} == {"unchanged"}
    assert not any("once more" in str(one.semantic) for one in results.values())
