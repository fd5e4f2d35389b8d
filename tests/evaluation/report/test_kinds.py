"""What a report says of targets that answered questions or wrote summaries."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from coreeval.config import load_config
from coreeval.evaluation.arms import compare_arms
from coreeval.evaluation.grading import SCORING
from coreeval.evaluation.report.report_document import report_document
from coreeval.evaluation.report.report_page import detection_part, report_page
from coreeval.schema import Prediction, Sample, TaskKind
from coreeval.tasks import load_task
from coreeval.tools.stores.run_store import RunStore
from tests.evaluation.report.kit import TARGET, found_in
from tests.releases.kinds import make_kind_run
from tests.releases.kit import NOW

SAID = {
    "answer": {"q1": ("two", "two"), "q2": ("Cy Poe", ""), "q3": ("4.5%", "")},
    "summary": {"q1": ("The river rose.", "The river rose."), "q2": ("It snowed.", ""),
                "q3": ("Sales fell.", "")},
}  # fmt: skip
"""What the target says of the original and of the updated text; only q1 has a new one."""


def _predictions(kind: TaskKind, store: RunStore) -> Iterator[Prediction]:
    grade = SCORING[kind].grade
    assert grade is not None
    for ended in store.sample_results():
        texts = {"original": ended.sample.fields, "updated": ended.result.updated}
        for (source, fields), said in zip(texts.items(), SAID[kind][ended.sample.id], strict=True):
            if fields:
                own = ended.sample.model_copy(update={"fields": dict(fields)})
                yield _prediction(source, own, said, *grade(own, said))


def _prediction(source: str, sample: Sample, said: str, right: bool, score: float) -> Prediction:
    return Prediction(target=TARGET, source=source, sample_id=sample.id, template=1, answer=said,
                      right=right, score=score)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "right", "score", "lost"),
    [("answer", (1.0, 0.0), "token F1", "q1"), ("summary", (2 / 3, 0.0), "ROUGE-L", "q1")],
)
def test_scores_have_the_names_and_definitions_of_their_kind(
    tmp_path: Path, kind: TaskKind, right: tuple[float, float], score: str, lost: str
) -> None:
    (tmp_path / "of_kind").mkdir()
    made = make_kind_run(tmp_path / "of_kind", kind)
    task = load_task(load_config(made.files.config).task)
    with closing(RunStore.open(made.files.store, now=lambda: NOW)) as store:
        store.add_predictions(_predictions(kind, store))
        said = list(store.answers(TARGET, ["original", "updated"]))
        assert [one.sample_id for one in store.figures.lost_by_targets([TARGET])] == [lost]
        gold = {key: label for key, label, *_ in store.figures.fates()}
    arms = compare_arms([(TARGET, said)], gold=gold, labels=[label.name for label in task.labels],
                        kind=kind, draws=20)  # fmt: skip
    original, updated = arms.targets[0].all_samples.arms
    assert (original.accuracy.estimate, updated.accuracy.estimate) == pytest.approx(right)
    document = report_document(found_in(tmp_path, arms=arms, task=task))
    assert document["definitions"]["macro_f1"].startswith(f"{score}: mean, over the")
    for page in (report_page(document), detection_part(document)):
        assert score in page and "macro-F1" not in page
        assert "Each target was evaluated on" in " ".join(page.split())


def test_a_report_on_labels_is_as_it_was(tmp_path: Path) -> None:
    document = report_document(found_in(tmp_path))
    assert "kind" not in document["arms"]
    assert document["definitions"]["macro_f1"].startswith("macro-F1: mean of the F1 of each label")
    assert "not form a class of the F1" in document["definitions"]["no_label"]
