import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from coreeval.errors import ConfigError, DatasetError
from coreeval.evaluation.embedded import fit_target, overlap, predict_arm
from coreeval.evaluation.scoring.classification import Score, accuracy, macro_f1
from coreeval.schema import Label, Sample, Task

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
NAME = "offline:classifier"
TEXTS = [
    ("what a lovely day", "joy"),
    ("so happy today", "joy"),
    ("lovely lovely cake", "joy"),
    ("i hate this day", "anger"),
    ("so angry today", "anger"),
    ("hate hate queues", "anger"),
]
PAIRS = [
    ("The cat sat on the mat .", "The cat sat on a mat .", "same"),
    ("Shares rose 5 percent .", "Shares rose 5 percent today .", "same"),
    ("He left the firm in May .", "In May he left the firm .", "same"),
    ("The cat sat on the mat .", "Oil prices fell sharply .", "other"),
    ("Shares rose 5 percent .", "Two men were arrested .", "other"),
    ("He left the firm in May .", "Rain is expected in Rome .", "other"),
]


def _task(fields: Sequence[str], labels: Sequence[str]) -> Task:
    return Task(
        name="toy",
        description="A toy task.",
        fields=tuple(fields),
        labels=tuple(Label(id=at, name=name, meaning=name) for at, name in enumerate(labels)),
        question="Which?",
        text_kind="tweet",
        templates=("$labels",),
    )


def _samples(task: Task, rows: Sequence[Sequence[str]]) -> list[Sample]:
    """Return samples of rows that end in the label."""
    ids = {label.name: label.id for label in task.labels}
    return [
        Sample(
            id=str(at),
            split="x",
            fields=dict(zip(task.fields, texts, strict=True)),
            label=ids[label],
            label_text=label,
        )
        for at, (*texts, label) in enumerate(rows)
    ]


TEXT_TASK = _task(["text"], ["anger", "joy"])
PAIR_TASK = _task(["one", "two"], ["other", "same"])


def test_texts_are_labelled_by_their_words() -> None:
    target = fit_target(NAME, TEXT_TASK, _samples(TEXT_TASK, TEXTS), seed=7)
    assert target.name == NAME
    assert target.predict([{"text": "a lovely happy cake"}, {"text": "angry i hate it"}]) == [
        "joy",
        "anger",
    ]
    assert target.predict([]) == []


def test_pairs_are_labelled_by_their_overlap() -> None:
    target = fit_target(NAME, PAIR_TASK, _samples(PAIR_TASK, PAIRS), seed=7)
    unseen = [
        {"one": "Dogs barked all night long .", "two": "All night long dogs barked ."},
        {"one": "Dogs barked all night long .", "two": "Nine banks opened branches ."},
    ]
    assert target.predict(unseen) == ["same", "other"]


def test_predictions_of_an_arm_carry_its_ids_and_texts() -> None:
    samples = _samples(TEXT_TASK, TEXTS)
    target = fit_target(NAME, TEXT_TASK, samples, seed=7)
    rewritten = samples[0].model_copy(update={"fields": {"text": "i hate angry queues"}})
    (prediction,) = predict_arm(target, [rewritten], arm="updated")
    assert (prediction.target, prediction.sample_id, prediction.arm) == (NAME, "0", "updated")
    assert (prediction.answer, prediction.valid) == ("anger", True)


def test_overlap_by_hand() -> None:
    found = overlap("Shares rose 5 percent", "Shares did not rise 5 percent")
    # shares, 5, percent of four and six words, seven in all; "5 percent" of three and five pairs
    assert found["jaccard_1"] == pytest.approx(3 / 7)
    assert (found["first_in_second_1"], found["second_in_first_1"]) == (0.75, 0.5)
    assert found["jaccard_2"] == pytest.approx(1 / 7)
    assert (found["numbers_equal"], found["negation_agrees"]) == (1.0, 0.0)
    assert found["length_ratio"] == pytest.approx(4 / 6)
    assert found["length_difference"] == 2.0


@pytest.mark.parametrize(
    "text", ["He did n't go", "He didn 't go", "He didn\u2019t go", "He cannot go"]
)
def test_negation_is_seen_however_it_is_spelt(text: str) -> None:
    assert overlap(text, "He went")["negation_agrees"] == 0.0
    assert overlap(text, "Nobody went")["negation_agrees"] == 1.0


def test_numbers_that_differ_do_not_agree() -> None:
    found = overlap("up 5 of 10", "up 5 of 12")
    assert found["numbers_jaccard"] == pytest.approx(1 / 3)
    assert (found["numbers_equal"], found["numbers_nested"]) == (0.0, 0.0)
    assert overlap("up 5 of 10", "up 5")["numbers_nested"] == 1.0


def test_empty_texts_divide_by_nothing() -> None:
    assert overlap("", "")["length_ratio"] == 0.0
    assert overlap("", "a word")["jaccard_1"] == 0.0


@pytest.mark.parametrize(
    ("rows", "told"), [([], "no samples"), (TEXTS[:2], "only the label 'joy'")]
)
def test_a_train_split_must_have_two_classes(rows: Sequence[Sequence[str]], told: str) -> None:
    with pytest.raises(DatasetError, match=told) as caught:
        fit_target(NAME, TEXT_TASK, _samples(TEXT_TASK, rows), seed=7)
    assert caught.value.where == "dataset.train_split"


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        fit_target("offline:oracle", TEXT_TASK, _samples(TEXT_TASK, TEXTS), seed=7)
    assert caught.value.hint == "known: offline:classifier"


# -- real data ----------------------------------------------------------------------------------


def _tweets(split: str) -> list[list[str]]:
    folder = SHARED / "tweeteval" / "emotion"
    if not folder.is_dir():
        pytest.skip("needs TweetEval emotion in shared/data")
    names = ["anger", "joy", "optimism", "sadness"]
    texts = (folder / f"{split}_text.txt").read_text(encoding="utf-8").split("\n")[:-1]
    labels = (folder / f"{split}_labels.txt").read_text(encoding="utf-8").split()
    return [[text, names[int(label)]] for text, label in zip(texts, labels, strict=True)]


def _mrpc(split: str) -> list[list[str]]:
    path = SHARED / "mrpc" / f"msr_paraphrase_{split}.txt"
    if not path.is_file():
        pytest.skip("needs MRPC in shared/data")
    with path.open(encoding="utf-8-sig", newline="") as lines:
        rows = list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    return [[one, two, "same" if label == "1" else "other"] for label, _, _, one, two in rows]


def _scores(task: Task, train: list[list[str]], test: list[list[str]]) -> tuple[Score, Score]:
    """Return accuracy and macro-F1 on test of what was fitted on train."""
    samples = _samples(task, test)
    target = fit_target(NAME, task, _samples(task, train), seed=7)
    said = target.predict([sample.fields for sample in samples])
    pairs = Counter(zip((sample.label_text for sample in samples), said, strict=True))
    return accuracy(pairs), macro_f1(pairs, [label.name for label in task.labels], seed=7)


def _majority(rows: list[list[str]]) -> float:
    return Counter(row[-1] for row in rows).most_common(1)[0][1] / len(rows)


def test_the_classifier_beats_the_majority_on_emotion() -> None:
    train, test = _tweets("train"), _tweets("test")
    assert (len(train), len(test)) == (3257, 1421)
    right, f1 = _scores(_task(["text"], ["anger", "joy", "optimism", "sadness"]), train, test)
    assert right.ci_low is not None and f1.ci_low is not None
    assert right.ci_low > _majority(test) + 0.2
    assert f1.ci_low > 0.6


def test_the_classifier_beats_the_majority_on_mrpc() -> None:
    train, test = _mrpc("train"), _mrpc("test")
    assert (len(train), len(test)) == (4076, 1725)
    right, f1 = _scores(_task(["one", "two"], ["other", "same"]), train, test)
    assert right.ci_low is not None and f1.ci_low is not None
    assert right.ci_low > _majority(test) + 0.04
    assert f1.ci_low > 0.65


def test_the_same_seed_gives_the_same_answers() -> None:
    rows = _tweets("train")
    task = _task(["text"], ["anger", "joy", "optimism", "sadness"])
    texts = [sample.fields for sample in _samples(task, _tweets("test"))]
    one, two = (
        fit_target(NAME, task, _samples(task, rows[:400]), seed=7).predict(texts) for _ in range(2)
    )
    assert one == two
