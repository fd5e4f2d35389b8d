"""Runs: starting one, going on with it, and looking at its samples, scores and report."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from coreeval.api.progress import show_progress_to_viewer
from coreeval.api.samples import SampleTrace, list_samples, trace_sample
from coreeval.api.tables import CellKind, Result, Table
from coreeval.config import ConfigLike
from coreeval.errors import RunStateError
from coreeval.evaluation.benchmarks.subset import SampleOrder, Subset, build_subset
from coreeval.evaluation.report.report_file import read_report
from coreeval.graph import evaluate as evaluation
from coreeval.graph import run as graph_run
from coreeval.graph.execute import DEFAULT_HOOKS, RunHooks, RunSummary
from coreeval.graph.monitor import ignore_progress
from coreeval.graph.pool import Stop
from coreeval.graph.run import IfChanged
from coreeval.graph.run_document import build_run_document, read_run_scores
from coreeval.meanings import OUTCOMES, STATES
from coreeval.runs.listing import list_described_runs
from coreeval.runs.manifest import read_manifest
from coreeval.runs.names import find_run_folder, short_id
from coreeval.runs.status import RunStatus, read_status
from coreeval.runs.status_document import build_status_document
from coreeval.tools.trust import retry_with_trust
from coreeval.tools.workspace import RunFiles, command

if TYPE_CHECKING:
    from pydantic import JsonValue

RunLike = Path | str | RunSummary
"""A run: its directory, its id, its benchmark's name, `latest`, or the value itself."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Run(Result, RunSummary):
    """A run as its manifest says: `run_dir` is its directory, `manifest` the manifest."""

    @property
    def id(self) -> str:
        """The short id by which commands and functions know it."""
        return short_id(self.run_dir)

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of samples by outcome, and `total`."""
        return self.manifest.counts

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to do."""
        return self.manifest.status == "complete"

    @property
    def dataset(self) -> Path:
        """The folder of the refreshed benchmark, with a folder for each arm."""
        return RunFiles(self.run_dir).dataset

    @property
    def report(self) -> Path:
        """The path of the report, an HTML page."""
        return RunFiles(self.run_dir).report_html

    @property
    def document(self) -> "dict[str, JsonValue]":
        """The document that `coreeval refresh --json` prints."""
        return build_run_document(self)

    @property
    def summary(self) -> str:
        """How the run stands, in a line."""
        state = STATES[self.manifest.status]
        return f"run {self.id} of {self.manifest.name}: {state} ({self.run_dir})"

    @property
    def table(self) -> Table:
        """The outcomes that occurred: `outcome, samples, meaning`."""
        return _tabulate_counts(self.counts)

    def read_report(self) -> "dict[str, JsonValue]":
        """Return the report as a document; docs/report.md describes its keys.

        Raises:
            RunStateError: the run has no report yet.
            RunCorrupt: the report is damaged.
        """
        found = read_report(RunFiles(self.run_dir))
        if found is None:
            raise self._no_report()
        return found

    def samples(
        self, *, outcomes: Sequence[str] = (), label: str | None = None, text: str = ""
    ) -> Table:
        """Return the samples with their outcomes, costs and texts.

        Args:
            outcomes: Only samples with one of these outcomes; by default all that have ended.
            label: Only samples with this label.
            text: Only samples with this in the id, in a text or in the reason.

        Returns:
            A row for each sample: `sample, label, outcome, reason, attempts, calls, usd, seconds`,
            then for each field of the task `original_FIELD, semantic_FIELD, updated_FIELD`. A text
            is missing if the sample is not in the arm.

        Raises:
            UsageError: there is no such outcome.
            RunCorrupt: run.db is damaged or missing.
        """
        return list_samples(self.run_dir, outcomes=outcomes, label=label, text=text)

    def scores(self) -> Table:
        """Return the score of each target on each arm with its 95 % interval.

        Returns:
            A row for each target and arm: `target, arm, score, estimate, ci_low, ci_high, n`.

        Raises:
            RunStateError: the run is unfinished, or its report cannot be read.
        """
        found = read_run_scores(self)
        if found is None:
            raise self._no_report()
        rows = [
            (each["target"], arm, found["score"], *map(score.get, _ENDS), score["n"])
            for each in found["targets"]
            for arm, score in each["arms"].items()
        ]
        return Table(f"scores of {self.manifest.name}", _SCORE_COLUMNS, rows)

    def trace(self, sample: str) -> SampleTrace:
        """Return what happened to a sample, step by step, with its texts, facts and calls.

        Args:
            sample: The sample's id.

        Raises:
            UsageError: there is no such sample.
            RunCorrupt: run.db is damaged or missing.
        """
        return trace_sample(self.run_dir, sample)

    def _no_report(self) -> RunStateError:
        name = "evaluate" if self.is_complete else "resume"
        return RunStateError(
            "the run has no report that can be read",
            where=str(self.run_dir),
            hint=command(name, self.run_dir),
        )


_ENDS: Final = ("estimate", "ci_low", "ci_high")
_SCORE_COLUMNS: Final[dict[str, CellKind]] = {
    "target": "text",
    "arm": "text",
    "score": "text",
    "estimate": "number",
    "ci_low": "number",
    "ci_high": "number",
    "n": "integer",
}


def _tabulate_counts(counts: Mapping[str, int]) -> Table:
    rows = [(name, n, OUTCOMES[name]) for name in OUTCOMES if (n := counts.get(name))]
    columns: dict[str, CellKind] = {"outcome": "text", "samples": "integer", "meaning": "text"}
    return Table("outcomes", columns, rows)


# -- starting a run, and going on -----------------------------------------------------------------


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

    The run of a config in memory has its workspace in the current folder. Under a running event
    loop, as in a notebook, it works in another thread; `arefresh` leaves the loop free.

    Args:
        config: The path of a YAML config, a mapping with the same keys, or a config.
        limit: Take only this many samples.
        sample: With `limit`: which samples are taken.
        ids: Take only the samples with these ids.
        labels: Take only the samples with these labels.
        run_dir: A new or empty folder for the run; by default `.coreeval/runs/<name>/<UTC start>`.
        budget_usd: The most that the run may cost in all; it stops before exceeding it.
        allow_unpriced: With a budget, also use models without a price; their cost is not counted.
        overrides: `key.path=value` settings that override the config's.
        parent: The release whose samples are kept if they are still valid, or `latest`.
        stale_after: The maximum age of a kept sample's evidence: `90d`, `12w`, `6m`.
        wait: Wait for open batches instead of returning.
        progress: Show a progress bar on a terminal and in a notebook.
        trust_endpoints: Send keys and texts to the config's endpoints without confirmation, and
            remember this.
        subset: Take only these samples; in place of `limit`, `sample`, `ids` and `labels`.
        around: Progress callback, clock and team builder.

    Returns:
        The run as it stands: complete, interrupted, or waiting for batches.

    Raises:
        UsageError: the config, the benchmark, the news, the release or `run_dir` is not usable, or
            a variable would be sent to an unapproved endpoint (UntrustedEndpoint); nothing was
            written.
        RunError: the run could not continue; it can be resumed.
    """
    chosen = subset or build_subset(limit, sample, ids, labels)
    settings = [*overrides, *_budget_overrides(budget_usd, allow_unpriced)]

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
    """Refresh a benchmark as `refresh` does, while the event loop does other work.

    A cancelled run comes to rest as after Ctrl-C: it is interrupted and can be resumed.

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
        run: The run: its directory, its id, its benchmark's name, `latest`, or the value.
        if_changed: What to do if the config has changed since the run began: refuse, keep the run's
            own, or start anew.
        budget_usd: The run's new total budget, including its cost so far.
        wait: Wait for open batches instead of returning.
        live: Cancel open batches and send the remaining calls at full price.
        progress: Show a progress bar on a terminal and in a notebook.
        trust_endpoints: Send keys and texts to the config's endpoints without confirmation, and
            remember this.
        around: Progress callback, clock and team builder.

    Raises:
        RunStateError: there is no run, or its config has changed and `if_changed` says refuse.
        UntrustedEndpoint: a variable would be sent to an endpoint that was not approved.
        RunLocked: another process is using it.
        RunCorrupt: a store is damaged; nothing was overwritten.
    """
    folder = _find_folder(run)

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
        run: The run: its directory, its id, its benchmark's name, `latest`, or the value.
        budget_usd: The run's new total budget, including its cost so far.
        progress: Show a progress bar on a terminal and in a notebook.
        trust_endpoints: Send keys and texts to the config's endpoints without confirmation, and
            remember this.
        around: Progress callback, clock and team builder.

    Raises:
        RunStateError: there is no run.
        UntrustedEndpoint: a variable would be sent to an endpoint that was not approved.
        RunLocked: another process is using it.
    """
    folder = _find_folder(run)

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
    """Ask targets the unanswered questions about a run's arms and write a new report.

    Args:
        run: The run: its directory, its id, its benchmark's name, `latest`, or the value.
        targets: The targets to ask, as `provider:name` or as a YAML mapping of a target's keys; by
            default all targets of the run.
        budget_usd: The run's new total budget, including its cost so far.
        progress: Show a progress bar on a terminal and in a notebook.
        trust_endpoints: Send keys and texts to the config's endpoints without confirmation, and
            remember this.
        around: Progress callback, clock and team builder.

    Raises:
        RunStateError: there is no run, or some of its samples are unfinished.
        ConfigError: the target does not exist, or there is no target at all.
        UntrustedEndpoint: a variable would be sent to an endpoint that was not approved.
        RunError: a target left questions without an answer; the others are stored.
    """
    folder = _find_folder(run)

    def ask(hooks: RunHooks) -> RunSummary:
        return evaluation.evaluate(folder, targets=targets, budget_usd=budget_usd, around=hooks)

    return _watch(ask, around, progress, trust_endpoints)


def _budget_overrides(budget_usd: float | None, allow_unpriced: bool) -> list[str]:
    budget = [] if budget_usd is None else [f"run.budget_usd={budget_usd}"]
    return budget + ["run.allow_unpriced=true"] * allow_unpriced


def _watch(
    work: Callable[[RunHooks], RunSummary], around: RunHooks, progress: bool, trusts: bool
) -> Run:
    """Return the run that a piece of work leaves, and show its progress unless a caller does."""
    own = around.watch is not ignore_progress

    def watched() -> RunSummary:
        if own:
            return work(around)
        with show_progress_to_viewer(progress) as watch:
            return work(replace(around, watch=watch))

    done = retry_with_trust(watched, lambda _: trusts)
    return Run(run_dir=done.run_dir, manifest=done.manifest)


# -- looking at runs ------------------------------------------------------------------------------


def load_run(run: RunLike = "latest") -> Run:
    """Return a run as it stands.

    Args:
        run: Its directory, its id, its benchmark's name, or `latest` for the newest in the current
            folder's workspace.

    Raises:
        RunStateError: there is no such run, or its manifest is damaged.
        UsageError: the word stands for several runs.
    """
    folder = _find_folder(run)
    return Run(run_dir=folder, manifest=read_manifest(RunFiles(folder).manifest))


def _find_folder(run: RunLike) -> Path:
    return (run.run_dir if isinstance(run, RunSummary) else find_run_folder(run)).resolve()


def list_runs(
    folder: Path | str | None = None,
    *,
    name: str | None = None,
    status: str | None = None,
    tag: str | None = None,
) -> Table:
    """Return the runs of a workspace, newest first.

    Args:
        folder: The workspace, or the folder that has a `.coreeval`; by default the current one.
        name: Only runs of this benchmark.
        status: Only runs in this state, such as `complete` or `killed`.
        tag: Only runs with this tag.

    Returns:
        A row for each run: `id, name, status, task, created_at, ended_at, samples, ended, accepted,
        usd, tags, problem, run`.

    Raises:
        RunStateError: there is no workspace.
        UsageError: there is no such state.
    """
    place = None if folder is None else Path(folder)
    if place and (place / ".coreeval").is_dir():
        place /= ".coreeval"
    found = list_described_runs(place, name=name, status=status, tag=tag)
    rows = [{**row, "tags": tuple(row["tags"])} for row in found["runs"]]
    return Table.from_dicts("runs", _RUN_COLUMNS, rows)


_RUN_COLUMNS: Final[dict[str, CellKind]] = {
    "id": "text",
    "name": "text",
    "status": "text",
    "task": "text",
    "created_at": "text",
    "ended_at": "text",
    "samples": "integer",
    "ended": "integer",
    "accepted": "integer",
    "usd": "number",
    "tags": "texts",
    "problem": "text",
    "run": "text",
}


@dataclass(frozen=True, kw_only=True, repr=False)
class Status(Result):
    """Where a run is, how fast it goes, and what it waits for."""

    now: RunStatus

    @property
    def status(self) -> str:
        """`running`, `interrupted`, `stopped`, `waiting`, `killed` or `complete`."""
        return self.now.status

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of samples by outcome, `pending` and `total`."""
        return self.now.counts

    @property
    def document(self) -> "dict[str, JsonValue]":
        """The document that `coreeval status --json` prints."""
        return build_status_document(self.now)

    @property
    def summary(self) -> str:
        """The state, and how many samples have ended, in a line."""
        now = self.now
        ended = f"{now.ended} of {now.counts['total']} samples have ended"
        return f"{now.run}: {STATES[now.status]}, {ended}"

    @property
    def table(self) -> Table:
        """The outcomes that occurred: `outcome, samples, meaning`."""
        return _tabulate_counts(self.counts)


def status(run: RunLike = "latest") -> Status:
    """Return a run's progress, failures and waits.

    Args:
        run: The run: its directory, its id, its benchmark's name, `latest`, or the value.

    Raises:
        RunStateError: there is no run, or its manifest is damaged.
        RunCorrupt: a store is damaged or missing.
    """
    return Status(now=read_status(_find_folder(run)))
