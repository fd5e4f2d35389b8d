"""Workers on a Ray cluster: Ray places them, monitors them and ends them with this process.

The messages between this process and a worker are the same as through a pipe (`worker_handles`),
but sent as calls of an actor's methods. Keys are sent as an argument of such a call, because Ray
shows the environments of actors in its state and logs, but no arguments.
"""

import asyncio
import logging
import os
import platform
import re
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Final

from coreeval.config import ROLES, Config
from coreeval.errors import CoreEvalError, RunError
from coreeval.graph.run_context import RunContext
from coreeval.graph.worker_handles import ENDING_S, WorkerDied, WorkerHandle
from coreeval.graph.worker_messages import Failure, Finish, ToWorker
from coreeval.tools.endpoints import run_pairs
from coreeval.tools.extras import require_extra

ADDRESS_KEY: Final = "run.ray.address"
JOINING_S: Final = 10.0
"""The most seconds that the head of a cluster may take to accept a connection."""
PLACING_S: Final = 30.0
"""Seconds after which the user is told that Ray cannot place a worker."""
_OWN_VARIABLES: Final = "COREEVAL_"
_FAILED_IMPORT = re.compile(r"^(\w*(?:Error|Exception)\b.*)$", re.MULTILINE)
_ADDRESS = re.compile(r"\bip=([^\s,)]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """What a worker finds on its node."""

    host: str
    versions: Mapping[str, str]
    missing: Sequence[Path]
    """The missing paths of the run."""


def list_versions() -> dict[str, str]:
    """Return the versions that must be the same in two processes that communicate."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {name: metadata.version(name) for name in ("coreeval", "ray")} | {"Python": python}


@asynccontextmanager
async def open_actors(run: RunContext) -> AsyncIterator[Sequence[WorkerHandle]]:
    """Join the Ray cluster for the block; yield the handles of its workers, which are not started.

    Raises:
        UsageError: Ray is not installed.
        RunError: there is no such cluster, or its nodes cannot share the run's stores.
    """
    is_new = await asyncio.to_thread(_join_cluster, run.config)
    import ray

    try:
        _refuse_other_machines(run.config)
        count = run.config.run.ray.workers
        yield [RayWorker(run, number, _count_wants(run.config)) for number in range(count)]
    finally:
        if is_new:
            await asyncio.to_thread(ray.shutdown)


def _join_cluster(config: Config) -> bool:
    """Join the cluster; return False if this process has joined one before.

    In a thread other than the main one, Ray does not install signal handlers.

    Raises:
        UsageError: Ray is not installed.
        RunError: there is no such cluster.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with require_extra("ray", "run.engine: ray", where="run.engine"):
        import ray
    if ray.is_initialized():
        return False
    _mute_ray()
    address = config.run.ray.address
    try:
        _require_listener(address)
        ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    except (OSError, RuntimeError, ValueError) as error:
        raise RunError(
            f"cannot join the Ray cluster: {_describe(error)}",
            where=f"{ADDRESS_KEY}: {address}",
            hint="start a cluster on this machine (ray start --head), or join this machine to one "
            "(ray start --address=HOST:PORT); both need the versions of Python and Ray that this "
            "process has. If the config gives an address, also set RAY_AUTH_MODE=token "
            "(coreeval docs ray)",
        ) from None
    return True


def _require_listener(address: str) -> None:
    """Raise an OSError if nothing listens at an address; Ray would wait for minutes."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=JOINING_S):
        pass


def _mute_ray() -> None:
    """Keep Ray from printing dead actors on standard output, which is for a command's JSON.

    Ray has no setting for it; the same lines are in its logs, and each death is reported here.
    """
    vars(import_module("ray._private.worker"))["print_to_stdstream"] = _print_nothing


def _print_nothing(*_: object, **__: object) -> None: ...


def _refuse_other_machines(config: Config) -> None:
    """Raise an error if the nodes of the cluster would not share SQLite files.

    Raises:
        RunError: another machine is in the cluster, and the stores are files of this one.
    """
    if config.run.store != "sqlite":
        return
    import ray

    own = ray.util.get_node_ip_address()
    addresses = {node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
    if others := sorted(addresses - {own}):
        raise RunError(
            f"the Ray cluster has other machines ({', '.join(others[:3])}), which cannot write the "
            "files of run.store: sqlite",
            where="run.store",
            hint="set run.store: postgresql, which all machines can write to",
        )


def _count_wants(config: Config) -> dict[str, Any]:
    """Return the options of a worker's actor: required resources and restarts."""
    chosen = config.run.ray
    return {
        "num_cpus": chosen.cpus_per_worker,
        "resources": dict(chosen.resources),
        "scheduling_strategy": "SPREAD",
        "max_restarts": 0,  # the pool starts another one
        "max_task_retries": 0,
    }


def select_variables(config: Config, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that workers need: those the config names, and coreeval's own."""
    names = {config.models.for_role(role).key_variable for role in ROLES}
    names |= {pair.variable for pair in run_pairs(config, env)}
    return {
        name: value
        for name, value in env.items()
        if name in names or name.startswith(_OWN_VARIABLES)
    }


def _list_paths(run: RunContext) -> Sequence[Path]:
    """Return the paths that a node must have."""
    news = run.config.knowledge.path or run.workspace.news
    return [run.files.root, run.workspace.root, Path(news)]


class RayWorker(WorkerHandle):
    """A worker in an actor on a node of a Ray cluster.

    Args:
        run: The run.
        number: The worker's number, from 0.
        wants: The resources that it requires.
    """

    def __init__(self, run: RunContext, number: int, wants: Mapping[str, Any]) -> None:
        super().__init__(run, number)
        self._wants = wants
        self._actor: Any = None
        self._talk: asyncio.Task[None] | None = None
        self._sending: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Let Ray start an actor if there is none; it is ready when it has been placed."""
        if self._actor is not None:
            return
        import ray

        self.ended, self.is_ready = 0, False
        # named, because it stands above: it imports what this module is used by
        kind = import_module("coreeval.graph.ray_actor").SampleActor
        try:
            self._actor = ray.remote(**self._wants)(kind).remote()
        except _ray_error() as error:
            raise RunError(
                f"Ray cannot start a worker: {_describe(error)}",
                where="the Ray cluster",
                hint="check with: ray status; then resume the run",
            ) from None
        self._talk = asyncio.create_task(self._listen(self._actor))

    async def _listen(self, actor: Any) -> None:  # noqa: ANN401 - Ray's handles have no type
        """Put an actor's messages into the inbox until it ends."""
        ending = "it ended"
        try:
            await self._prepare(actor)
            self.is_ready = True
            self._expect_words()
            self.inbox.put_nowait(None)
            said: Sequence[Any] = ()
            while None not in said:
                said = await _ask(actor.take)
                for message in said:
                    if message is not None:
                        self._hear(message)
        except CoreEvalError as error:
            self.inbox.put_nowait(Failure(error))
            ending = str(error)
        except _ray_error() as error:
            ending = _describe(error)
        except Exception as error:  # noqa: BLE001 - or the run would wait for this worker for ever
            ending = f"{type(error).__name__}: {error}"
            self.inbox.put_nowait(Failure(RunError(f"a worker failed: {ending}")))
        self.inbox.put_nowait(WorkerDied(ending))

    async def _prepare(self, actor: Any) -> None:  # noqa: ANN401
        """Wait until the actor is placed, check its node, and start it.

        Raises:
            RunError: the node cannot work on this run.
        """
        run = self._run
        asked = asyncio.create_task(_ask(actor.describe, _list_paths(run)))
        try:
            if not (await asyncio.wait([asked], timeout=PLACING_S))[0]:
                self._tell_waiting()
            _check_node(await asked)
        except _ray_error() as error:
            raise _explain_start(error) from None
        finally:
            asked.cancel()
        await _ask(actor.begin, self._describe_start(), select_variables(run.config, os.environ))

    def _tell_waiting(self) -> None:
        chosen = self._run.config.run.ray
        wanted = {"CPU": chosen.cpus_per_worker} | dict(chosen.resources)
        shown = ", ".join(f"{name}: {amount:g}" for name, amount in wanted.items())
        note = (
            f"worker {self.number + 1} is waiting for a slot in the Ray cluster ({shown}); "
            "see: ray "
        )
        self._run.tell(self._run.stage, note=f"{note}status")

    async def send(self, message: ToWorker) -> None:
        """Send a message; one to a dead worker is lost, and its death is in the inbox."""
        if not self.is_ready:  # it has no samples, so this is a stop
            self.inbox.put_nowait(WorkerDied("it had not started"))
            return
        self._sending = asyncio.create_task(_give(self._actor, message))
        await asyncio.wait([self._sending])

    def kill(self, why: str) -> None:
        """Kill an actor that does not answer; its death is in the inbox at once."""
        for task in (self._talk, self._sending):
            if task:
                task.cancel()
        self.inbox.put_nowait(WorkerDied(why))

    def forget(self) -> None:
        """Drop a dead actor; an unreachable one is ended as soon as possible."""
        if self._talk:
            self._talk.cancel()
        if self._actor is not None:
            import ray

            ray.kill(self._actor)
        self._actor = self._talk = None
        super().forget()

    async def close(self, *, at_once: bool) -> None:
        """End the actor; unless `at_once`, ask it to end and wait."""
        try:
            if self._talk and self.is_ready and not at_once:
                await self.send(Finish())
                await asyncio.wait([self._talk], timeout=ENDING_S)
        finally:
            self.forget()


async def _give(actor: Any, message: ToWorker) -> None:  # noqa: ANN401
    with suppress(_ray_error()):
        await _ask(actor.give, message)


async def _ask(method: Any, *given: object) -> Any:  # noqa: ANN401 - Ray's handles have no type
    """Call an actor's method and return its answer."""
    return await asyncio.wrap_future(method.remote(*given).future())


def _ray_error() -> type[Exception]:
    from ray.exceptions import RayError

    found: type[Exception] = RayError
    return found


def _check_node(report: NodeReport) -> None:
    """Raise an error if a node cannot work on the run.

    Raises:
        RunError: it has other versions, or lacks the run's files or the news.
    """
    for name, here in list_versions().items():
        if (there := report.versions.get(name)) != here:
            raise RunError(
                f"the node {report.host} has {name} {there}, but this machine has {here}",
                where="the Ray cluster",
                hint="install the same versions on all nodes",
            )
    if report.missing:
        raise RunError(
            f"the node {report.host} does not have {report.missing[0]}",
            where="the Ray cluster",
            hint="keep the workspace, the run and the news on storage that all nodes see at the "
            "same path (coreeval docs ray)",
        )


def _explain_start(error: Exception) -> Exception:
    """Return the error for the user if an actor cannot be created."""
    if not getattr(error, "actor_init_failed", False):
        return error
    found, node = _FAILED_IMPORT.findall(str(error)), _ADDRESS.search(str(error))
    return RunError(
        f"a node of the Ray cluster cannot start a worker: {found[-1] if found else error}",
        where=f"the node {node[1]}" if node else "the Ray cluster",
        hint="install the same coreeval on each node: pip install 'coreeval[ray]'",
    )


def _describe(error: Exception) -> str:
    """Return the first sentence of one of Ray's errors, which may be pages long."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]
