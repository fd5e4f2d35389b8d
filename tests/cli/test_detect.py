"""`coreeval detect pcr`: recorded answers in, a verdict with its rule out."""

import json
from pathlib import Path

import pytest

from coreeval.cli.detect import CONSISTENCIES, METRICS
from coreeval.evaluation.pcr.study import CONSISTENCIES as KNOWN_CONSISTENCIES
from coreeval.evaluation.pcr.study import METRICS as KNOWN_METRICS
from tests.cli.kit import Said, Shell
from tests.cli.test_docs import documented
from tests.evaluation.pcr.kit import two_splits, write

BY = ("--metric", "exact_match", "--consistency", "exact", "--draws", "500")
NUMBERS = {"estimate", "ci_low", "ci_high", "p_value"}


@pytest.fixture
def tuned(tmp_path: Path) -> Path:
    """Pairs of a model that knows its training split by heart."""
    return write(tmp_path / "tuned.jsonl", two_splits((100, 95, 95), (100, 40, 80)))


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    """Pairs of a model that does equally well on both."""
    return write(tmp_path / "clean.jsonl", two_splits((100, 40, 80), (100, 40, 80)))


def detect(shell: Shell, *arguments: str | Path) -> Said:
    """Run the command with the usual scores."""
    return shell("detect", "pcr", *BY, *arguments)


def test_one_file_is_the_documented_form(shell: Shell, tuned: Path) -> None:
    said = detect(shell, "--pairs", tuned, "--json")
    assert said.code == 0 and said.err == ""
    found = said.document
    assert set(found) == documented("coreeval detect pcr")
    assert set(found["splits"]) == {"train", "test"}
    assert {"n", "performance", "consistency", "pcr", "ci_low", "ci_high"} <= set(
        found["splits"]["train"]
    )
    assert set(found["difference"]) >= NUMBERS
    assert found["verdict"] == "fine_tuned" and "above 0" in found["reason"]
    assert found["baselines"]["decline"]["train"] == pytest.approx(0.04, abs=0.02)
    assert isinstance(found["baselines"]["discrepancy"], float)
    assert found["settings"]["draws"] == 500 and found["settings"]["threshold"] is None
    assert (found["name"], found["bad_rows"], found["ablation"]) == ("tuned", [], None)


def test_several_files_are_a_list_under_their_names(shell: Shell, tuned: Path, clean: Path) -> None:
    both = ("--pairs", f"a=b={tuned.name}", "--pairs", clean)
    tuned.rename(tuned.with_name(f"b={tuned.name}"))
    found = detect(shell, *both, "--json").document
    assert set(found) == {"comparisons", "plots", "settings"}
    assert [one["name"] for one in found["comparisons"]] == ["a", "clean"]
    for one in found["comparisons"]:
        assert set(one) | {"plots", "settings"} == documented("coreeval detect pcr")
    first, second = (one["difference"] for one in found["comparisons"])
    assert first["p_adjusted"] == pytest.approx(min(2 * first["p_value"], 1))
    assert second["p_adjusted"] == second["p_value"]
    words = detect(shell, *both).out
    assert "Benjamini-Hochberg" in words
    assert [line.split()[0] for line in words.splitlines()[-3:-1]] == ["a", "clean"]


def test_words_say_what_the_numbers_are_and_why(shell: Shell, clean: Path) -> None:
    said = detect(shell, "--pairs", clean)
    assert said.code == 0
    assert "train           100     100             0.4000" in said.out
    assert "inconclusive: the interval (" in said.out
    assert "PCR(train) - PCR(test) +0.0000" in said.out
    assert "baseline, discrepancy:" in said.out
    assert "alpha 0.01, tanh; percentile intervals of 500 draws, seed 0" in said.out


def test_bad_lines_are_counted_and_shown_and_the_rest_goes_on(shell: Shell, clean: Path) -> None:
    lines = clean.read_text("utf-8").splitlines()
    wrong = [lines[0], "{}", "not json", '{"id": "x", "original_output": "a"}']
    clean.write_bytes("\n".join([*lines, *wrong, *wrong[:2]]).encode() + b"\n\xff\n")
    said = detect(shell, "--pairs", clean)
    assert said.code == 0
    assert "clean.jsonl: 200 pairs; 7 bad lines are left out" in said.out
    assert "bad line 201: the id '0' is there twice in 'train', first in line 1" in said.out
    assert "and 2 more, all of them with --json" in said.out
    rows = detect(shell, "--pairs", clean, "--json").document["bad_rows"]
    assert [row["line"] for row in rows] == [*range(201, 208)]
    assert rows[-1]["reason"] == "the line is not UTF-8"


def test_hostile_names_stay_on_their_line(shell: Shell, clean: Path) -> None:
    text = clean.read_text("utf-8").replace('"test"', json.dumps("te\nst\x1b[31m"))
    clean.write_text(text, encoding="utf-8")
    said = detect(shell, "--pairs", f"na\nme={clean}", "--test-split", "te\nst\x1b[31m")
    assert said.code == 0 and "\x1b" not in said.out and "-- na me -" in said.out


def test_ablation_and_pictures(shell: Shell, tuned: Path) -> None:
    asked = ("--pairs", tuned, "--ablation", "--plot", "pcr.svg")
    found = detect(shell, *asked, "--json").document
    assert found["plots"] == ["pcr.svg", "pcr-ablation.svg"]
    assert all((shell.folder / name).stat().st_size for name in found["plots"])
    assert len(found["ablation"]["forms"]) == 12 and found["ablation"]["thresholds"] == []
    cell = next(
        each for each in found["ablation"]["forms"]
        if (each["scale"], each["alpha"]) == ("tanh", 0.01)
    )  # fmt: skip
    assert cell["difference"] == found["difference"]["estimate"]
    words = detect(shell, *asked).out
    assert "ablation: scale     alpha  PCR(train) - PCR(test)" in words
    assert "picture: pcr-ablation.svg" in words


def test_what_is_not_defined_is_null(shell: Shell, tmp_path: Path) -> None:
    path = write(tmp_path / "blank.jsonl", two_splits((30, 0, 30), (30, 0, 30)))
    path.write_text(path.read_text("utf-8").replace('"reference": "yes"', '"reference": ""'))
    found = detect(shell, "--pairs", path, "--json").document
    assert found["difference"]["estimate"] is None and found["verdict"] == "inconclusive"
    assert found["splits"]["train"] | {"ci_low": None} == {
        "n": 30, "scored": 0, "performance": None, "consistency": 1.0, "pcr": None,
        "ci_low": None, "ci_high": None,
    }  # fmt: skip
    assert "undefined" in detect(shell, "--pairs", path).out


def test_sameness_of_meaning(shell: Shell, tmp_path: Path) -> None:
    path = write(tmp_path / "p.jsonl", two_splits((25, 20, 20), (25, 10, 20)))
    given = ("detect", "pcr", "--pairs", path, "--metric", "exact_match", "--draws", "200")
    found = shell(*given, "--consistency", "cosine", "--ablation", "--json").document
    assert found["settings"]["threshold"] == 0.95 and found["settings"]["embeddings"]
    assert found["splits"]["train"]["consistency"] == 0.8
    assert [each["threshold"] for each in found["ablation"]["thresholds"]] == [
        0.8, 0.85, 0.9, 0.95, 0.99,
    ]  # fmt: skip
    nowhere = ("--consistency", "cosine", "--embeddings", "minilm:nowhere")
    assert shell(*given, *nowhere, "--json").code == 2


@pytest.mark.parametrize(
    ("message", "arguments"),
    {
        "--pairs is missing": (),
        "the file cannot be read": ("--pairs", "nowhere.jsonl"),
        "'=clean.jsonl' is no NAME=FILE": ("--pairs", "=clean.jsonl"),
        "two files have the same name": ("--pairs", "clean.jsonl", "--pairs", "./clean.jsonl"),
        "no pair of the split 'dev'": ("--pairs", "clean.jsonl", "--train-split", "dev"),
        "no metric 'f1'": ("--pairs", "clean.jsonl", "--metric", "f1"),
        "no consistency 'same'": ("--pairs", "clean.jsonl", "--consistency", "same"),
        "no picture can be written as .pdf": ("--pairs", "clean.jsonl", "--plot", "x.pdf"),
        "no choices or no options": ("--pairs", "clean.jsonl", "--consistency", "option"),
        "'cubic' is not one of": ("--pairs", "clean.jsonl", "--scale", "cubic"),
    }.items(),
)
def test_wrong_commands(
    shell: Shell, clean: Path, message: str, arguments: tuple[str, ...]
) -> None:
    said = detect(shell, *arguments, "--json")
    assert said.code == 2 and message in said.error["message"]
    assert list(shell.folder.glob("*.pdf")) == []


def test_scores_must_be_named(shell: Shell, clean: Path) -> None:
    said = shell("detect", "pcr", "--pairs", clean, "--json")
    assert said.code == 2 and said.error["message"] == "--metric is missing"
    assert METRICS in said.error["hint"]
    assert ", ".join(KNOWN_METRICS) == METRICS
    assert ", ".join(KNOWN_CONSISTENCIES) == CONSISTENCIES
