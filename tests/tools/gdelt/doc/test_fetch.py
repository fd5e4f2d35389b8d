"""The whole backend against a server that keeps DOC 2.0's rules and has its moods."""

import asyncio
import itertools
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from coreeval.config.knowledge import DocConfig
from coreeval.errors import KnowledgeError
from coreeval.schema import Retrieval, Window
from coreeval.tools.gdelt.doc.doc_source import open_doc
from coreeval.tools.gdelt.doc.fetch import RequestThrottle
from coreeval.tools.gdelt.doc.queries import HOLE
from coreeval.tools.gdelt.doc.replies import HttpReply, NoReply
from coreeval.tools.knowledge import KnowledgeSource
from tests.support.doc_server import (
    HTML,
    NOTICE,
    DocServer,
    Fault,
    Faults,
    always,
    first,
    refusing,
)
from tests.support.virtual_time import in_virtual_time, now
from tests.tools.gdelt.doc.kit import (
    JUNE,
    ScriptedWire,
    asked,
    clock,
    opened,
    paced,
    query,
    row,
    said,
    virtual,
)

FERRIES = row("Ferry Board orders ten electric ferries", "https://a.example/2026/06/10/x")
RAIN = row("Rain slows the harvest across the north", "https://b.example/2026/06/12/x")
BOARD, NOBODY = query("Ferry Board", id="board"), query("Nobody Whosoever", id="nobody")


async def reasons(folder: Path, faults: Faults, *rows: Mapping[str, object]) -> Retrieval:
    """Ask for a name that is in the news and one that is not."""
    return await asked(DocServer(rows or [FERRIES], faults), folder, BOARD, NOBODY)


async def test_articles_are_given_to_the_queries_whose_words_their_titles_have(
    tmp_path: Path,
) -> None:
    server = DocServer([FERRIES, RAIN, row("Bakers raise the price", company="Ferry Board")])
    harvest = query("harvest weather rain", "concept", id="rain")
    found = await asked(server, tmp_path, BOARD, NOBODY, harvest)
    titles = {id: [item.title for item in items] for id, items in found.by_query.items()}
    assert titles == {
        "board": [FERRIES["title"]],
        "nobody": [],
        "rain": [],
    }
    assert found.reasons == {"nobody": "no_news", "rain": "no_news"}
    (item,) = found.by_query["board"]
    assert (item.published_at, item.published_precision) == (
        datetime(2026, 6, 10, tzinfo=UTC),
        "url",
    )
    assert item.origin.startswith("doc 20260601000000-20260629000000 sourcelang:english (")
    assert len(server.asked) == 1 and not found.notes


async def test_aliases_find_news_and_one_request_serves_many_queries(tmp_path: Path) -> None:
    server = DocServer([FERRIES])
    queries = [query(f"Somebody Number{at}", id=f"q{at}") for at in range(12)]
    company = query("CalMac Holdings", "named", "Ferry Board", id="company")
    found = await asked(server, tmp_path, *queries, company)
    assert [item.title for item in found.by_query["company"]] == [FERRIES["title"]]
    assert len(server.asked) < 5
    assert all(len(one["query"]) <= 200 for one in server.asked)
    assert not server.complaints


async def test_what_cannot_be_spelled_is_rejected_without_being_asked(tmp_path: Path) -> None:
    server = DocServer([FERRIES])
    found = await asked(server, tmp_path, query("C#"))
    assert found.reasons == {"q": "rejected"} and server.asked == []


# -- moods --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["text/html", "text/plain", "application/json"])
@pytest.mark.parametrize("status", [200, 429])
async def test_throttling_is_never_read_as_no_news(kind: str, status: int, tmp_path: Path) -> None:
    throttled = Fault(body=NOTICE, status=status, content_type=kind)
    found = await reasons(tmp_path, always(throttled))
    assert found.reasons == {"board": "throttled", "nobody": "throttled"}
    assert found.notes[0].startswith("DOC 2.0 refused 30 of 30 requests")


async def test_nine_of_ten_requests_refused(tmp_path: Path) -> None:
    server = DocServer([FERRIES], refusing(9))
    found = await asked(server, tmp_path, BOARD, NOBODY)
    assert [item.title for item in found.by_query["board"]] == [FERRIES["title"]]
    assert found.reasons == {"nobody": "no_news"}
    assert found.notes == ("DOC 2.0 refused 9 of 10 requests.",)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(body=HTML),
        Fault(body=HTML, status=502),
        Fault(body=""),
        Fault(drop=True),
        Fault(hang=True),
        Fault(cut=True),
    ],
    ids=["html", "502", "empty", "dropped", "hangs", "cut"],
)
async def test_outages_are_outlasted_or_told(fault: Fault, tmp_path: Path) -> None:
    async def fetch(faults: Faults) -> Retrieval:
        async with DocServer([FERRIES], faults).running() as server:
            source = opened(server, tmp_path, timeout_s=0.3)
            return await source.fetch([BOARD, NOBODY], JUNE, 5)

    short = await fetch(first(fault, fault))
    assert short.by_query["board"] and short.reasons == {"nobody": "no_news"}
    long = await fetch(always(fault))
    assert long.reasons == {"board": "unavailable", "nobody": "unavailable"}
    assert long.notes[0].startswith("DOC 2.0 did not answer 3 of 3 requests (")


async def test_an_empty_list_is_asked_for_twice_and_then_believed(tmp_path: Path) -> None:
    empty = Fault(body="{}")
    assert (await reasons(tmp_path, first(empty))).by_query["board"]
    server = DocServer([RAIN])
    found = await asked(server, tmp_path, BOARD)
    assert (found.reasons, len(server.asked)) == ({"board": "no_news"}, 2)


async def test_a_refused_block_is_taken_apart(tmp_path: Path) -> None:
    """The service finds some words too common, and does not say so beforehand."""
    server = DocServer([FERRIES])
    common = Fault(body="One or more of your keywords were too short, too long or too common: (x)")
    server.faults = lambda at: common if "Whosoever" in server.asked[at]["query"] else None
    found = await asked(server, tmp_path, BOARD, NOBODY)
    assert found.by_query["board"] and found.reasons == {"nobody": "rejected"}
    assert found.notes[0].startswith("DOC 2.0 rejected 1 of the requested terms: One or more of")


async def test_bytes_that_are_no_utf_8_and_bad_escapes_lose_one_title_at_most(
    tmp_path: Path,
) -> None:
    body = (
        b'{"articles": [{"url": "https://a.example/1", "seendate": "20260610T120000Z", "language":'
        b' "English", "title": "Ferry Board\\\'s caf\xe9 opens on ten ships"}, {"url":'
        b' "https://b.example/1", "seendate": "20260610T120000Z", "language": "English", "title":'
        b' "Ferry Board sells \\x two old ferries\x01"}]}'
    )
    found = await reasons(tmp_path, always(Fault(body=body, content_type="application/json")))
    assert [item.title for item in found.by_query["board"]] == [
        r"Ferry Board sells \x two old ferries" + "\x01"
    ]


# -- time ---------------------------------------------------------------------------------------


async def test_a_window_of_months_is_asked_about_in_slices_until_enough_is_known(
    tmp_path: Path,
) -> None:
    rows = [
        row(f"Ferry Board news in month number {month:02}", f"https://a.example/{month}",
            f"2026{month:02}10T120000Z")
        for month in range(1, 7)
    ]  # fmt: skip
    server, half_a_year = (
        DocServer(rows),
        Window(start=datetime(2026, 1, 1, tzinfo=UTC), end=JUNE.end),
    )
    async with server.running():
        found = await opened(server, tmp_path).fetch([BOARD], half_a_year, 3)
    assert [item.published_at.month for item in found.by_query["board"]] == [6, 5, 4]
    assert [one["startdatetime"][:8] for one in server.asked] == [
        "20260530",
        "20260430",
        "20260331",
    ]


def full_list(count: int, title: str) -> list[Mapping[str, object]]:
    start = JUNE.end - timedelta(hours=1)
    return [
        row(f"{title} in report number {at}", f"https://a.example/{title[:4]}/{at}",
            f"{start - timedelta(minutes=10 * at):%Y%m%dT%H%M%SZ}")
        for at in range(count)
    ]  # fmt: skip


async def test_a_name_that_fills_the_list_does_not_hide_a_rare_one(tmp_path: Path) -> None:
    server = DocServer([*full_list(600, "Elon Musk speaks"), FERRIES])
    found = await asked(server, tmp_path, query("Elon Musk", id="musk"), BOARD)
    assert len(found.by_query["musk"]) == 1, "one site tells a story once"
    assert [item.title for item in found.by_query["board"]] == [FERRIES["title"]]
    assert len(server.asked) == 2


async def test_a_list_that_is_always_full_is_not_asked_for_without_end(tmp_path: Path) -> None:
    rows = [{**one, "company": "Ferry Board"} for one in full_list(2000, "Ships sail")]
    server = DocServer(rows)
    found = await asked(server, tmp_path, BOARD)
    assert found.reasons == {"board": "no_news"} and len(server.asked) == 4
    assert "1 term was not searched completely, because DOC 2.0 returns" in found.notes[0]


@pytest.mark.parametrize(
    "window",
    [
        Window(start=datetime(2015, 1, 1, tzinfo=UTC), end=datetime(2016, 1, 1, tzinfo=UTC)),
        HOLE,
        Window(start=datetime(2099, 1, 1, tzinfo=UTC), end=datetime(2099, 2, 1, tzinfo=UTC)),
    ],
    ids=["too old", "the hole", "the future"],
)
async def test_what_the_archive_does_not_hold_is_not_asked_for(
    window: Window, tmp_path: Path
) -> None:
    async with DocServer([FERRIES]).running() as server:
        source: KnowledgeSource = opened(server, tmp_path)
        found = await source.fetch([BOARD], window, 5)
        assert source.coverage(window).articles is None and source.coverage(window).gaps
    assert found.reasons == {"board": "not_covered"} and server.asked == []
    assert found.notes[0].startswith("DOC 2.0 contains no news for ")


async def test_a_better_publication_time_can_be_asked_for(tmp_path: Path) -> None:
    undated = row("Ferry Board hires two new captains", "https://c.example/captains")
    async with DocServer([FERRIES, undated]).running() as server:
        source = opened(server, tmp_path, min_precision="cluster")
        found = await source.fetch([BOARD], JUNE, 5)
    assert [item.title for item in found.by_query["board"]] == [FERRIES["title"]]
    assert found.notes[0].startswith("1 matching article of DOC 2.0 was skipped")


async def test_articles_without_a_date_do_not_stop_the_search_for_dated_ones(
    tmp_path: Path,
) -> None:
    undated = [
        row(f"Ferry Board hires captain number {at}", seen="20260620T000000Z") for at in range(9)
    ]
    spring = row("Ferry Board orders ten electric ferries", "https://a.example/2026/04/10/x",
                 "20260410T000000Z")  # fmt: skip
    months = Window(start=datetime(2026, 4, 1, tzinfo=UTC), end=JUNE.end)
    async with DocServer([*undated, spring]).running() as server:
        found = await opened(server, tmp_path, min_precision="url").fetch([BOARD], months, 5)
    assert [item.title for item in found.by_query["board"]] == [spring["title"]]


async def test_exact_times_are_not_asked_of_a_service_that_has_none(tmp_path: Path) -> None:
    async with DocServer([FERRIES]).running() as server:
        found = await opened(server, tmp_path, min_precision="exact").fetch([BOARD], JUNE, 5)
    assert found.reasons == {"board": "not_covered"} and server.asked == []
    assert found.notes[0].startswith("DOC 2.0 was not queried")


# -- when it is down ----------------------------------------------------------------------------


async def never(_parameters: Mapping[str, str]) -> HttpReply:
    raise NoReply("Cannot connect")


async def throttling(_parameters: Mapping[str, str]) -> HttpReply:
    return said(NOTICE, 429)


@pytest.mark.parametrize(
    ("answer", "reason", "times"),
    [
        (never, "unavailable", [0, 8, 16]),
        (throttling, "throttled", [0, 8, 16, 76, 196, 436]),
    ],
)
def test_a_fetch_ends_when_the_service_is_down_for_its_whole_duration(
    tmp_path: Path,
    answer: Callable[[Mapping[str, str]], Awaitable[HttpReply]],
    reason: str,
    times: list[float],
) -> None:
    async def work() -> None:
        wire = ScriptedWire(answer)
        found = await virtual(tmp_path, wire).fetch([BOARD, NOBODY], JUNE, 5)
        assert found.reasons == {"board": reason, "nobody": reason}
        assert wire.times == times and now() <= 600
        assert "; it will not be queried before 00:" in found.notes[0]
        again = await virtual(tmp_path, wire, deadline_s=100).fetch([BOARD], JUNE, 5)
        assert again.reasons == {"board": reason} and wire.times == times
        assert again.notes[0].startswith("DOC 2.0 was not queried, because earlier requests failed")

    in_virtual_time(work())


def test_many_queries_do_not_outlast_the_deadline(tmp_path: Path) -> None:
    async def slow(_parameters: Mapping[str, str]) -> HttpReply:
        await asyncio.sleep(40)
        return said("{}")

    async def work() -> None:
        wire = ScriptedWire(slow)
        queries = [query(f"Somebody Number{at}", id=f"q{at}") for at in range(200)]
        found = await virtual(tmp_path, wire).fetch(queries, JUNE, 5)
        assert now() <= 600 and len(wire.times) == 14
        assert set(found.reasons.values()) == {"throttled"}
        assert "terms were sent to DOC 2.0 for only part of the window" in found.notes[0]

    in_virtual_time(work())


def test_rows_that_are_no_articles_are_counted(tmp_path: Path) -> None:
    bad = [{**RAIN, "seendate": "00010101T000000Z"}, {**RAIN, "title": ""}]

    async def listing(_parameters: Mapping[str, str]) -> HttpReply:
        return said(json.dumps({"articles": [FERRIES, *bad]}))

    found = in_virtual_time(virtual(tmp_path, ScriptedWire(listing)).fetch([BOARD], JUNE, 5))
    assert [one.title for one in found.by_query["board"]] == [FERRIES["title"]]
    note = "2 rows of DOC 2.0, because a title, an address or a valid time was missing."
    assert f"CoreEval skipped {note}" in found.notes


# -- what the user can mend ---------------------------------------------------------------------


def test_without_gdeltdoc_the_user_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gdeltdoc", None)
    with pytest.raises(KnowledgeError, match="needs the gdeltdoc package") as caught:
        open_doc(DocConfig(), tmp_path)
    assert "coreeval[doc]" in caught.value.hint


@pytest.mark.parametrize(
    "url", ["api.gdeltproject.org", "ftp://a.example", "http://", "http://a/#b"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="must start with http"):
        DocConfig(base_url=url)


REFUSAL = "Your query was too short or too long."
MANY = [query(f"Person Number{n}", id=str(n)) for n in range(108)]


def test_an_endpoint_that_rejects_everything_is_told_so_within_the_deadline(tmp_path: Path) -> None:
    async def refuse(_parameters: Mapping[str, str]) -> HttpReply:
        return said(REFUSAL)

    wire = ScriptedWire(refuse)
    found = in_virtual_time(virtual(tmp_path, wire, deadline_s=100.0).fetch(MANY, JUNE, 5))
    assert 0 < len(wire.asked) < 20
    assert set(found.reasons.values()) == {"rejected"}
    assert len(found.reasons) == len(MANY)
    assert f"DOC 2.0 rejected {len(wire.asked)} of {len(wire.asked)} requests." in found.notes
    assert any(REFUSAL in note for note in found.notes)


@pytest.mark.parametrize("others", ["nothing", "throttled"])
def test_an_endpoint_that_rejects_everything_is_soon_asked_no_more(
    tmp_path: Path, others: str
) -> None:
    """Ten refusals for one reason and not one answer: the other 600 s would bring no more."""
    times = itertools.count()

    async def refuse(_parameters: Mapping[str, str]) -> HttpReply:
        slow = others == "throttled" and next(times) == 4
        return said("Please limit requests to one every 5 seconds.") if slow else said(REFUSAL)

    wire = ScriptedWire(refuse)
    many = [query(f"Person Number{n}", id=str(n)) for n in range(300)]
    found = in_virtual_time(virtual(tmp_path, wire, deadline_s=6000.0).fetch(many, JUNE, 5))
    assert len(wire.asked) == (10 if others == "nothing" else 11)
    assert set(found.reasons.values()) == {"rejected"} and len(found.reasons) == len(many)
    requests = f"DOC 2.0 rejected 10 of {len(wire.asked)} requests"
    assert f"{requests}, all for the same reason, and was not queried again." in found.notes
    assert not any("time limit" in note for note in found.notes)


def test_an_endpoint_that_rejects_for_many_reasons_is_asked_on(tmp_path: Path) -> None:
    times = itertools.count()

    async def refuse(_parameters: Mapping[str, str]) -> HttpReply:
        return said(f"One or more of your keywords were too short: {next(times) % 2}.")

    wire = ScriptedWire(refuse)
    in_virtual_time(virtual(tmp_path, wire, deadline_s=300.0).fetch(MANY, JUNE, 5))
    assert len(wire.asked) > 20


def test_a_rejection_is_not_forgotten_in_older_slices(tmp_path: Path) -> None:
    """A refused term is not asked for again, and the end of the time does not make it throttled."""
    year = Window(start=JUNE.end - timedelta(days=300), end=JUNE.end)

    async def refuse_board(parameters: Mapping[str, str]) -> HttpReply:
        return said(REFUSAL if "Ferry Board" in parameters["query"] else "{}")

    wire = ScriptedWire(refuse_board)
    source = virtual(tmp_path, wire, deadline_s=120.0)
    found = in_virtual_time(source.fetch([BOARD, NOBODY], year, 5))
    assert sum("Ferry Board" in asked for _, asked in wire.asked) == 2, "together and alone"
    assert found.reasons == {"board": "rejected", "nobody": "throttled"}


def test_what_was_not_asked_beside_a_rejection_is_short_of_time(tmp_path: Path) -> None:
    """One refused request does not make all others rejected."""

    async def refuse_first(parameters: Mapping[str, str]) -> HttpReply:
        return said(REFUSAL if "Number0" in parameters["query"] else "{}")

    wire = ScriptedWire(refuse_first)
    found = in_virtual_time(virtual(tmp_path, wire, deadline_s=100.0).fetch(MANY, JUNE, 5))
    beside = {id for id in found.reasons if f'Number{id}"' in wire.asked[0][1]}
    assert {found.reasons[id] for id in beside} == {"rejected"}
    assert "throttled" in {found.reasons[id] for id in found.reasons.keys() - beside}


HOUR = 3600.0
OTHER_PROCESS = """
import asyncio, sys, time
from pathlib import Path
from coreeval.tools.gdelt.doc.fetch import RequestThrottle
told = []
def clock():
    told.append(time.time())
    return told[-1]
pace = RequestThrottle(file=Path(sys.argv[1]), spacing_s=0.2, pause_s=60, probe_s=60, clock=clock)
async def work():
    for _ in range(int(sys.argv[2])):
        assert await pace.turn(30)
        print(told[-1])
asyncio.run(work())
"""


async def turns(pace: RequestThrottle, count: int) -> list[float]:
    """Take turns, and return when they came."""
    times = []
    for _ in range(count):
        assert await pace.turn(HOUR)
        times.append(round(now(), 2))
    return times


def test_requests_are_spaced_from_their_beginnings(tmp_path: Path) -> None:
    async def work() -> list[float]:
        first = await turns(paced(tmp_path), 2)
        await asyncio.sleep(5)
        return first + await turns(paced(tmp_path), 2)

    assert in_virtual_time(work()) == [0, 8, 16, 24]


@pytest.mark.parametrize("jump_s", [-8760 * HOUR, 8760 * HOUR])
def test_a_clock_that_is_set_while_somebody_waits_costs_no_turn(
    tmp_path: Path, jump_s: float
) -> None:
    moved = 0.0

    async def work() -> float:
        nonlocal moved
        pace = replace(paced(tmp_path), clock=lambda: clock() + moved)
        assert await pace.turn(HOUR)
        waiting = asyncio.create_task(pace.turn(20))
        await asyncio.sleep(1)
        moved = jump_s
        assert await waiting
        return now()

    assert in_virtual_time(work()) == pytest.approx(8, abs=0.1)


def test_several_who_ask_at_once_take_turns(tmp_path: Path) -> None:
    async def work() -> list[float]:
        taken = await asyncio.gather(*(turns(paced(tmp_path), 2) for _ in range(3)))
        return sorted(time for times in taken for time in times)

    assert in_virtual_time(work()) == [0, 8, 16, 24, 32, 40]


def test_no_turn_is_waited_for_that_comes_too_late(tmp_path: Path) -> None:
    async def work() -> None:
        pace = paced(tmp_path)
        assert await pace.turn(0)
        assert not await pace.turn(7)
        assert now() == 0
        assert await pace.turn(9)
        assert not await pace.turn(-1)

    in_virtual_time(work())


def test_the_third_failure_in_a_row_pauses_all_and_one_tries_again(tmp_path: Path) -> None:
    async def work() -> list[float]:
        pace, other = paced(tmp_path), paced(tmp_path)
        times = []
        for _ in range(7):
            times += await turns(pace, 1)
            pace.note_failure("throttled")
        assert pace.shut_until() == clock() + 240
        assert other.shut_until() == pace.shut_until()
        return times

    # Pauses of 60, 120, 240 and 240 s after the third failure and each one that follows.
    assert in_virtual_time(work()) == [0, 8, 16, 76, 196, 436, 676]


def test_while_one_tries_the_others_wait(tmp_path: Path) -> None:
    async def work() -> None:
        pace, other = paced(tmp_path), paced(tmp_path)
        for _ in range(3):
            pace.note_failure("throttled")
        assert await pace.turn(HOUR)
        assert now() == pytest.approx(60)
        assert not await other.turn(70)
        pace.note_answer()
        assert await other.turn(70)
        assert now() == pytest.approx(68)

    in_virtual_time(work())


def test_who_tries_and_dies_keeps_nobody_waiting_for_ever(tmp_path: Path) -> None:
    async def work() -> list[float]:
        for _ in range(3):
            paced(tmp_path).note_failure("throttled")
        return await turns(paced(tmp_path), 2)

    assert in_virtual_time(work()) == [60, 135]


def test_an_answer_ends_the_row(tmp_path: Path) -> None:
    async def work() -> None:
        pace = paced(tmp_path)
        for failed in (True, True, False, True, True):
            pace.note_failure("throttled") if failed else pace.note_answer()
        assert pace.shut_until() is None

    in_virtual_time(work())


@pytest.mark.parametrize(("asked_s", "waited_s"), [(30.0, 30.0), (1e9, 600.0), (0.0, 8.0)])
def test_retry_after_is_honoured_within_reason(
    tmp_path: Path, asked_s: float, waited_s: float
) -> None:
    async def work() -> float:
        pace = paced(tmp_path)
        await turns(pace, 1)
        pace.note_failure("throttled", asked_s)
        return (await turns(pace, 1))[0]

    assert in_virtual_time(work()) == waited_s


@pytest.mark.parametrize(
    "content", ["", "{", "[1]", '{"last": "x"}', '{"last": 1e18}', '{"shut_until": 1e18}']
)
def test_a_damaged_file_or_a_clock_that_was_set_back_holds_nobody_up(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "pace.json").write_text(content)
    assert in_virtual_time(turns(paced(tmp_path), 2)) == [0, 8]


def test_a_folder_that_cannot_be_written_is_the_users_to_mend(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    pace = paced(tmp_path / "file" / "folder")
    with pytest.raises(KnowledgeError, match="cannot be stored") as caught:
        in_virtual_time(pace.turn(1))
    assert "pace.json" in caught.value.where


def test_two_processes_take_turns_with_one_another(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OTHER_PROCESS, str(tmp_path / "pace.json"), "4"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=60)[0] for process in processes]
    times = sorted(float(time) for lines in said for time in lines.split())
    assert len(times) == 8
    assert min(after - before for before, after in pairwise(times)) >= 0.2


def test_what_one_process_meets_stops_the_other(tmp_path: Path) -> None:
    file = tmp_path / "pace.json"
    pace = RequestThrottle(file=file, spacing_s=0, pause_s=60, probe_s=60)
    for _ in range(3):
        pace.note_failure("throttled")
    command = [sys.executable, "-c", OTHER_PROCESS, str(file), "1"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "AssertionError" in ended.stderr
    assert json.loads(file.read_text())["failures"] == 3
