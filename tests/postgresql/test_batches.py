"""Batches in PostgreSQL: what holds for a file holds for them, also if a commit is made twice."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection

from coreeval.graph import batch_rounds
from coreeval.graph.execute import RunHooks
from coreeval.graph.run import refresh, resume
from coreeval.models.openai import OpenAIChat
from coreeval.runs.status import read_status
from coreeval.tools.stores.call_store import CallStore, create_calls, open_calls
from coreeval.tools.stores.postgresql_engine import WriterSession
from tests.cli.kit import Shell
from tests.graph.conftest import MakeLab
from tests.graph.kit import Lab, Undisturbed
from tests.graph.test_batch_rounds import FEW, PRICE
from tests.postgresql.server import Server
from tests.support.fake_batches import FakeBatches, FakeProvider
from tests.tools.stores.test_call_batches import (  # noqa: F401 - run here on the store below
    test_a_batch_that_the_budget_does_not_cover_is_not_made,
    test_a_free_failure_releases_its_reservation,
    test_a_queue_is_read_within_both_limits,
    test_an_answer_costs_what_it_cost_and_its_call_settles_it,
    test_an_answer_of_unknown_cost_stays_reserved,
    test_only_what_this_process_asks_is_sent,
    test_putting_back_leaves_answers_alone,
    test_what_a_batch_may_cost_is_reserved_by_question_before_it_is_sent,
    test_what_was_not_answered_is_put_back,
    test_without_a_budget_it_is_reserved_too,
)

IN_BATCHES = {"concurrency": 4, "store": "postgresql", "batch": {"live_below": 0}}


@pytest.fixture(params=["once", "twice"])
def commits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each commit once, or twice, as after a connection that was lost while committing."""
    if request.param == "once":
        return
    run: Callable[[WriterSession, Callable[[Connection], object]], object] = WriterSession.run

    def run_twice(session: WriterSession, work: Callable[[Connection], object]) -> object:
        run(session, work)
        return run(session, work)

    monkeypatch.setattr(WriterSession, "run", run_twice)


@pytest.fixture
def calls(tmp_path: Path, server: Server, commits: None) -> Iterator[CallStore]:
    create_calls(tmp_path / "calls.db", "postgresql")
    with closing(open_calls(tmp_path / "calls.db", "run")) as store:
        yield store
    assert not (tmp_path / "calls.db").exists()


@pytest.fixture
def lab(
    make_lab: MakeLab, tmp_path: Path, undisturbed: Undisturbed, server: Server
) -> Iterator[Lab]:
    made = make_lab(tmp_path)
    made.forget()
    model = {"model": "openai:scripted", "base_url": made.server.url, "price": PRICE}
    made.write(models={"default": model}, run={**IN_BATCHES, "budget_usd": 50.0})
    yield made
    made.forget()


@pytest.fixture
def provider(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> FakeProvider:
    found = FakeProvider(lab.server.url)
    monkeypatch.setattr(OpenAIChat, "open_batches", lambda _chat: FakeBatches(found))
    monkeypatch.setattr(batch_rounds, "LONGEST_LOOK_S", 0.01)
    return found


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(tmp_path, capsys)


def begin(lab: Lab) -> None:
    summary = refresh(lab.config, limit=FEW, run_dir=lab.files.root)
    assert summary.manifest.status == "waiting"


def test_rounds_come_to_what_a_live_run_in_files_comes_to(
    lab: Lab, provider: FakeProvider, undisturbed: Undisturbed, commits: None
) -> None:
    begin(lab)
    waiting = read_status(lab.files.root)
    assert waiting.status == "waiting" and waiting.batches
    assert waiting.batches.open_calls == FEW
    assert lab.manifest.cost.unknown_usd > 0

    resume(lab.files.root, around=RunHooks(waits=True, first_look_s=0.01))

    assert lab.manifest.status == "complete"
    assert lab.results() == {name: undisturbed.results[name] for name in lab.results()}
    assert set(provider.paid.values()) == {1}
    assert not list(lab.folder.rglob("run.db*")) + list(lab.folder.rglob("calls.db*"))
    cost, batches = lab.manifest.cost, read_status(lab.files.root).batches
    assert batches and not batches.open
    assert cost.unknown_usd == 0
    assert cost.billed_usd == pytest.approx(sum(each.usd or 0 for each in batches.batches))


def test_commands_see_what_waits(lab: Lab, provider: FakeProvider, shell: Shell) -> None:
    begin(lab)
    told = shell("status", lab.files.root, "--json").document
    assert told["status"] == "waiting" and told["batches"]["open_calls"] == FEW
    where = ("--workspace", lab.workspace.root)
    gc = ("calls", "gc", *where, "--older-than", "0", "--json")
    run = lab.workspace.runs / "survival" / "1"
    run.parent.mkdir(parents=True)
    shutil.move(lab.files.root, run)
    assert shell(*gc, "--dry-run").document["batches"] == 0, "the run may still collect them"
    shutil.rmtree(run)
    assert shell(*gc, "--dry-run").document["open_batches_kept"] == 1
    every = (*gc, "--open-batches")
    assert shell(*every, "--dry-run").document["batches"] == 1
    assert shell(*every, "--yes").code == 0
    assert shell(*every, "--dry-run").document["batches"] == 0
    with closing(open_calls(lab.workspace.calls, told["run"])) as calls:
        assert calls.batches.open_batches() == []


def test_questions_that_name_somebody_are_taken_down(
    lab: Lab, provider: FakeProvider, shell: Shell
) -> None:
    begin(lab)
    [asked] = provider.requests.values()
    payer = lab.manifest.payer
    words = asked[0].body.decode().split()
    name = max((word for word in words if word.isalpha() and word.isascii()), key=len)
    where = ("--workspace", lab.workspace.root, "--json")
    dry = shell("takedown", name, lab.files.root, *where, "--dry-run")
    assert dry.code == 0
    with closing(open_calls(lab.workspace.calls, payer)) as calls:
        assert all(calls.batches.find(each.custom_id) for each in asked)
    done = shell("takedown", name, lab.files.root, *where, "--yes")
    assert done.code == 0, done
    with closing(open_calls(lab.workspace.calls, payer)) as calls:
        left = [each for each in asked if calls.batches.find(each.custom_id)]
    assert len(left) == sum(name.encode() not in each.body for each in asked) < FEW
