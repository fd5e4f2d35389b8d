"""The scoring that goes with an export, against scikit-learn and the package's own bootstrap."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from sklearn.metrics import f1_score  # type: ignore[import-untyped]

from coreeval.releases.exports.harness import scoring

LABELS = ["equivalent", "not_equivalent", "none"]


@pytest.fixture
def scores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModuleType]:
    """Return the module with a benchmark of three labels."""
    said = {"labels": LABELS, "arms": {"updated": "x"}}
    (tmp_path / "benchmark.json").write_text(json.dumps(said))
    monkeypatch.setattr(scoring, "__file__", str(tmp_path / "scoring.py"))
    scoring.benchmark.cache_clear()
    yield scoring
    scoring.benchmark.cache_clear()


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("not equivalent", "not_equivalent"),
        (" **Not-Equivalent.**\n", "not_equivalent"),
        ("EQUIVALENT", "equivalent"),
        ('{"label": "none"}', "none"),
        ('{"answer": "none"}', scoring.UNPARSED),
        ("It is equivalent", scoring.UNPARSED),
        ("equivalent, not_equivalent", scoring.UNPARSED),
        ("", scoring.UNPARSED),
        ("[1]", scoring.UNPARSED),
    ],
)
def test_a_label_is_read_alone(scores: ModuleType, answer: str, label: str) -> None:
    assert scores.read_label(answer) == label


def test_signs_that_distinguish_labels_are_read(
    scores: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["A", "A*", "C", "C++", "yes."]
    monkeypatch.setitem(scores.benchmark(), "labels", names)
    for said in ("{}", '{{"label": "{}"}}', " {}\n"):
        assert [scores.read_label(said.format(name)) for name in names] == names
    assert [scores.read_label(said) for said in ("**C++**", "Yes")] == ["C++", "yes."]
    assert scores.read_label("**A**") == scores.UNPARSED


def test_labels_named_like_values_of_json_are_read(
    scores: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(scores.benchmark(), "labels", ["True", "4"])
    said = ("true", "4", "4.0", "-4", "null")
    read = [scores.read_label(f'{{"label": {one}}}') for one in said]
    assert read == ["True", "4", "4", scores.UNPARSED, scores.UNPARSED]


@pytest.mark.parametrize("seed", range(5))
def test_the_macro_f1_is_that_of_scikit_learn(scores: ModuleType, seed: int) -> None:
    chance = random.Random(seed)
    due = chance.choices(LABELS[: 1 + seed % 3], k=40)
    said = chance.choices([*LABELS, scoring.UNPARSED], k=40)
    expected = f1_score(due, said, labels=LABELS, average="macro", zero_division=0)
    pairs = list(zip(due, said, strict=True))
    assert scores.mean_f1(pairs) == pytest.approx(expected, abs=1e-12)
    low, high = scores.f1_interval(pairs)
    assert low <= expected <= high


def test_the_interval_is_that_of_resampled_samples(scores: ModuleType) -> None:
    chance = random.Random(3)
    pairs = [(due, chance.choice([due, due, "none"])) for due in chance.choices(LABELS, k=60)]
    drawn = [scores.mean_f1(chance.choices(pairs, k=60)) for _ in range(1000)]
    expected = np.quantile(drawn, [0.025, 0.975])
    assert scores.f1_interval(pairs) == pytest.approx(expected, abs=0.02)


def test_an_arm_that_is_not_there_is_named(scores: ModuleType) -> None:
    assert scores.file_of("updated").endswith("/x")
    with pytest.raises(ValueError, match="no arm 'original'; the arms are: updated"):
        scores.file_of("original")
