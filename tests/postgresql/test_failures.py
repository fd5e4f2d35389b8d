"""What a database refuses is told as what it is; what is lost on the way is made up for."""

import asyncio
import json
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, text

from coreeval.errors import ConfigError, CoreEvalError, RunCorrupt, RunError, RunLocked
from coreeval.releases.takedown.calls import open_database
from coreeval.schema import Sample
from coreeval.tools.clock import utc_now
from coreeval.tools.stores import postgresql, postgresql_engine
from coreeval.tools.stores.call_store import create_calls, open_calls
from coreeval.tools.stores.call_tables import CALL_SCHEMA
from coreeval.tools.stores.heartbeat import open_readonly
from coreeval.tools.stores.places import URL_VARIABLE, find_schema, marker_of, write_marker
from coreeval.tools.stores.postgresql import StoreUnreachable
from coreeval.tools.stores.postgresql_address import read_server
from coreeval.tools.stores.run_queries import SampleFilter
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import Fetch
from coreeval.tools.stores.run_triggers import RUN_SCHEMA
from coreeval.tools.stores.sqlite import open_store
from tests.postgresql.server import Server
from tests.postgresql.test_call_store import record_of

SECRET = "pass-word:with@signs"


@pytest.fixture
def path(tmp_path: Path, server: Server) -> Path:
    create_calls(tmp_path / "calls.db", "postgresql")
    return tmp_path / "calls.db"


def refusal(path: Path) -> CoreEvalError:
    """Return the error of whoever opens the store, which reading it without SQLAlchemy has too."""
    with pytest.raises(CoreEvalError) as found:
        open_calls(path)
    with (
        pytest.raises(CoreEvalError) as other,
        open_readonly(path, what="the call store") as store,
    ):
        store.execute("SELECT 1 FROM calls LIMIT 1")
    assert type(other.value) is type(found.value)
    assert other.value.message == found.value.message
    assert SECRET not in str(found.value) + str(other.value)
    assert found.value.hint
    return found.value


def test_a_missing_variable_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(URL_VARIABLE)
    error = refusal(path)
    assert isinstance(error, ConfigError)
    assert URL_VARIABLE in error.message


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://me:{SECRET}@host/db",
        f"postgresql://me:{SECRET}%zz@host/db",
        SECRET,
        f"postgresql://me:{SECRET}@host/db?none={SECRET}",
        "postgresql://me:Zk3/9vQsecret@host.example.org:5432/db",
        "postgresql://me:123/9vQsecret@host.example.org:5432/db",
        "postgresql://me:123?9vQsecret@host/db",
        "postgresql://me:p@ss@host:5432/db",
        "postgresql://me:pass@host:five/db",
        "postgresql://me:pass@host/a:b",
        "postgresql://me:pass@host/db?host=a:b",
        "postgresql://me:pass@host/db%40other",
    ],
)
def test_no_address_is_shown_that_is_none(
    path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv(URL_VARIABLE, url)
    error = refusal(path)
    assert error.message == f"{URL_VARIABLE} is not the address of a PostgreSQL database"


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://me:a%2Fb%40c@host:5433/db", "me@host:5433/db"),
        ("postgresql://me:a:b#c@[::1]:5432/db?sslmode=verify-full", "me@::1:5432/db"),
        ("postgresql://me%40realm:pass@one:1,two:2/db", "me@realm@one,two:1,2/db"),
        ("postgresql://me@/db?host=/tmp/x", "me@/tmp/x:5432/db"),
    ],
)
def test_addresses_that_are_understood(
    monkeypatch: pytest.MonkeyPatch, url: str, place: str
) -> None:
    monkeypatch.setenv(URL_VARIABLE, url)
    assert read_server().place == place


def test_no_server_is_an_error_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URL_VARIABLE, "postgresql://me:pass@127.0.0.1:9/db")
    began = time.monotonic()
    error = refusal(path)
    assert time.monotonic() - began < 5
    assert isinstance(error, StoreUnreachable)
    assert "the call store cannot be reached" in error.message
    assert error.where.startswith("me@127.0.0.1:9/db")


def test_a_wrong_password_is_not_shown(
    own_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "calls.db"
    create_calls(path, "postgresql")
    own_server.sql("CREATE ROLE guest LOGIN PASSWORD 'right'")
    own_server.write("pg_hba.conf", "local all guest scram-sha-256\nlocal all all trust\n")
    own_server.sql("SELECT pg_reload_conf()")
    monkeypatch.setenv(URL_VARIABLE, own_server.url_of("guest", SECRET))
    error = refusal(path)
    assert "PostgreSQL refused the user of the call store" in error.message
    assert error.where.startswith("guest@")
    monkeypatch.setenv(URL_VARIABLE, own_server.url_of("stranger"))
    assert "refused the user" in refusal(path).message
    monkeypatch.setenv(URL_VARIABLE, own_server.url_of("tester", database="nowhere"))
    assert "the database of the call store does not exist" in refusal(path).message


def test_another_version_is_refused(path: Path, server: Server) -> None:
    schema = find_schema(path)
    server.sql(f"UPDATE {schema}.schema_version SET version = 99")
    error = refusal(path)
    assert "schema version 99" in error.message
    assert error.hint == "install a newer CoreEval"
    server.sql(f"UPDATE {schema}.schema_version SET version = 1")
    assert "schema version 1;" in refusal(path).message


def test_an_older_version_is_brought_to_this_one(path: Path, server: Server) -> None:
    schema, known = find_schema(path), CALL_SCHEMA.version

    def add(connection: Connection) -> None:
        connection.execute(text("ALTER TABLE calls ADD COLUMN colour TEXT NOT NULL DEFAULT ''"))

    newer = replace(CALL_SCHEMA, version=known + 1, migrations={known: add})
    for _ in range(2):
        open_store(path, newer, what="the call store").dispose()
        assert server.sql(f"SELECT version FROM {schema}.schema_version") == str(known + 1)
    assert server.sql(f"SELECT count(colour) FROM {schema}.calls") == "0"
    assert refusal(path).hint == "install a newer CoreEval"


def test_a_schema_that_is_gone_or_anothers_is_refused(path: Path, server: Server) -> None:
    RunStore.create(path.with_name("run.db"))
    run, calls = marker_of(path.with_name("run.db")), marker_of(path)
    named = calls.read_text()
    calls.write_text(run.read_text())
    assert "the schema does not belong to" in refusal(path).message
    calls.write_text(named)
    server.sql(f"DROP SCHEMA {find_schema(path)} CASCADE")
    error = refusal(path)
    assert "has no such schema" in error.message
    assert "name the right database" in error.hint
    assert server.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'public'") == "1"


@pytest.mark.parametrize(
    "told",
    [
        "",
        "{}",
        "[]",
        '{"store": "postgresql", "schema": "public"}',
        '{"store": "postgresql", "schema": "coreeval_x; DROP TABLE calls"}',
        '{"store": "postgresql", "schema": "coreeval_x", "url": 1',
        '{"store": "mysql", "schema": "coreeval_x"}',
        '{"store": "postgresql", "schema": ["coreeval_x"]}',
    ],
)
def test_a_file_that_names_no_schema_of_ours_is_damage(tmp_path: Path, told: str) -> None:
    path = tmp_path / "run.db"
    marker_of(path).write_text(told)
    with pytest.raises(RunCorrupt, match=r"run\.store\.json does not name a schema"):
        RunStore.open(path, now=utc_now)


def test_a_link_and_a_second_store_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    write_marker(tmp_path / "other.db", "coreeval_other")
    marker_of(path).symlink_to(marker_of(tmp_path / "other.db"))
    with pytest.raises(RunCorrupt, match="is a link"):
        find_schema(path)
    marker_of(path).unlink()
    write_marker(path, "coreeval_one")
    path.touch()
    with pytest.raises(RunCorrupt, match="says that the store is in PostgreSQL"):
        find_schema(path)


async def test_a_database_that_can_only_be_read_is_told(path: Path, server: Server) -> None:
    server.sql("ALTER DATABASE postgres SET default_transaction_read_only = on")
    try:
        with (
            closing(open_calls(path, "me")) as store,
            pytest.raises(RunError, match="the call store is read-only"),
        ):
            await store.put(record_of(1))
    finally:
        server.sql("SET transaction_read_only = off; ALTER DATABASE postgres RESET ALL")


async def test_a_full_disk_is_told(path: Path, server: Server) -> None:
    schema = find_schema(path)
    server.sql(
        f"CREATE FUNCTION {schema}.full() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$; "
        f"CREATE TRIGGER full_disk BEFORE INSERT ON {schema}.calls FOR EACH ROW "
        f"EXECUTE FUNCTION {schema}.full()"
    )
    with (
        closing(open_calls(path, "me")) as store,
        pytest.raises(RunError, match="the disk of PostgreSQL is full"),
    ):
        await store.put(record_of(1))


def test_too_many_connections_are_told(
    own_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_calls(tmp_path / "calls.db", "postgresql")
    own_server.sql("CREATE ROLE few LOGIN SUPERUSER CONNECTION LIMIT 0")
    own_server.sql("ALTER ROLE few NOSUPERUSER")
    monkeypatch.setenv(URL_VARIABLE, own_server.url_of("few"))
    error = refusal(tmp_path / "calls.db")
    assert "PostgreSQL has no connection left" in error.message


def test_two_processes_do_not_work_on_one_run(tmp_path: Path, server: Server) -> None:
    path = tmp_path / "run.db"
    RunStore.create(path)
    with RunStore.open(path, now=utc_now) as store, RunStore.open(path, now=utc_now) as other:
        store.hold()
        with pytest.raises(RunLocked):
            other.hold()
    with RunStore.open(path, now=utc_now) as store:
        store.hold()


async def test_a_lost_connection_is_made_anew_and_nothing_is_lost(
    path: Path, server: Server
) -> None:
    with closing(open_calls(path, "me")) as store:
        for number in range(20):
            reserved = await store.ledger.reserve(record_of(number).key, 0.5, budget_usd=100)
            server.sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'coreeval'"
            )
            record = await store.put(record_of(number), reserved)
            assert await store.find(record.key) == record
        spent = store.ledger.spent()
    assert (spent.billed_usd, spent.unknown_usd) == (5.0, 0.0)


def lose_answers(monkeypatch: pytest.MonkeyPatch, number: int) -> list[int]:
    """Lose the answers to the next commits; return a list that is empty once it is done."""
    run, due = postgresql_engine.WriterSession.run, [*range(number)]

    def run_and_lose(session: object, work: object) -> object:
        found: object = run(session, work)  # type: ignore[arg-type]
        if due:  # as if the answer to the commit had not come
            due.pop()
            return run(session, work)  # type: ignore[arg-type]
        return found

    monkeypatch.setattr(postgresql_engine.WriterSession, "run", run_and_lose)
    return due


async def test_a_commit_whose_answer_is_lost_is_not_made_twice(
    path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection ends after the commit: the group is written again, and finds itself there."""
    with closing(open_calls(path, "me")) as store:
        lost = lose_answers(monkeypatch, 2)
        first = await store.ledger.reserve("k", 1.0, budget_usd=1.0)
        assert first is not None
        record = await store.put(record_of(1, usd=0.5), first)
        assert record == store.get(record.key)
        assert not lost
        spent = store.ledger.spent()
    assert (spent.billed_usd, spent.unknown_usd) == (0.5, 0.0)


async def test_a_server_that_is_killed_and_comes_back_is_waited_for(
    own_server: Server, tmp_path: Path
) -> None:
    path = tmp_path / "calls.db"
    create_calls(path, "postgresql")
    with closing(open_calls(path, "me")) as store:
        await asyncio.gather(*(store.put(record_of(number)) for number in range(50)))
        own_server.kill()
        back = threading.Timer(1.0, own_server.start)
        back.start()
        try:
            await asyncio.gather(*(store.put(record_of(number)) for number in range(50, 60)))
        finally:
            back.join()
        assert len(list(store.records())) == 60


async def test_a_server_that_stays_away_ends_the_work(
    own_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "PATIENCE_S", 1.0)
    monkeypatch.setattr(postgresql_engine, "PATIENCE_S", 1.0)
    path = tmp_path / "calls.db"
    create_calls(path, "postgresql")
    store = open_calls(path, "me")
    await store.put(record_of(1))
    own_server.kill()
    with pytest.raises(StoreUnreachable, match="the call store cannot be reached"):
        await store.put(record_of(2))
    began = time.monotonic()
    with pytest.raises(StoreUnreachable):  # nothing more is tried
        await store.put(record_of(3))
    assert time.monotonic() - began < 0.5
    store.close()


def test_texts_come_back_as_they_were(tmp_path: Path, server: Server) -> None:
    path = tmp_path / "run.db"
    RunStore.create(path)
    ids = ["x\0", "x\ufffd", "x\1", "x", "x\1\1", "x\1\2", "x\0\1"]
    said = {"a\0b": "x\0y", "b": "\\u0000 \\u0001", "c": "\1", "d": "\\\0", "e": ["\0\1\1\2"]}
    samples = [
        Sample(
            id=key,
            split="test",
            fields={"text": f"it says {key} 50%"},
            label=1,
            label_text="joy",
        )
        for key in ids
    ]
    with RunStore.open(path, now=utc_now) as store:
        store.finish_stage("any", said)
        assert store.stage("any") == said
        store.add_samples(samples)
        assert store.sample_ids() == ids
        assert [store.sample(key) for key in ids] == samples
        found = {key: store.listing.page(SampleFilter(text=f"says {key} 50%")).rows for key in ids}
        assert {key: [row.sample for row in rows] for key, rows in found.items()} == {
            key: [key] for key in ids
        }
    with open_readonly(path, what="run.db") as reader:
        rows = reader.execute("SELECT id, fields FROM samples ORDER BY id").fetchall()
        assert [row["id"] for row in rows] == sorted(ids)
        assert {row["id"]: json.loads(row["fields"])["text"] for row in rows} == {
            one.id: one.fields["text"] for one in samples
        }
        (count,) = reader.execute("SELECT count(*) FROM samples WHERE id = ?", ["x\0"]).fetchone()
        assert count == 1


@pytest.fixture
def texts(tmp_path: Path, server: Server) -> Path:
    """Return a run.db with 20 samples, of which the first ten name somebody."""
    path = tmp_path / "run.db"
    RunStore.create(path)
    with RunStore.open(path, now=utc_now) as store:
        store.add_samples(
            Sample(
                id=f"s/{number}",
                split="test",
                fields={"text": f"{'Zoe Quux' if number < 10 else 'a cat'} sang {number}"},
                label=1,
                label_text="joy",
            )
            for number in range(20)
        )
    return path


@pytest.mark.parametrize("those", ["text LIKE '%Zoe Quux%'", "true"], ids=["some", "all"])
def test_statistics_do_not_quote_what_was_deleted(texts: Path, server: Server, those: str) -> None:
    schema = find_schema(texts)
    server.sql(f"ANALYZE {schema}.sought")
    quoted = (
        f"SELECT count(*) FROM pg_stats WHERE schemaname = '{schema}' AND "
        "concat(most_common_vals, histogram_bounds) LIKE '%Zoe Quux%'"
    )
    assert server.sql(quoted) == "1"
    with open_database(texts, dry=False, known=RUN_SCHEMA.known) as store:
        store.execute(f"DELETE FROM sought WHERE {those}")
    assert server.sql(quoted) == "0"
    with open_database(texts, dry=False, known=RUN_SCHEMA.known):  # nothing is left to forget
        pass


def test_a_reader_is_named_and_nothing_is_erased_meanwhile(
    texts: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "PATIENCE_S", 0.5)
    monkeypatch.setattr(postgresql, "_TURN_S", 1)
    with psycopg.connect(server.url, application_name="a report") as reader:
        reader.execute(f"SELECT count(*) FROM {find_schema(texts)}.samples")
        named = rf"run\.db is being read .*: a report \(process {reader.info.backend_pid}\)"
        with (
            pytest.raises(RunLocked, match=named),
            open_database(texts, dry=False, known=RUN_SCHEMA.known),
        ):
            pytest.fail("the block begins")
    with psycopg.connect(server.url, application_name="late") as reader:
        with (
            pytest.raises(RunLocked, match="late"),
            open_database(texts, dry=False, known=RUN_SCHEMA.known) as store,
        ):
            store.execute("DELETE FROM samples")
            reader.execute(f"SELECT count(*) FROM {find_schema(texts)}.samples")
        assert server.sql(f"SELECT count(*) FROM {find_schema(texts)}.samples") == "0"


def test_a_reader_that_ends_in_time_is_waited_for(texts: Path, server: Server) -> None:
    with psycopg.connect(server.url) as reader:
        reader.execute(f"SELECT count(*) FROM {find_schema(texts)}.samples")
        end = threading.Timer(0.5, reader.rollback)
        end.start()
        with open_database(texts, dry=False, known=RUN_SCHEMA.known) as store:
            store.execute("DELETE FROM samples")
        end.join()


def test_large_numbers_are_kept(tmp_path: Path, server: Server) -> None:
    path = tmp_path / "run.db"
    RunStore.create(path)
    fetch = Fetch(backend="bigquery", queries=1, found=1, bytes_billed=2**40)
    with RunStore.open(path, now=utc_now) as store:
        store.add_fetch(fetch)
        assert store.fetches() == [fetch]


def test_a_request_for_news_whose_commit_is_repeated_counts_once(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.db"
    RunStore.create(path)
    requests = [
        Fetch(backend="bigquery", queries=number, found=1, cost_usd=0.5) for number in (1, 2)
    ]
    with RunStore.open(path, now=utc_now) as store:
        lost = lose_answers(monkeypatch, 2)
        for each in requests:
            store.add_fetch(each)
        assert not lost
        assert store.fetches() == requests
