"""The rows of run.db that name a person: finds and erases them."""

import json
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from coreeval.agents.name_finder import TAKEN_DOWN, NameFinder
from coreeval.errors import RunStateError
from coreeval.releases.takedown.calls import (
    TextMatches,
    find_original,
    open_database,
    transaction,
)
from coreeval.tasks.kinds import find_kind
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.foreign_schema import SEARCH_INDEX
from coreeval.tools.stores.heartbeat import StoreDatabase
from coreeval.tools.stores.places import find_schema
from coreeval.tools.stores.run_history import TRAIN_PREFIX
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import TARGET_SUBJECT
from coreeval.tools.stores.run_triggers import PURGE_INDEX, RUN_SCHEMA

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
