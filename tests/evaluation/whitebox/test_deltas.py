"""Delta 1 and delta 2 against numbers made by hand from the paper's definitions."""

import numpy as np
import pytest

from coreeval.evaluation.label_scores import Floats
from coreeval.evaluation.whitebox.cells import Cell, CellResult, Scenario
from coreeval.evaluation.whitebox.deltas import (
    Leakage,
    MeasuredPart,
    PerformanceTable,
    average_seeds,
)

DUE = (0, 0, 1, 1)
RIGHT = (0, 0, 1, 1)
ALL_FIRST = (0, 0, 0, 0)
"""Macro-F1 1/3: F1 of the first label is 2 * 2 / (4 + 2), that of the second 0."""
ONE_WRONG = (0, 0, 1, 0)
"""Macro-F1 11/15: 2 * 2 / (3 + 2) = 4/5 and 2 * 1 / (1 + 2) = 2/3."""
LEAK = Leakage(arm="original", part="original")


def result(
    scenario: Scenario, original: tuple[int, ...], updated: tuple[int, ...], seed: int = 0
) -> CellResult:
    """Return the answers of a cell to one template."""
    leaking = scenario not in ("zero", "train")
    return CellResult(
        cell=Cell(scenario=scenario, arm="original" if leaking else None, seed=seed),
        answers={"original": (original,), "updated": (updated,)},
        seconds=1.0,
        work=1.0,
    )


def table(*results: CellResult, repeat: int = 1) -> PerformanceTable:
    """Return the scores of results, each sample `repeat` times."""
    part = MeasuredPart(DUE * repeat)
    many = [
        one.model_copy(
            update={
                "answers": {
                    name: tuple(line * repeat for line in lines)
                    for name, lines in one.answers.items()
                }
            }
        )
        for one in results
    ]
    parts = {"original": part, "updated": part}
    return PerformanceTable(parts, 2, {one.cell: one for one in many}, seed=1, draws=400)


def test_delta_1_is_the_score_after_the_test_part_minus_the_score_as_the_model_came() -> None:
    made = table(result("zero", ALL_FIRST, ALL_FIRST), result("test", RIGHT, ONE_WRONG))
    assert made.delta(LEAK, "delta1").estimate == pytest.approx(1 - 1 / 3)
    updated = Leakage(arm="original", part="updated")
    assert made.delta(updated, "delta1").estimate == pytest.approx(11 / 15 - 1 / 3)
    assert made.delta(updated, "delta1", "accuracy").estimate == pytest.approx(3 / 4 - 1 / 2)
    assert made.delta(LEAK, "delta2").estimate is None


def test_delta_2_is_the_score_after_both_parts_minus_that_after_the_train_part() -> None:
    made = table(
        result("zero", ALL_FIRST, ALL_FIRST),
        result("train", ONE_WRONG, ONE_WRONG),
        result("train_test", RIGHT, ONE_WRONG),
    )
    assert made.delta(LEAK, "delta2").estimate == pytest.approx(1 - 11 / 15)
    assert made.delta(Leakage(arm="original", part="updated"), "delta2").estimate == 0
    assert made.delta(LEAK, "delta1").estimate is None


def test_a_delta_is_the_mean_over_seeds_each_against_the_training_with_the_same_seed() -> None:
    made = table(
        result("zero", ALL_FIRST, ALL_FIRST),
        result("train", ALL_FIRST, ALL_FIRST, seed=0),
        result("train", ONE_WRONG, ONE_WRONG, seed=1),
        result("train_test", ONE_WRONG, ONE_WRONG, seed=1),
        result("train_test", RIGHT, RIGHT, seed=0),
    )
    rises = made.rises(LEAK, "delta2")
    assert rises is not None
    assert rises[:, 0] == pytest.approx([1 - 1 / 3, 0])
    assert made.delta(LEAK, "delta2").estimate == pytest.approx((1 - 1 / 3) / 2)


def test_templates_are_averaged_and_text_leaks_are_told_apart() -> None:
    zero, text = result("zero", ALL_FIRST, ALL_FIRST), result("text", RIGHT, RIGHT)
    both = [
        one.model_copy(
            update={"answers": {name: (*lines, ALL_FIRST) for name, lines in one.answers.items()}}
        )
        for one in (zero, text)
    ]
    made = table(*both)
    text_only = Leakage(arm="original", part="original", text_only=True)
    assert made.delta(text_only, "delta1").estimate == pytest.approx((1 - 1 / 3) / 2)
    assert made.delta(LEAK, "delta1").estimate is None


def test_the_difference_of_two_leaks_is_paired_and_its_interval_holds_it() -> None:
    made = table(result("zero", ALL_FIRST, ALL_FIRST), result("test", RIGHT, ONE_WRONG), repeat=20)
    found = made.difference(LEAK, Leakage(arm="original", part="updated"), "delta1")
    assert found.estimate == pytest.approx(1 - 11 / 15)
    assert found.ci_low is not None and found.ci_high is not None
    assert 0 < found.ci_low < 1 - 11 / 15 < found.ci_high
    same = made.difference(LEAK, LEAK, "delta1")
    assert same.estimate == 0
    assert same.ci_low == pytest.approx(-1 / 80) and same.ci_high == pytest.approx(1 / 80)


def _spread(rows: list[float]) -> float:
    values: Floats = np.repeat(np.array(rows)[:, None], 20_001, axis=1)
    return float(average_seeds(values, seed=3)[1:].std())


def test_seeds_widen_an_interval_by_the_standard_error_of_their_mean() -> None:
    rows = [0.1, 0.3, 0.2]
    assert _spread(rows) == pytest.approx(np.std(rows, ddof=1) / np.sqrt(3), rel=0.03)
    assert _spread([0.4]) == pytest.approx(0)
    values = np.array([[0.1, 0.5], [0.3, 0.5]])
    assert average_seeds(values, seed=0)[0] == pytest.approx(0.2)
