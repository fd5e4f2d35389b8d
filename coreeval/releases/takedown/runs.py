"""Removes a person from a run's directory: from run.db and its results. The run stays resumable.

A sample whose original text names the person is removed from the run and replaced by a bad row, so
that the counts still add up. A sample whose new text or news names the person is open again, and
`resume` asks about it again. An open sample that was offered such news starts again, with a new
search; a failed one does so on `retry`. Other texts about samples are blanked. The calls of a
removed sample keep their cost, under a neutral id.
"""

import json
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from coreeval.agents.name_finder import TAKEN_DOWN, NameFinder
from coreeval.errors import CoreEvalError, RunStateError
from coreeval.releases.takedown.calls import (
    UNREADABLE_FILE,
    TextMatches,
    erase_checkpoints,
    find_original,
    open_database,
    report_copy,
    transaction,
)
from coreeval.releases.takedown.documents import DAMAGED, count_matches, report_unreadable
from coreeval.runs.arms import ANY_SHARD
from coreeval.runs.manifest import Manifest, full_counts, read_original_manifest, write_manifest
from coreeval.tasks.kinds import find_kind
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.foreign_schema import SEARCH_INDEX
from coreeval.tools.stores.heartbeat import StoreDatabase
from coreeval.tools.stores.places import find_schema, has_store
from coreeval.tools.stores.run_history import TRAIN_PREFIX
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import TARGET_SUBJECT
from coreeval.tools.stores.run_triggers import PURGE_INDEX, RUN_SCHEMA
from coreeval.tools.workspace import RunFiles, command

REASON = "taken down: it names someone who asked to be forgotten"
"""The reason of the bad row for a sample that was removed from the run."""
_TEXT_TABLES = {
    "results": (("sample_id",), ("reason", "cause")),
    "steps": (("sample_id", "attempt", "node"), ("error", "detail")),
    "verdicts": (("sample_id", "attempt", "node", "name"), ("reason",)),
    "calls": (("sample_id", "attempt", "node", "key"), ("tries", "error")),
    "bad_rows": (("seq",), ("reason", "text")),
    "searches": (("sample_id",), ("asked", "need", "passages")),
    "stages": (("name",), ("detail",)),
    "fetches": (("seq",), ("notes",)),
    "heartbeat": (("id",), ("in_flight", "pulse")),
}
"""Tables with the key of their rows and the columns in which texts are blanked."""
_SAMPLE_TABLES = ("facts", "steps", "searches", "verdicts", "predictions", "results")
"""Tables with rows about a sample; the cost of its calls is kept."""
_NEUTRAL_ID = "taken down/"
"""The beginning of the id of calls whose sample left the run."""
_KEPT_COLUMNS = {
    "samples": ("split", "label_text"),
    "train_items": ("split", "label_text"),
    "results": ("kept_from",),
    "calls": ("model",),
    "predictions": ("target", "source"),
    "bad_rows": ("file",),
    "heartbeat": ("host",),
}
"""Names that the user chose, without which the run could not be resumed."""
_KEPT_NOTE = (
    "you chose the names of labels, splits, models, files, releases and machines, so they are "
    "left unchanged: delete the run to remove them"
)
_ERASED_NEWS = {"url": "", "domain": "", "title": TAKEN_DOWN, "snippet": "", "entities": [],
            "origin": ""}  # fmt: skip


@dataclass(frozen=True)
class RunMatches:
    """The matches in a run: ids of samples and train items, keys of rows."""

    samples: set[str]
    train: set[str]
    evidence: set[str]
    kept_evidence: set[str]
    reopened: set[str]
    predictions: list[tuple[object, ...]]
    told: Mapping[str, list[tuple[object, ...]]] = field(default_factory=dict)
    """For each table, the new values of rows with their keys."""
    failed: frozenset[str] = frozenset()
    """The failed samples whose search found news that names the person."""
    judged: frozenset[str] = frozenset()
    """The samples whose original a blind judge answered with the name."""
    call_ids: Mapping[str, str] = field(default_factory=dict)
    """The ids of samples that calls refer to, with the neutral ids to put in their place."""
    kept: frozenset[str] = frozenset()
    """Names of labels, models and the like that name the person and stay."""
    original: RunStateError | None = None
    """The error that names the original, if the store is in PostgreSQL and this folder a copy."""

    @property
    def unfinished(self) -> bool:
        """Return whether erasing the matches makes the run's results incomplete."""
        return bool(self.samples or self.train or self.reopened or self.predictions)

    @property
    def in_rows(self) -> bool:
        """Return whether rows must be changed."""
        rows = (self.evidence, self.kept_evidence, self.call_ids, *self.told.values())
        return self.unfinished or any(rows)

    @property
    def gone(self) -> set[str]:
        """Return the samples whose checkpoints must be deleted."""
        return self.samples | self.train | self.reopened


def find_matches(path: Path, finder: NameFinder) -> RunMatches:
    """Return the matches in a run.db for a person.

    Raises:
        RunError: the run.db cannot be used or is damaged.
    """
    RunStore.open(path, now=utc_now).close()  # refuses one of another version
    with open_database(path, dry=True, known=RUN_SCHEMA.known) as database:
        evidence = _matching_ids(database, finder, "evidence", "body")
        kept = _matching_ids(database, finder, "kept_evidence", "body")
        samples = _matching_ids(database, finder, "samples", "id", "fields", "cluster")
        train = _matching_ids(
            database, finder, "train_items", "id", "fields", "cluster", "semantic", "reason"
        )
        offered, failed = _find_offered(database, evidence)
        reopened = {*offered, *_rewritten_samples(database, finder, evidence | kept)} - samples
        judged, labels = _find_judged(database, finder)
        return RunMatches(
            samples=samples,
            train=train,
            evidence=evidence,
            kept_evidence=kept,
            reopened=reopened,
            predictions=list(_predictions(database, finder)),
            told={table: list(_matching_rows(database, finder, table)) for table in _TEXT_TABLES},
            failed=failed - reopened,
            judged=judged - samples,
            call_ids={
                **_earlier_ids(database, finder),
                **_neutral_ids(database, "samples", _NEUTRAL_ID, samples),
                **_neutral_ids(database, "train_items", TRAIN_PREFIX + _NEUTRAL_ID, train),
            },
            kept=frozenset(filter(finder.finds, (*_kept_names(database), *labels))),
            original=find_original(path),
        )


def _matching_ids(
    database: StoreDatabase, finder: NameFinder, table: str, *columns: str
) -> set[str]:
    """Return the ids of the rows in a table that name a person."""
    rows = database.execute(f"SELECT id AS place, {', '.join(columns)} FROM {table}")
    return {row["place"] for row in rows if _matches_name(row[1:], finder)}


def _neutral_ids(
    database: StoreDatabase, table: str, prefix: str, ids: Collection[str]
) -> dict[str, str]:
    """Return a neutral id for each of the ids."""
    rows = database.execute(f"SELECT id, seq FROM {table}")
    return {row["id"]: f"{prefix}{row['seq']}" for row in rows if row["id"] in ids}


def _earlier_ids(database: StoreDatabase, finder: NameFinder) -> dict[str, str]:
    """Return neutral ids for calls that name a person by the id of a removed sample."""
    rows = database.execute("SELECT DISTINCT sample_id FROM calls")
    named = [each for (each,) in rows if _is_sample_id(each) and finder.finds(each)]
    return {each: f"{_NEUTRAL_ID}{secrets.token_hex(4)}" for each in named}


def _is_sample_id(subject: str) -> bool:
    return not subject.startswith(TARGET_SUBJECT)


def _kept_names(database: StoreDatabase) -> Iterator[str]:
    """Yield the names in a run that the user chose, and those of targets."""
    for table, columns in _KEPT_COLUMNS.items():
        for column in columns:
            rows = database.execute(f"SELECT DISTINCT {column} FROM {table}")
            yield from (value for (value,) in rows if isinstance(value, str))
    for (subject,) in database.execute("SELECT DISTINCT sample_id FROM steps"):
        if not _is_sample_id(subject):
            yield subject.removeprefix(TARGET_SUBJECT)


def _find_judged(
    database: StoreDatabase, finder: NameFinder
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the samples that a blind judge answered with a name, and the labels with one."""
    judged, labels = set[str](), set[str]()
    for row in database.execute(
        "SELECT r.sample_id, r.original_label, s.fields, s.label_text FROM results r "
        "JOIN samples s ON s.id = r.sample_id"
    ):
        said = row["original_label"]
        if not _matches_name([said], finder):
            continue
        if _is_read_as_text(row["fields"], row["label_text"]):
            judged.add(row["sample_id"])
        else:
            labels.add(said)
    return frozenset(judged), frozenset(labels)


def _is_read_as_text(fields: str, label: str) -> bool:
    """Return whether a judge's verdict on a sample is a text; also if the sample is damaged."""
    try:
        return find_kind(dict(json.loads(fields)), str(label)).is_read_as_text
    except (ValueError, TypeError, RecursionError):
        return True


def _matches_name(values: Iterable[object], finder: NameFinder) -> bool:
    return any(map(finder.finds_in, values))  # also bytes, in a run from somebody else


def _rewritten_samples(
    database: StoreDatabase, finder: NameFinder, evidence: set[str]
) -> Iterator[str]:
    """Yield the samples whose new texts, facts or supporting news name a person."""
    for row in database.execute("SELECT sample_id, semantic, updated FROM results"):
        if _matches_name(row[1:], finder):
            yield row["sample_id"]
    facts = 'SELECT sample_id, evidence_id, "before", "after", quote FROM facts'
    for row in database.execute(facts):
        if row["evidence_id"] in evidence or _matches_name(row[2:], finder):
            yield row["sample_id"]


def _find_offered(
    database: StoreDatabase, evidence: set[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the open and the failed samples whose search found some of this evidence."""
    found = {"": set[str](), "failed": set[str]()}
    for row in database.execute(
        "SELECT w.sample_id, w.events, coalesce(r.outcome, '') AS outcome FROM searches w "
        "LEFT JOIN results r ON r.sample_id = w.sample_id"
    ):
        if row["outcome"] in found and not evidence.isdisjoint(_list_reports(row["events"])):
            found[row["outcome"]].add(row["sample_id"])
    return frozenset(found[""]), frozenset(found["failed"])


def _list_reports(events: str) -> set[str]:
    """Return the ids of the news in the events of a search; none if they are damaged."""
    try:
        return {known for _, _, reports in json.loads(events) for known in reports}
    except (ValueError, TypeError, RecursionError):
        return set()


def _predictions(database: StoreDatabase, finder: NameFinder) -> Iterator[tuple[object, ...]]:
    key = "target, source, template, sample_id"
    for row in database.execute(f"SELECT {key}, answer, reason FROM predictions"):
        if _matches_name(row[4:], finder):
            yield tuple(row[:4])


def _matching_rows(
    database: StoreDatabase, finder: NameFinder, table: str
) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a table that name a person: their blanked texts, then their key."""
    key, columns = _TEXT_TABLES[table]
    for row in database.execute(f"SELECT {', '.join((*columns, *key))} FROM {table}"):
        texts = row[: len(columns)]
        if _matches_name(texts, finder):
            yield (*(_blank_text(text, finder) for text in texts), *row[len(columns) :])


def _blank_text(text: object, finder: NameFinder) -> object:
    """Return a text without the names; in JSON, only the values with names are blanked."""
    if not isinstance(text, str | bytes) or not finder.finds_in(text):
        return text
    try:
        value = json.loads(text)
        blanked = json.dumps(finder.blanked(value))
    except (ValueError, RecursionError):
        return TAKEN_DOWN
    return TAKEN_DOWN if isinstance(value, str) or finder.finds(blanked) else blanked


# -- taking it out --------------------------------------------------------------------------------


def erase_rows(path: Path, named: RunMatches) -> None:
    """Delete and blank the matches in one transaction.

    Raises:
        RunError: the file cannot be used, is damaged, or is in use by another process.
    """
    with open_database(path, dry=False, known=RUN_SCHEMA.known) as database, transaction(database):
        for table, rows in named.told.items():
            key, columns = _TEXT_TABLES[table]
            values = ", ".join(f"{column} = ?" for column in columns)
            database.executemany(f"UPDATE {table} SET {values} WHERE {_equal(key)}", rows)
        _blank_evidence(database, "evidence", named.evidence)
        _blank_evidence(database, "kept_evidence", named.kept_evidence)
        blanked = [(TAKEN_DOWN, each) for each in named.judged]
        database.executemany("UPDATE results SET original_label = ? WHERE sample_id = ?", blanked)
        key = ("target", "source", "template", "sample_id")
        database.executemany(f"DELETE FROM predictions WHERE {_equal(key)}", named.predictions)
        for sample in named.samples:
            _drop_sample(database, sample)
        gone = [(each,) for each in named.gone]
        for table in _SAMPLE_TABLES:
            database.executemany(f"DELETE FROM {table} WHERE sample_id = ?", gone)
        failed = [(each,) for each in named.failed]
        database.executemany("DELETE FROM searches WHERE sample_id = ?", failed)
        for sample in named.samples:
            database.execute("DELETE FROM listing WHERE sample = ?", (sample,))
        ids = [(new, old) for old, new in named.call_ids.items()]
        database.executemany("UPDATE calls SET sample_id = ? WHERE sample_id = ?", ids)
        train = [(each,) for each in named.train]
        database.executemany("DELETE FROM train_items WHERE id = ?", train)
        if named.unfinished:
            database.execute("DELETE FROM stages")
        if find_schema(path) is None:
            _purge_index(database)


def _purge_index(database: StoreDatabase) -> None:
    """Rewrite the index of searches, in which deleted words otherwise stay for a while."""
    named = "SELECT 1 FROM sqlite_master WHERE name = ?"
    if database.execute(named, (SEARCH_INDEX,)).fetchone():
        database.execute(PURGE_INDEX)


def reopen_stages(path: Path) -> None:
    """Mark the stages of a run as not done, so that they run again.

    Raises:
        RunError: the file cannot be used, is damaged, or is in use by another process.
    """
    with open_database(path, dry=False, known=RUN_SCHEMA.known) as database, transaction(database):
        database.execute("DELETE FROM stages")


def _equal(key: Iterable[str]) -> str:
    return " AND ".join(f"{column} = ?" for column in key)


def _blank_evidence(database: StoreDatabase, table: str, ids: Iterable[str]) -> None:
    """Keep only the id and time of pieces of news, because sample histories refer to them."""
    for each in ids:
        (row,) = database.execute(f"SELECT body FROM {table} WHERE id = ?", (each,)).fetchall()
        body = json.dumps(_erase_news(row["body"]))
        database.execute(f"UPDATE {table} SET body = ? WHERE id = ?", (body, each))


def _erase_news(body: str) -> dict[str, object]:
    try:
        return dict(json.loads(body)) | _ERASED_NEWS
    except (ValueError, TypeError, RecursionError):
        return dict(_ERASED_NEWS)


def _drop_sample(database: StoreDatabase, sample: str) -> None:
    """Delete a sample, and record its line as a bad row."""
    place = "SELECT seq FROM samples WHERE id = ?"
    (seq,) = database.execute(place, (sample,)).fetchone()
    # results first: while the sample exists, their trigger marks it as open again
    database.execute("DELETE FROM results WHERE sample_id = ?", (sample,))
    database.execute("DELETE FROM sought WHERE seq = ?", (seq,))
    database.execute("DELETE FROM samples WHERE id = ?", (sample,))
    row = ("benchmark", seq, REASON, "")
    database.execute("INSERT INTO bad_rows (file, line, reason, text) VALUES (?, ?, ?, ?)", row)


def iter_found(path: Path, named: RunMatches) -> Iterator[TextMatches]:
    """Yield the counts of matches by kind and action."""
    blanked = {"news": len(named.evidence | named.kept_evidence)} | {
        f"texts of {table}": len(rows) for table, rows in named.told.items()
    }
    blanked["answers of the label judge"] = len(named.judged)
    blanked["ids of samples taken down"] = len(named.call_ids.keys() - named.samples - named.train)
    for kind, count in blanked.items():
        if count:
            yield TextMatches(kind=kind, path=path, count=count, action="blanked")
    if named.reopened:
        yield TextMatches(kind="samples", path=path, count=len(named.reopened), action="reopened")
    deleted = {
        "samples of the benchmark": len(named.samples),
        "train items": len(named.train),
        "answers of targets": len(named.predictions),
    }
    for kind, count in deleted.items():
        if count:
            yield TextMatches(kind=kind, path=path, count=count, action="deleted")
    if named.kept:
        yield TextMatches(
            kind="names in a run", path=path, count=len(named.kept), action="reported",
            to_do=_KEPT_NOTE,
        )  # fmt: skip


_ARMS = ("updated", "semantic", "control", "provenance")
"""Pattern for the files of an arm in any split."""


_SCORED = ("membership", "exchangeability")
"""The detectors that keep the texts as token numbers."""


def list_results(files: RunFiles) -> list[Path]:
    """Return the result files of a run, which `resume` or the detector writes again."""
    shards = (path for arm in _ARMS for path in sorted(files.dataset.glob(f"{arm}/{ANY_SHARD}")))
    others = (files.dataset / "README.md", files.report_html, files.report_json, files.items)
    scores = (
        path for name in _SCORED for path in sorted(files.detector_folder(name).glob("*.jsonl"))
    )
    return [
        path for path in (*shards, *others, *scores) if path.is_file() and not path.is_symlink()
    ]


def erase_from_run(files: RunFiles, finder: NameFinder, *, dry: bool) -> Iterator[TextMatches]:
    """Erase the names from a run's stores and results.

    If this changes the results, the result files are deleted and the run becomes an interrupted
    one. Damaged files are reported, and the others are still searched; if a store is damaged, only
    result files with a name are deleted, because the others cannot be made again before this is
    repeated with a restored store. If the manifest is damaged, the run becomes an interrupted one
    when this is repeated with a restored manifest.

    In a copy of a run in PostgreSQL, whose store only the original may change, only result files
    with a name are deleted, too, and the store is reported if it has the name.

    Raises:
        RunError: a store cannot be used now, or is in use by another process.
    """
    damaged, unread_manifest = dict[Path, Exception](), dict[Path, Exception]()
    manifest: Manifest | None = None  # also if the run was killed at its start
    with _noting(unread_manifest, files.manifest):
        manifest = read_original_manifest(files.manifest) if files.manifest.exists() else None
    named, copies = _find_in_stores(files, finder, damaged)
    naming, unread = _find_in_results(files, finder)
    affected = bool(naming) or any(each.unfinished for each in named.values())
    affected = affected or (files in named and _was_damaged(files.store, manifest))
    reopened = affected or (files in named and _has_no_stage(files.store))
    gone = naming if damaged or copies else list_results(files) if affected else []
    if reopened and not dry and manifest and manifest.status == "complete":
        manifest = manifest.model_copy(update={"status": "interrupted"})
        write_manifest(files.manifest, manifest)
    if affected and not dry:
        if files in named:
            reopen_stages(files.store)
        for path in gone:
            path.unlink(missing_ok=True)
    for each, found in (*named.items(), *copies.items()):
        yield from _erase_from_stores(each, found, finder, damaged, dry=dry)
    if reopened and not dry and manifest and files in named and files.store not in damaged:
        _update_counts(files, manifest)
    if affected:
        yield TextMatches(
            kind="results of the run",
            path=files.root,
            count=len(gone),
            action="deleted",
            to_do=_find_next_step(files, {*damaged, *unread_manifest, *copies}, manifest),
        )
    yield from (_report_manifest(*each) for each in unread_manifest.items())
    left = {path: error for path, error in unread.items() if path not in gone}
    yield from (report_unreadable(*each) for each in (damaged | left).items())


def _find_in_stores(
    files: RunFiles, finder: NameFinder, damaged: dict[Path, Exception]
) -> tuple[Mapping[RunFiles, RunMatches], Mapping[RunFiles, RunMatches]]:
    """Return the matches of each pass whose store can be read; note the damaged stores.

    The second part has the stores that can only be read, because this folder is a copy.
    """
    named, copies = dict[RunFiles, RunMatches](), dict[RunFiles, RunMatches]()
    for each in (files, files.control):
        if has_store(each.store):
            with _noting(damaged, each.store):
                found = find_matches(each.store, finder)
                (copies if found.original else named)[each] = found
    return named, copies


def _find_in_results(
    files: RunFiles, finder: NameFinder
) -> tuple[Sequence[Path], Mapping[Path, Exception]]:
    """Return the result files that name the person, and the errors of damaged ones."""
    naming, unread = list[Path](), dict[Path, Exception]()
    for path in list_results(files):
        with _noting(unread, path):
            if count_matches(path, finder):
                naming.append(path)
    return naming, unread


def _erase_from_stores(
    files: RunFiles,
    found: RunMatches,
    finder: NameFinder,
    damaged: dict[Path, Exception],
    *,
    dry: bool,
) -> Iterator[TextMatches]:
    """Erase the matches from the stores of one pass; note the damaged stores."""
    if found.original and found.in_rows:
        yield report_copy(files.store, found.original)
    elif not found.original:
        with _noting(damaged, files.store):
            if not dry:
                erase_rows(files.store, found)
            yield from iter_found(files.store, found)
    with _noting(damaged, files.checkpoints):
        yield from erase_checkpoints(files.checkpoints, finder, found.gone, dry=dry)


@contextmanager
def _noting(damaged: dict[Path, Exception], path: Path) -> Iterator[None]:
    """Note the error of a damaged file in the block, and go on after it."""
    try:
        yield
    except DAMAGED as error:
        damaged[path] = error


def list_searched(files: RunFiles) -> set[Path]:
    """Return the paths under which `erase_from_run` may report that a run is not searched."""
    passes = (files, files.control)
    stores = (path for each in passes for path in (each.store, each.checkpoints))
    return {files.root, files.manifest, *stores, *list_results(files)}


_REPEATED_NOTE = (
    "the run replays a cassette, which also contains the names and would restore them: delete the "
    "run and the cassette"
)


def _find_next_step(files: RunFiles, damaged: Collection[object], manifest: Manifest | None) -> str:
    """Return the command that makes the results again; empty if damage prevents that."""
    if manifest and manifest.cassette:
        return _REPEATED_NOTE
    return "" if damaged else command("resume", files.root)


def _report_manifest(path: Path, error: Exception) -> TextMatches:
    said = error.message if isinstance(error, CoreEvalError) else error
    return TextMatches(
        kind=UNREADABLE_FILE,
        path=path,
        count=1,
        action="reported",
        to_do=f"{said}; restore it from a backup, then run this command again, or delete the run",
    )


def _was_damaged(store: Path, manifest: Manifest | None) -> bool:
    """Return whether the store was damaged when a takedown deleted results of the run.

    The run has been an interrupted one since, but the restored store says that its report exists.
    """
    if manifest is None or manifest.status != "interrupted":
        return False
    with open_database(store, dry=True, known=RUN_SCHEMA.known) as database:
        query = "SELECT 1 FROM stages WHERE name = 'report'"
        return database.execute(query).fetchone() is not None


def _has_no_stage(store: Path) -> bool:
    """Return whether all stages of a run are open.

    Its manifest may still say that it is complete, if it was damaged when a takedown reopened the
    stages, and was then restored.
    """
    with open_database(store, dry=True, known=RUN_SCHEMA.known) as database:
        return database.execute("SELECT 1 FROM stages LIMIT 1").fetchone() is None


def _update_counts(files: RunFiles, manifest: Manifest) -> None:
    """Update the sample counts in the manifest."""
    with RunStore.open(files.store, now=utc_now) as store:
        counts, bad = full_counts(store.total(), store.counts()), len(store.bad_rows())
    write_manifest(files.manifest, manifest.model_copy(update={"counts": counts, "bad_rows": bad}))
