"""How often the report is wrong: studies of targets of whom it is known what they remember.

    OMP_NUM_THREADS=1 python -m benchmarks.calibration [--studies 500] [--publish]

Made samples and TweetEval's emotion tweets, where they lie beside the checkout. Of each study the
decomposition, the lists of single samples and the panel are asked as a run asks them. `--publish`
writes the figures into benchmarks/results/calibration.md, which docs/calibration.md sums up, and
into the table that the report's agreement matrix reads.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.calibration_studies import (
    METRICS,
    Listed,
    Rate,
    Rates,
    compared,
    decomposed,
    listed,
)
from benchmarks.calibration_tweets import TWEETS, tweets
from benchmarks.calibration_worlds import Made, Planted
from coreeval.evaluation.agreement import Calibration
from coreeval.evaluation.decomposition import CONTRASTS, decompose
from coreeval.evaluation.scores import score_proportion

TABLES: Final = Path("benchmarks/results/calibration.md")
TABLE: Final = Path("coreeval/evaluation/calibration.json")
COMMAND: Final = "`OMP_NUM_THREADS=1 python -m benchmarks.calibration"
"""What the line with the command begins with; `--publish` replaces it and all that follows."""
CLEAN: Final = (
    Planted("nothing is lost"),
    Planted("each rewriting costs 10 %", rewording=0.1, rewriting=0.1),
    Planted("and 3 % of new labels are wrong", rewording=0.1, rewriting=0.1, mislabelled=0.03),
)
COSTS: Final = Planted("", rewording=0.05, rewriting=0.05)
"""What rewriting costs where memory is planted."""
DOSES: Final = ((0.1, 1.0), (0.25, 0.5), (0.25, 1.0), (0.5, 1.0), (1.0, 1.0))
"""Share of samples that are remembered, and how often memory gives the right answer."""
SIZES: Final = (20, 50, 200, 1000)
LISTED: Final = 500
"""Samples of a study of single samples, and of a panel."""
COLUMNS: Final = (*(f"holds {name}" for name in CONTRASTS), "p of unexplained <= 0.05", "verdict")


class Figures:
    """Makes the tables, and keeps what the packaged table needs."""

    def __init__(self, studies: int) -> None:
        self.studies = studies
        self.packaged = dict[str, Calibration]()

    def clean(self) -> Iterator[str]:
        """Nobody remembers: how often intervals hold the truth, and how often memory is seen."""
        yield "## Nobody remembers\n"
        yield from _head("world", "n", *COLUMNS)
        found = []
        for seed, planted in enumerate(CLEAN, 10):
            for n in SIZES:
                rates = decomposed(Made(planted), n, self.studies, seed)
                yield _decomposed_row(planted.name, n, rates)
                found.append(rates)
        every = {what: _pooled([each[what] for each in found]) for what in found[0]}
        yield _decomposed_row("all", "", every)

    def doses(self) -> Iterator[str]:
        """Somebody remembers: how often that is seen."""
        yield "## Memory of words, and of facts\n"
        yield from _head("remembered", "strength", "n", "words: verdict", "facts: verdict")
        studies = self.studies // 5
        for share, strength in DOSES:
            dosed = COSTS._replace(strength=strength)
            for n in (100, 300, 1000):
                worlds = (dosed._replace(words=share), dosed._replace(facts=share))
                found = [decomposed(Made(each), n, studies, 2)["remembered"] for each in worlds]
                yield _row(f"{share:g}", f"{strength:g}", n, *map(_share, found))

    def items(self) -> Iterator[str]:
        """Single samples: the share of those flagged that is false, and that of those found."""
        yield f"## Single samples ({LISTED} a study, share of false ones held to 0.1)\n"
        kinds = ("words", "facts")
        told = ("false", "found", "any")
        yield from _head("templates", "remembered", *(f"{a}: {b}" for a in kinds for b in told))
        wrong = []
        for templates in (1, 3, 5, 10):
            for share in (0.0, 0.1, 0.25, 0.5):
                found = [self._listed(templates, kind, share) for kind in kinds]
                yield _row(
                    templates, f"{share:g}", *(cell for each in found for cell in _listed(each))
                )
                wrong += [] if share else [each.some for each in found]
                if (templates, share) == (5, 0.25):
                    power = found[0].some
        self.packaged["items"] = Calibration(
            false_positives=score_proportion(*_pooled(wrong)),
            found=score_proportion(*power),
            setting="made samples, 500 a study, with a control arm, 1 to 10 templates: a single "
            "sample flagged; found with 5 templates where a quarter of the originals is remembered",
        )

    def _listed(self, templates: int, kind: str, share: float) -> Listed:
        planted = COSTS._replace(words=share) if kind == "words" else COSTS._replace(facts=share)
        return listed(Made(planted, templates), kind, LISTED, self.studies // 10, 3)

    def panels(self) -> Iterator[str]:
        """One target of several, which remembers the words of a share of the originals."""
        yield f"## Panels ({LISTED} samples)\n"
        yield from _head("targets", "remembered", "a clean one stands out", "found", "holds excess")
        wrong = []
        for targets in (5, 8, 12):
            for share in (0.0, 0.25, 0.5, 1.0):
                studies = self.studies // (5 if share else 2)
                planted = Planted("", words=share, rewriting=0.1)
                rates = compared(targets, planted, LISTED, studies, 4)
                found = _share(rates["found"]) if share else ""
                yield _row(
                    targets, f"{share:g}", _share(rates["any"]), found, _share(rates["holds"])
                )
                wrong += [] if share else [rates["any"]]
                if (targets, share) == (8, 0.5):
                    power = rates["found"]
        self.packaged["panel"] = Calibration(
            false_positives=score_proportion(*_pooled(wrong)),
            found=score_proportion(*power),
            setting="made samples, 500 a study, panels of 5 to 12 targets of which none remembers: "
            "any stands out; found where one of 8 remembers half of the originals",
        )

    def tweets(self) -> Iterator[str]:
        """Classifiers of TweetEval's emotion, with and without its test tweets in training."""
        yield "## TweetEval emotion\n"
        yield from _head("classifier", "share", "n", *COLUMNS)
        if not TWEETS.is_dir():
            return
        for population in tweets((0.25, 0.5, 1.0)):
            share = population.planted.words
            for n in (100, 300, 1000):
                rates = decomposed(population, n, self.studies // (8 if share else 2), 5)
                yield _decomposed_row(f"{population.planted.name} | {share:g}", n, rates)


def _decomposed_row(name: str, n: object, rates: Rates) -> str:
    told = [*(f"holds {{}} {term}" for term in CONTRASTS), "shown {} unexplained"]
    cells = (" / ".join(_share(rates[each.format(metric)]) for metric in METRICS) for each in told)
    return _row(name, n, *cells, _share(rates["remembered"]))


def _listed(found: Listed) -> Sequence[str]:
    known = "" if np.isnan(found.found) else f"{found.found:.3f}"
    return f"{found.false:.3f}", known, _share(found.some)


def _head(*names: str) -> Iterator[str]:
    yield _row(*names)
    yield _row(*("---" for _ in names))


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _share(rate: Rate) -> str:
    return f"{rate.share:.3f}"


def _pooled(rates: Sequence[Rate]) -> Rate:
    return Rate(sum(each.times for each in rates), sum(each.of for each in rates))


def timed() -> Iterator[str]:
    """Time the decomposition of 1,500 samples with 10,000 draws."""
    coded = Made(CLEAN[1]).study(1500, np.random.default_rng(0)).coded
    decompose(coded, draws=10)
    started, busy = time.perf_counter(), time.process_time()
    decompose(coded, draws=10_000)
    wall, cpu = time.perf_counter() - started, time.process_time() - busy
    yield (
        "## Speed\n\n10,000 bootstrap draws of 1,500 samples in four arms, accuracy and macro-F1, "
        f"from answers to the verdict: {cpu:.2f} s of CPU ({wall:.2f} s by the clock)."
    )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=500)
    parser.add_argument("--publish", action="store_true")
    chosen = parser.parse_args()
    figures = Figures(chosen.studies)
    lines = list[str]()
    for section in (
        timed,
        figures.clean,
        figures.items,
        figures.panels,
        figures.doses,
        figures.tweets,
    ):
        for line in (*section(), ""):
            print(line, flush=True)
            lines.append(line)
        if chosen.publish:
            _publish(lines, figures)


def _publish(lines: Sequence[str], figures: Figures) -> None:
    text = TABLES.read_text("utf-8").partition(COMMAND)[0]
    made = [f"{text}{COMMAND} --studies {figures.studies} --publish`\n", *lines]
    TABLES.write_text("\n".join(made).rstrip() + "\n", "utf-8")
    table = json.loads(TABLE.read_text("utf-8"))
    table |= {name: each.model_dump(mode="json") for name, each in figures.packaged.items()}
    TABLE.write_text(json.dumps(table, indent=2, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()
