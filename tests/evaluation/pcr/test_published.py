"""The numbers that the CAP paper prints (Tables 2 to 11), as data."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pytest

from coreeval.evaluation.pcr import (
    MARGINS,
    SCALES,
    Comparison,
    Pair,
    PcrSettings,
    performance_consistency_ratio,
    read_pairs,
    study,
)
from coreeval.evaluation.statistics import Array
from tests.support.cap import SHARED, write


class Cell(NamedTuple):
    """A model on a split: scores on the original and modified items, consistency, and PCR."""

    original: float
    modified: float
    consistency: float
    pcr: float


Row = dict[str, tuple[Cell, ...]]

SPLITS = {
    "fineval": ("dev", "val"),
    "finqa": ("train", "val", "test"),
    "alphafin": ("train", "val"),
    "ectsum": ("train", "val", "test"),
}
ALPHA = {"fineval": 0.01, "finqa": 0.01, "alphafin": 0.01, "ectsum": 0.001}
"""As the captions of Tables 5, 7, 9 and 11 say."""

CELLS: dict[str, Row] = {
    "fineval": {  # EM: Tables 4 and 5
        "baichuan": (Cell(0.4235, 0.4412, 0.4765, 0.7119), Cell(0.4544, 0.4309, 0.4674, 0.7499)),
        "disc_fin": (Cell(0.4647, 0.4059, 0.4824, 0.7461), Cell(0.4327, 0.3884, 0.4083, 0.785)),
        "finma_nlp": (Cell(0.1176, 0.1647, 0.2765, 0.4181), Cell(0.1095, 0.1512, 0.2407, 0.4436)),
        "finma_full": (Cell(0.1824, 0.1353, 0.2706, 0.5952), Cell(0.1706, 0.1647, 0.2502, 0.6006)),
        "llama": (Cell(0, 0, 0.6059, 0.0162), Cell(0, 0, 0.5308, 0.0185)),
        "mistral": (Cell(0, 0, 0.5294, 0.0185), Cell(0, 0, 0.4944, 0.0198)),
        "gpt": (Cell(0, 0, 0.7706, 0.0128), Cell(0, 0.0009, 0.7489, 0.0132)),
    },
    "finqa": {  # ROUGE-L: Tables 6 and 7
        "llama": (
            Cell(0.0021, 0.0022, 0.8326, 0.0144),
            Cell(0.0021, 0.0022, 0.83, 0.0144),
            Cell(0.0022, 0.0024, 0.8246, 0.0147),
        ),
        "mistral": (
            Cell(0.0209, 0.022, 0.5554, 0.0546),
            Cell(0.0229, 0.0225, 0.5679, 0.0569),
            Cell(0.0201, 0.0205, 0.5656, 0.0523),
        ),
        "finma_full": (
            Cell(0.2304, 0.2181, 0.727, 0.3151),
            Cell(0.0943, 0.0835, 0.5662, 0.1791),
            Cell(0.1084, 0.1016, 0.5706, 0.2011),
        ),
        "finma_nlp": (
            Cell(0.1481, 0.1391, 0.6993, 0.2193),
            Cell(0.092, 0.0866, 0.638, 0.1561),
            Cell(0.106, 0.106, 0.6219, 0.1816),
        ),
        "gpt": (
            Cell(0.0209, 0.0217, 0.4562, 0.0662),
            Cell(0.0217, 0.0206, 0.4604, 0.0672),
            Cell(0.0208, 0.0207, 0.4505, 0.0667),
        ),
        "baichuan": (
            Cell(0.0084, 0.0078, 0.2506, 0.0703),
            Cell(0.01, 0.0131, 0.2546, 0.0756),
            Cell(0.0081, 0.0068, 0.2466, 0.0704),
        ),
        "disc_fin": (
            Cell(0.0097, 0.009, 0.512, 0.0377),
            Cell(0.0118, 0.0135, 0.5554, 0.0385),
            Cell(0.0144, 0.0159, 0.4796, 0.0497),
        ),
    },
    "alphafin": {  # ROUGE-L: Tables 8 and 9
        "llama": (Cell(0.0088, 0.0089, 0.7919, 0.0234), Cell(0.0093, 0.0088, 0.7702, 0.0247)),
        "mistral": (Cell(0.1252, 0.1267, 0.6838, 0.1924), Cell(0.1245, 0.1275, 0.6581, 0.1987)),
        "finma_full": (Cell(0.779, 0.745, 0.8964, 0.7016), Cell(0.5792, 0.5839, 0.8884, 0.5756)),
        "finma_nlp": (Cell(0.5221, 0.5188, 0.8873, 0.5321), Cell(0.4395, 0.4381, 0.8905, 0.4615)),
        "baichuan": (Cell(0.1127, 0.1105, 0.576, 0.2063), Cell(0.0951, 0.0902, 0.5513, 0.1851)),
        "disc_fin": (Cell(0.0883, 0.0877, 0.7381, 0.1307), Cell(0.0798, 0.0789, 0.7321, 0.1204)),
        "gpt": (Cell(0.2545, 0.2591, 0.5417, 0.4457), Cell(0.2556, 0.27, 0.5472, 0.4436)),
    },
    "ectsum": {  # ROUGE-2: Tables 10 and 11
        "llama": (
            Cell(0.0281, 0.0257, 0, 1),
            Cell(0.0253, 0.0229, 0.02, 0.8491),
            Cell(0.0221, 0.021, 0, 1),
        ),
        "mistral": (
            Cell(0.0493, 0.0441, 0.0116, 0.9993),
            Cell(0.048, 0.0448, 0.0099, 0.9998),
            Cell(0.0443, 0.0411, 0.016, 0.9904),
        ),
        "finma_full": (
            Cell(0.0024, 0.0023, 0.029, 0.1119),
            Cell(0.002, 0.0025, 0.0396, 0.0738),
            Cell(0.0023, 0.0021, 0.036, 0.0903),
        ),
        "finma_nlp": (
            Cell(0.0013, 0.0015, 0.0445, 0.0507),
            Cell(0.0001, 0.0008, 0.0396, 0.0272),
            Cell(0.0011, 0.0013, 0.028, 0.073),
        ),
        "baichuan": (
            Cell(0.0067, 0.0043, 0, 1),
            Cell(0.0074, 0.0057, 0, 1),
            Cell(0.0044, 0.0054, 0, 1),
        ),
        "disc_fin": (
            Cell(0.0038, 0.0053, 0.0522, 0.0907),
            Cell(0.0034, 0.0038, 0.0693, 0.0632),
            Cell(0.0055, 0.0047, 0.06, 0.1054),
        ),
        "gpt": (
            Cell(0.0467, 0.0435, 0.0077, 1),
            Cell(0.0456, 0.0467, 0.0099, 0.9996),
            Cell(0.0419, 0.0409, 0.012, 0.9973),
        ),
    },
}

DROPS: dict[str, dict[str, tuple[float, ...]]] = {
    "fineval": {
        "baichuan": (-0.038,),
        "disc_fin": (-0.0389,),
        "finma_nlp": (-0.0255,),
        "finma_full": (-0.0054,),
        "llama": (-0.0023,),
        "mistral": (-0.0013,),
        "gpt": (-0.0004,),
    },
    "finqa": {
        "llama": (-0.0001, -0.0003),
        "mistral": (-0.0023, 0.0023),
        "finma_full": (0.136, 0.1139),
        "finma_nlp": (0.0633, 0.0377),
        "gpt": (-0.001, -0.0005),
        "baichuan": (-0.0053, -0.0001),
        "disc_fin": (-0.0009, -0.0121),
    },
    "alphafin": {
        "llama": (-0.0013,),
        "mistral": (-0.0062,),
        "finma_full": (0.1261,),
        "finma_nlp": (0.0706,),
        "baichuan": (0.0213,),
        "disc_fin": (0.0103,),
        "gpt": (0.0022,),
    },
    "ectsum": {
        "llama": (0.1509, 0),
        "mistral": (-0.0004, 0.0089),
        "finma_full": (0.0382, 0.0216),
        "finma_nlp": (0.0235, -0.0223),
        "baichuan": (0, 0),
        "disc_fin": (0.0276, -0.0147),
        "gpt": (0.0004, 0.0027),
    },
}
"""PCR of the first split minus that of each other one: Tables 2, 5, 7, 9 and 11."""

DECLINES: dict[str, dict[str, tuple[float, ...]]] = {
    "fineval": {
        "llama": (0, 0),
        "mistral": (0, 0),
        "finma_full": (0.0471, 0.0059),
        "finma_nlp": (-0.0471, -0.0417),
        "baichuan": (-0.0177, 0.0235),
        "disc_fin": (0.0588, 0.0443),
        "gpt": (0, -0.0009),
    },
    "finqa": {
        "llama": (-0.0001, -0.0001, -0.0002),
        "mistral": (-0.0011, 0.0004, -0.0004),
        "finma_full": (0.0123, 0.0108, 0.0068),
        "finma_nlp": (0.009, 0.0054, 0),
        "baichuan": (0.0006, -0.0031, 0.0013),
        "disc_fin": (0.0007, -0.0017, -0.0015),
        "gpt": (-0.0008, 0.0011, 0.0001),
    },
    "alphafin": {
        "llama": (-0.0001, 0.0005),
        "mistral": (-0.0015, -0.003),
        "finma_full": (0.034, -0.0047),
        "finma_nlp": (0.0033, 0.0014),
        "baichuan": (0.0022, 0.0049),
        "disc_fin": (0.0006, 0.0009),
        "gpt": (-0.0046, -0.0144),
    },
    "ectsum": {
        "llama": (0.0024, 0.0024, 0.0011),
        "mistral": (0.0052, 0.0032, 0.0032),
        "finma_full": (0.0001, -0.0005, 0.0002),
        "finma_nlp": (-0.0002, -0.0007, -0.0002),
        "baichuan": (0.0024, 0.0017, -0.001),
        "disc_fin": (-0.0015, -0.0004, 0.0008),
        "gpt": (0.0032, -0.0011, 0.001),
    },
}
"""Performance on the original minus that on the modified items, in each split: Table 2."""

DISCREPANCIES: dict[str, dict[str, tuple[float, ...]]] = {
    "fineval": {
        "finma_full": (0.2235,),
        "finma_nlp": (-0.0197,),
        "baichuan": (-0.0935,),
        "disc_fin": (0.0241,),
    },
    "finqa": {
        "llama": (0, 0.0433),
        "mistral": (-0.0701, -0.0327),
        "finma_full": (-0.0611, -0.0093),
        "finma_nlp": (0.0021, 0.0608),
        "baichuan": (0.3814, -0.0891),
        "disc_fin": (0.2162, 0.1763),
        "gpt": (-0.089, -0.0431),
    },
    "alphafin": {
        "llama": (-0.0651,),
        "mistral": (0.0121,),
        "finma_full": (0.0518,),
        "finma_nlp": (0.0031,),
        "baichuan": (-0.032,),
        "disc_fin": (-0.0045,),
        "gpt": (0.0383,),
    },
    "ectsum": {
        "llama": (-0.0095, 0.0356),
        "mistral": (0.0388, 0.0332),
        "finma_full": (0.2917, -0.0453),
        "finma_nlp": (6.8462, 0.028),
        "baichuan": (0.1285, 0.5855),
        "disc_fin": (-0.2771, -0.5402),
        "gpt": (0.0926, 0.0447),
    },
}
"""Relative decline of the first split minus that of each other one: Table 2. Where performance on
the originals is 0 there is none to compute (FinEval: LLaMA, Mistral, GPT)."""

ALPHAS = (0.0, 0.001, 0.01, 0.1)
BY_SCALE: dict[str, dict[str, tuple[float, ...]]] = {
    "tanh": {
        "llama": (0, -0.0002, -0.0023, -0.0165),
        "mistral": (0, -0.0001, -0.0013, -0.0091),
        "finma_full": (-0.0051, -0.0051, -0.0054, -0.0062),
        "finma_nlp": (-0.0245, -0.0246, -0.0255, -0.0264),
        "baichuan": (-0.0389, -0.0388, -0.038, -0.0316),
        "disc_fin": (-0.0398, -0.0397, -0.0389, -0.0325),
        "gpt": (0, 0, -0.0004, -0.0029),
    },
    "linear": {
        "llama": (0, -0.0002, -0.0023, -0.0169),
        "mistral": (0, -0.0001, -0.0013, -0.0094),
        "finma_full": (-0.0078, -0.0079, -0.0084, -0.0107),
        "finma_nlp": (-0.0296, -0.0298, -0.0313, -0.037),
        "baichuan": (-0.0834, -0.0832, -0.0817, -0.069),
        "disc_fin": (-0.0965, -0.0962, -0.0943, -0.0784),
        "gpt": (0, 0, -0.0004, -0.0029),
    },
    "sigmoid": {
        "llama": (0, -0.0001, -0.0006, -0.0042),
        "mistral": (0, 0, -0.0003, -0.0023),
        "finma_full": (-0.0017, -0.0018, -0.0019, -0.0023),
        "finma_nlp": (-0.0071, -0.0071, -0.0074, -0.0085),
        "baichuan": (-0.0169, -0.0169, -0.0166, -0.0139),
        "disc_fin": (-0.0189, -0.0188, -0.0184, -0.0153),
        "gpt": (0, 0, -0.0001, -0.0007),
    },
}
"""FinEval's PCR(dev) - PCR(val) under each scale, over ALPHAS: Table 3."""


HALF = 0.00005 + 1e-9
"""Half of the last digit that is printed."""
NAMES = [(benchmark, model) for benchmark, rows in CELLS.items() for model in rows]


class Band(NamedTuple):
    """The least and greatest value that fits what is printed."""

    low: float
    high: float

    def __sub__(self, other: "Band") -> "Band":
        return Band(self.low - other.high, self.high - other.low)

    def holds(self, printed: float) -> bool:
        """Whether some number of the band is printed so."""
        return self.low - HALF <= printed <= self.high + HALF


def band(formula: Callable[..., Array], *printed: float) -> Band:
    """Return the band of a formula that is monotone in each of its numbers."""
    ends = [(max(0.0, value - HALF), value + HALF) for value in printed]
    corners = np.stack(np.meshgrid(*ends)).reshape(len(printed), -1)
    found = formula(*corners)
    return Band(float(found.min()), float(found.max()))


def ratio(benchmark: str, cell: Cell) -> Band:
    def formula(m: Array, c: Array) -> Array:
        return performance_consistency_ratio(m, c, alpha=ALPHA[benchmark])

    return band(formula, cell.original, cell.consistency)


def relative(cell: Cell) -> Band:
    return band(lambda m, other: (m - other) / m, cell.original, cell.modified)


def test_all_rows_of_the_tables_are_here() -> None:
    assert len(NAMES) == 28
    cells = [cell for rows in CELLS.values() for row in rows.values() for cell in row]
    assert len(cells) == 7 * (2 + 3 + 2 + 3)
    for table in (DROPS, DECLINES):
        assert [(name, model) for name in table for model in sorted(table[name])] == [
            (name, model) for name in table for model in sorted(CELLS[name])
        ]


@pytest.mark.parametrize(("benchmark", "model"), NAMES)
def test_pcr_and_its_differences(benchmark: str, model: str) -> None:
    """Tables 5, 7, 9 and 11, and CAP's columns of Table 2."""
    cells = CELLS[benchmark][model]
    bands = [ratio(benchmark, cell) for cell in cells]
    for split, one, cell in zip(SPLITS[benchmark], bands, cells, strict=True):
        assert one.holds(cell.pcr), split
        assert one.high - one.low < 0.02 or benchmark == "ectsum"
    drops = [bands[0] - other for other in bands[1:]]
    for split, one, drop in zip(SPLITS[benchmark][1:], drops, DROPS[benchmark][model], strict=True):
        assert one.holds(drop), split


@pytest.mark.parametrize(("benchmark", "model"), NAMES)
def test_the_baselines(benchmark: str, model: str) -> None:
    """The baselines' columns of Table 2."""
    cells = CELLS[benchmark][model]
    for cell, printed in zip(cells, DECLINES[benchmark][model], strict=True):
        assert band(np.subtract, cell.original, cell.modified).holds(printed)
    bands = [relative(cell) for cell in cells if cell.original > 0]
    known = DISCREPANCIES[benchmark].get(model, ())
    assert len(bands) == len(known) + 1 if known else not bands
    for other, printed in zip(bands[1:], known, strict=True):
        assert (bands[0] - other).holds(printed)


def fineval() -> Iterator[tuple[str, str, float, float]]:
    for scale, rows in BY_SCALE.items():
        for model, drops in rows.items():
            yield from ((scale, model, *pair) for pair in zip(ALPHAS, drops, strict=True))


def test_every_scale_and_alpha_to_four_digits() -> None:
    """Table 3; the paper computed it from M and C as they are printed."""
    assert set(BY_SCALE) == set(SCALES) and len(list(fineval())) == 84
    for scale, model, alpha, printed in fineval():
        first, second = (
            performance_consistency_ratio(
                cell.original,
                cell.consistency,
                alpha=alpha,
                scale=next(name for name in SCALES if name == scale),
            )
            for cell in CELLS["fineval"][model]
        )
        assert first - second == pytest.approx(printed, abs=HALF), (scale, model, alpha)


def test_fineval_to_four_digits() -> None:
    """Table 5."""
    for model, cells in CELLS["fineval"].items():
        found = [performance_consistency_ratio(cell.original, cell.consistency) for cell in cells]
        assert found == pytest.approx([cell.pcr for cell in cells], abs=HALF)
        assert found[0] - found[1] == pytest.approx(DROPS["fineval"][model][0], abs=HALF)


def test_the_margins_lie_halfway_between_what_the_paper_reads_as_leakage_and_as_none() -> None:
    trained, passed_over = CELLS["finqa"]["finma_nlp"], CELLS["alphafin"]["baichuan"]
    for scale, margin in MARGINS.items():
        none, leakage = (
            performance_consistency_ratio(
                [cells[0].original, cells[-1].original],
                [cells[0].consistency, cells[-1].consistency],
                scale=scale,
            )
            @ [1, -1]
            for cells in (passed_over, trained)
        )
        assert none < margin < leakage
        assert margin == pytest.approx((none + leakage) / 2, rel=0.03)


FINEVAL = PcrSettings(metric="exact_match_squad", consistency="option", exchangeable=True)
FINQA = PcrSettings(metric="rouge_l", consistency="jaccard", exchangeable=True)
FINQA_DEV = PcrSettings(metric="rouge_l", consistency="jaccard", test="dev", exchangeable=True)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Pair, ...]]:
    """The pairs of each model on each benchmark, written to a file and read back."""
    if not SHARED.is_dir():
        pytest.skip("needs the CAP authors' predictions in shared/data")
    folder, models = tmp_path_factory.mktemp("cap"), ("gpt", "baichuan", "finma_full")
    names = [*(f"fineval/{model}" for model in models), "finqa/finma_full", "alphafin/finma_full"]
    read = {name: read_pairs(write(SHARED, name, folder / "pairs.jsonl")) for name in names}
    assert not any(each.bad for each in read.values())
    return {name: each.good for name, each in read.items()}


def compared(pairs: tuple[Pair, ...], settings: PcrSettings) -> Comparison:
    return study({"it": pairs}, settings)["it"]


def check(found: Comparison, benchmark: str, model: str, splits: dict[str, str]) -> None:
    """Hold the splits of a comparison against the paper; `splits` has the paper's name of each."""
    for ours, theirs in splits.items():
        cell = CELLS[benchmark][model][SPLITS[benchmark].index(theirs)]
        one = found.splits[ours]
        assert round(one.performance, 4) == cell.original
        assert round(one.consistency, 4) == cell.consistency
        # The paper takes M and C rounded to four digits, which moves the last one of PCR.
        assert one.pcr.estimate == pytest.approx(cell.pcr, abs=0.00015)
        assert one.decline.estimate == pytest.approx(cell.original - cell.modified, abs=0.0001)


def test_fineval_gpt_has_no_signal(recorded: dict[str, tuple[Pair, ...]]) -> None:
    """It answers `C: …`, so that no answer equals the gold letter."""
    found = compared(recorded["fineval/gpt"], FINEVAL)
    check(found, "fineval", "gpt", {"train": "dev", "test": "val"})
    assert found.verdict == "insufficient_signal"


def test_fineval_baichuan_is_inside_noise(recorded: dict[str, tuple[Pair, ...]]) -> None:
    found = compared(recorded["fineval/baichuan"], FINEVAL)
    check(found, "fineval", "baichuan", {"train": "dev", "test": "val"})
    difference = found.difference.pcr
    assert difference == pytest.approx((-0.038, -0.128, 0.051), abs=0.004)
    assert difference.ci_low < 0 < difference.ci_high and found.difference.p_value > 0.3
    assert found.verdict == "inconclusive"
    assert found.difference.discrepancy.estimate == pytest.approx(-0.0935, abs=0.0003)


def test_fineval_finma_full_comes_out_in_dev_only(recorded: dict[str, tuple[Pair, ...]]) -> None:
    found = compared(recorded["fineval/finma_full"], FINEVAL)
    check(found, "fineval", "finma_full", {"train": "dev"})
    val = found.splits["test"]
    assert (round(val.performance, 4), round(val.consistency, 4)) == (0.1451, 0.2502)


def test_finqa_finma_full_was_fine_tuned(recorded: dict[str, tuple[Pair, ...]]) -> None:
    pairs = recorded["finqa/finma_full"]
    found = compared(pairs, FINQA_DEV)
    check(found, "finqa", "finma_full", {"train": "train", "dev": "val", "test": "test"})
    assert found.difference.pcr == pytest.approx((0.136, 0.085, 0.186), abs=0.004)
    assert found.verdict == "fine_tuned" and compared(pairs, FINQA).verdict == "fine_tuned"
    assert [each.scored for each in found.splits.values()] == [495, 493, 492]
    # Items without a reference left out of both scores, as in the figures of the design.
    kept = compared(tuple(each for each in pairs if each.reference), FINQA_DEV)
    assert kept.difference.pcr == pytest.approx((0.138, 0.087, 0.187), abs=0.004)


def test_alphafin_finma_full_was_fine_tuned(recorded: dict[str, tuple[Pair, ...]]) -> None:
    found = compared(recorded["alphafin/finma_full"], FINQA)
    assert found.difference.pcr == pytest.approx((0.1267, 0.088, 0.165), abs=0.004)
    assert found.verdict == "fine_tuned"


def test_every_option_of_fineval_is_read(recorded: dict[str, tuple[Pair, ...]]) -> None:
    for each in recorded["fineval/gpt"]:
        assert each.original_options and each.modified_options
        assert list(each.original_options) == list(each.modified_options) == list("ABCD")
        assert sorted(each.original_options.values()) == sorted(each.modified_options.values())
