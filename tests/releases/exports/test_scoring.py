"""The scoring that goes with an export, against scikit-learn and the package's own bootstrap."""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from sklearn.metrics import f1_score  # type: ignore[import-untyped]

import tests.evaluation
from coreeval.evaluation.answer_parsers import LabelShape
from coreeval.models.answers import InvalidAnswer
from coreeval.releases.exports.harness import grading, scoring
from coreeval.releases.exports.harness_kinds import HARNESS_KINDS
from coreeval.releases.exports.standalone import write_package
from coreeval.tasks import load_task

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


@pytest.fixture
def read(
    scores: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[str], str]:
    """Return the exported reader of labels, which calls the package beside it."""
    write_package(tmp_path / grading.PACKAGE, HARNESS_KINDS["labels"].copied)
    monkeypatch.setattr(grading, "__file__", str(tmp_path / "grading.py"))
    grading.grading.cache_clear()
    grading._labels.cache_clear()
    return grading.read_label


CORPUS = Path(tests.evaluation.__file__).with_name("parsing_corpus") / "labels.jsonl"
FORMS = ("{}", "Label: {}", "**{}**", '```json\n{{"label": "{}"}}\n```', "<think>x</think>\n{}.")


def test_an_export_reads_labels_as_evaluate_does(
    scores: ModuleType, read: Callable[[str], str]
) -> None:
    answers = dict[str, set[str]]()
    for line in CORPUS.read_text("utf-8").splitlines():
        answers.setdefault(json.loads(line)["task"], set()).add(json.loads(line)["response"])
    for name, said in answers.items():
        task = load_task(name, "wind power" if name == "stance" else None)
        labels = [label.name for label in task.labels]
        scores.benchmark()["labels"][:] = labels
        grading._labels.cache_clear()
        shape = LabelShape(task)
        for answer in (*said, *(form.format(each) for each in labels for form in FORMS)):
            try:
                expected = shape.parse(answer).label
            except InvalidAnswer:
                expected = scoring.UNPARSED
            assert read(answer) == expected, answer


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        (" **Not-Equivalent.**\n", "not_equivalent"),
        ('{"answer": "none"}', "none"),
        ("It is equivalent", "equivalent"),
        ("equivalent, not_equivalent", scoring.UNPARSED),
        ("", scoring.UNPARSED),
        ("[1]", scoring.UNPARSED),
    ],
)
def test_exactly_one_label_is_read(read: Callable[[str], str], answer: str, label: str) -> None:
    assert read(answer) == label


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
