"""Working on a run: its graph, its signals, and how it is left behind."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from coreeval.agents.team import BuildTeam, build_team
from coreeval.errors import CoreEvalError, RunError
from coreeval.graph.build import build_run_graph
from coreeval.graph.control import with_control
from coreeval.graph.inputs import LIVE, Inputs
from coreeval.graph.job import Job
from coreeval.graph.monitor import Monitor, beating
from coreeval.graph.progress import Watch, unwatched
from coreeval.graph.record import InFlight
from coreeval.graph.run_nodes import RunNodes
from coreeval.graph.setup import Setup, prompt_versions
from coreeval.graph.signals import heeding_signals
from coreeval.graph.telemetry import listened_to
from coreeval.models.activity import ActiveCalls
from coreeval.models.tracing import TRACING
from coreeval.releases.manifest import Manifest, Status, write_manifest
from coreeval.tools.clock import Clock, utc_now
from coreeval.tools.stores.heartbeat import SpendingReader
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles, Workspace, command


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a caller may put in place of the real thing."""

    watch: Watch = unwatched
    now: Clock = utc_now
    hire: BuildTeam = build_team
    inputs: Inputs = LIVE


REAL = Surroundings()


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """A run as it stands when the process that worked on it is done."""

    run_dir: Path
    manifest: Manifest


def work_on(
    setup: Setup, manifest: Manifest, files: RunFiles, workspace: Workspace, around: Surroundings
) -> RunSummary:
    """Run what is left of a run, and leave its manifest as it stands.

    Raises:
        CoreEvalError: the run could not go on; what was answered is kept.
    """
    job = job_of(setup, manifest, files, workspace, around)
    status: Status = "stopped"
    try:
        write_manifest(files.manifest, job.taken_up())
        with listened_to(job) as heard:
            _run(heard)
        status = "complete" if job.store.stage("report") is not None else "interrupted"
    except (KeyboardInterrupt, asyncio.CancelledError):
        status = "interrupted"
    except (CoreEvalError, OSError) as error:
        with suppress(CoreEvalError, OSError):  # the first trouble is the one to tell
            _close(job, status)
        raise _with_way_on(_told(error, files), files, manifest) from None
    except BaseException:
        _close(job, status)
        raise
    return RunSummary(run_dir=files.root, manifest=_closed(job, status))


def _told(error: CoreEvalError | OSError, files: RunFiles) -> CoreEvalError:
    """Return trouble with a file, such as a full disk, as an error for the user."""
    if isinstance(error, CoreEvalError):
        return error
    return RunError(
        f"a file of the run cannot be used: {error.strerror or error}",
        where=str(error.filename or files.root),
        hint="see to the disk",
    )


def _with_way_on(error: CoreEvalError, files: RunFiles, manifest: Manifest) -> CoreEvalError:
    """Return an error that also says how the run goes on; one out of a cassette begins again."""
    if manifest.cassette:
        return error
    resume = command("resume", files.root)
    if resume not in error.hint:
        way = f"then: {resume}"
        error.hint = f"{error.hint}; {way}" if error.hint else way
    return error


def job_of(
    setup: Setup, manifest: Manifest, files: RunFiles, workspace: Workspace, around: Surroundings
) -> Job:
    """Open a run's store and put together what works on it."""
    store = open_store(files, around.now, workspace.calls)
    spending = SpendingReader(workspace.calls, manifest.payer, setup.config.run.budget_usd)
    monitor = Monitor(around.watch, InFlight(around.now), ActiveCalls(), spending.now)
    job = Job(
        setup=setup,
        manifest=manifest.model_copy(update={"prompts": prompt_versions(setup)}),
        files=files,
        workspace=workspace,
        store=store,
        hire=around.hire,
        inputs=around.inputs,
        monitor=monitor,
        now=around.now,
    )
    if not setup.control:
        return job
    return with_control(job, open_control(files, around.now, workspace.calls))


def _run(job: Job) -> None:
    """Run the graph; inside a notebook, whose thread has an event loop already, in another."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(_run_graph(job))
        return
    with ThreadPoolExecutor(1) as other:
        done = other.submit(asyncio.run, _run_graph(job))
        try:
            done.result()
        except KeyboardInterrupt:
            job.stop.ask("KeyboardInterrupt")  # the pool comes to rest; the block waits for it
            done.result()


async def _run_graph(job: Job) -> None:
    TRACING.open()
    with heeding_signals(job.stop, lambda: _stopping(job)), _deadline(job):
        async with beating(job.monitor, job.store):
            app = build_run_graph(RunNodes(job)).compile()
            await app.ainvoke({"note": ""}, {"run_name": "run"})
    if job.stop.error:
        raise job.stop.error


@contextmanager
def _deadline(job: Job) -> Iterator[None]:
    """Stop the run cleanly where it takes longer than it may."""
    seconds = job.config.run.timeout_s
    if seconds is None:
        yield
        return
    error = RunError(
        f"the run took longer than {seconds:g} s",
        where="run.timeout_s",
        hint="what was answered is kept",
    )
    alarm = asyncio.get_running_loop().call_later(seconds, job.stop.fail, error)
    try:
        yield
    finally:
        alarm.cancel()


def _stopping(job: Job) -> None:
    job.tell("stopping", note="finishing the steps in flight; once more stops at once")


def _closed(job: Job, status: Status) -> Manifest:
    """Close a run that came to rest.

    Raises:
        RunError: its manifest cannot be written.
    """
    try:
        return _close(job, status)
    except OSError as error:
        raise _with_way_on(_told(error, job.files), job.files, job.manifest) from None


def _close(job: Job, status: Status) -> Manifest:
    """Write the manifest as the run is left, and close its store."""
    try:
        final = job.left(status)
        write_manifest(job.files.manifest, final)
        return final
    finally:
        job.close()


def open_store(files: RunFiles, now: Clock, calls: Path | None = None) -> RunStore:
    """Open run.db; only a directory without a manifest gets a new one.

    What it says of calls is flushed to the disk after `calls`, the store that the run asks through.

    Raises:
        RunCorrupt: it is damaged, or missing from a run that had one.
    """
    known = files.require_store() if files.manifest.exists() else files.store
    return RunStore.open(known, now=now, rests_on=calls)


def open_control(files: RunFiles, now: Clock, calls: Path | None = None) -> RunStore:
    """Open the store of the pass that writes the control arm, likewise.

    Raises:
        RunCorrupt: it is damaged, or missing from a run that had one.
    """
    if files.manifest.exists():
        files.control.require_store()
    files.control.root.mkdir(parents=True, exist_ok=True)
    return RunStore.open(files.control.store, now=now, rests_on=calls)
