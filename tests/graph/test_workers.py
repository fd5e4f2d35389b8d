"""Several processes that refresh one run: the same results, nothing lost, nothing paid twice."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from coreeval.config import load_config
from coreeval.errors import BudgetSpent, ConfigError, CredentialError, RunError, UsageError
from coreeval.graph import worker_handles
from coreeval.graph.execute import RunHooks, build_run_context
from coreeval.graph.monitor import Progress
from coreeval.graph.phases import PhaseResult
from coreeval.graph.run import open_run, refresh, resume
from coreeval.graph.worker import work
from coreeval.graph.worker_handles import WorkerHandle
from coreeval.graph.worker_messages import FromWorker, StopRequest, ToWorker, WorkerStart
from coreeval.graph.worker_shares import find_network_filesystem, share_pace
from coreeval.models import activity
from coreeval.tools import processes
from coreeval.tools.catalogs import load_run_prices
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from tests.graph.kit import CONCURRENCY, SAMPLES, Lab, Undisturbed, assert_whole, ended
from tests.graph.test_refresh import OLD, TARGET, controlled
from tests.support.llm_server import refused

WORKERS = 2
IN_FLIGHT = 2 * CONCURRENCY
"""Most questions that a killed worker may have had in flight, with one sample more than it asks."""


@pytest.fixture
def shared(lab: Lab) -> Lab:
    """Return a lab whose config asks for two workers."""
    lab.write(run={"concurrency": CONCURRENCY, "workers": WORKERS})
    return lab


def workers_of(parent: int) -> list[int]:
    """Return the ids of a process's workers."""
    listed = subprocess.run(
        ["ps", "-ww", "-eo", "pid,ppid,args"], capture_output=True, text=True
    ).stdout
    rows = [line.split(maxsplit=2) for line in listed.splitlines()[1:]]
    return [
        int(pid) for pid, above, said in rows if int(above) == parent and "graph.worker" in said
    ]


def wait_until(holds: Callable[[], object], seconds: float = 30) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def test_two_workers_do_what_one_process_does(shared: Lab, undisturbed: Undisturbed) -> None:
    seen = list[Progress]()
    refresh(
        shared.config,
        limit=SAMPLES,
        run_dir=shared.files.root,
        around=RunHooks(watch=seen.append),
    )
    assert Counter(shared.asked()) == Counter(undisturbed.asked)
    assert_whole(shared, undisturbed)
    assert workers_of(os.getpid()) == []
    assert not {signal.SIGINT, signal.SIGTERM} & signal.pthread_sigmask(signal.SIG_BLOCK, [])
    done = [each.done for each in seen if each.stage == "refresh" and each.total == SAMPLES]
    assert done == sorted(done)
    assert done[-1] == SAMPLES
    workers = {each.pid for one in seen if one.pulse for each in one.pulse.workers}
    assert len(workers - {os.getpid()}) == WORKERS


def test_killed_workers_are_replaced(shared: Lab, undisturbed: Undisturbed) -> None:
    """One dies before there is news, another while texts are written."""
    notes, killed = list[str](), list[int]()

    def kill_one() -> None:
        killed.append(workers_of(os.getpid())[0])
        os.kill(killed[-1], signal.SIGKILL)
        if len(killed) == 1:
            shared.trap("fact_check", 2, kill_one)

    shared.trap("extraction", 2, kill_one)
    refresh(
        shared.config,
        limit=SAMPLES,
        run_dir=shared.files.root,
        around=RunHooks(watch=lambda progress: notes.append(progress.note)),
    )
    assert len(set(killed)) == 2
    assert len({note for note in notes if "died (signal 9)" in note}) == 2
    asked = Counter(shared.asked())
    assert set(asked) == undisturbed.asked
    assert asked.total() - len(asked) <= 2 * IN_FLIGHT
    assert_whole(shared, undisturbed)


def test_a_worker_that_says_nothing_is_replaced(
    shared: Lab, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_handles, "SILENT_S", 5.0)
    notes = list[str]()
    trap = shared.trap("plan", 2, lambda: os.kill(workers_of(os.getpid())[0], signal.SIGSTOP))
    refresh(
        shared.config,
        limit=SAMPLES,
        run_dir=shared.files.root,
        around=RunHooks(watch=lambda progress: notes.append(progress.note)),
    )
    assert trap.sprung.is_set()
    assert any("died (it gave no answer for 5 s)" in note for note in notes)
    assert workers_of(os.getpid()) == []
    asked = Counter(shared.asked())
    assert set(asked) == undisturbed.asked
    assert asked.total() - len(asked) <= IN_FLIGHT
    assert_whole(shared, undisturbed)


def test_a_worker_that_says_nothing_holds_up_no_stop(
    shared: Lab, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_handles, "STOPPING_S", 3.0)
    monkeypatch.setattr(worker_handles, "SILENT_S", 1e6)

    def stop() -> None:
        os.kill(workers_of(os.getpid())[0], signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGINT)

    shared.trap("plan", 2, stop)
    shared.refresh()
    assert workers_of(os.getpid()) == []
    assert shared.manifest.status == "interrupted"
    shared.forget()
    shared.resume()
    assert_whole(shared, undisturbed)


class Silent(WorkerHandle):
    """A worker that never says anything, for as long as somebody expects it."""

    killed = ""

    async def start(self) -> None:
        self._expect_words()

    async def send(self, message: ToWorker) -> None: ...

    def kill(self, why: str) -> None:
        self.killed = why

    async def close(self, *, at_once: bool) -> None: ...


async def test_time_in_which_this_process_slept_is_no_silence(
    finished: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_handles, "STARTING_S", 1.0)
    monkeypatch.setattr(activity, "ASLEEP_S", 0.5)
    files, manifest, setup = open_run(finished.files.root, None)
    run = build_run_context(setup, manifest, files, finished.workspace, RunHooks())
    with closing(run):
        worker = Silent(run, 0)
        worker.kill_if_silent()
        await worker.start()
        time.sleep(2.5)  # as a laptop does
        worker.kill_if_silent()
        assert not worker.killed
        async with asyncio.timeout(30):
            while not worker.killed:
                await asyncio.sleep(0.1)
                worker.kill_if_silent()
    assert worker.killed == "it gave no answer for 1 s"


def test_workers_end_with_the_process_that_started_them(
    shared: Lab, undisturbed: Undisturbed
) -> None:
    left = list[int]()

    def kill() -> None:
        left.extend(workers_of(child.pid or 0))
        os.kill(child.pid or 0, signal.SIGKILL)

    shared.trap("plan", 2, kill)
    child = shared.child("refresh", key="k")
    assert ended(child) == -signal.SIGKILL
    assert len(left) == WORKERS
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in left))
    asked, answered = set(shared.asked()), shared.answered()
    shared.forget()
    shared.write(run={"concurrency": CONCURRENCY, "workers": 1})
    shared.resume()
    again = set(shared.asked())
    assert not answered & again
    assert len(asked & again) <= WORKERS * IN_FLIGHT
    assert_whole(shared, undisturbed)


def test_ctrl_c_stops_all_and_one_process_goes_on(shared: Lab, undisturbed: Undisturbed) -> None:
    trap = shared.trap("plan", 2, lambda: os.kill(child.pid or 0, signal.SIGINT))
    child = shared.child("refresh", key="k")
    assert ended(child) == 130
    assert trap.sprung.is_set()
    assert shared.manifest.status == "interrupted"
    answered = shared.answered()
    assert set(shared.asked()) == answered, "what was in flight was waited for"
    shared.forget()
    shared.write(run={"concurrency": CONCURRENCY, "workers": 1})
    shared.resume()
    assert not answered & set(shared.asked())
    assert_whole(shared, undisturbed)


def test_an_error_that_no_sample_survives_ends_all(shared: Lab) -> None:
    shared.trap("rewrite", 2, lambda: refused(401, "the key was revoked"))
    with pytest.raises(CredentialError, match="refused"):
        shared.refresh()
    assert workers_of(os.getpid()) == []
    assert shared.manifest.status == "stopped"


PRICED = {"input": 100.0, "output": 100.0}


def test_one_budget_for_all(shared: Lab, undisturbed: Undisturbed) -> None:
    shared.write(
        models={
            "default": {
                "model": "openai:scripted",
                "base_url": shared.server.url,
                "price": PRICED,
                "max_tokens": 100,
            }
        },
        run={"concurrency": CONCURRENCY, "workers": WORKERS, "budget_usd": 2.0},
    )
    with pytest.raises(BudgetSpent):
        shared.refresh()
    cost = shared.manifest.cost
    assert cost.billed_usd is not None
    assert 0.5 < cost.billed_usd + cost.unknown_usd <= 2.0
    assert cost.unknown_usd == 0
    answered = shared.answered()
    shared.forget()
    shared.write(run={"concurrency": CONCURRENCY, "workers": 1, "budget_usd": 2.0})
    resume(shared.files.root, budget_usd=1000.0)
    assert not answered & set(shared.asked())
    assert shared.results() == undisturbed.results


@pytest.mark.parametrize("workers", [1, WORKERS])
def test_a_config_edited_meanwhile_counts_at_the_next_start(lab: Lab, workers: int) -> None:
    """Models and workers of the second pass are opened anew after the files were edited."""
    prices = _write_prices(lab, 100.0)
    run: dict[str, object] = {"concurrency": CONCURRENCY, "workers": workers, "prices": prices}
    controlled(lab).write(run={**run, "control_window": OLD, "budget_usd": 1000.0})

    def edit(progress: Progress) -> None:
        if progress.stage == "refresh" and progress.done == progress.total > 0:
            _write_prices(lab, 1e6)
            lab.write(run={**run, "control_window": OLD, "budget_usd": 2.0})

    done = refresh(
        lab.config, limit=SAMPLES, run_dir=lab.files.root, around=RunHooks(watch=edit)
    ).manifest
    assert done.status == "complete"
    assert done.cost.budget_usd == 1000.0
    tokens = done.cost.prompt_tokens + done.cost.completion_tokens
    assert done.cost.billed_usd == pytest.approx(tokens * 100 / 1e6)
    with RunStore.open(lab.files.control.store, now=utc_now) as second:
        assert any(row["usd"] for row in second.history.call_totals())


def _write_prices(lab: Lab, usd: float) -> str:
    row = {"input": usd, "output": usd, "as_of": "2026-01-01", "source": "https://example.org"}
    path = lab.folder / "prices.yaml"
    path.write_text(yaml.safe_dump(dict.fromkeys(["openai:scripted", TARGET], row)))
    return str(path)


def test_a_worker_that_is_replaced_has_the_budget_of_the_others(
    shared: Lab, undisturbed: Undisturbed
) -> None:
    run = {"concurrency": CONCURRENCY, "workers": WORKERS, "budget_usd": 1000.0}
    shared.write(
        models={
            "default": {
                "model": "openai:scripted",
                "base_url": shared.server.url,
                "price": PRICED,
                "max_tokens": 100,
            }
        },
        run=run,
    )

    def edit_and_kill() -> None:
        shared.write(run={**run, "budget_usd": 0.1})
        os.kill(workers_of(os.getpid())[0], signal.SIGKILL)

    trap = shared.trap("plan", 2, edit_and_kill)
    shared.refresh()
    assert trap.sprung.is_set()
    assert shared.results() == undisturbed.results


def test_workers_that_die_whenever_they_are_started(
    shared: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_serving_command", lambda _: [sys.executable, "-c", "1/0"])
    with pytest.raises(RunError, match=r"worker \d died 3 times in a row \(exit code 1\)"):
        shared.refresh()
    assert shared.manifest.status == "stopped"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"run": {"concurrency": 1, "workers": 2}}, "cannot share run.concurrency, which is 1"),
        ({"run": {"workers": 65}}, "workers"),
        (
            {"models": {"default": {"model": "openai:x", "max_in_flight": 1}}},
            "cannot share models.extractor.max_in_flight, which is 1",
        ),
    ],
)
def test_what_cannot_be_shared(shared: Lab, changes: dict[str, object], message: str) -> None:
    shared.write(**changes)
    with pytest.raises(ConfigError, match=message):
        shared.refresh()
    assert not shared.files.root.exists()


def test_remote_news_is_asked_for_by_one_process(shared: Lab) -> None:
    knowledge = dict[str, object](shared.changes.get("knowledge", {}))  # type: ignore[call-overload]
    shared.write(knowledge=knowledge | {"backends": ["doc"], "window": {"start": "2025-05-01"}})
    with pytest.raises(ConfigError, match="doc is queried once for all samples"):
        shared.refresh()


def test_ray_is_an_extra(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coreeval.tools.extras.find_spec", lambda _: None)
    lab.write(run={"concurrency": CONCURRENCY, "engine": "ray"})
    with pytest.raises(UsageError, match=r"run\.engine: ray needs the ray package") as raised:
        lab.refresh()
    assert raised.value.hint == "pip install 'coreeval[ray]'"
    assert not lab.files.root.exists()


def test_the_workers_of_ray_share_limits_too(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coreeval.tools.extras.find_spec", lambda _: True)
    lab.write(run={"concurrency": 4, "engine": "ray", "ray": {"workers": 5}})
    with pytest.raises(ConfigError, match=r"5 workers cannot share run\.concurrency") as raised:
        lab.refresh()
    assert raised.value.where == "run.ray.workers"


@pytest.mark.parametrize("address", ["ray://head:10001", "head", "local", "http://a:1"])
def test_addresses_that_no_cluster_has(lab: Lab, address: str) -> None:
    lab.write(run={"engine": "ray", "ray": {"address": address}})
    with pytest.raises(ConfigError, match="address"):
        load_config(lab.config)


@pytest.mark.parametrize(("kind", "found"), [("nfs4", "nfs4"), ("ext4", "")])
def test_network_file_systems(tmp_path: Path, kind: str, found: str) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/a / ext4 rw 0 0\nserver:/b {tmp_path} {kind} rw 0 0\n")
    assert find_network_filesystem(tmp_path / "new" / "folder", mounts) == found
    assert find_network_filesystem(Path("/somewhere"), mounts) == ""


def test_the_pace_is_shared(shared: Lab) -> None:
    config = load_config(
        shared.config,
        [
            "run.concurrency=5",
            "models.default.max_in_flight=3",
            "models.default.requests_per_minute=9",
        ],
    )
    shares = [share_pace(config, number, 2) for number in range(2)]
    assert [each.run.concurrency for each in shares] == [3, 2]
    assert [each.models.default.max_in_flight for each in shares] == [2, 1]
    assert [each.models.default.requests_per_minute for each in shares] == [4.5, 4.5]
    assert [each.models.default.tokens_per_minute for each in shares] == [None, None]


async def test_a_worker_that_is_stopped_while_it_opens_ends(stopped: Lab) -> None:
    said = list[FromWorker]()
    files, manifest, setup = open_run(stopped.files.root, None)
    start = WorkerStart(
        run_dir=files.root,
        setup=setup,
        manifest=manifest,
        prices=load_run_prices(setup.config),
        stage="refresh",
        number=0,
        of=WORKERS,
    )
    async with asyncio.timeout(60):
        await work(start, said.append, lambda take: take(StopRequest("SIGINT")))
    assert not [message for message in said if isinstance(message, PhaseResult)]
