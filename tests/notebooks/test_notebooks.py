"""The notebooks run from the first cell to the last, in an empty folder and without a network."""

from pathlib import Path

import nbclient
import nbformat
import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
CELL_S = 100
"""Most seconds that a cell may take."""


def test_there_are_notebooks() -> None:
    assert {path.stem for path in NOTEBOOKS} == {"benchmark", "own_graph", "recall"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code and all(not cell.outputs and cell.execution_count is None for cell in code)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    client = nbclient.NotebookClient(
        notebook, timeout=CELL_S, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    errors = [
        output.text
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if output.output_type == "stream" and output.name == "stderr"
    ]
    assert errors == []


def test_a_notebook_reaches_only_this_machine(tmp_path: Path) -> None:
    far = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=30)"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(far)])
    client = nbclient.NotebookClient(
        notebook, timeout=CELL_S, resources={"metadata": {"path": str(tmp_path)}}
    )
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="NetworkRefused"):
        client.execute()
