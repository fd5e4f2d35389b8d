"""Killed, stopped and crowded: what a process that dies leaves, and what many at once do."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from typing import Final

from benchmarks.chaos.cases import Case, Outcome
from benchmarks.chaos.commands import (
    LOOK_EVERY_S,
    MOST,
    Place,
    files_of,
    finish,
    kill,
    leftovers,
    place,
    torn,
)
from benchmarks.chaos.works import (
    Work,
    annotating,
    auditing,
    comparing,
    evaluating,
    exporting,
    recording,
    refreshing,
    releasing,
    replaying,
    resuming,
    retrying,
    reviewing,
    scheduled,
    syncing,
)
from tests.support.mirror_server import MirrorServer

TRIES: Final = 4
"""Draws of a moment, until one lies before the end of the command."""
Make = Callable[[Place], Work]


@dataclass
class Score:
    """What came of the attempts so far."""

    tried: int = 0
    broken: list[str] = field(default_factory=list)
    again: int = 0
    """Calls that were asked again."""
    lost: int = 0
    """Calls that were in flight."""

    def add(self, name: str, problems: list[str]) -> None:
        """Count an attempt, and what did not hold."""
        self.tried += 1
        self.broken += [f"{name}: {'; '.join(problems)}"] if problems else []

    def outcome(self, measured: str = "") -> Outcome:
        """Return all of it."""
        held = self.tried - len(self.broken)
        return Outcome(
            tried=self.tried, held=held, measured=measured, broken=tuple(self.broken)
        )


@dataclass(frozen=True)
class Undisturbed:
    """A work that nobody disturbed."""

    came_to: object
    writes_s: float
    """From the first file that it wrote to its end."""


def left_alone(at: Place, work: Work) -> Undisturbed:
    """Let a work come to its end."""
    at.keep()
    at.restore()
    process, began = work.begin(at.out), time.perf_counter()
    first = written(at, process) - began
    said = finish(process, at.out)
    return Undisturbed(work.came_to(said), time.perf_counter() - began - first)


def written(at: Place, process: BaseProcess) -> float:
    """Wait until a process writes its first file, or ends; return the moment."""
    before = files_of(at.root)
    while process.is_alive() and files_of(at.root) == before:
        time.sleep(LOOK_EVERY_S)
    return time.perf_counter()


def killed(at: Place, work: Work, alone: Undisturbed, chance: Random, score: Score) -> None:
    """Kill a work at a random moment after its first write, go on with it, and look."""
    for _ in range(TRIES):
        at.restore()
        process = work.begin(at.out)
        written(at, process)
        after_s = chance.uniform(0, alone.writes_s)
        process.join(after_s)
        if kill(process):
            score.add(f"{work.name} after {after_s:.2f} s", gone_on(at, work, alone, score))
            return


def gone_on(at: Place, work: Work, alone: Undisturbed, score: Score) -> list[str]:
    """Go on with a work whose process is dead; return what did not hold."""
    time.sleep(0.05)  # what the dead process has sent arrives
    sent, stored = len(at.answers.heard), at.stored
    at_once = sent - (stored - at.answers.before)
    try:
        said = finish(work.again(at.out), at.out)
        same = work.came_to(said) == alone.came_to
    except (RuntimeError, AssertionError, OSError, ValueError, KeyError) as error:
        return [f"{type(error).__name__}: {error}"]
    again = len(at.answers.heard) - (at.stored - at.answers.before)
    score.again, score.lost = score.again + again, score.lost + at_once
    problems = [] if same else ["it came to something else"]
    if again > at_once or at_once > MOST:
        problems.append(f"{again} calls asked again, {at_once} were in flight")
    return problems + torn(at.root) + [f"left behind: {name}" for name in leftovers(at.root)]


def killed_often(makes: list[Make], folder: Path, chance: Random, share: float = 1.0) -> Outcome:
    """Kill each work as often as is its share."""
    score, names = Score(), list[str]()
    with place(folder) as at:
        for make in makes:
            at.restore("fresh")
            work = make(at)
            names.append(work.name)
            alone = left_alone(at, work)
            for _ in range(max(1, round(work.kills * share))):
                killed(at, work, alone, chance, score)
    return score.outcome(
        f"{len(names)} commands; {score.again} calls asked again of {score.lost} in flight"
    )


def all_commands(folder: Path, chance: Random) -> Outcome:
    """Kill every command that does work, a hundred times in all."""
    with MirrorServer().running() as mirror:
        mirror.delay_s = 0.005
        return killed_often([*MAKES, lambda at: syncing(at, mirror)], folder, chance)


MAKES: list[Make] = [
    refreshing,
    resuming,
    retrying,
    evaluating,
    comparing,
    auditing,
    releasing,
    lambda at: exporting(at, "hf", 3),
    lambda at: exporting(at, "spreadsheet", 3),
    recording,
    replaying,
    annotating,
    reviewing,
    scheduled,
]

CASES: tuple[Case, ...] = (
    Case(
        name="a kill at a random moment of any command",
        promise="the same command, or `resume`, comes to the same; no stored answer is asked again",
        attempt=all_commands,
    ),
)
