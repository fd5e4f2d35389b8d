"""Spacing and the circuit breaker, in virtual time, and shared by two real processes."""

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from coreeval.errors import KnowledgeError
from coreeval.tools.gdelt.doc.throttle import RequestThrottle
from tests.support.virtual_time import in_virtual_time, now
from tests.tools.gdelt.doc.kit import clock, paced

HOUR = 3600.0
OTHER_PROCESS = """
import asyncio, sys, time
from pathlib import Path
from coreeval.tools.gdelt.doc.throttle import RequestThrottle
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
    with pytest.raises(KnowledgeError, match="cannot be kept") as caught:
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
