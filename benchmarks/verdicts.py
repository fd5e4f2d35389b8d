"""How often each verdict is false, missed or withheld, in worlds whose truth is known.

    OMP_NUM_THREADS=1 python -m benchmarks.verdicts [--studies 300] [--detector NAME] [--publish]

A world plants something (or nothing) and makes studies of it; each study goes through the functions
that a user's run calls, and ends in one verdict. `--publish` writes the tables of the detectors
that were run into benchmarks/results/verdicts.md, which docs/calibration.md sums up, and what the
report shows of them into its own table. Seeds start at `REPORTED`: whoever tunes a threshold uses
lower ones, and other generators.
"""

import argparse
import json
import multiprocessing
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

from coreeval.evaluation.agreement import Calibration
from coreeval.evaluation.scores import score_proportion

TABLES: Final = Path("benchmarks/results/verdicts.md")
TABLE: Final = Path("coreeval/evaluation/calibration.json")
DETECTORS: Final[Mapping[str, str]] = {
    "pcr": "benchmarks.verdicts_pcr",
    "drop": "benchmarks.verdicts_drop",
    "numleak": "benchmarks.verdicts_numleak",
    "overlap": "benchmarks.verdicts_overlap",
    "recitation": "benchmarks.verdicts_recitation",
    "membership": "benchmarks.verdicts_scores",
    "membership_reference": "benchmarks.verdicts_scores",
    "exchangeability": "benchmarks.verdicts_scores",
}
"""Each detector with the module whose `WORLDS` has its worlds."""
REPORTED: Final = 1_000_000
"""The first seed of a reported study."""
MOST_FALSE: Final = 0.07
"""21 of 300. Of tests at 5 %, one in 21 has more false ones of 300 by chance (binomial)."""


@dataclass(frozen=True, kw_only=True)
class World:
    """A population whose truth is known, and how one study of it is made."""

    detector: str
    name: str
    """What is planted, or what confounds, for a reader of the table."""
    study: Callable[[int], str]
    """From a seed to the verdict. A module's function or a partial of one: it is pickled."""
    false: frozenset[str]
    """Verdicts that are wrong here."""
    found: frozenset[str] = frozenset()
    """Verdicts that are right about what was planted; empty if nothing was."""
    withheld: frozenset[str] = frozenset()
    """Verdicts that say that the data cannot tell."""
    headline: str = ""
    """Key of the report's table whose `found` this world gives; one world a detector has one."""
    before: float | None = None
    """Share found by version 0.1.0 (commit 16188cf) in the same studies, if nothing confounds."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """The studies of one world, counted by verdict."""

    world: World
    verdicts: Mapping[str, int]

    @property
    def studies(self) -> int:
        """Return how many studies were made."""
        return sum(self.verdicts.values())

    def count(self, verdicts: frozenset[str]) -> int:
        """Return how many studies ended in one of some verdicts."""
        return sum(self.verdicts.get(each, 0) for each in verdicts)

    @property
    def passes(self) -> bool:
        """Return whether few enough are false, and nearly as many found as before."""
        few = self.count(self.world.false) <= MOST_FALSE * self.studies
        due = 0.9 * (self.world.before or 0.0) * self.studies
        return few and self.count(self.world.found) >= due


def count_verdicts(world: World, studies: int, pool: "multiprocessing.pool.Pool") -> Row:
    """Make studies of a world and count their verdicts."""
    seeds = range(REPORTED, REPORTED + studies)
    return Row(world=world, verdicts=Counter(pool.map(world.study, seeds, chunksize=5)))


HEAD: Final = (
    "| world | studies | false | found | before | missed | cannot tell | verdicts | |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


def format_row(row: Row) -> str:
    """Return a row as Markdown."""
    world, n = row.world, row.studies
    wrong, hit, open_ = (row.count(each) for each in (world.false, world.found, world.withheld))
    planted = bool(world.found)
    cells = (
        world.name,
        n,
        wrong,
        f"{hit / n:.2f}" if planted else "",
        "" if world.before is None else f"{world.before:.2f}",
        f"{(n - hit - open_) / n:.2f}" if planted else "",
        f"{open_ / n:.2f}",
        ", ".join(f"{name} {count}" for name, count in Counter(row.verdicts).most_common()),
        "" if row.passes else "**no**",
    )
    return f"| {' | '.join(map(str, cells))} |"


def publish(detector: str, rows: Sequence[Row], command: str) -> None:
    """Write a detector's table into `TABLES`, in place of the one that is there."""
    title = f"## {detector}\n"
    text = TABLES.read_text("utf-8")
    before, _, after = text.partition(title)
    after = re.split(r"\n(?=##)", after, maxsplit=1)[-1] if "\n##" in after else ""
    if title not in text:
        before, after = before.rstrip() + "\n\n", ""
    lines = (title, f"`{command}`\n", HEAD, *map(format_row, rows), "")
    TABLES.write_text(before + "\n".join((*lines, after)).rstrip() + "\n", "utf-8")


def keep_calibration(detector: str, rows: Sequence[Row]) -> None:
    """Write how often a detector was wrong, and right, where the report's matrix reads it."""
    headline = next((row for row in rows if row.world.headline), None)
    clean = [row for row in rows if not row.world.found]
    if headline is None:
        return
    table = json.loads(TABLE.read_text("utf-8"))
    wrong = sum(row.count(row.world.false) for row in clean)
    table[headline.world.headline] = Calibration(
        false_positives=score_proportion(wrong, sum(row.studies for row in clean)),
        found=score_proportion(headline.count(headline.world.found), headline.studies),
        setting=f"{len(clean)} worlds in which nothing is remembered; found: {headline.world.name}",
    ).model_dump(mode="json")
    TABLE.write_text(json.dumps(table, indent=2, sort_keys=True) + "\n", "utf-8")


def main() -> None:
    """Print the table, world by world."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=300)
    parser.add_argument("--detector", action="append", choices=DETECTORS)
    parser.add_argument("--publish", action="store_true")
    chosen = parser.parse_args()
    with multiprocessing.Pool() as pool:
        for detector in chosen.detector or DETECTORS:
            print(f"\n{detector}\n\n{HEAD}", flush=True)
            rows = list[Row]()
            worlds: Sequence[World] = import_module(DETECTORS[detector]).WORLDS
            for world in (each for each in worlds if each.detector == detector):
                rows.append(count_verdicts(world, chosen.studies, pool))
                print(format_row(rows[-1]), flush=True)
            if chosen.publish:
                again = f"--studies {chosen.studies} --detector {detector} --publish"
                publish(detector, rows, f"python -m benchmarks.verdicts {again}")
                keep_calibration(detector, rows)


if __name__ == "__main__":
    main()
