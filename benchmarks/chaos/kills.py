"""Killed, stopped and crowded: what a process that dies leaves, and what many at once do."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from typing import Final

from benchmarks.chaos.cases import Case, Outcome, Score
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
from benchmarks.chaos.crowds import (
    A_SECOND,
    looked_at,
    many_in_flight,
    stopped_for_an_hour,
    two_syncs,
)
from benchmarks.chaos.moved_clock import obstacle
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

TRIES: Final = 8
"""Draws of a moment, until one lies before the end of the command."""
FEW_TRIES: Final = 3
"""Runs in which a file is waited for: one that is there for a moment may not be seen."""
Make = Callable[[Place], Work]


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
        after_s = chance.uniform(0, 0.85 * alone.writes_s)
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
    except Exception as error:  # noqa: BLE001 - whatever it is, the promise did not hold
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


def killed_at_files(folder: Path, _chance: Random) -> Outcome:
    """Kill a run and a sync at the moment when each of their last files appears."""
    score = Score()
    with MirrorServer().running() as mirror, place(folder) as at:
        mirror.delay_s = 0.005
        aims: tuple[tuple[Make, tuple[str, ...]], ...] = (
            (resuming, RUN_FILES),
            (lambda at: syncing(at, mirror), STORE_FILES),
        )
        for make, names in aims:
            at.restore("fresh")
            work = make(at)
            alone = left_alone(at, work)
            for name in names:
                for delay_s in (0.0, 0.002):
                    killed_at(at, work, alone, name, delay_s, score)
    return score.outcome(f"{score.again} calls asked again of {score.lost} in flight")


def killed_at(
    at: Place, work: Work, alone: Undisturbed, name: str, delay_s: float, score: Score
) -> None:
    """Kill a work when a file of some name appears or changes, go on with it, and look."""
    for _ in range(FEW_TRIES):
        at.restore()
        before = files_of(at.root)
        process = work.begin(at.out)
        while process.is_alive() and not any(
            name in path and before.get(path) != about for path, about in files_of(at.root).items()
        ):
            time.sleep(0.0005)
        time.sleep(delay_s)
        if kill(process):
            score.add(f"{work.name} at {name}", gone_on(at, work, alone, score))
            return


RUN_FILES: Final = (
    "dataset/semantic/",
    "dataset/updated/",
    "dataset/provenance/",
    "dataset/README.md",
    "items.csv",
    "report.html",
    "report.json",
)
STORE_FILES: Final = (".coreeval-downloads/", "segments/", "parts/.coreeval-work/", "parts/1/")
"""Parts of names, in the order in which they appear."""
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
    Case(
        name="a kill in the moment when a file of `assemble`, `report` or a sync appears",
        promise="the next process finds no half file that it trusts, and leaves none behind",
        attempt=killed_at_files,
    ),
    Case(
        name="two `gdelt sync` at once into one store",
        promise="one says that another is at work; the store is that of one",
        attempt=two_syncs,
    ),
    Case(
        name=f"`view` and `status` beside a run, up to {A_SECOND} requests a second",
        promise="the run comes to the same; no page fails, no database is locked",
        attempt=looked_at,
    ),
    Case(
        name="a run is stopped for an hour (SIGSTOP, or with its machine)",
        promise="it goes on and comes to the same; a second process is refused meanwhile",
        attempt=stopped_for_an_hour,
        obstacle=obstacle,
    ),
    Case(
        name="256 and 1,024 requests in flight; 1,024 where 256 files may be open",
        promise="each is asked once, and files and memory are bounded; or one message says why not",
        attempt=many_in_flight,
    ),
)
