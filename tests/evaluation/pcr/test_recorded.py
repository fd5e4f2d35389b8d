"""The CAP authors' own predictions: M, C and PCR to four digits, and intervals around them."""

import pytest

from coreeval.evaluation.pcr import Comparison, Pair, Settings, read_pairs, study
from tests.evaluation.pcr.published import CELLS, SPLITS
from tests.support.cap import SHARED, write

FINEVAL = Settings(metric="exact_match_squad", consistency="option", exchangeable=True)
FINQA = Settings(metric="rouge_l", consistency="jaccard", exchangeable=True)
FINQA_DEV = Settings(metric="rouge_l", consistency="jaccard", test="dev", exchangeable=True)


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


def compared(pairs: tuple[Pair, ...], settings: Settings) -> Comparison:
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
