"""Runs in PostgreSQL: they come to what runs in files come to, whatever dies on the way."""

import json
import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from coreeval.agents.name_finder import NameFinder
from coreeval.errors import RunError, RunStateError
from coreeval.graph.cassettes.record import record
from coreeval.graph.cassettes.replay import replay
from coreeval.graph.run import retry
from coreeval.releases.takedown.documents import count_matches
from coreeval.releases.takedown.runs import list_results
from coreeval.runs.open import open_run_reader
from coreeval.runs.status import read_bad_lines, read_failures, read_status
from coreeval.tools.files import MOST_INTEGER
from coreeval.tools.stores import postgresql, postgresql_engine
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.places import find_schema, marker_of
from coreeval.tools.stores.run_queries import SORTS, SampleFilter
from coreeval.viewer.app import create_app
from tests.cli.kit import Shell
from tests.graph.conftest import MakeLab
from tests.graph.kit import CONCURRENCY, OPEN, Lab, Undisturbed, assert_whole, ended
from tests.graph.test_workers import workers_of
from tests.postgresql.server import Server
from tests.support.llm_server import refused

IN_POSTGRESQL = {"concurrency": CONCURRENCY, "store": "postgresql"}


@pytest.fixture
def lab(
    make_lab: MakeLab, tmp_path: Path, undisturbed: Undisturbed, server: Server
) -> Iterator[Lab]:
    made = make_lab(tmp_path)
    made.forget()
    made.write(run=IN_POSTGRESQL)
    yield made
    made.forget()


def test_a_run_comes_to_the_same_as_in_files(lab: Lab, undisturbed: Undisturbed) -> None:
    lab.refresh()
    assert_whole(lab, undisturbed)
    assert set(lab.asked()) == undisturbed.asked == lab.answered()
    assert not list(lab.folder.rglob("run.db*"))
    assert not list(lab.folder.rglob("calls.db*"))
    told = json.loads(marker_of(lab.files.store).read_text())
    assert told == {"store": "postgresql", "schema": find_schema(lab.files.store)}


def test_status_reads_it(lab: Lab, undisturbed: Undisturbed) -> None:
    lab.refresh()
    mine, theirs = read_status(lab.files.root), read_status(undisturbed.lab.files.root)
    assert mine.counts == theirs.counts
    assert mine.spend == theirs.spend
    assert mine.status == "complete"
    assert read_failures(lab.files.root) == [] == read_bad_lines(lab.files.root)


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(tmp_path, capsys)


def test_commands_read_it(lab: Lab, undisturbed: Undisturbed, shell: Shell) -> None:
    lab.refresh()
    run, theirs = lab.files.root, undisturbed.lab.files.root
    sample = next(key for key, one in lab.results().items() if one.outcome == "accepted")
    mine = shell("trace", run, sample, "--json").document
    other = shell("trace", theirs, sample, "--json").document
    assert [step["node"] for step in mine["steps"]] == [step["node"] for step in other["steps"]]
    assert mine["result"] == other["result"]
    assert "answers" not in mine or mine["answers"] == other["answers"]
    assert shell("status", run, "--json").document["counts"]["total"] == 14
    with open_run_reader(run) as book, open_run_reader(theirs) as known:
        found, expected = book.store.listing, known.store.listing
        assert found.overview().outcomes == expected.overview().outcomes
        assert found.overview().calls == expected.overview().calls
        assert found.overview().verdicts == expected.overview().verdicts
        page = found.page(SampleFilter(text="THE"), sort="label", descending=True)
        known_page = expected.page(SampleFilter(text="THE"), sort="label", descending=True)
        assert [row.sample for row in page.rows] == [row.sample for row in known_page.rows]
        assert 0 < page.total == known_page.total
        for sort in SORTS:
            first, following = (found.page(sort=sort, offset=at, limit=5) for at in (0, 5))
            assert found.page(sort=sort, after=first.last, limit=5) == following
            assert found.page(sort=sort, before=following.first, limit=5) == first
        largest = SampleFilter(attempts_min=MOST_INTEGER, usd_min=1e300)
        assert found.page(largest, offset=10**12).rows == ()
        assert found.neighbours(sample).position == expected.neighbours(sample).position
        book.store.explain_fault(ValueError("is a row odd?"))


def test_calls_are_counted_and_cleared(lab: Lab, shell: Shell) -> None:
    lab.refresh()
    where = ("--workspace", lab.workspace.root)
    told = shell("calls", "stats", *where, "--json").document
    assert told["calls"] == len(lab.answered())
    assert told["bytes"] > 0
    gc = ("calls", "gc", *where, "--older-than", "0", "--yes", "--json")
    run = lab.workspace.runs / "survival" / "1"
    run.parent.mkdir(parents=True)
    shutil.move(lab.files.root, run)
    assert shell(*gc).code == 0
    assert len(lab.answered()) == told["calls"], "a run refers to all of them"
    shutil.rmtree(run)
    with closing(open_calls(lab.workspace.calls)):
        assert shell(*gc).error["kind"] == "locked"
    assert shell(*gc).code == 0
    assert not lab.answered()


def test_a_cassette_and_an_estimate_are_made_of_it(lab: Lab, shell: Shell) -> None:
    lab.refresh()
    record(lab.files.root, lab.folder / "a.cassette", texts=True)
    lab.forget()
    done = replay(lab.folder / "a.cassette", lab.folder / "again")
    assert done.same
    assert lab.server.requests == []
    assert shell("estimate", lab.config, "--limit", "14", "--json").code == 0


def test_a_release_is_made_of_it_and_carried_over(lab: Lab, shell: Shell) -> None:
    lab.refresh()
    release = lab.folder / "releases" / "one"
    assert shell("release", lab.files.root, "--version", "1", "--out", release).code == 0
    assert shell("verify", release).code == 0
    lab.forget()
    lab.refresh("next", parent=release)
    first, second = lab.results(), lab.results("next")
    kept = {key for key, one in second.items() if one.kept_from == "1"}
    assert kept == {key for key, one in first.items() if one.outcome == "accepted"}


def test_targets_are_asked_and_pages_shown(lab: Lab) -> None:
    lab.refresh()
    lab.forget()
    assert ended(lab.child("evaluate", key="k")) == 0
    asked = len(lab.asked())
    assert asked > 0
    assert ended(lab.child("evaluate", key="k")) == 0
    assert len(lab.asked()) == asked, "what was answered is not asked again"
    client = TestClient(create_app([lab.files.root]), base_url="http://127.0.0.1:7317")
    (page,) = set(re.findall(r'href="(/run/[^"/]*)"', client.get("/").text))
    assert "accepted" in client.get(page).text


def test_failed_samples_are_retried(lab: Lab, undisturbed: Undisturbed) -> None:
    lab.trap("composition", 1, lambda: refused(400, "no"))
    lab.refresh()
    assert lab.manifest.counts["failed"] == len(read_failures(lab.files.root)) == 1
    lab.forget()
    retry(lab.files.root)
    assert lab.results() == undisturbed.results


def test_a_copied_folder_only_reads_the_store(lab: Lab, shell: Shell, tmp_path: Path) -> None:
    lab.refresh()
    answered, results = lab.answered(), lab.results()
    (tmp_path / "copy").mkdir()
    copy = Lab(tmp_path / "copy", lab.server, lab.answers)
    shutil.copytree(lab.workspace.root, copy.workspace.root)
    shutil.copytree(lab.files.root, copy.files.root)
    assert read_status(copy.files.root).counts == read_status(lab.files.root).counts
    assert copy.results() == results
    assert shell("trace", copy.files.root, next(iter(results)), "--json").code == 0
    where = ("--workspace", copy.workspace.root)
    told = shell("calls", "gc", *where, "--older-than", "0", "--yes", "--json")
    assert told.error["kind"] == "run_state"
    assert "this folder is a copy" in told.error["message"]
    assert str(lab.workspace.root) in told.error["message"]
    quotes = [fact.quote for one in results.values() for fact in one.facts]
    name = max(" ".join(quotes).split(), key=len).strip(".,:'\"")
    taken = shell("takedown", name, copy.files.root, *where, "--yes", "--json")
    assert (taken.code, taken.out.count("this folder is a copy")) == (1, 2), taken.out
    finder = NameFinder([name])
    assert not any(count_matches(path, finder) for path in list_results(copy.files))
    lab.forget()
    assert ended(copy.child("evaluate", key="k")) == 2
    assert lab.server.requests == [], "nothing is asked whose answer could not be kept"
    with pytest.raises(RunStateError, match="can only read the call store"):
        open_calls(copy.workspace.calls, "me")
    assert (lab.answered(), lab.results()) == (answered, results)
    assert ended(lab.child("evaluate", key="k")) == 0
    for each in (lab, copy, copy):
        where = ("--workspace", each.workspace.root)
        assert shell("takedown", name, each.files.root, *where, "--yes").code == 0


def test_a_moved_folder_takes_the_store_along(lab: Lab, tmp_path: Path) -> None:
    assert ended(lab.child("refresh", die="after:compose:2", key="k")) == -signal.SIGKILL
    (tmp_path / "moved").mkdir()
    moved = Lab(tmp_path / "moved", lab.server, lab.answers)
    shutil.move(lab.workspace.root, moved.workspace.root)
    shutil.move(lab.files.root, moved.files.root)
    shutil.copy(lab.config, moved.config)
    answered = moved.answered()
    lab.forget()
    moved.resume()
    assert moved.manifest.status == "complete"
    assert not answered & set(lab.asked())
    shutil.copytree(moved.files.root, lab.files.root)
    with pytest.raises(RunStateError, match="this folder is a copy"):
        retry(lab.files.root)


def test_a_person_is_taken_down(lab: Lab, shell: Shell) -> None:
    lab.refresh()
    quotes = [fact.quote for one in lab.results().values() for fact in one.facts]
    name = max(" ".join(quotes).split(), key=len).strip(".,:'\"")
    with closing(open_calls(lab.workspace.calls)) as calls:
        assert any(name in one.request for one in calls.records())
    dry = shell(
        "takedown", name, lab.files.root, "--workspace", lab.workspace.root, "--dry-run", "--json"
    )
    done = shell(
        "takedown", name, lab.files.root, "--workspace", lab.workspace.root, "--yes", "--json"
    )
    assert (dry.code, done.code) == (0, 0), done
    with closing(open_calls(lab.workspace.calls)) as calls:
        assert not any(name in one.request + one.response for one in calls.records())
    assert name not in str(lab.results())


# -- what dies on the way -------------------------------------------------------------------------


@pytest.mark.parametrize("death", ["after:check:3", "after:compose:2", "at:assemble"])
def test_a_killed_run_goes_on(lab: Lab, undisturbed: Undisturbed, death: str) -> None:
    assert ended(lab.child("refresh", die=death, key="k")) == -signal.SIGKILL
    asked, answered = set(lab.asked()), lab.answered()
    assert answered <= asked
    lab.forget()
    lab.resume()
    again = set(lab.asked())
    assert not answered & again
    assert len(asked & again) <= OPEN
    assert_whole(lab, undisturbed)


def test_workers_share_it_and_one_is_killed(lab: Lab, undisturbed: Undisturbed) -> None:
    lab.write(run={**IN_POSTGRESQL, "workers": 2})

    def kill_one() -> None:
        os.kill(workers_of(os.getpid())[0], signal.SIGKILL)

    trap = lab.trap("plan", 2, kill_one)
    lab.refresh()
    assert trap.sprung.is_set()
    asked = Counter(lab.asked())
    assert set(asked) == undisturbed.asked
    assert asked.total() - len(asked) <= OPEN
    assert_whole(lab, undisturbed)


def test_a_server_killed_in_the_middle_is_waited_for(
    make_lab: MakeLab, tmp_path: Path, undisturbed: Undisturbed, own_server: Server
) -> None:
    lab = make_lab(tmp_path)
    lab.forget()
    lab.write(run=IN_POSTGRESQL)

    def kill() -> None:
        own_server.kill()
        own_server.start()

    trap = lab.trap("plan", 3, kill)
    lab.refresh()
    assert trap.sprung.is_set()
    assert Counter(lab.asked()) == Counter(undisturbed.asked)
    assert_whole(lab, undisturbed)
    lab.forget()


def test_a_server_that_stays_away_ends_a_run_that_can_be_resumed(
    make_lab: MakeLab,
    tmp_path: Path,
    undisturbed: Undisturbed,
    own_server: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postgresql, "PATIENCE_S", 1.0)
    monkeypatch.setattr(postgresql_engine, "PATIENCE_S", 1.0)
    lab = make_lab(tmp_path)
    lab.forget()
    lab.write(run=IN_POSTGRESQL)
    lab.trap("plan", 3, own_server.kill)
    with pytest.raises(RunError, match="cannot be reached") as found:
        lab.refresh()
    assert "coreeval resume" in found.value.hint
    own_server.start()
    asked, answered = set(lab.asked()), lab.answered()
    lab.forget()
    lab.resume()
    again = set(lab.asked())
    assert not answered & again
    assert len(asked & again) <= 2 * OPEN, "a sample asks two judges at a time"
    assert_whole(lab, undisturbed)
    lab.forget()
