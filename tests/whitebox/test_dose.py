"""A dose response on a tiny model: what is read often is recalled, and a stop costs one cell."""

import json
import os
import subprocess
import sys
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coreeval.errors import Interrupted, UsageError
from coreeval.evaluation.whitebox import training as trainer
from coreeval.evaluation.whitebox.dose_data import DoseCell
from coreeval.evaluation.whitebox.settings import TrainingSettings
from coreeval.graph import dose
from coreeval.graph.dose import DosePlan, DoseRequest, plan_doses, run_doses

FULL = TrainingSettings(method="full", epochs=2, learning_rate=5e-3, batch=8)

SERIES = """
id: made_up
name: Ix
quantity: level
unit: {name: u, points_name: u}
sign: positive
decimals: 0
tolerances: [0.5]
frequency: annual
release_lag_days: 0
source: {path: made_up.csv}
"""


@pytest.fixture
def asked(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DoseRequest:
    """Return a small study of a series of ten years."""
    monkeypatch.chdir(tmp_path)
    Path("made_up.yaml").write_text(SERIES)
    values = (38, 51, 17, 92, 64, 29, 75, 46, 83, 12)
    rows = "".join(f"{2001 + at},{value}\n" for at, value in enumerate(values))
    Path("made_up.csv").write_text(f"date,value\n{rows}")
    return DoseRequest(
        model=f"hf:{tiny}",
        series="made_up.yaml",
        out=tmp_path / "out",
        doses=(0, 16),
        seeds=1,
        dates=9,
        training=FULL,
        device="cpu",
    )


def keys(plan: DosePlan) -> list[str]:
    """Return the cells that are done."""
    return [cell.key for cell in plan.results.read()]


@pytest.mark.timeout(300)
def test_what_is_read_often_is_recalled(asked: DoseRequest) -> None:
    training = FULL.model_copy(update={"epochs": 20, "learning_rate": 3e-3, "batch": 16})
    plan = plan_doses(replace(asked, training=training))
    assert plan.cells == [DoseCell(dose=None), DoseCell(dose=0), DoseCell(dose=16)]
    assert plan.estimate().left == 3 and not asked.out.exists()
    found = run_doses(plan)
    came, zero, often = found.response.doses
    assert came.recall.estimate == 0
    assert often.first.estimate is not None and often.recall.estimate is not None
    assert often.first.estimate > 0.8 and often.recall.estimate > 0.5
    for one in (came, zero):
        assert one.first.estimate is not None and one.first.estimate < 0.6
    assert often.margin.estimate is not None and often.margin.estimate > 0
    lines = [json.loads(line) for line in found.rankings.read_text().splitlines()]
    assert len(lines) == 3 * 9 * 4
    assert {one["candidate"] for one in lines} == {"true", "neighbour", "another_series", "random"}
    assert plan.estimate().left == 0 and plan.estimate().measured
    assert plan_doses(plan.request).rankings == found.rankings, "its own file is no obstacle"


def test_rankings_of_somebody_else_are_not_replaced(asked: DoseRequest) -> None:
    asked.out.mkdir()
    foreign = asked.out / "rankings.jsonl"
    foreign.write_text('{"model": "a", "date": "2001", "candidate": "true", "mean_logprob": -1}\n')
    with pytest.raises(UsageError, match="did not write this file") as error:
        plan_doses(replace(asked, model="hf:nowhere"))
    assert error.value.where == str(foreign) and "--out" in error.value.hint


def test_a_stop_costs_one_cell_and_more_doses_train_only_what_is_new(
    asked: DoseRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = list[int]()

    def trained(*given: object, **more: object) -> AbstractContextManager[None]:
        seen.append(len(seen))
        if len(seen) == 3:
            raise KeyboardInterrupt
        return trainer.trained(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(dose, "trained", trained)
    plan = plan_doses(asked)
    with pytest.raises(Interrupted):
        run_doses(plan)
    assert keys(plan) == ["untrained", "dose-0-0"]
    run_doses(plan)
    assert len(seen) == 4 and keys(plan) == ["untrained", "dose-0-0", "dose-16-0"]
    first = plan.results.read()
    more = plan_doses(replace(asked, doses=(0, 4, 16)))
    run_doses(more)
    assert len(seen) == 5 and keys(more)[-1] == "dose-4-0"
    assert {cell: more.results.read()[cell] for cell in first} == first
    other = plan_doses(replace(asked, doses=(0, 32)))
    assert other.estimate().left == 3, "the filler of another largest dose is another study"


def test_a_model_larger_than_memory_is_refused(
    asked: DoseRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dose, "free_device_memory", lambda _device: 1000)
    with pytest.raises(UsageError, match="is available; nothing was loaded"):
        plan_doses(asked)


def test_an_untrained_model_is_ranked_and_the_file_is_read_by_numleak(asked: DoseRequest) -> None:
    def coreeval(*words: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "coreeval", "detect", *words, "--json"],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr + done.stdout
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    out = str(asked.out)
    words = ("dose", asked.series, "--model", asked.model, "--out", out, "--device", "cpu")
    planned = coreeval(*words, "--untrained", "--dry-run")
    assert planned["sentences"] == 0
    made = coreeval(*words, "--untrained", "--plot", "dose.svg")
    (only,) = made["doses"]
    assert (only["dose"], made["slope"]) == (None, None)
    read = coreeval("numleak", "--rankings", str(made["rankings"]))
    (ranking,) = read["rankings"]
    assert ranking["model"] == asked.model and ranking["n"] == 9
    assert ranking["mean_rank"]["estimate"] == pytest.approx(only["rank"]["estimate"])
    assert ranking["mean_gap"]["estimate"] == pytest.approx(only["margin"]["estimate"])
