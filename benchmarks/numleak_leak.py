"""How often an attribution is right where it is known what a signal is made from.

    python -m benchmarks.numleak_leak [--studies 200] [--recorded]

Made: truths with heavy tails, a recall of them of some quality, and a signal made from recall, from
the truth, or from nothing, that has r of 0.74 with what it is made from. Recorded: the same signals
beside what Sonnet recalls of Mkt-RF in the answers that NumLeak's authors published.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from coreeval.evaluation.numleak.leak.attribution import SignalMeasures, collect_evidence
from coreeval.evaluation.numleak.leak.mediation import ROUTES, DateTriple, find_route
from coreeval.evaluation.numleak.parsing import read_points
from coreeval.evaluation.numleak.series import open_series
from coreeval.evaluation.numleak.statistics import AuditSettings
from coreeval.evaluation.numleak.statistics.date_intervals import collect_answers, standardise
from tests.evaluation.numleak.leak.planted import Origin, planted, signal_of, triples
from tests.support.numleak_data import FILES, NUMLEAK
from tests.support.numleak_records import of, sweep

ORIGINS: Sequence[Origin] = ("recall", "truth", "nothing")
Study = Callable[[Origin, int], Sequence[DateTriple]]


def main() -> None:
    """Print a line for each quality of recall, number of dates and origin."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--recorded", action="store_true")
    asked = parser.parse_args()
    if asked.recorded:
        told("Sonnet on Mkt-RF", recorded(), asked.studies)
        return
    for recall_r in (0.99, 0.95, 0.8, 0.5):
        for dates in (40, 120, 240):
            told(f"recall r {recall_r}, {dates} dates", made(recall_r, dates), asked.studies)


def made(recall_r: float, dates: int) -> Study:
    """Return studies of made truths."""
    return lambda origin, seed: planted(origin, recall_r, dates, seed)


def recorded() -> Study:
    """Return studies of the published answers."""
    series = open_series("mkt_rf", base=NUMLEAK, file=FILES["mkt_rf"])
    answers = collect_answers(
        read_points(of(sweep("A"), "claude-sonnet", "mkt_rf"), series, None).points
    )
    truth, recall = answers.truth, answers.estimate

    def study(origin: Origin, seed: int) -> Sequence[DateTriple]:
        rng = np.random.default_rng(seed)
        signal = signal_of(origin, standardise(truth), standardise(recall), rng)
        return triples(signal, recall, truth)

    return study


def told(what: str, study: Study, studies: int) -> None:
    """Print the verdicts and shares of all studies."""
    for origin in ORIGINS:
        found = [
            SignalMeasures(study(origin, seed), AuditSettings(draws=400, seed=seed))
            for seed in range(studies)
        ]
        ties = [collect_evidence(each) for each in found]
        routes = Counter(find_route(each)[0] for each in ties)
        rates = "  ".join(f"{route} {routes[route] / studies:.3f}" for route in ROUTES)
        shares = [
            each.share(lambda spread: spread.leak_share, if_tied=tie.signal_r).estimate
            for each, tie in zip(found, ties, strict=True)
        ]
        least, middle, most = np.nanquantile(shares, [0.05, 0.5, 0.95])
        print(f"{what}, signal from {origin}: {rates}  LeakShare {middle:.4f} "
              f"({least:.4f} to {most:.4f})", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
