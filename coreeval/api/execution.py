"""Starting and continuing runs."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from coreeval.api.arguments import budget_overrides
from coreeval.api.places import RunLike, find_run
from coreeval.api.progress import show_progress_to_viewer
from coreeval.api.runs import Run
from coreeval.config import ConfigLike
from coreeval.evaluation.benchmarks.subset import SampleOrder, Subset, build_subset
from coreeval.graph import evaluate as evaluation
from coreeval.graph import run as graph_run
from coreeval.graph.execute import DEFAULT_HOOKS, RunHooks, RunSummary
from coreeval.graph.monitor import ignore_progress
from coreeval.graph.pool import Stop
from coreeval.graph.run import IfChanged
from coreeval.tools.trust import retry_with_trust


def refresh(
    config: ConfigLike,
    *,
    limit: int | None = None,
    sample: SampleOrder = "first",
    ids: Sequence[str] = (),
    labels: Sequence[str] = (),
    run_dir: Path | str | None = None,
    budget_usd: float | None = None,
    allow_unpriced: bool = False,
    overrides: Sequence[str] = (),
    parent: Path | str | None = None,
    stale_after: str | None = None,
    wait: bool = False,
    progress: bool = True,
    trust_endpoints: bool = False,
    subset: Subset | None = None,
    around: RunHooks = DEFAULT_HOOKS,
) -> Run:
    """Refresh a benchmark: build its semantic and updated arms with evidence for every new fact.

    A config in memory uses the workspace in the current folder. Under a running event loop, as in a
    notebook, the run uses another thread; `arefresh` leaves the loop free.

    Args:
        config: The path of a YAML config, a mapping with the same keys, or a config.
        limit: Take only this many samples.
        sample: With `limit`, the way samples are selected.
        ids: Take only the samples with these ids.
        labels: Take only the samples with these labels.
        run_dir: A new or empty folder for the run; by default `.coreeval/runs/<name>/<UTC start>`.
        budget_usd: The maximum total cost of the run, which stops before exceeding it.
        allow_unpriced: With a budget, also use models without a price; their cost is not counted.
        overrides: `key.path=value` settings that override the config's.
        parent: The release whose samples are kept if they are still valid, or `latest`.
        stale_after: The maximum age of a kept sample's evidence: `90d`, `12w`, `6m`.
        wait: Wait for open batches instead of returning.
        progress: Show a progress bar on a terminal and in a notebook.
        trust_endpoints: Send keys and texts to the config's endpoints without confirmation, and
            remember this choice.
        subset: Take only these samples; in place of `limit`, `sample`, `ids` and `labels`.
        around: Progress callback, clock and team builder.

    Returns:
        The run in its current state: complete, interrupted, or waiting for batches.

    Raises:
        UsageError: the config, the benchmark, the news, the release or `run_dir` is not usable, or
            a variable would be sent to an unapproved endpoint (UntrustedEndpoint); nothing was
            written.
        RunError: the run could not continue; it can be resumed.
    """
    chosen = subset or build_subset(limit, sample, ids, labels)
    settings = [*overrides, *budget_overrides(budget_usd, allow_unpriced)]

    def begin(hooks: RunHooks) -> RunSummary:
        return graph_run.refresh(
            config,
            limit=None if chosen else limit,
            subset=chosen,
            run_dir=run_dir,
            overrides=settings,
            parent=parent,
            stale_after=stale_after,
            around=replace(hooks, waits=wait or hooks.waits),
        )

    return _watch(begin, around, progress, trust_endpoints)


async def arefresh(
    config: ConfigLike,
    *,
    limit: int | None = None,
    sample: SampleOrder = "first",
    ids: Sequence[str] = (),
    labels: Sequence[str] = (),
    run_dir: Path | str | None = None,
    budget_usd: float | None = None,
    allow_unpriced: bool = False,
    overrides: Sequence[str] = (),
    parent: Path | str | None = None,
    stale_after: str | None = None,
    wait: bool = False,
    progress: bool = True,
    trust_endpoints: bool = False,
    around: RunHooks = DEFAULT_HOOKS,
) -> Run:
    """Refresh a benchmark like `refresh`, while the event loop does other work.

    Cancelling stops the run like Ctrl-C: it is interrupted and can be resumed.

    The arguments, the result and the errors are those of `refresh`.
    """
    stop = around.stop or Stop()
    work = asyncio.ensure_future(
        asyncio.to_thread(
            refresh,
            config,
            limit=limit,
            sample=sample,
            ids=ids,
            labels=labels,
            run_dir=run_dir,
            budget_usd=budget_usd,
            allow_unpriced=allow_unpriced,
            overrides=overrides,
            parent=parent,
            stale_after=stale_after,
            wait=wait,
            progress=progress,
            trust_endpoints=trust_endpoints,
            around=replace(around, stop=stop),
        )
    )
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        stop.ask("cancelled")
        await work
        raise


def resume(
    run: RunLike = "latest",
    *,
    if_changed: IfChanged = "refuse",
    budget_usd: float | None = None,
    wait: bool = False,
    live: bool = False,
    progress: bool = True,
    trust_endpoints: bool = False,
    around: RunHooks = DEFAULT_HOOKS,
) -> Run:
    """Continue a run that was stopped or killed; no answered question is asked again.

    Args:
        run: The run: its directory, its id, its benchmark's name, `latest`, or a `Run`.
        if_changed: What to do if the config has changed since the run began: refuse, keep the run's
            own config, or start a new run.
        budget_usd: The run's new total budget, including its cost so far.
        wait: Wait for open batches instead of returning.
        live: Cancel open batches and send the remaining calls at full price.
        progress: Show a progress bar on a terminal and in a notebook.
        trust_endpoints: Send keys and texts to the config's endpoints without confirmation, and
            remember this choice.
        around: Progress callback, clock and team builder.

    Raises:
        RunStateError: there is no run, or its config has changed and `if_changed` is `refuse`.
        UntrustedEndpoint: a variable would be sent to an endpoint that was not approved.
        RunLocked: another process is using it.
        RunCorrupt: a store is damaged; nothing was overwritten.
    """
    folder = find_run(run)

    def go_on(hooks: RunHooks) -> RunSummary:
        hooks = replace(hooks, waits=wait or hooks.waits, live=live or hooks.live)
        return graph_run.resume(folder, if_changed=if_changed, budget_usd=budget_usd, around=hooks)

    return _watch(go_on, around, progress, trust_endpoints)


def retry(
    run: RunLike = "latest",
    *,
    budget_usd: float | None = None,
    progress: bool = True,
    trust_endpoints: bool = False,
    around: RunHooks = DEFAULT_HOOKS,
) -> Run:
    """Retry the samples that failed, and only those.

    Args:
        run: The run: its directory, its id, its benchmark's name, `latest`, or a `Run`.
        budget_usd: The run's new total budget, including its cost so far.
        progress: Show a progress bar on a terminal and in a notebook.
        trust_endpoints: Send keys and texts to the config's endpoints without confirmation, and
            remember this choice.
        around: Progress callback, clock and team builder.

    Raises:
        RunStateError: there is no run.
        UntrustedEndpoint: a variable would be sent to an endpoint that was not approved.
        RunLocked: another process is using it.
    """
    folder = find_run(run)

    def work(hooks: RunHooks) -> RunSummary:
        return graph_run.retry(folder, budget_usd=budget_usd, around=hooks)

    return _watch(work, around, progress, trust_endpoints)


def evaluate(
    run: RunLike = "latest",
    *,
    targets: Sequence[str] = (),
    budget_usd: float | None = None,
    progress: bool = True,
    trust_endpoints: bool = False,
    around: RunHooks = DEFAULT_HOOKS,
) -> Run:
    """Send the targets the questions that they have not answered yet, and write a new report.

    Args:
        run: The run: its directory, its id, its benchmark's name, `latest`, or a `Run`.
        targets: The targets to evaluate, as `provider:name` or as a YAML mapping of a target's
            keys; by default all targets of the run.
        budget_usd: The run's new total budget, including its cost so far.
        progress: Show a progress bar on a terminal and in a notebook.
        trust_endpoints: Send keys and texts to the config's endpoints without confirmation, and
            remember this choice.
        around: Progress callback, clock and team builder.

    Raises:
        RunStateError: there is no run, or some of its samples are unfinished.
        ConfigError: the target does not exist, or there is no target at all.
        UntrustedEndpoint: a variable would be sent to an endpoint that was not approved.
        RunError: a target left questions without an answer; the others are stored.
    """
    folder = find_run(run)

    def ask(hooks: RunHooks) -> RunSummary:
        return evaluation.evaluate(folder, targets=targets, budget_usd=budget_usd, around=hooks)

    return _watch(ask, around, progress, trust_endpoints)


def _watch(
    work: Callable[[RunHooks], RunSummary], around: RunHooks, progress: bool, trusts: bool
) -> Run:
    """Run a piece of work and return its run; show progress unless the caller does."""
    own = around.watch is not ignore_progress

    def watched() -> RunSummary:
        if own:
            return work(around)
        with show_progress_to_viewer(progress) as watch:
            return work(replace(around, watch=watch))

    done = retry_with_trust(watched, lambda _: trusts)
    return Run(run_dir=done.run_dir, manifest=done.manifest)
