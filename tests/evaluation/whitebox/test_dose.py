"""The sentences of a dose response, and what it measures, from numbers made by hand."""

from datetime import date
from pathlib import Path

import pytest

from coreeval.errors import DatasetError, UsageError
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.series import Series, find_definition
from coreeval.evaluation.numleak.statistics.logprobs import read_candidates
from coreeval.evaluation.whitebox.dose_data import (
    DoseCell,
    DoseData,
    DoseResult,
    list_training,
    make_doses,
)
from coreeval.evaluation.whitebox.dose_response import (
    draw_response,
    is_recalled,
    measure_response,
    response_table,
    to_candidates,
)
from coreeval.graph.dose import DOSES, require_doses
from coreeval.tools.tables import text_lines

KINDS = ("true", "neighbour", "another_series", "sign_turned", "random")


def series_of(count: int) -> Series:
    """Return a signed monthly series whose values all differ."""
    definition = find_definition("mkt_rf", base=Path())
    values = {
        Period(date(2000 + at // 12, at % 12 + 1, 1), "monthly"): 1.25 + at for at in range(count)
    }
    return Series(definition=definition, values=values)


@pytest.fixture
def data() -> DoseData:
    return make_doses(series_of(21), dates=20, seed=3)


def result(
    data: DoseData, dose: int | None, hits: int, seed: int = 0, *, gap: float = 1
) -> DoseResult:
    """Return a result in which the first dates are recalled and the others are not."""
    logs, said = [], []
    for at, one in enumerate(data.statements):
        right = at < hits
        true = -2 + gap * (1 if right else -1)
        logs.append({kind: -2.0 for kind in one.candidates} | {"true": true})
        said.append(one.candidates["true"] if right else " unknown")
    cell = DoseCell(dose=dose, seed=seed)
    return DoseResult(cell=cell, logprobs=tuple(logs), said=tuple(said), seconds=1, work=1)


def test_every_date_has_its_rivals_and_its_neighbour_is_the_date_before(data: DoseData) -> None:
    assert len(data.statements) == 20
    first = data.statements[0]
    assert tuple(first.candidates) == KINDS
    assert first.whole == f"{first.begun} 2.25%."
    assert first.candidates["neighbour"] == " 1.25%."
    assert first.candidates["sign_turned"] == " -2.25%."
    assert "February 2000 was" in first.begun
    assert first.filler.endswith(f"for February 2000 was{first.candidates['another_series']}")
    assert first.begun not in first.filler
    assert make_doses(series_of(21), dates=20, seed=3).fingerprint == data.fingerprint
    assert make_doses(series_of(21), dates=20, seed=4).fingerprint != data.fingerprint


def test_a_result_of_other_dates_or_candidates_does_not_fit(data: DoseData) -> None:
    names = [*data.statements[0].candidates]
    logs = [dict.fromkeys(names, -1.0)] * 20
    whole = DoseResult(
        cell=DoseCell(dose=None), logprobs=tuple(logs), said=("1",) * 20, seconds=1, work=1
    )
    assert data.fits(whole)
    fewer = ({**logs[0], "other": -1.0}, *logs[1:])
    for change in ({"logprobs": logs[1:]}, {"said": ("1",) * 19}, {"logprobs": fewer}):
        assert not data.fits(whole.model_copy(update=change))


def test_all_doses_train_on_as_many_sentences(data: DoseData) -> None:
    for dose in (0, 1, 4):
        texts = [item.text.text for item in list_training(data, DoseCell(dose=dose), 4)]
        assert len(texts) == 20 * 4
        assert all(texts.count(one.whole) == dose for one in data.statements)
        assert all(texts.count(one.filler) == 4 - dose for one in data.statements)
    assert list_training(data, DoseCell(dose=None), 4) == []


def test_a_series_that_is_too_short_is_told() -> None:
    with pytest.raises(DatasetError, match="the series has 8 dates, but 9 are needed"):
        make_doses(series_of(8), dates=20, seed=0)


@pytest.mark.parametrize(
    ("said", "recalled"),
    [
        (" 2.25%.", True),
        (" +2.25 per cent", True),
        (" 2.250", True),
        (" 2.2", False),
        (" 12.25", False),
        (" \N{MINUS SIGN}2.25", False),
        (" not known", False),
    ],
)
def test_a_value_is_recalled_if_it_is_the_first_number(
    data: DoseData, said: str, recalled: bool
) -> None:
    assert is_recalled(data.statements[0], said) is recalled


def test_recall_rank_and_margin_by_dose(data: DoseData) -> None:
    results = [
        result(data, None, 0),
        result(data, 0, 0),
        result(data, 0, 2, seed=1),
        result(data, 16, 20, gap=0.5),
        result(data, 16, 18, seed=1, gap=0.5),
    ]
    found = measure_response(data, reversed(results), seed=1, draws=300)
    came, zero, many = found.doses
    assert [one.dose for one in found.doses] == [None, 0, 16]
    assert [one.seeds for one in found.doses] == [1, 2, 2]
    assert zero.recall.estimate == zero.first.estimate == pytest.approx(0.05)
    assert many.first.estimate == pytest.approx(0.95)
    assert many.rank.estimate == pytest.approx(0.95 * 1 + 0.05 * 5)
    assert many.margin.estimate == pytest.approx(0.45)
    assert zero.margin.estimate == pytest.approx(-0.9)
    assert many.chance == pytest.approx(1 / 5)
    assert many.margin_gained is not None and came.margin_gained is zero.margin_gained is None
    assert many.margin_gained.estimate == pytest.approx(1.35)
    assert many.margin_gained.ci_low is not None and many.margin_gained.ci_low > 1
    assert found.slope is not None
    assert found.slope.estimate == pytest.approx(1.35 / 4.087463)
    assert came.recall.ci_high is not None and came.recall.ci_high > 0.1
    assert measure_response(data, results[:2], seed=1, draws=100).slope is None


def test_the_table_and_the_plot_show_every_dose(data: DoseData, tmp_path: Path) -> None:
    results = [result(data, None, 0), result(data, 0, 1), result(data, 4, 15)]
    found = measure_response(data, results, seed=0, draws=100)
    said = "\n".join(text_lines(response_table(found)))
    assert "as released" in said and "Each doubling of 1 + dose adds +" in said
    path = draw_response(tmp_path / "dose.svg", found, "training of")
    assert "training of" in path.read_text()


def test_rankings_are_in_the_form_that_numleak_reads(data: DoseData, tmp_path: Path) -> None:
    found = [*to_candidates(data, result(data, 4, 15), "hf:m")]
    path = tmp_path / "rankings.jsonl"
    path.write_text("".join(f"{one.model_dump_json()}\n" for one in found))
    read = read_candidates(path)
    assert [*read.good] == found and not read.bad
    assert {one.model for one in found} == {"hf:m dose 4 seed 0"}
    assert len(found) == 20 * 5


def test_a_model_as_it_came_has_no_doses() -> None:
    assert require_doses([], untrained=False) == DOSES
    assert require_doses([2], untrained=False) == (2,)
    assert require_doses([], untrained=True) == ()
    with pytest.raises(UsageError, match="has no dose"):
        require_doses([2], untrained=True)
