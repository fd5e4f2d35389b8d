"""Triggers of run.db that maintain a narrow row per sample, and sums of calls, steps and verdicts.

Those for the answers of targets are in `run_correctness`.

Only verdicts on samples count: those on train items say nothing about the benchmark.

The triggers run in the transaction of each change: code that writes a step or a result need not
know of them, and they also undo what a resumed run rewrites or a retried one deletes. So a page
from 100,000 samples, and the figures of 700,000 calls, take milliseconds (benchmarks/viewer.py).
Samples that were not accepted are grouped by their cause: a short form of the reason.
"""

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from functools import cache
from typing import Final, get_args

from sqlalchemy import Connection

from coreeval.meanings import CHECKS
from coreeval.schema import Flag
from coreeval.tools.stores import run_correctness
from coreeval.tools.stores import run_tables as t
from coreeval.tools.stores.foreign_schema import SEARCH_INDEX
from coreeval.tools.stores.places import STORE_VERSIONS
from coreeval.tools.stores.sqlite import Schema

MOST_CAUSE_CHARS = 90
"""The most characters of a cause."""
_SAID = re.compile(
    r"(?P<address>https?://[^\s'\"()]+)|'[^']*'|\"[^\"]*\"|\([^)]{0,400}\)|\d+[.,]\d+|\d{4,}"
)
"""Parts of a message that differ between samples: quoted words, remarks, measures; also addresses,
which are kept."""
_WHY_NONE = ("no_news", "not_covered", "throttled", "rejected", "unavailable")
_NOT_FOUND = re.compile(rf"(?:(?:{'|'.join(_WHY_NONE)})(?:, )?)+(?= for )")
_NO_NEWS = ("the text mentions nothing to search for", "no other news after")
_NONE_FITS = "no news on offer fits"
_NONE_ALLOWED = "the news on offer may not be used"
_UNSAFE = frozenset({*get_args(Flag), *CHECKS})
"""What may make a sample unsafe: a flag of its text, or a check of the new one."""


def cause_of(outcome: str, reason: str) -> str:
    """Return the cause that a sample shares with others of its outcome; "" if it was accepted.

    For a rejection, this is the first check or judge that failed it; for a failure, the message
    without quoted text; for a reason in a model's own words, the question to the model.
    """
    if outcome.startswith("rejected"):
        return reason.partition(":")[0][:MOST_CAUSE_CHARS]
    if outcome == "no_knowledge":
        return _no_news_cause(reason)
    if outcome == "unsafe":
        why = reason.partition(":")[0]
        return why if why in _UNSAFE else _NONE_ALLOWED
    return "" if outcome == "accepted" else _generalise(reason)


def _no_news_cause(reason: str) -> str:
    if found := _NOT_FOUND.match(reason):
        return found.group()
    return next((each for each in _NO_NEWS if reason.startswith(each)), _NONE_FITS)


def is_composed_cause(outcome: str, cause: str) -> bool:
    """Return whether a cause has only words of this code, so that it is no text of anybody else.

    The causes of other outcomes may quote an endpoint, a text, or the answer of a judge.
    """
    if outcome.startswith("rejected"):
        return cause in CHECKS
    if outcome == "no_knowledge":
        return cause in {*_NO_NEWS, _NONE_FITS} or {*cause.split(", ")} <= {*_WHY_NONE}
    return outcome == "unsafe" and cause in {*_UNSAFE, _NONE_ALLOWED}


def _generalise(reason: str) -> str:
    plain = " ".join(_SAID.sub(_shorten, reason.partition("\n")[0]).split())
    return plain if len(plain) <= MOST_CAUSE_CHARS else f"{plain[: MOST_CAUSE_CHARS - 2]} …"


def _shorten(said: re.Match[str]) -> str:
    return said["address"] or "…"


PENDING = "pending"
"""The outcome of a sample that has not ended, so that the outcomes add up to all samples."""

_PENDING_ROW = f"'{PENDING}', '', 0, '', '', NULL, '', 0, 0, 0, 0.0, 0, 0.0"

_PLACE = """
    INSERT INTO listing
    SELECT
        s.seq, s.id, s.label_text, r.outcome, r.cause, r.attempts, r.rung, r.semantic_status,
        r.kept_from, r.ended_at,
        count(c.key), count(c.key) FILTER (WHERE NOT c.cached),
        count(c.usd) FILTER (WHERE NOT c.cached),
        coalesce(sum(CASE WHEN NOT c.cached THEN c.usd END), 0.0),
        coalesce(sum(CASE WHEN NOT c.cached THEN c.prompt_tokens + c.completion_tokens END), 0),
        coalesce((SELECT sum(seconds) FROM steps WHERE sample_id = s.id), 0.0)
    FROM results r
    JOIN samples s ON s.id = r.sample_id
    LEFT JOIN calls c ON c.sample_id = r.sample_id
    {which}
    GROUP BY s.seq, r.sample_id
"""
"""An insert of the row of a finished sample, or of all of them."""

_JOINED = "coalesce((SELECT group_concat(value, char(10)) FROM json_each({column})), '')"
_WORDS = f"{{sample}}.id || char(10) || {_JOINED.format(column='{sample}.fields')}"
_WORDS_OF_RESULT = f"""
    || char(10) || {{result}}.reason || char(10) || {_JOINED.format(column="{result}.semantic")}
    || char(10) || {_JOINED.format(column="{result}.updated")}
"""
_ENDED_WORDS = _WORDS.format(sample="s") + _WORDS_OF_RESULT.format(result="r")

_COUNT_CALL = """
    INSERT INTO call_sums
    SELECT
        NEW.role, NEW.model, NEW.cached, 1, NEW.prompt_tokens, NEW.cached_tokens,
        NEW.completion_tokens, coalesce(NEW.usd, 0.0), CASE WHEN NEW.usd IS NULL THEN 0 ELSE 1 END
    WHERE NOT EXISTS (
        SELECT 1 FROM calls WHERE key = NEW.key
        AND (sample_id, attempt, node) <> (NEW.sample_id, NEW.attempt, NEW.node)
    )
    ON CONFLICT (role, model, cached) DO UPDATE SET
        calls = call_sums.calls + 1,
        prompt_tokens = call_sums.prompt_tokens + excluded.prompt_tokens,
        cached_tokens = call_sums.cached_tokens + excluded.cached_tokens,
        completion_tokens = call_sums.completion_tokens + excluded.completion_tokens,
        usd = call_sums.usd + excluded.usd,
        priced = call_sums.priced + excluded.priced;
"""
_ADD_STEP = """
    INSERT INTO step_sums
    VALUES (NEW.node, 1, NEW.seconds, CASE WHEN NEW.error <> '' THEN 1 ELSE 0 END)
    ON CONFLICT (node) DO UPDATE SET
        steps = step_sums.steps + 1,
        seconds = step_sums.seconds + excluded.seconds,
        errors = step_sums.errors + excluded.errors;
"""
_DROP_STEP = """
    UPDATE step_sums
    SET steps = steps - 1, seconds = seconds - OLD.seconds,
        errors = errors - CASE WHEN OLD.error <> '' THEN 1 ELSE 0 END
    WHERE node = OLD.node;
"""
_ADD_VERDICT = """
    INSERT INTO verdict_sums
    SELECT NEW.name, CASE WHEN NEW.passed THEN 1 ELSE 0 END, CASE WHEN NEW.passed THEN 0 ELSE 1 END
    WHERE NEW.sample_id IN (SELECT id FROM samples)
    ON CONFLICT (name) DO UPDATE SET
        passed = verdict_sums.passed + excluded.passed,
        failed = verdict_sums.failed + excluded.failed;
"""
_DROP_VERDICT = """
    UPDATE verdict_sums
    SET passed = passed - CASE WHEN OLD.passed THEN 1 ELSE 0 END,
        failed = failed - CASE WHEN OLD.passed THEN 0 ELSE 1 END
    WHERE name = OLD.name AND OLD.sample_id IN (SELECT id FROM samples);
"""
_LIST_SAMPLE = f"""
    INSERT INTO listing VALUES (NEW.seq, NEW.id, NEW.label_text, {_PENDING_ROW});
    INSERT INTO sought VALUES (NEW.seq, {_WORDS.format(sample="NEW")});
"""
_LIST_RESULT = f"""
    DELETE FROM listing WHERE seq = (SELECT seq FROM samples WHERE id = NEW.sample_id);
    {_PLACE.format(which="WHERE r.sample_id = NEW.sample_id")};
    UPDATE sought
    SET text = (SELECT {_ENDED_WORDS} FROM samples s JOIN results r ON r.sample_id = s.id
                WHERE s.id = NEW.sample_id)
    WHERE seq = (SELECT seq FROM samples WHERE id = NEW.sample_id);
"""
_UNLIST_RESULT = f"""
    DELETE FROM listing WHERE seq = (SELECT seq FROM samples WHERE id = OLD.sample_id);
    INSERT INTO listing
    SELECT seq, id, label_text, {_PENDING_ROW} FROM samples WHERE id = OLD.sample_id;
    UPDATE sought
    SET text = (SELECT {_WORDS.format(sample="s")} FROM samples s WHERE s.id = OLD.sample_id)
    WHERE seq = (SELECT seq FROM samples WHERE id = OLD.sample_id);
"""
UNINDEXED: Final = "unindexed"
"""The table of the samples that have ended and are not in `SEARCH_INDEX` yet.

That index is an FTS5 table in SQLite files with the trigrams of `sought.text` for such samples. It
has no texts and no positions: it only shows which samples may have a text. Adding each sample
with its result would take six times as long as adding many at once, so heartbeats add them; until
then the sample's number is in `unindexed`. A file without both tables, such as one of an earlier
version, is searched text by text.
"""
MOST_INDEXED = 2000
"""The most samples that one heartbeat adds to the index, in about a tenth of a second."""
_MAKE_INDEX = f"""
    CREATE VIRTUAL TABLE {SEARCH_INDEX}
    USING fts5(text, content='', columnsize=0, detail=none, tokenize='trigram')
"""
_MAKE_UNINDEXED = f"CREATE TABLE {UNINDEXED} (seq INTEGER PRIMARY KEY)"
_INDEX_TABLES = (
    f"CREATE TABLE '{SEARCH_INDEX}_data'(id INTEGER PRIMARY KEY, block BLOB)",
    f"CREATE TABLE '{SEARCH_INDEX}_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID",
    f"CREATE TABLE '{SEARCH_INDEX}_config'(k PRIMARY KEY, v) WITHOUT ROWID",
)
"""The tables that FTS5 creates for the index, for machines without FTS5."""
_PLACE_OF = "(SELECT seq FROM samples WHERE id = {row}.sample_id)"
_QUEUE_RESULT = f"""
    INSERT INTO {UNINDEXED} SELECT seq FROM samples
    WHERE id = NEW.sample_id AND seq NOT IN (SELECT seq FROM {UNINDEXED});
"""
"""Without OR IGNORE: a trigger inherits the conflict handling of the statement that fires it."""
_UNINDEX_RESULT = f"""
    INSERT INTO {SEARCH_INDEX} ({SEARCH_INDEX}, rowid, text)
    SELECT 'delete', seq, text FROM sought
    WHERE seq = {_PLACE_OF.format(row="OLD")} AND seq NOT IN (SELECT seq FROM {UNINDEXED});
"""
_UNQUEUE_RESULT = f"DELETE FROM {UNINDEXED} WHERE seq = {_PLACE_OF.format(row='OLD')};"
_NEXT = f"(SELECT seq FROM {UNINDEXED} ORDER BY seq LIMIT {MOST_INDEXED})"
_INDEX_NEXT = f"""
    INSERT INTO {SEARCH_INDEX} (rowid, text) SELECT seq, text FROM sought WHERE seq IN {_NEXT};
    DELETE FROM {UNINDEXED} WHERE seq IN {_NEXT};
"""
PURGE_INDEX: Final = f"INSERT INTO {SEARCH_INDEX} ({SEARCH_INDEX}) VALUES ('optimize')"
"""Rewrites the index without deleted entries, which otherwise stay for a while."""


@cache
def can_index() -> bool:
    """Return whether SQLite has FTS5 with trigrams: from version 3.34, unless built without."""
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute(_MAKE_INDEX)
        except sqlite3.OperationalError:
            return False
    return True


_TRIGGERS = {
    "INSERT ON samples": _LIST_SAMPLE,
    "INSERT ON results": _LIST_RESULT,
    "UPDATE ON results": _LIST_RESULT,
    "DELETE ON results": _UNLIST_RESULT,
    "INSERT ON calls": _COUNT_CALL,
    "INSERT ON steps": _ADD_STEP,
    "UPDATE ON steps": _DROP_STEP + _ADD_STEP,
    "DELETE ON steps": _DROP_STEP,
    "INSERT ON verdicts": _ADD_VERDICT,
    "UPDATE ON verdicts": _DROP_VERDICT + _ADD_VERDICT,
    "DELETE ON verdicts": _DROP_VERDICT,
}
_INDEXING_TRIGGERS = _TRIGGERS | {
    "INSERT ON results": _LIST_RESULT + _QUEUE_RESULT,
    "UPDATE ON results": _UNINDEX_RESULT + _LIST_RESULT + _QUEUE_RESULT,
    "DELETE ON results": _UNINDEX_RESULT + _UNLIST_RESULT + _UNQUEUE_RESULT,
    "INSERT ON heartbeat": _INDEX_NEXT,
    "UPDATE ON heartbeat": _INDEX_NEXT,
}


def _create(connection: Connection) -> None:
    t.metadata.create_all(connection)
    if can_index():
        for made in (_MAKE_INDEX, _MAKE_UNINDEXED):
            connection.exec_driver_sql(made)
    _make_triggers(connection, "keep", _INDEXING_TRIGGERS if can_index() else _TRIGGERS)
    _add_correctness(connection)


def _create_postgresql(connection: Connection) -> None:
    from coreeval.tools.stores.postgresql_engine import adapt_tables, create_tables

    create_tables(connection, adapt_tables(t.metadata, numbered=[t.results.name]))
    _make_triggers(connection, "keep", _TRIGGERS)
    _add_correctness(connection)


def _add_correctness(connection: Connection) -> None:
    """Add the tables of version 13 for the answers of targets, without any rows."""
    if connection.dialect.name == "postgresql":
        from coreeval.tools.stores.postgresql_engine import adapt_tables, create_tables

        create_tables(connection, adapt_tables(run_correctness.own_metadata))
    else:
        run_correctness.own_metadata.create_all(connection)
    _make_triggers(connection, "count_answers", run_correctness.TRIGGERS)


def _count_answers(connection: Connection) -> None:
    """Migrate a store from version 12 to 13."""
    _add_correctness(connection)
    connection.exec_driver_sql(run_correctness.COUNT_ALL)


def _make_triggers(connection: Connection, name: str, triggers: Mapping[str, str]) -> None:
    there = connection.dialect.name == "postgresql"
    for number, (when, then) in enumerate(triggers.items()):
        own = f"{name}_{number}"
        if there:
            connection.exec_driver_sql(
                f"CREATE FUNCTION {own}() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$ BEGIN {_in_postgresql(then)} RETURN NULL; END $$"
            )
            do = f"FOR EACH ROW EXECUTE FUNCTION {own}()"
            connection.exec_driver_sql(f"CREATE TRIGGER {own} AFTER {when} {do}")
        else:
            connection.exec_driver_sql(_write_trigger(own, when, then))


def _write_trigger(name: str, when: str, then: str) -> str:
    return f"CREATE TRIGGER {name} AFTER {when} BEGIN {then} END"


_EACH_VALUE = re.compile(
    r"\(SELECT group_concat\(value, char\(10\)\) FROM json_each\(([a-zA-Z._]+)\)\)"
)


def _in_postgresql(then: str) -> str:
    """Return a trigger's body for PostgreSQL, in which only the JSON functions differ."""
    joined = (
        r"(SELECT string_agg(value, chr(10)) FROM json_each_text("
        r"CASE WHEN json_typeof(\1) = 'object' THEN \1 END))"
    )
    return _EACH_VALUE.sub(joined, then).replace("char(10)", "chr(10)")


RUN_SCHEMA: Final = Schema(
    version=STORE_VERSIONS["run.db"],
    create=_create,
    create_postgresql=_create_postgresql,
    migrations={12: _count_answers},
    also=(
        _MAKE_INDEX,
        _MAKE_UNINDEXED,
        *_INDEX_TABLES,
        *(
            _write_trigger(f"keep_{number}", when, then)
            for triggers in (_TRIGGERS, _INDEXING_TRIGGERS)
            for number, (when, then) in enumerate(triggers.items())
        ),
    ),
)
"""The schema of run.db."""
