"""The verdict on a contamination test, its tables and its plot, from answers made by hand."""

from pathlib import Path
from typing import Any

import pytest

from coreeval.evaluation.detectors import DETECTORS, DOCUMENTED, TARGET_DETECTORS
from coreeval.evaluation.detectors.finetune import FINETUNE
from coreeval.evaluation.whitebox.cells import Cell, CellResult, Scenario
from coreeval.evaluation.whitebox.contamination import ContaminationFinding, judge_contamination
from coreeval.evaluation.whitebox.contamination_tables import draw_contamination
from coreeval.evaluation.whitebox.deltas import MeasuredPart, PerformanceTable
from coreeval.schema import Arm
from coreeval.tools.tables import Table, text_lines
from tests.evaluation.whitebox.test_cells import HEADER

N = 80
DUE = tuple(at % 2 for at in range(N))
PARTS = ("original", "updated", "held_out")


def right(share: float) -> tuple[int, ...]:
    """Return answers of which a share is right, alike in both labels."""
    return tuple(label if at < share * N else 1 - label for at, label in enumerate(DUE))


def result(
    scenario: Scenario, *shares: float, arm: Arm | None = None, percent: int = 100, seed: int = 0
) -> CellResult:
    """Return a result with the share of right answers on originals, updated and clean samples."""
    answers = {part: (right(share),) for part, share in zip(PARTS, shares, strict=True)}
    cell = Cell(scenario=scenario, arm=arm, percent=percent, seed=seed)
    return CellResult(cell=cell, answers=answers, seconds=1.0, work=1.0)


def judge(*results: CellResult, samples: int = N) -> ContaminationFinding:
    """Return the finding on results."""
    parts = {name: MeasuredPart(DUE[: samples if name != "held_out" else N]) for name in PARTS}
    cut = [
        one.model_copy(
            update={
                "answers": {
                    name: tuple(line[: len(parts[name].due)] for line in lines)
                    for name, lines in one.answers.items()
                }
            }
        )
        for one in results
    ]
    table = PerformanceTable(parts, 2, {one.cell: one for one in cut}, seed=0, draws=400)
    return judge_contamination(table, HEADER.model_copy(update={"samples": samples}), cut)


ZERO = result("zero", 0.5, 0.5, 0.5)
TRAIN = result("train", 0.6, 0.6, 0.6)


def test_a_leak_that_pays_on_originals_alone_is_resisted() -> None:
    found = judge(ZERO, TRAIN, result("train_test", 1, 0.6, 0.6, arm="original"))
    assert (found.verdict, found.delta, found.compared) == ("resists", "delta2", "updated")
    assert found.reason.startswith("leaking the originals raises scores on them by")
    assert found.resistance.estimate == pytest.approx(0.4)
    (worth,) = found.worth
    assert worth.beyond.estimate == pytest.approx(0.4)
    assert [each.macro_f1.estimate for each in found.zero] == pytest.approx([0.5] * 3)
    wrong = judge(result("zero", 0, 1, 0.5), result("test", 1, 1, 1, arm="original")).zero
    assert (wrong[0].accuracy.ci_low, wrong[1].accuracy.ci_high) == (0, 1)
    assert any("no control arm" in note for note in found.notes)
    assert any("one seed" in note for note in found.notes)


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        ((1, 1, 0.5), "not_told_apart"),
        ((0.8, 1, 0.5), "rises_more"),
        ((0.5, 0.5, 0.5), "no_rise"),
        ((0.4, 0.4, 0.5), "no_rise"),
    ],
)
def test_the_verdict_rests_on_delta_1_where_nothing_else_was_measured(
    shares: tuple[float, float, float], verdict: str
) -> None:
    found = judge(ZERO, result("test", *shares, arm="original"))
    assert (found.verdict, found.delta) == (verdict, "delta1")


def test_few_samples_say_nothing_however_large_the_rise() -> None:
    found = judge(ZERO, result("test", 1, 0.5, 0.5, arm="original"), samples=40)
    assert found.verdict == "too_few"
    assert found.reason == "40 samples are shared by all arms, but 50 are needed"


def test_the_verdict_is_about_the_largest_share() -> None:
    found = judge(
        ZERO,
        result("test", 1, 0.5, 0.5, arm="original", percent=100),
        result("test", 0.5, 0.5, 0.5, arm="original", percent=20),
    )
    assert found.verdict == "resists"
    assert {rise.percent for rise in found.rises} == {20, 100}


def _document(*found: ContaminationFinding) -> dict[str, Any]:
    targets = [
        {"target": f"hf:m{at}", **each.model_dump(mode="json")} for at, each in enumerate(found)
    ]
    return {"detector": "finetune", "question": FINETUNE.question, "targets": targets}


def test_the_tables_are_those_of_the_paper_and_what_a_leak_is_worth() -> None:
    found = judge(
        ZERO,
        TRAIN,
        result("test", 1, 0.7, 0.6, arm="original"),
        result("test", 0.7, 0.7, 0.6, arm="original", percent=20),
        result("train_test", 1, 0.8, 0.6, arm="original"),
        result("test", 0.6, 1, 0.6, arm="updated"),
        result("text", 0.5, 0.5, 0.5, arm="original"),
    )
    tables = FINETUNE.make_tables(_document(found))
    words = "\n".join(line for table in tables for line in text_lines(table))
    for each in (
        "table 3",
        "table 4",
        "figure 4",
        "an arm other than the originals",
        "Effect of leaking an arm",
        "original model",
    ):
        assert each in words
    (third,) = [table for table in tables if "table 3" in table.title]
    original, updated, clean = third.rows
    assert original[1:3] == ("original", "+50.0") and original[4] == "+40.0"
    assert updated[1:3] == ("updated", "+20.0") and updated[4] == "+20.0"
    assert clean[1:3] == ("clean samples", "+10.0") and clean[4] == "+0.0"
    assert all(isinstance(table, Table) for table in tables)


def test_the_plot_has_a_row_for_each_model(tmp_path: Path) -> None:
    one = judge(ZERO, result("test", 1, 0.7, 0.6, arm="original"))
    path = draw_contamination(tmp_path / "leak.svg", _document(one, one))
    assert path.read_text().count("hf:m1") == 2


def test_the_detector_has_a_document_and_says_nothing_of_a_target() -> None:
    assert DETECTORS["finetune"] is DOCUMENTED["finetune"] is FINETUNE
    assert FINETUNE not in TARGET_DETECTORS
    assert set(FINETUNE.verdicts.values()) == {"not_measured"}
