"""The status of a run, for `coreeval status` and the pages.

The counts come from the results in run.db, and costs from the ledger. Speed and waits are from the
last report of the run's process, a few seconds ago. This module does not import pydantic and
SQLAlchemy, because importing them takes longer than reading the status.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from coreeval.errors import RunStateError
from coreeval.meanings import OUTCOMES
from coreeval.runs.batches import BatchSummary, read_batches
from coreeval.tools.clock import Clock, utc_now
from coreeval.tools.files import MOST_INTEGER, is_locked
from coreeval.tools.stores.heartbeat import (
    DIGITS,
    ProgressSnapshot,
    Spend,
    SpendingReader,
    StoreReader,
    open_readonly,
)
from coreeval.tools.stores.places import has_store
from coreeval.tools.workspace import (
    MOST_FILE_BYTES,
    RunFiles,
    Workspace,
    find_workspace,
    name_payer,
)

Json = Mapping[str, Any]
ENDS = tuple(name for name in OUTCOMES if name != "pending")
"""Outcomes of ended samples in display order."""
ROLES = ("extractor", "replacer", "rewriter", "composer", "fact_judge", "label_judge")
"""The role names used in the config."""
STALLED_AFTER_S = 60.0
"""Seconds without progress after which a run is reported as stalled; most answers take a few
seconds."""
STUCK_AFTER_S = 660.0
"""Seconds in one step after which a sample is reported as stuck: the retries of a model call end
after ten minutes."""
STATUSES = ("running", "interrupted", "stopped", "waiting", "complete")
"""Valid statuses of a run in its manifest."""
_TEXTS = ("task", "status", "created_at", "ended_at", "workspace", "run", "now")
_MAYBE_TEXTS = ("cassette",)
_TIMES = ("created_at", "ended_at", "now")
_NUMBER = int | float
_BY_RULES = ("offline", "spacy")
_STATE = """
    SELECT
        (SELECT count(*) FROM samples) AS total, (SELECT count(*) FROM bad_rows) AS bad_rows,
        found.*, beat.*
    FROM (
        SELECT 'outcome' AS kind, outcome AS name, '' AS model, count(*) AS number, 0 AS cached
        FROM results GROUP BY outcome
        UNION ALL SELECT 'tokens', role, model, prompt_tokens, cached_tokens
        FROM call_sums WHERE NOT cached AND prompt_tokens > 0
        UNION ALL SELECT 'process', '', '', 0, 0
    ) AS found
    LEFT JOIN heartbeat AS beat ON found.kind = 'process'
    ORDER BY found.number DESC, found.name, found.model
"""
"""The one statement that is repeatedly sent to run.db during a run."""
_FAILED = """
    SELECT sample_id AS sample, reason FROM results
    WHERE outcome = 'failed' ORDER BY rowid LIMIT ?
"""
_BAD = "SELECT file, line, reason, text FROM bad_rows ORDER BY seq LIMIT ?"


@dataclass(frozen=True, kw_only=True)
class SampleFailure:
    """A failed sample, with the reason."""

    sample: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class BadLine:
    """A line of the benchmark that is not a valid sample."""

    file: str
    line: int
    reason: str
    text: str


@dataclass(frozen=True, kw_only=True)
class StuckSample:
    """A sample that has been in one step for too long."""

    sample: str
    node: str
    since: str


@dataclass(frozen=True, kw_only=True)
class LifeSign:
    """The last heartbeat of a process that worked on the run."""

    pid: int
    host: str
    at: str
    age_s: float


@dataclass(frozen=True, kw_only=True)
class CacheUse:
    """The prompt tokens of a role's billed calls to one model, and how many were cached."""

    role: str
    model: str
    prompt_tokens: int
    cached_tokens: int
    """The tokens that the provider read from its own cache."""
    cached_share: float


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """The status of a run."""

    run: Path
    task: str
    status: str
    """`running`, `interrupted`, `stopped`, `waiting`, `killed` or `complete`."""
    created_at: str
    ended_at: str
    """End time; empty while a process works on the run."""
    ruled: list[str]
    """Roles played by rules."""
    counts: dict[str, int]
    """`total`, one entry per outcome, and `pending`; all but `total` add up to `total`."""
    control: dict[str, int] | None
    """The same counts for the pass that writes the control arm; None if the config wants none."""
    bad_rows: int
    is_replay: bool
    """Whether the run replays a cassette, so that it cannot be resumed, only replayed from the
    beginning."""
    cache_use: tuple[CacheUse, ...]
    """The cached shares of prompts by role and model, most tokens first."""
    spend: Spend
    pulse: ProgressSnapshot | None
    """The process's last report on the run; None if no process works on it."""
    idle_s: float
    """Seconds since the last progress; 0 if no process works on the run."""
    sign: LifeSign | None
    stuck: tuple[StuckSample, ...]
    batches: BatchSummary | None
    """The batches of the run's calls; None if they were sent at once."""

    @property
    def ended(self) -> int:
        """Return the number of samples that have ended."""
        return self.counts["total"] - self.counts["pending"]

    @property
    def failed(self) -> int:
        """Return the number of failed samples, including those of the second pass."""
        return self.counts["failed"] + (self.control["failed"] if self.control else 0)

    @property
    def comparability(self) -> Json | None:
        """Return whether the arms are comparable; None before the run is complete."""
        return read_comparability(self.run) if self.status == "complete" else None

    @property
    def stalled(self) -> bool:
        """Return whether a process works on the run but has made no progress for a while."""
        return self.idle_s >= STALLED_AFTER_S


def read_comparability(run: Path) -> Json | None:
    """Return the comparison of the arms in a run's report: verdict, sentences, samples needed.

    None if there is no report, it is damaged, or it was written before that was measured.
    """
    try:
        report = _load_json(RunFiles(run).report_json)
        found = report["comparability"]
        sentences = [str(each) for each in found["sentences"]]
        return {
            "verdict": str(found["verdict"]),
            "sentences": sentences,
            "needed": found.get("needed"),
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _load_json(path: Path) -> Any:  # noqa: ANN401 - any JSON
    """Return the content of a file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not JSON, or is too large.
    """
    if path.stat().st_size > MOST_FILE_BYTES:
        raise ValueError("it is too large")
    return json.loads(path.read_bytes())


def read_status(run: Path, *, now: Clock = utc_now) -> RunStatus:
    """Return the status of a run.

    Args:
        run: The run's directory.
        now: The clock.

    Raises:
        RunStateError: there is no run, or its manifest is damaged.
        RunCorrupt: a store is damaged or missing.
        RunError: a store cannot be read now.
    """
    with explain_run_faults(run):
        return _read_status(run, now)


@contextmanager
def explain_run_faults(run: Path) -> Iterator[None]:
    """Report an error in the block as damage if a run.db of this run has an invalid row.

    Raises:
        RunCorrupt: a run.db has an invalid row.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        from coreeval.tools.stores.run_store import RunStore  # slow to import

        for files in (RunFiles(run), RunFiles(run).control):
            if has_store(files.store):
                with RunStore.open(files.store, now=utc_now) as store:
                    store.explain_fault(error)
        raise


def _read_status(run: Path, now: Clock) -> RunStatus:
    files = RunFiles(run)
    manifest = _read_manifest(files.manifest)
    works = is_locked(files.lock)
    state = _read_state(run)
    beat = state.beat
    control = _read_state(files.control.root).counts if manifest.get("control") else None
    sign = _read_life_sign(beat, now) if beat else None
    pulse = _pulse(beat, sign.age_s) if beat and sign and works else None
    return RunStatus(
        run=run,
        task=manifest["task"],
        status="running" if works else _status_at_rest(manifest["status"]),
        created_at=manifest["created_at"],
        ended_at="" if works else manifest["ended_at"],
        ruled=_roles_by_rules(manifest["models"]),
        counts=state.counts,
        control=control,
        bad_rows=state.bad_rows,
        is_replay=bool(manifest.get("cassette")),
        cache_use=state.cache_use,
        spend=(pulse and pulse.spend) or _read_spend(manifest, works, run),
        pulse=pulse,
        idle_s=round(pulse.idle_s + sign.age_s, 1) if pulse and sign else 0.0,
        sign=sign,
        stuck=_find_stuck(beat, now) if beat and works else (),
        batches=_read_batches(manifest, run, now) if manifest.get("batching") else None,
    )


def read_failures(run: Path, *, most: int = MOST_INTEGER) -> list[SampleFailure]:
    """Return the failed samples in the order of failure: the first `most`, or all.

    For the second pass, give its own folder, `RunFiles(run).control.root`.

    Raises:
        RunCorrupt: run.db is damaged or missing.
        RunError: run.db cannot be read now.
    """
    with _store(run) as store:
        return [SampleFailure(**dict(row)) for row in store.execute(_FAILED, (most,))]


def read_bad_lines(run: Path, *, most: int = MOST_INTEGER) -> list[BadLine]:
    """Return the benchmark's lines that are not valid samples: the first `most`, or all.

    Raises:
        RunCorrupt: run.db is damaged or missing.
        RunError: run.db cannot be read now.
    """
    with _store(run) as store:
        return [BadLine(**dict(row)) for row in store.execute(_BAD, (most,))]


def _store(run: Path) -> AbstractContextManager[StoreReader]:
    return open_readonly(RunFiles(run).require_store(), what="run.db")


def _read_manifest(path: Path) -> Json:
    """Read the needed part of a manifest; if it is invalid, read all of it to report why."""
    try:
        manifest = _load_json(path)
        if not list(_defects(manifest)):
            return dict(manifest)
    except (OSError, ValueError, RecursionError):
        pass
    from coreeval.runs.manifest import read_original_manifest

    complete = read_original_manifest(path).model_dump(mode="json")
    for defect in _defects(complete):
        raise RunStateError(
            f"the manifest is damaged: {defect}",
            where=str(path),
            hint="restore the file from a backup, or start a new run",
        )
    return complete


def _defects(manifest: object) -> Iterator[str]:
    """Yield the defects of the values read here, compared with `Manifest` and the run's config."""
    if not isinstance(manifest, dict):
        yield "it is not an object"
        return
    texts = {key: manifest.get(key) for key in _TEXTS}
    texts |= {key: manifest.get(key, "") for key in _MAYBE_TEXTS}
    yield from (
        f"{key} is not a text" for key, value in texts.items() if not isinstance(value, str)
    )
    yield from (f"{key} is not a time" for key in _TIMES if not _is_time(manifest.get(key)))
    if manifest.get("status") not in STATUSES:
        yield f"status is not one of {', '.join(STATUSES)}"
    if not isinstance(manifest.get("control"), dict | None):
        yield "control is not an object"
    yield from _defects_of_models(manifest.get("models"))
    yield from _defects_of_cost(manifest.get("cost"))


def _is_time(said: object) -> bool:
    """Return whether a value is an ISO time, or empty for a run that has not ended."""
    try:
        return isinstance(said, str) and bool(not said or datetime.fromisoformat(said))
    except ValueError:
        return False


def _defects_of_models(models: object) -> Iterator[str]:
    if not isinstance(models, dict):
        yield "models is not an object"
        return
    for role in ROLES:
        asked = models.get(role) or models.get("default")
        if not (isinstance(asked, dict) and isinstance(asked.get("model"), str)):
            yield f"models has no model for {role}"


def _defects_of_cost(cost: object) -> Iterator[str]:
    if not isinstance(cost, dict):
        yield "cost is not an object"
        return
    if not (_is_sum(cost.get("budget_usd", "")) and isinstance(cost.get("unknown_usd"), _NUMBER)):
        yield "cost has no budget_usd or unknown_usd"
    rows = cost.get("by_model")
    if not (isinstance(rows, list) and all(map(_is_paid_row, rows))):
        yield "cost.by_model is not a list of costs by model"


def _is_paid_row(row: object) -> bool:
    if not (isinstance(row, dict) and "cached" in row and _is_sum(row.get("usd", ""))):
        return False
    return all(isinstance(row.get(key), int) for key in ("calls", "priced"))


def _is_sum(usd: object) -> bool:
    """Return whether a value is a number, or None for an unknown sum."""
    return isinstance(usd, _NUMBER | None)


def _status_at_rest(recorded: str) -> str:
    """Return the status of a run whose lock is free: `killed` if the manifest says `running`."""
    return "killed" if recorded == "running" else recorded


@dataclass(frozen=True, kw_only=True)
class _RunState:
    """The progress of a run according to one run.db."""

    counts: dict[str, int]
    bad_rows: int
    cache_use: tuple[CacheUse, ...]
    beat: Json | None
    """The heartbeat's row; None if there is none."""


def _read_state(run: Path) -> _RunState:
    with _store(run) as store:
        rows = [dict(row) for row in store.execute(_STATE).fetchall()]
    found = {row["name"]: row["number"] for row in rows if row["kind"] == "outcome"}
    (last,) = (row for row in rows if row["kind"] == "process")
    counts = {outcome: found.get(outcome, 0) for outcome in ENDS}
    return _RunState(
        counts={
            "total": last["total"],
            **counts,
            "pending": last["total"] - sum(counts.values()),
        },
        bad_rows=last["bad_rows"],
        cache_use=tuple(
            CacheUse(
                role=row["name"],
                model=row["model"],
                prompt_tokens=row["number"],
                cached_tokens=row["cached"],
                cached_share=row["cached"] / row["number"],
            )
            for row in rows
            if row["kind"] == "tokens"
        ),
        beat=last if last["at"] is not None else None,
    )


def _roles_by_rules(models: Json) -> list[str]:
    asked = {role: models.get(role) or models["default"] for role in ROLES}
    return [role for role in ROLES if asked[role]["model"].partition(":")[0] in _BY_RULES]


def _read_spend(manifest: Json, works: bool, run: Path) -> Spend:
    """Return the ledger's sums for a live or killed run, else the manifest's sums."""
    cost = manifest["cost"]
    if works or manifest["status"] == "running":
        calls, payer = _find_calls(manifest, run)
        return SpendingReader(calls, payer, cost["budget_usd"]).now()
    paid = [row for row in cost["by_model"] if not row["cached"]]
    return Spend(
        billed_usd=round(sum(row["usd"] or 0.0 for row in paid), DIGITS),
        reserved_usd=cost["unknown_usd"],
        unpriced=sum(row["calls"] - row["priced"] for row in paid),
        budget_usd=cost["budget_usd"],
    )


def _find_calls(manifest: Json, run: Path) -> tuple[Path, str]:
    """Return the call store of a run, and the run's name there."""
    payer = name_payer(manifest["run"], manifest["now"], manifest.get("cassette", ""))
    workspace = find_workspace(Path(manifest["workspace"]), run.resolve(), payer)
    return Workspace(workspace).calls, payer


def _read_batches(manifest: Json, run: Path, now: Clock) -> BatchSummary:
    calls, payer = _find_calls(manifest, run)
    return read_batches(calls, payer, now=now)


def _read_life_sign(beat: Json, now: Clock) -> LifeSign:
    age = round(_seconds_since(beat["at"], now), 1)
    return LifeSign(pid=beat["pid"], host=beat["host"], at=beat["at"], age_s=age)


def _pulse(beat: Json, age_s: float) -> ProgressSnapshot | None:
    """Return the process's last report, with its age added to the workers' silence."""
    told = json.loads(beat.get("pulse") or "null")
    if not told:
        return None
    pulse = ProgressSnapshot.of(told)
    workers = (replace(each, age_s=round(each.age_s + age_s, 1)) for each in pulse.workers)
    return replace(pulse, workers=tuple(workers))


def _find_stuck(beat: Json, now: Clock) -> tuple[StuckSample, ...]:
    """Return the samples that have been in one step for too long."""
    return tuple(
        StuckSample(sample=sample, **place)
        for sample, place in json.loads(beat["in_flight"]).items()
        if _seconds_since(place["since"], now) > STUCK_AFTER_S
    )


def _seconds_since(moment: str, now: Clock) -> float:
    return max(0.0, (now() - datetime.fromisoformat(moment)).total_seconds())
