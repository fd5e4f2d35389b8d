"""The cells of a contamination test, and their file after stops and kills."""

import json
import os
from pathlib import Path

import pytest

from coreeval.errors import RunCorrupt
from coreeval.evaluation.whitebox.cells import Cell, CellFile, CellResult, plan_cells
from coreeval.evaluation.whitebox.settings import StudyHeader, TrainingSettings

HEADER = StudyHeader(
    study="abc",
    model="hf:m",
    revision="sha256:0",
    device="cpu",
    training=TrainingSettings(),
    samples=8,
    train=0,
    held_out=0,
    fingerprint="f",
)

Results = CellFile[CellResult]


def result(cell: Cell) -> CellResult:
    """Return a result of a cell."""
    return CellResult(cell=cell, answers={"original": ((0, 1),)}, seconds=2.0, work=8.0)


@pytest.fixture
def file(tmp_path: Path) -> Results:
    """Return a file that is missing yet."""
    return make_file(tmp_path / "finetune" / "abc.jsonl")


def make_file(path: Path, **header: object) -> Results:
    """Return a file of a study with one part: two samples, one template, two labels."""
    return CellFile(
        path,
        HEADER.model_copy(update=header),
        CellResult,
        fits=lambda result: result.fits({"original": (1, 2)}, 2),
    )


def test_cells_are_planned_once_each_with_what_they_are_compared_with() -> None:
    cells = plan_cells(["original", "updated"], ["test", "both"], [20, 100, 100], 2)
    assert len(cells) == len(set(cells)) == 1 + 2 * 2 * (1 + 2 * 2)
    assert cells[0] == Cell(scenario="zero")
    assert cells[1] == Cell(scenario="train", percent=100, seed=0)
    assert [cell.scenario for cell in plan_cells(["original"], ["test"], [100], 1)] == [
        "zero",
        "test",
    ]
    texts = plan_cells(["original"], ["text", "both"], [100], 1)
    assert {cell.scenario for cell in texts} == {
        "zero",
        "train",
        "train_test",
        "text",
        "train_text",
    }


def test_a_result_is_kept_and_a_line_cut_by_a_kill_is_written_anew(
    file: Results,
) -> None:
    zero, test = (Cell(scenario="zero"), Cell(scenario="test", arm="original"))
    assert file.read() == {}
    file.add(result(zero))
    with file.path.open("ab") as end:
        end.write(result(test).model_dump_json().encode()[:40])
    assert file.read() == {zero: result(zero)}
    file.add(result(test))
    assert file.read() == {zero: result(zero), test: result(test)}
    assert len(file.path.read_bytes().splitlines()) == 3


def test_a_file_cut_within_its_first_line_has_no_results(file: Results) -> None:
    file.path.parent.mkdir()
    file.path.write_bytes(HEADER.model_dump_json().encode()[:20])
    assert file.read() == {}
    file.add(result(Cell(scenario="zero")))
    assert StudyHeader.model_validate_json(file.path.read_bytes().splitlines()[0]) == HEADER


def test_a_file_that_is_no_results_file_is_left_as_it_is(file: Results, tmp_path: Path) -> None:
    file.path.parent.mkdir()
    file.path.write_bytes(b"my notes, without a line's end")
    with pytest.raises(RunCorrupt, match="line 1 is not the header of the results"):
        file.read()
    assert file.path.read_bytes() == b"my notes, without a line's end"


@pytest.mark.parametrize("lock", [False, True])
def test_a_link_in_place_of_a_file_is_refused(file: Results, tmp_path: Path, lock: bool) -> None:
    own = tmp_path / "own.txt"
    own.write_bytes(b"mine")
    place = file.path.parent / "abc.locks" / "file.lock" if lock else file.path
    place.parent.mkdir(parents=True)
    place.symlink_to(own)
    with pytest.raises(RunCorrupt, match="is a link"):
        file.add(result(Cell(scenario="zero")))
    assert own.read_bytes() == b"mine"


def test_a_pipe_in_place_of_a_file_is_not_waited_for(file: Results) -> None:
    file.path.parent.mkdir()
    os.mkfifo(file.path)
    with pytest.raises(RunCorrupt, match="is a named pipe"):
        file.read()


def test_a_damaged_line_is_one_message_that_names_it(file: Results) -> None:
    file.add(result(Cell(scenario="zero")))
    with file.path.open("ab") as end:
        end.write(b"{}\n")
    with pytest.raises(RunCorrupt, match="line 3") as caught:
        file.read()
    assert "recomputed" in caught.value.hint


@pytest.mark.parametrize(
    "change",
    [
        {"answers": {"original": [[0]]}},
        {"answers": {"original": [[0, 1], [0, 1]]}},
        {"answers": {"original": []}},
        {"answers": {"original": [[0, 2]]}},
        {"answers": {"original": [[0, -1]]}},
        {"answers": {}},
        {"answers": {"original": [[0, 1]], "updated": [[0, 1]]}},
        {"seconds": float("nan")},
        {"seconds": -1.0},
        {"work": float("inf")},
    ],
)
def test_a_result_of_something_else_is_damaged(file: Results, change: dict[str, object]) -> None:
    file.add(result(Cell(scenario="zero")))
    line = json.dumps(result(Cell(scenario="train")).model_dump(mode="json") | change)
    with file.path.open("a") as end:
        end.write(f"{line}\n")
    with pytest.raises(RunCorrupt, match="line 3") as caught:
        file.read()
    assert caught.value.where == str(file.path)


def test_a_file_of_another_study_is_refused_but_not_for_the_name_of_the_model(
    file: Results,
) -> None:
    zero = Cell(scenario="zero")
    file.add(result(zero))
    assert make_file(file.path, model="./weights").read() == {zero: result(zero)}
    for other in (make_file(file.path, study="other"), make_file(file.path, fingerprint="g")):
        with pytest.raises(RunCorrupt, match="line 1 is not the header of") as caught:
            other.read()
        assert "delete the file" in caught.value.hint
    file.path.write_bytes(b"{}\n")
    with pytest.raises(RunCorrupt, match="line 1"):
        file.read()


def test_a_cell_is_claimed_by_one_process_at_a_time(file: Results) -> None:
    with file.claim("zero") as mine:
        assert mine
        with file.claim("zero") as other, file.claim("test") as another:
            assert (other, another) == (False, True)
    with file.claim("zero") as again:
        assert again
