"""Executes a run: builds its context, runs the graph, and writes the final manifest."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from coreeval.agents.team import BuildTeam, build_team
from coreeval.config.run import BatchConfig
from coreeval.errors import CoreEvalError, RunError
from coreeval.graph.build import build_run_graph
from coreeval.graph.inputs import FILE_INPUTS, InputSource
from coreeval.graph.monitor import Monitor, Watch, beat_regularly, ignore_progress
from coreeval.graph.pool import Stop, handle_signals
from coreeval.graph.recorder import InFlight
from coreeval.graph.refresh import add_control
from coreeval.graph.run_context import RunContext
from coreeval.graph.run_nodes import RunNodes
from coreeval.graph.setup import Setup, prompt_versions
from coreeval.graph.spans import observe_run
from coreeval.models.activity import ActiveCalls
from coreeval.models.batch_dispatch import Batching
from coreeval.models.tracing import TRACING
from coreeval.runs.manifest import Manifest, Status, write_manifest
from coreeval.runs.manifest import RunSummary as RunSummary
from coreeval.tools.catalogs import Prices, load_run_prices
from coreeval.tools.clock import Clock, utc_now
from coreeval.tools.stores.call_store import create_calls
from coreeval.tools.stores.heartbeat import SpendingReader
from coreeval.tools.stores.places import has_store
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles, Workspace, command


@dataclass(frozen=True, kw_only=True)
class RunHooks:
    """Replacements that a caller may provide for the real dependencies."""

    watch: Watch = ignore_progress
    now: Clock = utc_now
    hire: BuildTeam = build_team
    inputs: InputSource = FILE_INPUTS
    waits: bool = False
    """Whether to wait for batches; if not, a run whose questions wait for them ends."""
    first_look_s: float = 5.0
    """Seconds until the first poll of batches; later polls are less frequent."""
    remark: Callable[[str], None] | None = None
    """Receives remarks on the news and on offline roles, and the run's name, before a new run
    starts."""
    live: bool = False
    """Whether to send the remaining requests live, even if the config has batches."""
    stop: Stop | None = None
    """A stop by which another thread can end the run cleanly."""


DEFAULT_HOOKS = RunHooks()


def execute(
    setup: Setup, manifest: Manifest, files: RunFiles, workspace: Workspace, around: RunHooks
) -> RunSummary:
    """Run what is left of a run and write its final manifest.

    Raises:
        CoreEvalError: the run could not continue; answers are kept.
    """
    run = build_run_context(setup, manifest, files, workspace, around)
    manifest = run.manifest
    _hold_store(run)
    status: Status = "stopped"
    try:
        write_manifest(files.manifest, run.running_manifest())
        with observe_run(run) as heard:
            _run_in_loop(heard)
        status = _find_status(run)
    except (KeyboardInterrupt, asyncio.CancelledError):
        status = _find_open_status(run)
    except (CoreEvalError, OSError) as error:
        with suppress(CoreEvalError, OSError):  # report only the first error
            _close(run, status)
        run.explain_fault(error)
        raise _add_resume_hint(_to_run_error(error, files), files, manifest) from None
    except BaseException as error:
        try:
            _close(run, status)
        finally:
            run.explain_fault(error)
        raise
    return RunSummary(run_dir=files.root, manifest=_close_stopped(run, status))


def _find_status(run: RunContext) -> Status:
    """Return the status of a run whose graph ended without an error."""
    if run.store.stage("report") is not None:
        return "complete"
    return _find_open_status(run)


def _find_open_status(run: RunContext) -> Status:
    """Return the status of a stopped run: a run that waits for batches is not interrupted."""
    return "waiting" if run.batching and run.batching.waiting else "interrupted"


def _hold_store(run: RunContext) -> None:
    """Keep other machines from working on a run in PostgreSQL.

    Raises:
        RunLocked: another process is using it.
    """
    try:
        run.store.hold()
    except CoreEvalError:
        run.close()
        raise


def _to_run_error(error: CoreEvalError | OSError, files: RunFiles) -> CoreEvalError:
    """Return a file error, such as a full disk, as an error for the user."""
    if isinstance(error, CoreEvalError):
        return error
    return RunError(
        f"cannot use a file of the run: {error.strerror or error}",
        where=str(error.filename or files.root),
        hint="check the disk",
    )


def _add_resume_hint(error: CoreEvalError, files: RunFiles, manifest: Manifest) -> CoreEvalError:
    """Return the error with a hint on how to resume; a replay has to be restarted."""
    if manifest.cassette:
        return error
    resume = command("resume", files.root)
    if resume not in error.hint:
        way = f"then: {resume}"
        error.hint = f"{error.hint}; {way}" if error.hint else way
    return error


def build_run_context(
    setup: Setup,
    manifest: Manifest,
    files: RunFiles,
    workspace: Workspace,
    around: RunHooks,
    *,
    prices: Prices | None = None,
) -> RunContext:
    """Open a run's store and build its context.

    Args:
        setup: The run's setup.
        manifest: Its manifest.
        files: Its files.
        workspace: Its workspace.
        around: Replacements of real dependencies.
        prices: Prices of models; None to read the config's price file.

    Raises:
        ConfigError: the file of prices cannot be used.
        RunCorrupt: the store is damaged or missing.
    """
    if prices is None:
        prices = load_run_prices(setup.config)
    store = open_store(files, around.now, workspace.calls)
    control = open_control(files, around.now, workspace.calls) if setup.control else None
    composes = _has_texts_to_compose(store) or (control and _has_texts_to_compose(control))
    spending = SpendingReader(workspace.calls, manifest.payer, setup.config.run.budget_usd)
    monitor = Monitor(around.watch, InFlight(around.now), ActiveCalls(), spending.now)
    run = RunContext(
        setup=setup,
        manifest=manifest.model_copy(
            update={
                "prompts": prompt_versions(setup) if composes else manifest.prompts,
                "batching": manifest.batching or setup.config.run.batch is not None,
            }
        ),
        files=files,
        workspace=workspace,
        store=store,
        hire=around.hire,
        inputs=around.inputs,
        monitor=monitor,
        now=around.now,
        batching=_build_batching(setup, manifest, around),
        prices=prices,
        stop=around.stop or Stop(),
    )
    return add_control(run, control) if control else run


def _has_texts_to_compose(store: RunStore) -> bool:
    """Return whether a pass can still use prompts; if not, its texts keep those that made them."""
    return not store.total() or bool(store.pending())


def _build_batching(setup: Setup, manifest: Manifest, around: RunHooks) -> Batching | None:
    """Return the batch settings of the run; None if it has and had no batches.

    A run whose config no longer has batches collects the open ones before it continues.
    """
    asked = setup.config.run.batch
    if asked is None and not manifest.batching:
        return None
    return Batching(
        asked or BatchConfig(),
        always_live=around.live or asked is None,
        waits=around.waits,
        was_waiting=manifest.status == "waiting",
        first_look_s=around.first_look_s,
    )


def _run_in_loop(run: RunContext) -> None:
    """Run the graph, in another thread if this one already has an event loop (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(_run_graph(run))
        return
    with ThreadPoolExecutor(1) as other:
        done = other.submit(asyncio.run, _run_graph(run))
        try:
            done.result()
        except KeyboardInterrupt:
            run.stop.ask("KeyboardInterrupt")  # the pool stops; the block waits for it
            done.result()


async def _run_graph(run: RunContext) -> None:
    TRACING.open()
    with handle_signals(run.stop, lambda: _tell_stopping(run)), _limit_time(run):
        async with beat_regularly(run.monitor, run.store):
            await run.reserve_lost_calls()
            app = build_run_graph(RunNodes(run)).compile()
            await app.ainvoke({"note": ""}, {"run_name": "run"})
    if run.stop.error:
        raise run.stop.error


@contextmanager
def _limit_time(run: RunContext) -> Iterator[None]:
    """Stop the run cleanly if it exceeds its time limit."""
    seconds = run.config.run.timeout_s
    if seconds is None:
        yield
        return
    error = RunError(
        f"the run took longer than {seconds:g} s",
        where="run.timeout_s",
        hint="resume the run to continue; answers are kept",
    )
    alarm = asyncio.get_running_loop().call_later(seconds, run.stop.fail, error)
    try:
        yield
    finally:
        alarm.cancel()


def _tell_stopping(run: RunContext) -> None:
    run.tell(
        "stopping", note="finishing the steps in flight; press Ctrl-C again to stop immediately"
    )


def _close_stopped(run: RunContext, status: Status) -> Manifest:
    """Close a run that has stopped.

    Raises:
        RunError: its manifest cannot be written.
    """
    try:
        return _close(run, status)
    except OSError as error:
        raise _add_resume_hint(_to_run_error(error, run.files), run.files, run.manifest) from None


def _close(run: RunContext, status: Status) -> Manifest:
    """Write the run's manifest and close its store."""
    try:
        final = run.final_manifest(status)
        write_manifest(run.files.manifest, final)
        return final
    finally:
        run.close()


def create_stores(setup: Setup, files: RunFiles, workspace: Workspace) -> None:
    """Create the stores of a new run that are not in files.

    Raises:
        ConfigError: the config names PostgreSQL, and `COREEVAL_STORE_URL` is missing.
        RunStateError: this workspace stores answers elsewhere.
        RunError: the database cannot be used.
    """
    kind = setup.config.run.store
    create_calls(workspace.calls, kind)
    if kind == "sqlite":
        return
    for each in (files, files.control) if setup.control else (files,):
        if not has_store(each.store):
            RunStore.create(each.store)


def open_store(files: RunFiles, now: Clock, calls: Path | None = None) -> RunStore:
    """Open run.db; create it only if the directory has no manifest.

    Its records of calls are flushed to disk after `calls`, the run's call store.

    Raises:
        RunCorrupt: it is damaged, or missing from a run that had one.
    """
    known = files.require_store() if files.manifest.exists() else files.store
    return RunStore.open(known, now=now, rests_on=calls)


def open_control(files: RunFiles, now: Clock, calls: Path | None = None) -> RunStore:
    """Open the store of the pass that writes the control arm; see `open_store`.

    Raises:
        RunCorrupt: it is damaged, or missing from a run that had one.
    """
    if files.manifest.exists():
        files.control.require_store()
    files.control.root.mkdir(parents=True, exist_ok=True)
    return RunStore.open(files.control.store, now=now, rests_on=calls)
