"""What run.db holds of somebody.

A sample whose own text names them leaves the run; what is left is a bad row, so that the counts
still add up. One whose new text does, or rests on news that does, is open again: `resume` asks
anew. Anything else that was said of a sample has its text blanked.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from coreeval.agents.name_finder import TAKEN_DOWN, NameFinder
from coreeval.releases.forgetting.databases import opened, transaction
from coreeval.releases.forgetting.found import Found
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore

REASON = "taken down: it names somebody who asked to be forgotten"
"""What a sample that has left the run has as the reason of its bad row."""
_TOLD = {
    "results": (("sample_id",), ("reason",)),
    "steps": (("sample_id", "attempt", "node"), ("error", "detail")),
    "verdicts": (("sample_id", "attempt", "node", "name"), ("reason",)),
    "calls": (("sample_id", "attempt", "node", "key"), ("tries", "error")),
    "bad_rows": (("seq",), ("reason", "text")),
    "stages": (("name",), ("detail",)),
    "fetches": (("seq",), ("notes",)),
    "heartbeat": (("id",), ("in_flight", "pulse")),
}
"""Tables with the key of their rows and the columns in which texts are blanked."""
_STORY = ("facts", "steps", "verdicts", "predictions", "results")
"""Tables with rows about a sample; what its calls cost stays."""
_NO_NEWS = {"url": "", "domain": "", "title": TAKEN_DOWN, "snippet": "", "entities": [],
            "origin": ""}  # fmt: skip


@dataclass(frozen=True)
class Named:
    """Whom a run names where; ids of samples and train items, keys of rows."""

    samples: set[str]
    train: set[str]
    evidence: set[str]
    kept_evidence: set[str]
    reopened: set[str]
    predictions: list[tuple[object, ...]]
    told: Mapping[str, list[tuple[object, ...]]] = field(default_factory=dict)
    """For each table the new values of rows with their keys."""

    @property
    def unfinished(self) -> bool:
        """Whether the run's results are no more what they were."""
        return bool(self.samples or self.train or self.reopened or self.predictions)

    @property
    def gone(self) -> set[str]:
        """Samples without a place to go on from."""
        return self.samples | self.train | self.reopened


def look(path: Path, finder: NameFinder) -> Named:
    """Return what a run.db has of somebody.

    Raises:
        RunError: it cannot be used or is damaged.
    """
    RunStore.open(path, now=utc_now).close()  # brings an older file to the newest tables
    with opened(path, dry=True) as database:
        evidence = _ids(database, finder, "evidence", "body")
        kept = _ids(database, finder, "kept_evidence", "body")
        samples = _ids(database, finder, "samples", "id", "fields", "cluster")
        train = _ids(
            database, finder, "train_items", "id", "fields", "cluster", "semantic", "reason"
        )
        reopened = set(_rewritten(database, finder, evidence | kept)) - samples
        return Named(
            samples=samples,
            train=train,
            evidence=evidence,
            kept_evidence=kept,
            reopened=reopened,
            predictions=list(_predictions(database, finder)),
            told={table: list(_told(database, finder, table)) for table in _TOLD},
        )


def _ids(database: sqlite3.Connection, finder: NameFinder, table: str, *columns: str) -> set[str]:
    """Return the ids of the rows of a table that name somebody."""
    rows = database.execute(f"SELECT id AS place, {', '.join(columns)} FROM {table}")
    return {row["place"] for row in rows if _names(row[1:], finder)}


def _names(values: Iterable[object], finder: NameFinder) -> bool:
    return any(finder.finds(value) for value in values if isinstance(value, str))


def _rewritten(
    database: sqlite3.Connection, finder: NameFinder, evidence: set[str]
) -> Iterator[str]:
    """Yield the samples whose new texts or facts name somebody, or rest on news that does."""
    for row in database.execute("SELECT sample_id, semantic, updated FROM results"):
        if _names(row[1:], finder):
            yield row["sample_id"]
    facts = 'SELECT sample_id, evidence_id, "before", "after", quote FROM facts'
    for row in database.execute(facts):
        if row["evidence_id"] in evidence or _names(row[2:], finder):
            yield row["sample_id"]


def _predictions(database: sqlite3.Connection, finder: NameFinder) -> Iterator[tuple[object, ...]]:
    key = "target, source, template, sample_id"
    for row in database.execute(f"SELECT {key}, answer, reason FROM predictions"):
        if _names(row[4:], finder):
            yield tuple(row[:4])


def _told(
    database: sqlite3.Connection, finder: NameFinder, table: str
) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a table that name somebody: what they hold afterwards, and their key."""
    key, columns = _TOLD[table]
    for row in database.execute(f"SELECT {', '.join((*columns, *key))} FROM {table}"):
        texts = row[: len(columns)]
        if _names(texts, finder):
            yield (*(_blanked(text, finder) for text in texts), *row[len(columns) :])


def _blanked(text: object, finder: NameFinder) -> object:
    """Return a text, or what is named in JSON, without what names somebody."""
    if not isinstance(text, str) or not finder.finds(text):
        return text
    try:
        value = json.loads(text)
        blanked = json.dumps(finder.blanked(value))
    except (ValueError, RecursionError):
        return TAKEN_DOWN
    return TAKEN_DOWN if isinstance(value, str) or finder.finds(blanked) else blanked


# -- taking it out --------------------------------------------------------------------------------


def take_out(path: Path, named: Named) -> None:
    """Delete and blank what was found, in one transaction.

    Raises:
        RunError: the file cannot be used, is damaged, or another process uses it.
    """
    with opened(path, dry=False) as database, transaction(database):
        for table, rows in named.told.items():
            key, columns = _TOLD[table]
            values = ", ".join(f"{column} = ?" for column in columns)
            database.executemany(f"UPDATE {table} SET {values} WHERE {_equal(key)}", rows)
        _blank_evidence(database, "evidence", named.evidence)
        _blank_evidence(database, "kept_evidence", named.kept_evidence)
        key = ("target", "source", "template", "sample_id")
        database.executemany(f"DELETE FROM predictions WHERE {_equal(key)}", named.predictions)
        for sample in named.samples:
            _drop(database, sample)
        for table in _STORY:
            ids = [(each,) for each in named.gone]
            database.executemany(f"DELETE FROM {table} WHERE sample_id = ?", ids)
        for sample in named.samples:
            database.execute("DELETE FROM listing WHERE sample = ?", (sample,))
        train = [(each,) for each in named.train]
        database.executemany("DELETE FROM train_items WHERE id = ?", train)
        if named.unfinished:
            database.execute("DELETE FROM stages")


def reopen_stages(path: Path) -> None:
    """Let the stages of a run be done again.

    Raises:
        RunError: the file cannot be used, is damaged, or another process uses it.
    """
    with opened(path, dry=False) as database, transaction(database):
        database.execute("DELETE FROM stages")


def _equal(key: Iterable[str]) -> str:
    return " AND ".join(f"{column} = ?" for column in key)


def _blank_evidence(database: sqlite3.Connection, table: str, ids: Iterable[str]) -> None:
    """Leave of a piece of news its id and its time: stories refer to it."""
    for each in ids:
        (row,) = database.execute(f"SELECT body FROM {table} WHERE id = ?", (each,)).fetchall()
        body = json.dumps(_without_news(row["body"]))
        database.execute(f"UPDATE {table} SET body = ? WHERE id = ?", (body, each))


def _without_news(body: str) -> dict[str, object]:
    try:
        return dict(json.loads(body)) | _NO_NEWS
    except (ValueError, TypeError, RecursionError):
        return dict(_NO_NEWS)


def _drop(database: sqlite3.Connection, sample: str) -> None:
    """Leave of a sample that it was there."""
    place = "SELECT seq FROM samples WHERE id = ?"
    (seq,) = database.execute(place, (sample,)).fetchone()
    # results go first: while the sample is there, their trigger puts it back among the open ones
    database.execute("DELETE FROM results WHERE sample_id = ?", (sample,))
    database.execute("DELETE FROM sought WHERE seq = ?", (seq,))
    database.execute("DELETE FROM samples WHERE id = ?", (sample,))
    row = ("benchmark", seq, REASON, "")
    database.execute("INSERT INTO bad_rows (file, line, reason, text) VALUES (?, ?, ?, ?)", row)


def found_in(path: Path, named: Named) -> Iterator[Found]:
    """Yield what was found, by what becomes of it."""
    blanked = {"news": len(named.evidence | named.kept_evidence)} | {
        f"texts of {table}": len(rows) for table, rows in named.told.items()
    }
    for kind, count in blanked.items():
        if count:
            yield Found(kind=kind, path=path, count=count, action="blanked")
    if named.reopened:
        yield Found(kind="samples", path=path, count=len(named.reopened), action="reopened")
    deleted = {
        "samples of the benchmark": len(named.samples),
        "train items": len(named.train),
        "answers of targets": len(named.predictions),
    }
    for kind, count in deleted.items():
        if count:
            yield Found(kind=kind, path=path, count=count, action="deleted")
