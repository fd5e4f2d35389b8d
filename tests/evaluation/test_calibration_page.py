"""docs/calibration.md and the report's table say what the tables of the benchmarks say."""

import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from coreeval.evaluation.scores import score_proportion

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "calibration.md").read_text("utf-8")
TABLES = (ROOT / "benchmarks" / "results" / "verdicts.md").read_text("utf-8")
RATES = json.loads((ROOT / "coreeval" / "evaluation" / "calibration.json").read_text("utf-8"))
WORLDS = {
    "pcr": "a quarter of test, five references",
    "drop": "facts of a quarter remembered; seven references",
    "numleak": "unemployment: remembers a quarter",
    "overlap": "30 % of a copy's words replaced",
    "recitation": "a tenth of the originals recited (100 samples)",
    "membership": "all originals read, 0.3 more probable (100 samples)",
    "membership_reference": "a quarter read, 1 more probable (300 samples)",
    "exchangeability": "all shards read, 1 deviation more probable (20 shards, 19 shuffles)",
}
"""Each detector with the world whose share of correct verdicts the page shows."""
CALLED = {"membership_reference": "`membership` with `--reference`"}


class Counted(NamedTuple):
    """A row of the benchmark's tables."""

    world: str
    studies: int
    false: int
    found: str


def counted(detector: str) -> list[Counted]:
    section = re.split(rf"^## {detector}$", TABLES, flags=re.MULTILINE)[1].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \| (\d+) \| (\d+) \| ([\d.]*) \|", section, re.MULTILINE)
    return [Counted(world, int(n), int(false), found) for world, n, false, found in rows]


def shown(detector: str) -> tuple[str, ...]:
    name = re.escape(CALLED.get(detector, f"`{detector}`"))
    row = re.search(rf"^\| {name} \| (.+) \|$", PAGE, re.MULTILINE)
    assert row
    return tuple(row[1].split(" | "))


@pytest.mark.parametrize("detector", WORLDS)
def test_the_page_sums_up_the_tables(detector: str) -> None:
    rows = counted(detector)
    clean = [row for row in rows if not row.found]
    studies, false = sum(row.studies for row in clean), sum(row.false for row in clean)
    rate = score_proportion(false, studies)
    assert rate.estimate is not None and rate.ci_low is not None and rate.ci_high is not None
    low, high = 100 * rate.ci_low, 100 * rate.ci_high
    share = f"{100 * rate.estimate:.1f} % ({low:.1f} to {high:.1f} %)" if false else "0"
    most = max(row.false / row.studies for row in clean)
    (found,) = (row.found for row in rows if row.world == WORLDS[detector])

    wrong, worst, _, power = shown(detector)

    assert wrong == f"{share} of {studies:,}"
    assert float(worst.partition(" ")[0]) == pytest.approx(100 * most, abs=0.5)
    assert power == f"{100 * float(found):.0f} %"


@pytest.mark.parametrize("detector", sorted({*WORLDS} - {"overlap", "membership_reference"}))
def test_the_report_shows_the_rates_of_the_tables(detector: str) -> None:
    kept = RATES["decomposition" if detector == "drop" else detector]
    rows = counted(detector)
    clean = [row for row in rows if not row.found]

    assert kept["false_positives"]["n"] == sum(row.studies for row in clean)
    assert kept["false_positives"]["estimate"] == pytest.approx(
        sum(row.false for row in clean) / sum(row.studies for row in clean)
    )
    assert f"{kept['found']['estimate']:.2f}" in {
        row.found for row in rows if row.world == WORLDS[detector]
    }
