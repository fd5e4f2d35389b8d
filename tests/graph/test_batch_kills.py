"""Runs through batches whose process is killed: nothing is paid twice, and nothing is lost."""

import os
import signal
from collections.abc import Sequence
from contextlib import ExitStack
from multiprocessing.process import BaseProcess
from unittest import mock

import pytest

from coreeval import cli
from coreeval.graph import batch_collector
from coreeval.graph.batch_sender import BatchSender
from coreeval.graph.execute import RunHooks
from coreeval.graph.run import refresh
from coreeval.models.batch_dispatch import BatchDispatcher
from coreeval.runs.status import read_status
from coreeval.tools.stores.call_batches import CallBatches
from tests.graph.kit import Lab, Undisturbed, ended
from tests.support import worker
from tests.support.batch_records import Batch, Item
from tests.support.batch_server import ignore_creation

FEW = 3
PRICE = {"input": 2.0, "output": 8.0, "batch_input": 1.0, "batch_output": 4.0}
BEFORE_EQUAL_SIZES = 5
"""The batch whose successor has its size."""
KEYS = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
DEATHS = {
    "creation at OpenAI": ("openai", "after:begin:1", "server:1", "before:_note_sent:1"),
    "collection at OpenAI": ("openai", "after:keep:2", "before:_end:1", "before:_use_answer:1"),
    "storing at OpenAI": ("openai", "after:_use_answer:2", "after:_delete_files:2"),
    "at Anthropic": ("anthropic", "server:1", "before:_note_sent:1", "after:keep:2"),
}
"""The provider, and what kills a run, the run resumed after it, the one after that, and so on."""
PLACES = {
    "begin": CallBatches,
    "keep": CallBatches,
    "_note_sent": BatchSender,
    "_end": batch_collector.BatchCollector,
    "_delete_files": batch_collector.BatchCollector,
    "_use_answer": BatchDispatcher,
}


@pytest.mark.parametrize("deaths", DEATHS.values(), ids=DEATHS.keys())
def test_killed_again_and_again(lab: Lab, undisturbed: Undisturbed, deaths: Sequence[str]) -> None:
    provider, *deaths = deaths
    url = lab.server.url if provider == "openai" else lab.server.anthropic_url
    model = {"model": f"{provider}:scripted", "base_url": url, "price": PRICE}
    if provider == "anthropic":
        model["structured"] = "function_calling"  # names its schema, by which the server answers
    run = {"concurrency": 4, "batch": {"live_below": 0}, "budget_usd": 50.0}
    lab.write(models={"default": model}, run=run)
    lab.server.seconds = 0.0
    for number, death in enumerate(deaths):
        die(lab, "resume" if number else "refresh", death)
        assert lab.manifest.status == "running"
    assert ended(start(lab, "resume")) == 0, lab.out.read_text()
    assert_paid_once(lab)
    assert lab.manifest.status == "complete"
    assert lab.results() == {name: undisturbed.results[name] for name in lab.results()}
    assert len(lab.results()) == FEW


def test_a_batch_of_unknown_creation_is_not_taken_for_an_earlier_one(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next batch repeats a question that failed in the last one, and is of the same size."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    url = lab.server.anthropic_url
    model = {"model": "anthropic:scripted", "base_url": url, "price": PRICE}
    model["structured"] = "function_calling"
    run = {"concurrency": 4, "batch": {"live_below": 0}, "budget_usd": 50.0}
    lab.write(models={"default": model}, run=run)
    process, failed = lab.server._process, list[Item]()

    async def fail_once(batch: Batch, item: Item) -> None:
        if failed or len(lab.server.batches) < BEFORE_EQUAL_SIZES:
            await process(batch, item)
            return
        failed.append(item)
        error = {"type": "overloaded_error", "message": "Overloaded"}
        item.status, item.said = 529, {"type": "error", "error": error}
        lab.server.faults.die_after_create = 1

    monkeypatch.setattr(lab.server, "_process", fail_once)
    lab.server.seconds = 0.4
    hooks = RunHooks(waits=True, first_look_s=0.05)
    end = refresh(lab.config, limit=FEW, run_dir=lab.files.root, around=hooks)
    sizes = [len(each.items) for each in lab.server.batches.values()]
    assert failed and sizes[BEFORE_EQUAL_SIZES - 1] == sizes[BEFORE_EQUAL_SIZES]
    assert end.manifest.status == "complete"
    assert_paid_once(lab)


def assert_paid_once(lab: Lab) -> None:
    """Assert that each question was processed once, in a batch, and that the ledger knows it."""
    assert set(lab.server.paid_ids.values()) == {1}
    assert lab.server.requests == [], "a question was asked live"
    assert lab.server.files == {}
    cost, batches = lab.manifest.cost, read_status(lab.files.root).batches
    assert batches and not batches.open
    assert cost.unknown_usd == 0
    assert cost.billed_calls == len(lab.server.paid_ids)
    assert cost.billed_usd == pytest.approx(sum(each.usd or 0 for each in batches.batches))


def die(lab: Lab, command: str, death: str) -> None:
    """Run a command until it is killed: by itself, or when the server has made a batch."""
    moment, _, rest = death.partition(":")
    if moment == "server":
        left = int(rest)

        def kill() -> None:
            nonlocal left
            left -= 1
            if not left:
                os.kill(child.pid or 0, signal.SIGKILL)

        lab.server.on_created = kill
    child = start(lab, command, "" if moment == "server" else death)
    assert ended(child) == -signal.SIGKILL, lab.out.read_text()
    lab.server.on_created = ignore_creation


def start(lab: Lab, command: str, death: str = "") -> BaseProcess:
    """Start a command that waits for batches, and dies at a moment."""
    root = str(lab.files.root)
    given = {
        "refresh": [str(lab.config), "--limit", str(FEW), "--run-dir", root],
        "resume": [root],
    }
    words = [command, *given[command], "--wait", "--json"]
    return worker.heard(_work, words, death, out=lab.out, environment=KEYS)


def _work(command: list[str], death: str) -> int:
    """Run a command that keeps each answer alone, to its death before or after some method."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(batch_collector, "KEPT_TOGETHER", 1))
        if death:
            moment, name, count = death.split(":")
            doomed = worker.deadly_method(getattr(PLACES[name], name), moment, int(count))
            stack.enter_context(mock.patch.object(PLACES[name], name, doomed))
        return cli.main(command)
