"""`coreeval.pcr`: the same verdict as the command, from lists, frames, tables and files."""

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from coreeval.api.pcr import PairRows, PcrResult, pcr
from coreeval.errors import DatasetError, UsageError
from tests.api.documents import read_document
from tests.cli.kit import Shell

Row = dict[str, object]
DRAWS = 200
OPTIONS = ("--metric", "exact_match", "--consistency", "exact", "--draws", str(DRAWS), "--json")


def pairs(train: float = 0.95, test: float = 0.4, n: int = 120, seed: int = 1) -> list[Row]:
    """Return pairs of a model with these shares of right answers."""
    drawn, rows = random.Random(seed), list[Row]()
    for split, share in (("train", train), ("test", test)):
        for number in range(n):
            right = drawn.choice("ABCD")
            first = right if drawn.random() < share else drawn.choice("EFGH")
            again = first if drawn.random() < 0.8 else drawn.choice("EFGH")
            rows.append(
                {
                    "split": split,
                    "id": f"{split}-{number}",
                    "reference": right,
                    "original_output": first,
                    "modified_output": again,
                }
            )
    return rows


def write(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def compare(given: PairRows | Mapping[str, PairRows]) -> PcrResult:
    return pcr(given, metric="exact_match", consistency="exact", draws=DRAWS)


MAKE: dict[str, Callable[[list[Row]], PairRows]] = {
    "list": lambda rows: rows,
    "pandas": pd.DataFrame,
    "arrow": pa.Table.from_pylist,
}


@pytest.mark.parametrize("kind", MAKE)
def test_rows_in_memory_get_the_document_of_the_command(shell: Shell, kind: str) -> None:
    half: Row = {"split": "train", "id": "half", "reference": "A", "original_output": "A"}
    rows = [*pairs(), half]
    file = write(shell.folder / "p", rows)
    wanted = shell("detect", "pcr", "--pairs", f"pairs={file}", *OPTIONS).document
    found = read_document(compare(MAKE[kind](rows)))
    assert found.pop("pairs") == "<pairs>" and wanted.pop("pairs") == str(file)
    [bad], [printed_bad] = found.pop("bad_rows"), wanted.pop("bad_rows")
    assert (bad["line"], bad["reason"]) == (printed_bad["line"], printed_bad["reason"])
    assert found == wanted


def test_a_file_gets_the_document_of_the_command(shell: Shell) -> None:
    file = write(shell.folder / "said.jsonl", pairs())
    assert compare(file).document == shell("detect", "pcr", "--pairs", file, *OPTIONS).document
    assert compare(str(file)).document == compare(file).document


def test_references_and_several_models_are_named(shell: Shell) -> None:
    models = {"one": pairs(), "two": pairs(seed=2)}
    clean = {f"ref{n}": pairs(0.6, 0.6, seed=n + 9) for n in range(2)}
    options = []
    for option, rows in (("--pairs", models), ("--reference", clean)):
        for name, own in rows.items():
            options += [option, f"{name}={write(shell.folder / name, own)}"]
    printed = shell("detect", "pcr", *options, *OPTIONS).document
    found = pcr(models, metric="exact_match", consistency="exact", references=clean, draws=DRAWS)
    assert {name: one for name, one in found.verdicts.items()} == {
        one["name"]: one["verdict"] for one in printed["comparisons"]
    }
    assert set(found.splits["model"]) == {"one", "two"}
    for mine, theirs in zip(
        read_document(found)["comparisons"], printed["comparisons"], strict=True
    ):
        assert {**mine, "pairs": ""} == {**theirs, "pairs": ""}
    with pytest.raises(UsageError, match="there are 2 models: one, two"):
        _ = found.verdict


def test_it_says_what_came_out() -> None:
    found = compare([*pairs(), {"split": "train"}])
    assert found.verdict == "difficulty_or_memory"
    assert found.difference.estimate > 0.1
    assert found.difference.ci_low < found.difference.estimate < found.difference.ci_high
    assert found.difference.p_value <= 0.05
    assert found.splits["split"] == ("train", "test")
    assert found.splits[0]["n"] == 120
    assert found.to_arrow().num_rows == len(found.to_pandas()) == 2
    assert found.bad_rows.to_dicts() == [
        {"source": "<pairs>", "row": 241, "reason": "id is missing", "text": '{"split": "train"}'}
    ]
    assert "1 bad row is skipped; the first is row 241: id is missing" in repr(found)
    assert "difficulty or memory" in repr(found) and "<table" in found._repr_html_()


def test_texts_of_others_are_escaped_in_a_notebook() -> None:
    rows = [{**row, "split": f"<b>{row['split']}</b>"} for row in pairs()]
    found = pcr(
        rows,
        metric="exact_match",
        consistency="exact",
        draws=DRAWS,
        train_split="<b>train</b>",
        test_split="<b>test</b>",
    )
    assert "<b>" not in found._repr_html_()
    assert "&lt;b&gt;train&lt;/b&gt;" in found._repr_html_()


def test_a_plot_is_drawn(tmp_path: Path) -> None:
    [drawn] = compare(pairs()).draw(tmp_path / "pcr.svg")
    assert drawn.read_text(encoding="utf-8").startswith("<?xml")
    with pytest.raises(UsageError):
        compare(pairs()).draw(str(tmp_path / "pcr.doc"))


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"metric": "exactmatch"}, "metric"),
        ({"consistency": "cosin"}, "consistency"),
        ({"scale": "log"}, "scale"),
        ({"interval": "normal"}, "interval"),
        ({"alpha": -1}, "alpha"),
        ({"alpha": "0.1"}, "alpha"),
        ({"draws": 99}, "draws"),
        ({"draws": 200.5}, "draws"),
        ({"draws": 10**7}, "draws"),
        ({"alpha": float("inf")}, "alpha"),
        ({"seed": 2**32}, "seed"),
        ({"seed": True}, "seed"),
        ({"threshold": 1.1}, "threshold"),
        ({"margin": float("nan")}, "margin"),
        ({"seed": -1}, "seed"),
        ({"pairs": {"split": "train", "original_output": "a"}}, "pairs"),
        ({"pairs": {"pairs": pairs(), "x": "nofile.jsonl"}}, "nofile.jsonl"),
        ({"references": {"pairs": pairs()}}, "coreeval.pcr"),
        ({"references": {"r": [{**row, "id": f"x{row['id']}"} for row in pairs()]}}, "references"),
    ],
)
def test_what_cannot_be_used_is_told(changes: dict[str, object], where: str) -> None:
    usual = {"pairs": pairs(n=10), "metric": "exact_match", "consistency": "exact", "draws": 100}
    with pytest.raises(UsageError) as raised:
        pcr(**{**usual, **changes})  # type: ignore[arg-type]
    assert raised.value.where == where
    assert raised.value.hint


def test_a_missing_split_is_told() -> None:
    with pytest.raises(DatasetError, match="no pairs for the split 'test'"):
        compare([row for row in pairs() if row["split"] == "train"])
    with pytest.raises(DatasetError, match="no pairs for the split 'train'"):
        compare([])
