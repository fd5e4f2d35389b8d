"""Actors of a Ray cluster that refresh one run: the same results, nothing lost, nothing twice."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from coreeval.config import load_config
from coreeval.errors import CredentialError, RunError
from coreeval.graph import ray_actor, ray_workers, worker, worker_handles
from coreeval.graph.execute import RunHooks
from coreeval.graph.monitor import Progress
from coreeval.graph.ray_actor import SampleActor
from coreeval.graph.ray_workers import list_versions, select_variables
from coreeval.graph.run import refresh
from coreeval.graph.worker_messages import ToWorker, WorkerStart
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from tests.graph.kit import CONCURRENCY, KEY, SAMPLES, Lab, Undisturbed, assert_whole, ended
from tests.graph.test_workers import IN_FLIGHT, wait_until
from tests.ray.conftest import CPUS
from tests.support.llm_server import refused

ACTORS = 2


@pytest.fixture
def shared(lab: Lab, cluster: str) -> Lab:
    """Return a lab whose config asks for two actors."""
    _write(lab, cluster)
    return lab


def _write(lab: Lab, cluster: str, **changes: object) -> None:
    chosen = {"address": cluster, "workers": ACTORS, "cpus_per_worker": 0.5} | changes
    lab.write(run={"concurrency": CONCURRENCY, "engine": "ray", "ray": chosen})


def actors() -> list[int]:
    """Return the ids of the processes of actors."""
    listed = subprocess.run(["ps", "-ww", "-eo", "pid,args"], capture_output=True, text=True).stdout
    rows = (line.split(maxsplit=1) for line in listed.splitlines()[1:])
    return [int(pid) for pid, said in rows if said.startswith("ray::SampleActor")]


def watched_refresh(lab: Lab) -> list[str]:
    """Refresh; return the notes that the user was told."""
    notes = list[str]()
    watch: Callable[[Progress], None] = lambda progress: notes.append(progress.note)  # noqa: E731
    refresh(lab.config, limit=SAMPLES, run_dir=lab.files.root, around=RunHooks(watch=watch))
    return notes


def test_two_actors_do_what_one_process_does(shared: Lab, undisturbed: Undisturbed) -> None:
    seen = list[Progress]()
    refresh(
        shared.config, limit=SAMPLES, run_dir=shared.files.root, around=RunHooks(watch=seen.append)
    )
    assert Counter(shared.asked()) == Counter(undisturbed.asked)
    assert_whole(shared, undisturbed)
    workers = {each.pid for one in seen if one.pulse for each in one.pulse.workers}
    assert len(workers) == ACTORS
    wait_until(lambda: not actors())


@pytest.mark.parametrize("shape", ["extraction", "plan", "fact_check"])
def test_a_killed_actor_is_replaced(
    shared: Lab, undisturbed: Undisturbed, shape: str, capfd: pytest.CaptureFixture[str]
) -> None:
    trap = shared.trap(shape, 2, lambda: os.kill(actors()[0], signal.SIGKILL))
    notes = watched_refresh(shared)
    assert trap.sprung.is_set()
    assert any("died (The actor died" in note for note in notes), notes
    asked = Counter(shared.asked())
    assert set(asked) == undisturbed.asked
    assert asked.total() - len(asked) <= IN_FLIGHT
    assert_whole(shared, undisturbed)
    assert capfd.readouterr().out == "", "Ray's reports would be among a command's JSON"


def test_an_actor_that_says_nothing_is_replaced(
    shared: Lab, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_handles, "SILENT_S", 5.0)
    trap = shared.trap("plan", 2, lambda: os.kill(actors()[0], signal.SIGSTOP))
    notes = watched_refresh(shared)
    assert trap.sprung.is_set()
    assert any("died (it gave no answer for 5 s)" in note for note in notes), notes
    assert set(shared.asked()) == undisturbed.asked
    assert_whole(shared, undisturbed)
    wait_until(lambda: not actors())


def test_an_actor_that_says_nothing_holds_up_no_stop(
    shared: Lab, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_handles, "STOPPING_S", 3.0)

    def stop() -> None:
        os.kill(actors()[0], signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGINT)

    shared.trap("plan", 2, stop)
    shared.refresh()
    assert shared.manifest.status == "interrupted"
    wait_until(lambda: not actors())
    shared.forget()
    shared.resume()
    assert_whole(shared, undisturbed)


@pytest.mark.parametrize("engine", ["local", "ray"])
def test_actors_end_with_the_process_that_started_them(
    shared: Lab, undisturbed: Undisturbed, engine: str
) -> None:
    left = list[int]()

    def kill() -> None:
        left.extend(actors())
        os.kill(child.pid or 0, signal.SIGKILL)

    shared.trap("plan", 2, kill)
    child = shared.child("refresh", key="k")
    assert ended(child) == -signal.SIGKILL
    assert len(left) == ACTORS
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in left))
    asked, answered = set(shared.asked()), shared.answered()
    shared.forget()
    if engine == "local":
        shared.write(run={"concurrency": CONCURRENCY})
    shared.resume()
    again = set(shared.asked())
    assert not answered & again
    assert len(asked & again) <= ACTORS * IN_FLIGHT
    assert_whole(shared, undisturbed)


def test_ctrl_c_stops_all(shared: Lab, undisturbed: Undisturbed) -> None:
    trap = shared.trap("plan", 2, lambda: os.kill(child.pid or 0, signal.SIGINT))
    child = shared.child("refresh", key="k")
    assert ended(child) == 130
    assert trap.sprung.is_set()
    assert set(shared.asked()) == shared.answered(), "what was in flight was waited for"
    wait_until(lambda: not actors())
    shared.forget()
    shared.resume()
    assert_whole(shared, undisturbed)


def test_an_error_that_no_sample_survives_ends_all(shared: Lab) -> None:
    shared.trap("rewrite", 2, lambda: refused(401, "the key was revoked"))
    with pytest.raises(CredentialError, match="refused") as raised:
        shared.refresh()
    assert ", on the node " in raised.value.where
    wait_until(lambda: not actors())
    assert shared.manifest.status == "stopped"


def test_a_node_of_another_version(shared: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = list_versions() | {"coreeval": "9.9"}
    monkeypatch.setattr(ray_workers, "list_versions", lambda: ours)
    with pytest.raises(RunError, match=r"has coreeval 0\S+, but this machine has 9\.9"):
        shared.refresh()
    assert shared.asked() == []


def test_a_node_that_cannot_import_coreeval(shared: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    tomorrow = ModuleType("coreeval_of_tomorrow")
    kind = type("SampleActor", (SampleActor,), {"__module__": tomorrow.__name__})
    monkeypatch.setattr(tomorrow, "SampleActor", kind, raising=False)
    monkeypatch.setitem(sys.modules, tomorrow.__name__, tomorrow)
    monkeypatch.setattr("coreeval.graph.ray_actor.SampleActor", kind)
    with pytest.raises(RunError, match="cannot start a worker: ModuleNotFoundError: No module"):
        shared.refresh()
    assert shared.asked() == []


@pytest.mark.parametrize("lacks", ["news", "run"])
def test_a_node_without_the_files(
    shared: Lab, monkeypatch: pytest.MonkeyPatch, lacks: str, tmp_path: Path
) -> None:
    """Another machine's disk is stood in for by a path that is missing."""
    gone = tmp_path / "elsewhere" / lacks
    monkeypatch.setattr(ray_workers, "_list_paths", lambda _run: [tmp_path, gone])
    with pytest.raises(RunError, match=rf"the node \S+ does not have {gone}"):
        shared.refresh()
    assert shared.asked() == []


def test_no_cluster(lab: Lab) -> None:
    _write(lab, "127.0.0.1:9")
    with pytest.raises(RunError, match="cannot join the Ray cluster"):
        lab.refresh()


class Doomed(SampleActor):
    """Dies when it is to begin."""

    async def begin(self, start: WorkerStart, environment: Mapping[str, str]) -> None:
        os._exit(1)


def test_actors_that_die_whenever_they_are_started(
    shared: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coreeval.graph.ray_actor.SampleActor", Doomed)
    with pytest.raises(RunError, match=r"worker \d died 3 times in a row") as raised:
        shared.refresh()
    assert raised.value.where == "run.ray.workers"


class HourBehind(SampleActor):
    """One of the two workers is on a node whose clock is an hour behind.

    A worker begins with its first samples once the other one has some, too.
    """

    async def give(self, message: ToWorker) -> None:
        async with self._one_by_one:
            (self._meeting / str(self._number)).touch()
            while len(list(self._meeting.iterdir())) < 2:
                await asyncio.sleep(0.01)
            await super().give(message)

    async def begin(self, start: WorkerStart, environment: Mapping[str, str]) -> None:
        self._one_by_one, self._number = asyncio.Lock(), start.number
        self._meeting = start.run_dir.parents[1] / "given"
        self._meeting.mkdir(exist_ok=True)
        if start.number == 0:
            late: object = partial(RunHooks, now=lambda: utc_now() - timedelta(hours=1))
            vars(worker)["RunHooks"] = late
        await super().begin(start, environment)


def test_clocks_need_not_agree(
    shared: Lab, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coreeval.graph.ray_actor.SampleActor", HourBehind)
    began = utc_now()
    shared.refresh()
    with RunStore.open(shared.files.store, now=utc_now) as store:
        steps = [step for sample in store.sample_ids() for step in store.history.steps(sample)]
    behind = [step for step in steps if datetime.fromisoformat(step.started_at) < began]
    assert 0 < len(behind) < len(steps)
    assert_whole(shared, undisturbed)


async def test_an_actor_ends_that_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_actor, "FORGOTTEN_S", 0.0)
    monkeypatch.setattr(os, "_exit", sys.exit)
    with pytest.raises(SystemExit):
        await SampleActor()._end_if_forgotten()


def test_which_variables_an_actor_gets(lab: Lab) -> None:
    lab.write(models={"default": {"model": "openai:x", "api_key_env": "OUR_KEY"}})
    wanted = {"OUR_KEY": "a", "COREEVAL_STORE_URL": "b"}
    others = {"OPENAI_API_KEY": "c", "AWS_SECRET_ACCESS_KEY": "d", "HTTPS_PROXY": "e"}
    assert select_variables(load_config(lab.config), wanted | others) == wanted


def test_a_worker_without_a_place_holds_nothing_up(
    lab: Lab, cluster: str, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_workers, "PLACING_S", 1.0)
    _write(lab, cluster, cpus_per_worker=CPUS)
    notes = watched_refresh(lab)
    assert_whole(lab, undisturbed)
    assert any(re.search(r"worker \d is waiting for a slot .* \(CPU: 2\)", note) for note in notes)


def test_other_machines_cannot_write_to_sqlite(
    shared: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    other = {"NodeManagerAddress": "198.51.100.7", "Alive": True}
    nodes = ray.nodes
    monkeypatch.setattr(ray, "nodes", lambda: [*nodes(), other])
    with pytest.raises(RunError, match=r"other machines \(198\.51\.100\.7\)"):
        shared.refresh()
    assert shared.asked() == []


def test_a_key_reaches_the_actors_and_nothing_of_ray(
    shared: Lab, cluster: str, ray_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    before = len(shared.server.keys)
    shared.refresh()
    assert set(shared.server.keys[before:]) == {f"Bearer {KEY}"}
    written = [path for path in ray_folder.rglob("*") if path.is_file()]
    assert written
    assert [path for path in written if KEY.encode() in path.read_bytes()] == []
