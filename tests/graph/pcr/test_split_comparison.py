"""The splits of a run are compared by passage, and not by question."""

from types import SimpleNamespace

import pytest

from coreeval.evaluation import covariates
from coreeval.evaluation.pcr import pairs_from_run
from coreeval.graph.pcr import split_comparison
from coreeval.schema import Sample
from coreeval.tasks import load_task


def _sample(split: str, place: int) -> Sample:
    passage = f"The passage {place // 2} of the split {split} has two questions."
    fields = {"context": passage, "question": f"What is number {place}?", "answers": "none"}
    key = f"{split}:{place}"
    return Sample(id=key, split=split, fields=fields, label=0, label_text="text")


def test_questions_on_one_passage_are_compared_and_resampled_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = list[dict[str, list[tuple[str, str]]]]()
    resampled = list[dict[str, str]]()

    def describe(splits: dict[str, list[tuple[str, str]]]) -> str:
        seen.append(splits)
        return ""

    def collect(_answers: object, _labels: object, _templates: object, clusters: dict[str, str],
                **_: object) -> None:  # fmt: skip
        resampled.append(clusters)

    def replicates(*_: object) -> None:
        raise InterruptedError

    samples = {split: [_sample(split, place) for place in range(6)] for split in ("train", "test")}
    reworded = [SimpleNamespace(sample=one) for one in samples["test"]]
    monkeypatch.setattr(split_comparison, "list_reworded_test", lambda _: reworded)
    monkeypatch.setattr(covariates, "describe_unlike_splits", describe)
    monkeypatch.setattr(pairs_from_run, "collect_pairs", collect)
    monkeypatch.setattr(pairs_from_run, "resample_run_pairs", replicates)
    target = SimpleNamespace(model="target")
    asked = SimpleNamespace(metric="accuracy", consistency="exact", exchangeable_splits=True)
    run = SimpleNamespace(
        config=SimpleNamespace(
            detect=SimpleNamespace(pcr=asked),
            run=SimpleNamespace(seed=7),
            models=SimpleNamespace(targets=[target], measured_targets=[]),
            pcr_train_split="train",
            dataset=SimpleNamespace(split="test"),
        ),
        task=load_task("reading_comprehension", None, None),
        list_templates=lambda _: [1],
        store=SimpleNamespace(
            train=SimpleNamespace(
                rewordings=lambda: [SimpleNamespace(sample=one) for one in samples["train"]],
                counts=lambda: {"reworded": 6},
            ),
            targets=lambda: ["target"],
            answers=lambda *_: [],
            total=lambda: 6,
        ),
    )
    with pytest.raises(InterruptedError):
        split_comparison.compare_splits(run)  # type: ignore[arg-type]
    (clusters,) = resampled
    assert len(set(clusters.values())) == 6
    run.store.targets = list
    assert split_comparison.compare_splits(run)  # type: ignore[arg-type]
    for split, texts in seen[0].items():
        names = [cluster for _, cluster in texts]
        assert names == [clusters[f"{split}:{place}"] for place in range(6)]
        assert names[0] == names[1] != names[2]
