"""Runs in their current state: samples, scores, traces and reports."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from coreeval.api.places import RunLike, find_run, find_workspace
from coreeval.api.samples import SampleTrace, list_samples, trace_sample
from coreeval.api.tables import Result, Row, Table, parse_columns
from coreeval.errors import RunLocked, RunStateError
from coreeval.evaluation.report.report_file import read_report
from coreeval.graph.run_document import build_run_document, read_run_scores
from coreeval.meanings import OUTCOMES, STATES
from coreeval.runs.folder import delete_run_files, read_deletable
from coreeval.runs.listing import list_described_runs
from coreeval.runs.manifest import RunSummary, read_manifest
from coreeval.runs.names import change_tags, short_id
from coreeval.runs.status import RunStatus, read_status
from coreeval.runs.status_document import build_status_document
from coreeval.tools.files import hold_lock
from coreeval.tools.workspace import RunFiles, command

if TYPE_CHECKING:
    from pydantic import JsonValue


@dataclass(frozen=True, kw_only=True, repr=False)
class Run(Result, RunSummary):
    """A run: `run_dir` is its directory, `manifest` its manifest."""

    @property
    def id(self) -> str:
        """The short id, which commands and functions accept."""
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
        """The state of the run, in a line."""
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
            text: Only samples with this text in the id, in a text or in the reason for the outcome.

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

        The arms have different samples: use `paired_scores` to compare them.

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

    def paired_scores(self) -> Table:
        """Return the scores on the original and updated texts of samples that are in both arms.

        Returns:
            A row for each target that has such samples: `target, score, original, updated,
            difference, ci_low, ci_high, n`, with the 95 % interval of the difference.

        Raises:
            RunStateError: the run is unfinished, or its report cannot be read.
        """
        found = read_run_scores(self)
        if found is None:
            raise self._no_report()
        rows: list[Row] = [
            (each["target"], found["score"], pair["original"], pair["updated"],
             *map(pair["difference"].get, (*_ENDS, "n")))
            for each in found["targets"]
            if (pair := each["paired"])
        ]  # fmt: skip
        return Table(f"paired scores of {self.manifest.name}", _PAIR_COLUMNS, rows)

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
            "the run has no readable report",
            where=str(self.run_dir),
            hint=command(name, self.run_dir),
        )


_ENDS: Final = ("estimate", "ci_low", "ci_high")
_SCORE_COLUMNS: Final = parse_columns(
    "target arm score estimate:number ci_low:number ci_high:number n:integer"
)
_PAIR_COLUMNS: Final = parse_columns(
    "target score original:number updated:number difference:number ci_low:number ci_high:number "
    "n:integer"
)


def _tabulate_counts(counts: Mapping[str, int]) -> Table:
    rows = [(name, n, OUTCOMES[name]) for name in OUTCOMES if (n := counts.get(name))]
    columns = parse_columns("outcome samples:integer meaning")
    return Table("outcomes", columns, rows)


def load_run(run: RunLike = "latest") -> Run:
    """Return a run in its current state.

    Args:
        run: The run: its directory, its id, its benchmark's name, or `latest` for the newest run in
            the current folder's workspace.

    Raises:
        RunStateError: there is no such run, or its manifest is damaged.
        UsageError: several runs match `run`.
    """
    folder = find_run(run)
    return Run(run_dir=folder, manifest=read_manifest(RunFiles(folder).manifest))


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
        name: Return only runs of this benchmark.
        status: Return only runs in this state, such as `complete` or `killed`.
        tag: Return only runs with this tag.

    Returns:
        A row for each run: `id, name, status, task, created_at, ended_at, samples, ended, accepted,
        usd, tags, problem, run`.

    Raises:
        RunStateError: there is no workspace.
        UsageError: there is no such state.
    """
    place = find_workspace(folder).root
    found = list_described_runs(place, name=name, status=status, tag=tag)
    return Table.from_dicts("runs", _RUN_COLUMNS, found["runs"])


_RUN_COLUMNS: Final = parse_columns(
    "id name status task created_at ended_at samples:integer ended:integer accepted:integer "
    "usd:number tags:texts problem run"
)


def tag_run(
    run: RunLike, *, add: Sequence[str] = (), remove: Sequence[str] = ()
) -> tuple[str, ...]:
    """Add or remove tags of a run, and return all its tags.

    Args:
        run: The run: its directory, its id, its benchmark's name, `latest`, or a `Run`.
        add: Tags to add.
        remove: Tags to remove.

    Raises:
        RunStateError: there is no such run, or its manifest is damaged.
        UsageError: a tag is not valid.
    """
    files = RunFiles(find_run(run))
    read_manifest(files.manifest)
    return tuple(change_tags(files, add, remove))


def delete_run(run: RunLike) -> tuple[Path, ...]:
    """Delete a run's files; answers of models stay in the workspace (see `delete_calls`).

    Args:
        run: The run: its directory, its id, its benchmark's name, `latest`, or a `Run`.

    Returns:
        The files that stay, because they are not part of the run.

    Raises:
        RunStateError: there is no such run, or its samples are in PostgreSQL.
        RunLocked: it is running, or has open batches; nothing was deleted.
    """
    return delete_run_after(find_run(run), lambda: None)


def delete_run_after(run: Path, confirm: Callable[[], None]) -> tuple[Path, ...]:
    """Do the same as `delete_run`, after a callback that raises an error without consent."""
    read_deletable(run)
    folder = run.resolve()
    running = RunLocked(
        "the run is still in progress",
        where=str(run),
        hint="wait until it ends, or stop it with Ctrl-C in its terminal",
    )
    with hold_lock(folder / "run.lock", running):
        manifest = read_deletable(run)  # another command may have added targets
        confirm()
        return tuple(delete_run_files(folder, manifest))


@dataclass(frozen=True, kw_only=True, repr=False)
class Status(Result):
    """A run's progress, its speed, and what it is waiting for."""

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
        """The state and the number of ended samples, in a line."""
        now = self.now
        ended = f"{now.ended} of {now.counts['total']} samples have ended"
        return f"{now.run}: {STATES[now.status]}, {ended}"

    @property
    def table(self) -> Table:
        """The outcomes that occurred: `outcome, samples, meaning`."""
        return _tabulate_counts(self.counts)


def status(run: RunLike = "latest") -> Status:
    """Return a run's progress and failures, and what it is waiting for.

    Args:
        run: The run: its directory, its id, its benchmark's name, `latest`, or a `Run`.

    Raises:
        RunStateError: there is no run, or its manifest is damaged.
        RunCorrupt: a store is damaged or missing.
    """
    return Status(now=read_status(find_run(run)))
