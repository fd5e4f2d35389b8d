"""One run in the process that works on it: settings, stores, observers and its manifest."""

import asyncio
from collections.abc import Iterable
from contextlib import closing
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from coreeval.agents.team import BuildTeam
from coreeval.config import Config, TargetConfig
from coreeval.errors import RunCorrupt
from coreeval.evaluation.benchmarks import find_target
from coreeval.evaluation.embedded_targets import is_classifier
from coreeval.graph.monitor import Monitor, Progress, Watch
from coreeval.graph.news_bill import NewsBill
from coreeval.graph.pool import Stop
from coreeval.graph.recorder import NULL_OBSERVER, RunObserver
from coreeval.graph.setup import Setup, graph_version
from coreeval.models.activity import ActiveCalls
from coreeval.models.batch_dispatch import Batching
from coreeval.runs.manifest import ControlPass, Cost, KnowledgeUsed, Manifest, Status, full_counts
from coreeval.schema import Retrieval, RoleName, Sample, Task
from coreeval.tasks import ALL_TARGETS, adapt_task, load_task
from coreeval.tools.catalogs import Prices
from coreeval.tools.clock import Clock
from coreeval.tools.cutoffs import TargetFreshness, count_by_target
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.heartbeat import REPAIR
from coreeval.tools.stores.places import has_store
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import Fetch
from coreeval.tools.stores.sqlite import Row
from coreeval.tools.workspace import RunFiles, Workspace

if TYPE_CHECKING:
    from coreeval.graph.inputs import InputSource


_SUMMED_COLUMNS = ("calls", "prompt_tokens", "cached_tokens", "completion_tokens", "priced")


def merge_call_totals(rows: Iterable[Row]) -> list[Row]:
    """Return one row per model from the rows of several stores; paid and cached stay separate."""
    found: dict[tuple[str, bool], Row] = {}
    for row in rows:
        key = row["model"], bool(row["cached"])
        found[key] = _merge_rows(found[key], row) if key in found else row
    return list(found.values())


def _merge_rows(one: Row, other: Row) -> Row:
    known = [each["usd"] for each in (one, other) if each["usd"] is not None]
    sums = {name: one[name] + other[name] for name in _SUMMED_COLUMNS}
    return one | sums | {"usd": sum(known) if known else None}


_DIGITS = 9
"""Decimal places of sums in US dollars, so that the order of addition does not matter."""


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """The settings, stores and hooks of a run."""

    setup: Setup
    manifest: Manifest
    """The manifest as it was when this process took over the run."""
    files: RunFiles
    workspace: Workspace
    store: RunStore
    hire: BuildTeam
    """Builds the team of a task; tests replace it."""
    inputs: "InputSource"
    """The source of the benchmark and the news."""
    monitor: Monitor
    """Receives every event of the run and informs the observers."""
    now: Clock
    prices: Prices
    """The prices as this process, or the one that started it, read them at its start."""
    control: "RunContext | None" = None
    """The pass that writes the control arm; None if there is none."""
    before: RunStore | None = None
    """In the control pass, the store of the run itself; None otherwise."""
    batching: Batching | None = None
    """What is asked through batches; None if nothing is."""
    is_worker: bool = False
    """Whether this process is one of several that refresh the samples of the run."""
    foreign_players: dict[RoleName, str] = field(default_factory=dict)
    """The roles that a caller's own code plays, each with its name; filled as teams are built."""
    stage: str = "refresh"
    """Name of the stage in which samples are refreshed."""
    observer: RunObserver = NULL_OBSERVER
    stop: Stop = field(default_factory=Stop)
    context: Context = field(default_factory=copy_context)
    """The context before the run's graph, from which each sample starts: tracers of LangGraph, such
    as LangSmith, then show one trace per sample rather than one for all of them."""

    @property
    def config(self) -> Config:
        """Return the run's own, frozen config."""
        return self.setup.config

    @property
    def watch(self) -> Watch:
        """Return the watcher that receives the run's progress."""
        return self.monitor.on_progress

    @property
    def active_calls(self) -> ActiveCalls:
        """Return the calls that are in progress."""
        return self.monitor.active_calls

    @property
    def task(self) -> Task:
        """Return the task of the benchmark."""
        return self.setup.task

    @property
    def label_targets(self) -> list[TargetConfig]:
        """Return the targets to ask: those of the config, or those given to `coreeval evaluate`."""
        asked = self.config.detect.evaluate or self.manifest.evaluation is not None
        return self._list_label_targets() if asked else []

    @property
    def pcr_targets(self) -> list[TargetConfig]:
        """Return the targets to ask about the train split too: the same, if PCR is configured."""
        return self._list_label_targets() if self.config.detect.compares_splits else []

    @property
    def series_targets(self) -> list[TargetConfig]:
        """Return the targets to ask about series, if NumLeak is configured: those that use words.

        References are excluded: they serve the detectors that compare targets.
        """
        chosen = self._list_named_targets() if self.config.detect.asks_series else []
        return [
            target
            for target in chosen
            if not is_classifier(target.model) and target.role == "target"
        ]

    def _list_label_targets(self) -> list[TargetConfig]:
        """Return the targets that label texts: models and classifiers."""
        return [
            target
            for target in self._list_named_targets()
            if is_classifier(target.model) or not target.is_embedded
        ]

    def _list_named_targets(self) -> list[TargetConfig]:
        known, said = self.config.models.targets, self.manifest.evaluation
        return [target for target in known if said is None or target.model in said.asked]

    def list_templates(self, target: TargetConfig) -> range:
        """Return the numbers of the templates to ask a target with; only 0 for embedded targets."""
        return range(1) if target.is_embedded else range(1, len(self.task.templates) + 1)

    @property
    def payer(self) -> str:
        """Return the run's name in the call store, which identifies its calls."""
        return self.manifest.payer

    def tasks(self) -> list[Task]:
        """Return the tasks of the benchmark's samples: one, or one for each stance target."""
        if self.config.dataset.target != ALL_TARGETS:
            return [self.task]
        task, language = self.setup.task_file, self.config.dataset.language
        return [_load_target_task(task, target, language) for target in self.inputs.targets(self)]

    def load_task_of(self, sample: Sample) -> Task:
        """Return the task of a sample: with its fields and options, and its own stance target."""
        if self.config.dataset.target != ALL_TARGETS:
            return adapt_task(self.task, sample.fields)
        return _load_target_task(
            self.setup.task_file, find_target(sample.id) or "", self.config.dataset.language
        )

    @property
    def graph_version(self) -> str:
        """Return the hash of the current node names and prompts."""
        return graph_version(self.setup)

    def counts(self) -> dict[str, int]:
        """Return the counts that add up to the number of samples."""
        return full_counts(self.store.total(), self.store.counts())

    def close(self) -> None:
        """Close the run's store, and that of its second pass."""
        if self.control:
            self.control.store.close()
        self.store.close()

    def explain_fault(self, error: BaseException) -> None:
        """Raise RunCorrupt if a store contains an invalid row that explains the error.

        Raises:
            RunCorrupt: a store has an invalid row.
        """
        for each in (self, self.control):
            if each:
                each.store.explain_fault(error)

    def tell(self, stage: str, done: int = 0, total: int = 0, note: str = "") -> None:
        """Report to watchers where the run is."""
        counts = self.store.counts()
        self.watch(Progress(stage=stage, done=done, total=total, counts=counts, note=note))

    def tell_counts(self, stage: str) -> None:
        """Report token counts that cannot be true to watchers."""
        for note in self.active_calls.count_notes():
            self.tell(stage, note=note)

    def current_manifest(self) -> Manifest:
        """Return the manifest with the current counts and cost."""
        update = {
            "counts": self.counts(),
            "kept": self._count_kept(),
            "bad_rows": len(self.store.bad_rows()),
            "cost": self._cost(),
            "knowledge": self._knowledge(self.manifest.knowledge),
            "control": self.control and self.control.control_manifest(),
            "after_cutoff": self._after_cutoff(),
            "arms": self.store.stage("assemble") or {},
            "notes": self.manifest.notes or self._notes(),
            "models": self.manifest.models
            | {role: {"model": name} for role, name in self.foreign_players.items()},
        }
        return self.manifest.model_copy(update=update)

    def _count_kept(self) -> int:
        """Return the number of samples taken from the release that the run follows.

        Raises:
            RunCorrupt: samples were taken, and the run follows no release.
        """
        kept = self.store.carry_over.count_from_release()
        if kept and self.manifest.parent is None:
            raise RunCorrupt(
                f"run.db says that {kept} samples come from a release, but the run follows none",
                where=str(self.files.store),
                hint=REPAIR,
            )
        return kept

    def _after_cutoff(self) -> tuple[TargetFreshness, ...]:
        targets = self.setup.target_dates
        known = self.store.freshness() if targets else ()
        return count_by_target((freshness for _, freshness in known), targets)

    def running_manifest(self) -> Manifest:
        """Return the manifest of a run in progress."""
        return self.current_manifest().model_copy(update={"status": "running", "ended_at": ""})

    def final_manifest(self, status: Status) -> Manifest:
        """Return the manifest of a run that has stopped; a complete run keeps its end time."""
        before = self.manifest
        same = status == before.status == "complete" and before.counts == self.counts()
        ended = before.ended_at if same else self.now().isoformat(timespec="seconds")
        return self.current_manifest().model_copy(update={"status": status, "ended_at": ended})

    def _notes(self) -> tuple[str, ...]:
        """Return warnings about the benchmark, if all of it was taken."""
        rows = self.store.total() + len(self.store.bad_rows())
        if self.manifest.subset and rows:
            return (self.manifest.subset.describe(),)
        if self.manifest.limit is not None or not rows:
            return ()
        note = self.inputs.row_count_warning(self, rows)
        return (note,) if note else ()

    def control_manifest(self) -> ControlPass | None:
        """Return the manifest entry of the pass that writes the control arm."""
        said = self.manifest.control
        if said is None:
            return None
        update = {"counts": self.counts(), "knowledge": self._knowledge(said.knowledge)}
        return said.model_copy(update=update)

    def _knowledge(self, used: KnowledgeUsed) -> KnowledgeUsed:
        """Return the manifest entry of the news, with the queries to remote backends so far."""
        fetches = self.store.fetches()
        update = {
            "requests": sum(fetch.queries > 0 for fetch in fetches),
            "bytes_billed": sum(fetch.bytes_billed for fetch in fetches),
            "cost_usd": sum(fetch.cost_usd for fetch in fetches),
            "notes": tuple(dict.fromkeys(note for fetch in fetches for note in fetch.notes)),
        }
        return used.model_copy(update=update)

    def open_bill(self, backend: str) -> NewsBill:
        """Return the record of what a remote backend bills to the run."""
        other = self.control.store if self.control else self.before
        return NewsBill(backend, self.store, (other,) if other else ())

    def on_note(self, note: str) -> None:
        """Report what a remote backend is about to do."""
        self.tell("gather", note=note)

    def on_fetch(self, backend: str, answer: Retrieval) -> None:
        """Record the answer of a remote backend and report it."""
        self.store.add_fetch(
            Fetch(
                backend=backend,
                queries=len(answer.by_query),
                found=sum(bool(evidence) for evidence in answer.by_query.values()),
                bytes_billed=answer.bytes_billed,
                cost_usd=answer.cost_usd,
                notes=answer.notes,
            )
        )
        for note in answer.notes:
            self.on_note(note)

    async def reserve_lost_calls(self) -> None:
        """Count calls of earlier processes as spent even if calls.db has lost them."""
        billed = sum(row["usd"] or 0.0 for row in self._call_totals() if not row["cached"])
        if billed and self.config.run.budget_usd is not None:
            calls = await asyncio.to_thread(open_calls, self.workspace.calls, self.payer)
            with closing(calls):
                await calls.ledger.reserve_lost(billed)

    def _call_totals(self) -> list[Row]:
        passes = [self, self.control] if self.control else [self]
        return merge_call_totals(row for each in passes for row in each.store.history.call_totals())

    def _cost(self) -> Cost:
        """Return total calls, tokens and money; the cost is unknown if a call has no price."""
        rows = self._call_totals()
        billed = [row for row in rows if not row["cached"]]
        priced = all(row["priced"] == row["calls"] for row in billed)
        billed_usd = sum(row["usd"] or 0.0 for row in billed)

        def paid(name: str) -> int:
            return sum(row[name] for row in billed)

        return Cost(
            billed_usd=billed_usd if priced else None,
            unknown_usd=self._find_unaccounted_usd(billed_usd),
            budget_usd=self.config.run.budget_usd,
            billed_calls=paid("calls"),
            cached_calls=sum(row["calls"] for row in rows if row["cached"]),
            prompt_tokens=paid("prompt_tokens"),
            cached_tokens=paid("cached_tokens"),
            completion_tokens=paid("completion_tokens"),
            by_model=tuple(rows),
        )

    def _find_unaccounted_usd(self, billed_usd: float) -> float:
        """Return the cost that counts as spent beyond the calls of finished steps.

        It is the worst case of requests with an unknown end, and the cost of answers that arrived
        after their step was interrupted: they are stored, and a resumed run uses them.
        """
        if self.config.run.budget_usd is None or not has_store(self.workspace.calls):
            return 0.0
        with closing(open_calls(self.workspace.calls, self.payer)) as calls:
            spent = calls.ledger.spent()
        return max(0.0, round(spent.unknown_usd + spent.billed_usd - billed_usd, _DIGITS))


@cache
def _load_target_task(task: str, target: str, language: str | None) -> Task:
    return load_task(task, target, language)
