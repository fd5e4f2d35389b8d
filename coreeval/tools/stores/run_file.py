"""Opens run.db, reads its rows, queues writes, and stores the samples kept from a release.

The evidence of samples kept from a release is stored apart from the evidence of this run, which is
complete and takes precedence.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

from sqlalchemy import Connection, Engine, Select, Table, delete, func, select
from sqlalchemy.engine import Result as Found

from coreeval.schema import Evidence, ReplacedFact, Result
from coreeval.tools.clock import Clock
from coreeval.tools.stores import run_tables as t
from coreeval.tools.stores.batch_writer import BatchWriter, Write
from coreeval.tools.stores.heartbeat import refuse_special_file
from coreeval.tools.stores.prepared_statements import InsertStatement, LookupStatement
from coreeval.tools.stores.run_check import explain_fault
from coreeval.tools.stores.run_tables import EvidenceExcerpt, ReleaseSample
from coreeval.tools.stores.run_triggers import RUN_SCHEMA, cause_of
from coreeval.tools.stores.sqlite import Row, create_store, open_store

CHUNK = 2000
"""The number of rows read or written at a time, so that memory does not grow with the dataset."""
FIRST_STAYS = {t.calls: ["cached"], t.evidence: ["body"]}
"""The columns that a second write of the same row does not change."""
_WHAT = "run.db"
T = TypeVar("T")


class RunFile:
    """An open run.db: one writer, any number of readers."""

    def __init__(self, engine: Engine, *, now: Clock, rests_on: Path | None = None) -> None:
        self.engine = engine
        self._writer = BatchWriter(engine, rests_on=rests_on)
        self._now = now
        self.put = _Inserts(engine)
        self.add_result = InsertStatement(engine, t.results, twice="stays")
        self._lookups = list[LookupStatement]()
        self.lost: BaseException | None = None
        """The error of the first failed write that no caller waited for; None if none failed."""

    @classmethod
    def open(cls, path: Path, *, now: Clock, rests_on: Path | None = None) -> Self:
        """Open or create the store.

        Args:
            path: The file.
            now: Returns the current time.
            rests_on: The call store that its calls refer to, if the run will be changed.

        Raises:
            RunCorrupt: the file is damaged, of another version, or a link to another file.
        """
        refuse_special_file(path)
        return cls(open_store(path, RUN_SCHEMA, what=_WHAT), now=now, rests_on=rests_on)

    @staticmethod
    def create(path: Path) -> None:
        """Create a store in PostgreSQL, which `open` then opens.

        Raises:
            ConfigError: `COREEVAL_STORE_URL` is missing.
            RunError: the database cannot be used.
        """
        create_store(path, RUN_SCHEMA, what=_WHAT)

    def hold(self) -> None:
        """Lock the run for this process, if it is in PostgreSQL.

        Raises:
            RunLocked: another process is using it.
            RunStateError: the folder that names the run here is a copy.
            RunError: the database cannot be used.
        """
        self._writer.hold("exclusive")
        self._writer.claim()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file; see `explain_fault` for errors."""
        try:
            self.close()
        finally:
            self.explain_fault(error)

    def explain_fault(self, error: BaseException | None) -> None:
        """Report a reader's error as damage if the file has an invalid row.

        Raises:
            RunCorrupt: the file has an invalid row.
        """
        explain_fault(self.engine, error)

    def close(self) -> None:
        """Write the queue and close the file."""
        try:
            self._writer.close()
        finally:
            for lookup in self._lookups:
                lookup.close()
            self.engine.dispose()

    def prepare_lookup(self, query: Select[Any]) -> LookupStatement:
        """Return a statement for a query of one row that is run for many samples."""
        lookup = LookupStatement(self.engine, query)
        self._lookups.append(lookup)
        return lookup

    def submit(self, writes: Sequence[Write], *, waited_for: bool = True) -> Future[int]:
        """Queue statements; see `BatchWriter.submit`."""
        return self._writer.submit(writes, waited_for=waited_for)

    def note_failure(self, write: Future[int]) -> None:
        """Record the first failure of a queued write, to raise it in the next call that waits."""
        self.lost = self.lost or write.exception()

    def rows(self, query: Select[Any]) -> Iterator[Row]:
        """Return all rows of a query."""
        with self.engine.connect() as connection:
            rows = connection.execute(query).mappings().all()
        return (dict(row) for row in rows)

    def stream(self, query: Select[Any]) -> Iterator[Row]:
        """Stream the rows of a query."""
        with self._stream(query) as found:
            for row in found.mappings():
                yield dict(row)

    def tuples(self, query: Select[Any]) -> Iterator[tuple[Any, ...]]:
        """Stream rows as tuples, since a dict for each would take most of the time."""
        with self._stream(query) as found:
            yield from found

    @contextmanager
    def _stream(self, query: Select[Any]) -> Iterator[Found[Any]]:
        with (
            self.engine.connect().execution_options(yield_per=CHUNK) as connection,
            connection.execute(query) as found,
        ):
            yield found

    def count(self, query: Select[Any]) -> int:
        """Return the number that a counting query returns."""
        with self.engine.connect() as connection:
            return int(connection.execute(query).scalar_one())

    def stamp(self) -> str:
        """Return the current time in the format of the rows."""
        return self._now().isoformat(timespec="milliseconds")


class _Inserts(dict[Table, InsertStatement]):
    """The statements that add or replace rows, by table.

    Each is created on first use, since readers need none.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self.engine = engine

    def __missing__(self, table: Table) -> InsertStatement:
        keep = FIRST_STAYS.get(table, ())
        return self.setdefault(
            table, InsertStatement(self.engine, table, twice="replaces", keep=keep)
        )


class FirstResult:
    """A statement that stores a sample's result with its facts, unless the sample has a result."""

    joins_rows: ClassVar[bool] = False
    """Its count shows whether this process was first."""

    def __init__(self, file: RunFile, facts: Sequence[Row]) -> None:
        self._file, self._facts = file, facts

    def run(self, connection: Connection, rows: Sequence[Row]) -> int:
        """Insert the row of the result and those of its facts; return the number of rows written.

        A second process that inserts the same result waits here for the first one's commit.
        """
        if not self._file.add_result.run(connection, rows):
            return 0
        ids = [row["sample_id"] for row in rows]
        connection.execute(delete(t.facts).where(t.facts.c.sample_id.in_(ids)))
        if self._facts:
            self._file.put[t.facts].run(connection, self._facts)
        return len(rows) + len(self._facts)


class RunCarryOver:
    """The samples that a run kept from a release."""

    def __init__(self, file: RunFile) -> None:
        self._file = file

    def write(self, connection: Connection, kept: Sequence[ReleaseSample]) -> None:
        """Write results, facts and evidence in the caller's transaction."""
        results = [to_result_row(one.result, self._file.stamp()) for one in kept]
        facts = [to_fact_row(n, fact) for one in kept for n, fact in enumerate(one.result.facts)]
        excerpts = {each.evidence.id: each for one in kept for each in one.excerpts}
        for table, rows in (
            (t.results, results),
            (t.facts, facts),
            (t.kept_evidence, [_to_excerpt_row(each) for each in excerpts.values()]),
        ):
            if rows:
                self._file.put[table].run(connection, rows)

    def count_from_release(self) -> int:
        """Return the number of samples taken from a release."""
        known = t.results.c.kept_from
        return self._file.count(select(func.count()).where(known.is_not(None)))

    def ids_from_release(self, samples: Iterable[str]) -> set[str]:
        """Return the ids among `samples` that were taken from a release."""
        known = t.results.c
        query = select(known.sample_id).where(
            known.sample_id.in_(set(samples)), known.kept_from.is_not(None)
        )
        return {sample_id for (sample_id,) in self._file.tuples(query)}

    def excerpts(self, ids: Iterable[str]) -> dict[str, EvidenceExcerpt]:
        """Return the excerpts of evidence that releases contain, by evidence id."""
        wanted = set(ids)
        if not wanted:
            return {}
        query = select(t.kept_evidence).where(t.kept_evidence.c.id.in_(wanted))
        return {
            row["id"]: EvidenceExcerpt(
                evidence=Evidence.model_validate(row["body"]),
                snippet_sha256=row["snippet_sha256"],
            )
            for row in self._file.rows(query)
        }


def to_result_row(result: Result, ended_at: str) -> Row:
    """Return a result as a row of the store."""
    cause = cause_of(result.outcome, result.reason)
    return result.model_dump(mode="json", exclude={"facts"}) | {
        "ended_at": ended_at,
        "cause": cause,
    }


def to_fact_row(number: int, fact: ReplacedFact) -> Row:
    """Return a replaced fact as a row of the store."""
    return fact.model_dump() | {"ord": number}


def _to_excerpt_row(excerpt: EvidenceExcerpt) -> Row:
    evidence = excerpt.evidence
    return {
        "id": evidence.id,
        "body": evidence.model_dump(mode="json"),
        "snippet_sha256": excerpt.snippet_sha256,
    }
