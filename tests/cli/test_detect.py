"""`coreeval detect pcr`: recorded answers in, a verdict with its rule out."""

import json
from pathlib import Path

import numpy as np
import pytest

from coreeval.cli.detect import CONSISTENCIES, METRICS
from coreeval.evaluation.detectors import PROBES
from coreeval.evaluation.detectors.base import Detector
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
    assert found["verdict"] == "difficulty_or_memory"
    assert "either training on one split or a difference in" in found["reason"]
    vouched = detect(shell, "--pairs", tuned, "--exchangeable-splits", "--json").document
    assert (vouched["verdict"], vouched["exchangeable_splits"]) == ("fine_tuned", True)
    assert "this assumes that the splits are random parts of one pool" in vouched["reason"]
    assert found["baselines"]["decline"]["train"] == pytest.approx(0.04, abs=0.02)
    assert isinstance(found["baselines"]["discrepancy"], float)
    assert found["settings"]["draws"] == 500 and found["settings"]["threshold"] is None
    assert (found["name"], found["bad_rows"], found["ablation"]) == ("tuned", [], None)


def test_several_files_are_a_list_under_their_names(shell: Shell, tuned: Path, clean: Path) -> None:
    both = ("--pairs", f"a=b={tuned.name}", "--pairs", clean)
    tuned.rename(tuned.with_name(f"b={tuned.name}"))
    found = detect(shell, *both, "--json").document
    assert set(found) == {"comparisons", "plots", "references", "settings"}
    assert [one["name"] for one in found["comparisons"]] == ["a", "clean"]
    for one in found["comparisons"]:
        assert set(one) | {"plots", "references", "settings"} == documented("coreeval detect pcr")
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
    words = " ".join(said.out.split())
    assert "inconclusive: from test to train, performance changes by +0.0 (" in words
    assert "25% of a split (an effect of 15.0 points) in" in words
    assert "PCR(train) - PCR(test) +0.0000" in said.out
    assert "baseline, discrepancy:" in said.out
    assert "alpha 0.01, tanh; percentile intervals from 500 draws, seed 0" in said.out


def test_bad_lines_are_counted_and_shown_and_the_rest_goes_on(shell: Shell, clean: Path) -> None:
    lines = clean.read_text("utf-8").splitlines()
    wrong = [lines[0], "{}", "not json", '{"id": "x", "original_output": "a"}']
    clean.write_bytes("\n".join([*lines, *wrong, *wrong[:2]]).encode() + b"\n\xff\n")
    said = detect(shell, "--pairs", clean)
    assert said.code == 0
    assert "clean.jsonl: 200 pairs; 7 bad lines are skipped" in said.out
    assert "bad line 201: the id '0' occurs twice in 'train', first in line 1" in said.out
    assert "and 2 more; --json lists them all" in said.out
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
        "n": 30, "clusters": 30, "unanswered": 0,
        "statuses": {"original": {"answered": 30}, "modified": {"answered": 30}},
        "scored": 0, "performance": None, "consistency": 1.0, "pcr": None,
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
        "the file": ("--pairs", "nowhere.jsonl"),
        "'=clean.jsonl' is not of the form NAME=FILE": ("--pairs", "=clean.jsonl"),
        "two files have the same model name": (
            "--pairs",
            "clean.jsonl",
            "--pairs",
            "./clean.jsonl",
        ),
        "no pairs for the split 'dev'": ("--pairs", "clean.jsonl", "--train-split", "dev"),
        "no metric 'f1'": ("--pairs", "clean.jsonl", "--metric", "f1"),
        "no consistency measure 'same'": ("--pairs", "clean.jsonl", "--consistency", "same"),
        "cannot write a figure as": ("--pairs", "clean.jsonl", "--plot", "x.pdf"),
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


# -- references ----------------------------------------------------------------------------------


def records(model: str, right: tuple[float, float], seed: int) -> list[dict[str, object]]:
    """Return a model's answers to 300 items a split, right so often on train and on test."""
    rng = np.random.default_rng(seed)
    return [
        {
            "split": split,
            "id": str(number),
            "model": model,
            "reference": "yes",
            "original_output": said,
            "modified_output": said if rng.random() < 0.8 else "perhaps",
        }
        for split, share in zip(("train", "test"), right, strict=True)
        for number in range(300)
        for said in ["yes" if rng.random() < share else "no"]
    ]


def saved(shell: Shell, name: str, *several: list[dict[str, object]]) -> Path:
    lines = [json.dumps(each) for own in several for each in own]
    return shell.write(name, "\n".join(lines))


def clean_references(shell: Shell) -> Path:
    """Write five models that find test 20 points easier."""
    shares = [(0.4 + 0.05 * n, 0.6 + 0.05 * n) for n in range(5)]
    return saved(
        shell, "clean.jsonl", *(records(f"r{n}", share, n) for n, share in enumerate(shares))
    )


def test_references_tell_memory_from_a_gap_in_difficulty(shell: Shell) -> None:
    references = clean_references(shell)
    models = saved(
        shell, "models.jsonl", records("honest", (0.5, 0.7), 11), records("knows", (0.9, 0.7), 12)
    )
    by = ("--pairs", models, "--reference", references)
    found = detect(shell, *by, "--json").document
    honest, knows = found["comparisons"]
    assert [honest["name"], knows["name"]] == ["honest", "knows"]
    assert honest["verdict"] == "inconclusive" and knows["verdict"] == "fine_tuned"
    assert honest["difference"]["points"]["ci_high"] < 0 <= honest["adjusted"]["points"]["ci_high"]
    adjusted = knows["adjusted"]
    assert adjusted["references"] == [f"r{n}" for n in range(5)] and adjusted["method"] == "line"
    assert adjusted["shared"] == {"train": 300, "test": 300}
    assert knows["test"]["basis"] == "references"
    assert [one["name"] for one in found["references"]] == adjusted["references"]
    assert not any("verdict" in one for one in found["references"])
    words = " ".join(detect(shell, *by).out.split())
    assert "this assumes that the references have seen neither split" in words
    points = adjusted["points"]
    span = f"{points['estimate']:+.1f} ({points['ci_low']:+.1f} to {points['ci_high']:+.1f}) points"
    assert f"performance changes by {span}" in words
    alone = detect(shell, "--pairs", models, "--json").document["comparisons"]
    assert {one["verdict"] for one in alone} == {"difficulty_or_memory"}


def test_references_of_other_items_are_refused(shell: Shell) -> None:
    other = [{**each, "id": f"other {each['id']}"} for each in records("o", (0.5, 0.5), 3)]
    pairs = saved(shell, "models.jsonl", records("m", (0.5, 0.5), 1))
    said = detect(
        shell, "--pairs", pairs, "--reference", saved(shell, "other.jsonl", other), "--json"
    )
    assert said.code == 2
    assert "other shares 0 items of train with models" in said.error["message"]
    twice = detect(shell, "--pairs", pairs, "--reference", pairs, "--json")
    assert (
        twice.code == 2 and "is both a model to compare and a reference" in twice.error["message"]
    )


def test_one_reference_is_listed_and_not_used(shell: Shell) -> None:
    pairs = saved(shell, "models.jsonl", records("m", (0.9, 0.5), 1))
    one = saved(shell, "one.jsonl", records("r", (0.5, 0.5), 2))
    found = detect(shell, "--pairs", pairs, "--reference", one, "--json").document
    assert found["adjusted"] is None and found["verdict"] == "difficulty_or_memory"
    assert any("at least 2 are needed" in note for note in found["notes"])
    assert found["references"][0]["splits"]["train"]["n"] == 300


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_each_probe_is_a_command_of_its_detector(shell: Shell, probe: Detector) -> None:
    said = shell(*probe.command_words, "nowhere", "--dry-run", "--json")
    assert said.error["kind"] == "run_state"
    assert probe.arguments[-1] in " ".join(
        shell("detect", probe.arguments[0], "--help").out.split()
    )
