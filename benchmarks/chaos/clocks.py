"""Clocks that go wrong: a year back or forward, in the middle of a run and between two commands."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

from benchmarks.chaos.cases import Case, Outcome, Score
from benchmarks.chaos.commands import MOST, Json, Place, end, place, run_came_to, start
from benchmarks.chaos.moved_clock import DAY_S, YEAR_S, MovedClock, obstacle

JUMPS: Final = {"a year back": -YEAR_S, "a year forward": YEAR_S}
PIECES: Final = 3
"""Moments of a run at which its clock is set."""


def done(
    at: Place, clock: MovedClock, *arguments: str | Path, well: tuple[int, ...] = (0,)
) -> Json:
    """Run a command to its end under a moved clock; return its document."""
    return end(start(at.out, *arguments, environment=clock.environment), at.out, well=well)


def settled(at: Place, expected: object, score: Score, before: int = 0) -> list[str]:
    """Return what did not hold of a run that has ended."""
    again = len(at.answers.heard) - (at.stored - at.answers.before) - before
    score.again += again
    problems = [] if run_came_to(at) == expected else ["it came to something else"]
    return problems + ([f"{again} calls asked again"] if again > 0 else [])


def in_a_run(folder: Path, chance: Random) -> Outcome:
    """Set the clock in the middle of a run, several times."""
    score, clock = Score(), MovedClock.made_in(folder / "clock")
    with place(folder) as at:
        given = ("refresh", at.config, "--run-dir", at.run)
        at.keep()
        done(at, clock, *given)
        expected, calls = run_came_to(at), len(at.answers.heard)
        for words, seconds in JUMPS.items():
            for _ in range(PIECES):
                at.restore()
                clock.move(0.0)
                process = start(at.out, *given, environment=clock.environment)
                moment = chance.randrange(1, calls)
                while len(at.answers.heard) < moment and process.poll() is None:
                    time.sleep(0.002)
                clock.move(seconds)
                score.add(f"{words} at call {moment}", ended(process, at, expected, score))
    return score.outcome(f"{score.again} calls asked again")


def ended(process: object, at: Place, expected: object, score: Score) -> list[str]:
    """Wait for a run; return what did not hold."""
    try:
        end(process, at.out)  # type: ignore[arg-type]
    except RuntimeError as error:
        return [str(error)]
    return settled(at, expected, score)


def before_a_resume(folder: Path, chance: Random) -> Outcome:
    """Kill a run, set the clock, look with `status`, and resume it."""
    score, clock = Score(), MovedClock.made_in(folder / "clock")
    with place(folder) as at:
        given = ("refresh", at.config, "--run-dir", at.run)
        at.keep()
        done(at, clock, *given)
        expected, calls = run_came_to(at), len(at.answers.heard)
        for words, seconds in JUMPS.items():
            for _ in range(PIECES - 1):
                at.restore()
                clock.move(0.0)
                moment = chance.randrange(1, 3 * calls // 4)
                problems = resumed(at, clock, given, moment, seconds, expected, score)
                score.add(f"{words} after a kill at call {moment}", problems)
    return score.outcome(f"{score.again} calls asked again")


def resumed(
    at: Place,
    clock: MovedClock,
    given: tuple[str | Path, ...],
    moment: int,
    seconds: float,
    expected: object,
    score: Score,
) -> list[str]:
    """Kill a run at a call, and resume it under another clock; return what did not hold."""
    process = start(at.out, *given, environment=clock.environment)
    while len(at.answers.heard) < moment and process.poll() is None:
        time.sleep(0.002)
    process.kill()
    process.wait()
    time.sleep(0.05)
    in_flight = len(at.answers.heard) - at.stored
    clock.move(seconds)
    try:
        status = done(at, clock, "status", at.run, well=(0, 1))["status"]
        done(at, clock, "resume", at.run)
    except RuntimeError as error:
        return [str(error)]
    problems = settled(at, expected, score, before=in_flight)
    if status != "killed":
        problems.append(f"status said {status}")
    return problems + ([f"{in_flight} were in flight"] if in_flight > MOST else [])


def schedule(folder: Path, _chance: Random) -> Outcome:
    """Look at a schedule under clocks that jump, and count what is released."""
    score, clock = Score(), MovedClock.made_in(folder / "clock")
    with place(folder) as at:
        config = at.write("due.yaml", name="weekly", schedule="0 3 * * MON")
        given = ("schedule", "due", config, "--trust-endpoints")
        releases = at.root / ".coreeval" / "releases" / "weekly"

        def look(words: str, seconds: float, number: int, told: str = "") -> None:
            clock.move(seconds)
            try:
                said = json.dumps(done(at, clock, *given, well=(0, 2)))
            except RuntimeError as error:
                score.add(words, [str(error)])
                return
            there = len(list(releases.glob("*/release.json")))
            problems = [] if there == number else [f"{there} releases, not {number}"]
            score.add(words, problems + ([] if told in said else [f"it said {said[:300]}"]))

        look("the first look", 0.0, 1, '"released"')
        look("the second look in a period", 0.0, 1, '"nothing"')
        look("a week back", -7 * DAY_S, 1, '"clock_back"')
        look("a year back", -YEAR_S, 1, '"clock_back"')
        look("the right time again", 0.0, 1, '"nothing"')
        look("a week later", 7 * DAY_S, 2, '"released"')
        look("a year ahead, by mistake", YEAR_S, 3, '"released"')
        look("set right", 14 * DAY_S, 3, '"clock_back"')
        (at.root / ".coreeval" / "schedule" / "weekly.json").unlink()  # as it was told to
        look("the state removed", 14 * DAY_S, 3, "move the parent away")
        max(releases.glob("*/release.json")).parent.rename(at.root / "aside")
        look("the release moved away", 14 * DAY_S, 3, '"released"')
    return score.outcome(f"{score.tried} looks")


Attempt = Callable[[Path, Random], Outcome]
CASES: tuple[Case, ...] = (
    Case(
        name="the clock is set by a year while a run goes on",
        promise="the run comes to the same, and asks each question once",
        attempt=in_a_run,
        obstacle=obstacle,
    ),
    Case(
        name="the clock is set by a year between a kill and `resume`",
        promise="`status` says that it was killed; `resume` comes to the same",
        attempt=before_a_resume,
        obstacle=obstacle,
    ),
    Case(
        name="`schedule due` under a clock that jumps",
        promise="one release in a period; what a wrong clock did is told, with what to do",
        attempt=schedule,
        obstacle=obstacle,
    ),
)
