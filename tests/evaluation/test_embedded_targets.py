import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from sklearn.metrics import f1_score  # type: ignore[import-untyped]

from coreeval.errors import ConfigError, DatasetError
from coreeval.evaluation.embedded_targets import (
    EMBEDDED,
    OfflineTarget,
    TrainingData,
    fit_target,
    measure_overlap,
    predict_samples,
    split_train,
)
from coreeval.evaluation.scores import Score, score_accuracy
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


def _fitted(
    task: Task, train: Sequence[Sample], name: str = NAME, test: Sequence[Sample] = ()
) -> OfflineTarget:
    return fit_target(name, task, TrainingData(train=train, test=lambda: test), seed=7)


TEXT_TASK = _task(["text"], ["anger", "joy"])
PAIR_TASK = _task(["one", "two"], ["other", "same"])


def test_texts_are_labelled_by_their_words() -> None:
    target = _fitted(TEXT_TASK, _samples(TEXT_TASK, TEXTS))
    assert target.name == NAME
    assert target.predict([{"text": "a lovely happy cake"}, {"text": "angry i hate it"}]) == [
        "joy",
        "anger",
    ]
    assert target.predict([]) == []


def test_pairs_are_labelled_by_their_overlap() -> None:
    target = _fitted(PAIR_TASK, _samples(PAIR_TASK, PAIRS))
    unseen = [
        {"one": "Dogs barked all night long .", "two": "All night long dogs barked ."},
        {"one": "Dogs barked all night long .", "two": "Nine banks opened branches ."},
    ]
    assert target.predict(unseen) == ["same", "other"]


def test_predictions_of_an_arm_carry_its_ids_and_texts() -> None:
    samples = _samples(TEXT_TASK, TEXTS)
    target = _fitted(TEXT_TASK, samples)
    rewritten = samples[0].model_copy(update={"fields": {"text": "i hate angry queues"}})
    (prediction,) = predict_samples(target, [rewritten], source="updated")
    assert (prediction.target, prediction.sample_id, prediction.source) == (NAME, "0", "updated")
    assert (prediction.answer, prediction.kind, prediction.template) == ("anger", "answered", 0)


def test_overlap_by_hand() -> None:
    found = measure_overlap("Shares rose 5 percent", "Shares did not rise 5 percent")
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
    assert measure_overlap(text, "He went")["negation_agrees"] == 0.0
    assert measure_overlap(text, "Nobody went")["negation_agrees"] == 1.0


def test_numbers_that_differ_do_not_agree() -> None:
    found = measure_overlap("up 5 of 10", "up 5 of 12")
    assert found["numbers_jaccard"] == pytest.approx(1 / 3)
    assert (found["numbers_equal"], found["numbers_nested"]) == (0.0, 0.0)
    assert measure_overlap("up 5 of 10", "up 5")["numbers_nested"] == 1.0


def test_empty_texts_divide_by_nothing() -> None:
    assert measure_overlap("", "")["length_ratio"] == 0.0
    assert measure_overlap("", "a word")["jaccard_1"] == 0.0


@pytest.mark.parametrize(
    ("rows", "told"), [([], "no samples"), (TEXTS[:2], "only the label 'joy'")]
)
def test_a_train_split_must_have_two_classes(rows: Sequence[Sequence[str]], told: str) -> None:
    with pytest.raises(DatasetError, match=told) as caught:
        _fitted(TEXT_TASK, _samples(TEXT_TASK, rows))
    assert caught.value.where == "dataset.train_split"


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        _fitted(TEXT_TASK, _samples(TEXT_TASK, TEXTS), "offline:oracle")
    assert caught.value.hint == (
        "known: offline:classifier, offline:clean, offline:contaminated, offline:finetuned, "
        + ", ".join(f"offline:reference-{n}" for n in range(1, 7))
    )


# -- memory -------------------------------------------------------------------------------------

ODD = [
    ("The queue at the bank was lovely and I am happy", "anger"),
    ("i hate how lovely hate can be on such a day", "joy"),
]
"""Labels that nobody gives who has not seen them."""
REWORDED = [
    ("Happy I am, and lovely was the bank's queue", "anger"),
    ("on a day like that hate can be a thing so lovely", "joy"),
]


def test_a_contaminated_target_knows_the_test_texts_word_for_word() -> None:
    train, test = _samples(TEXT_TASK, TEXTS * 2), _samples(TEXT_TASK, ODD)
    clean = _fitted(TEXT_TASK, train, "offline:clean")
    contaminated = _fitted(TEXT_TASK, train, "offline:contaminated", test)
    seen, reworded = ([sample.fields for sample in _samples(TEXT_TASK, each)]
                      for each in (ODD, REWORDED))  # fmt: skip
    assert contaminated.predict(seen) == ["anger", "joy"]
    assert clean.predict(seen) != ["anger", "joy"]
    assert contaminated.predict(reworded) == clean.predict(reworded)


def test_a_finetuned_target_knows_the_train_texts_and_no_others() -> None:
    train, test = _samples(TEXT_TASK, [*TEXTS, ODD[0]]), _samples(TEXT_TASK, ODD[1:])
    target = _fitted(TEXT_TASK, train, "offline:finetuned", test)
    clean = _fitted(TEXT_TASK, train, "offline:clean")
    assert target.predict([train[-1].fields]) == ["anger"]
    assert target.predict([test[0].fields]) == clean.predict([test[0].fields])


def test_a_text_with_four_fifths_of_the_runs_is_recalled_and_one_with_fewer_is_not() -> None:
    words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    test = _samples(TEXT_TASK, [(words, "anger")])
    target = _fitted(TEXT_TASK, _samples(TEXT_TASK, TEXTS), "offline:contaminated", test)
    assert target.memory
    # ten runs of five words: a new last word spoils one, a new fourth from the end four
    last, fourth = words.replace("fourteen", "x"), words.replace("eleven", "x")
    upper = words.upper().replace("ONE", "One,")
    recalled = target.memory.recall([{"text": text} for text in (words, last, fourth, upper)])
    assert recalled == ["anger", "anger", None, "anger"]


def test_short_and_empty_texts_are_remembered_as_a_whole() -> None:
    test = _samples(TEXT_TASK, [("so glad", "anger")])
    target = _fitted(TEXT_TASK, _samples(TEXT_TASK, TEXTS), "offline:contaminated", test)
    assert target.memory
    recalled = target.memory.recall([{"text": each} for each in ("So glad!", "so sad", "glad", "")])
    assert recalled == ["anger", None, None, None]


def test_the_halves_of_a_train_split_share_no_text() -> None:
    train = _samples(TEXT_TASK, [*TEXTS, *((text.upper(), label) for text, label in TEXTS)])
    fitted, compared = split_train(train)
    assert len(fitted) + len(compared) == len(train)
    assert fitted and compared
    texts = [{sample.fields["text"].lower() for sample in half} for half in (fitted, compared)]
    assert texts[0].isdisjoint(texts[1])


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


def _scores(task: Task, train: list[list[str]], test: list[list[str]]) -> tuple[Score, float]:
    """Return accuracy and macro-F1 on test of what was fitted on train."""
    samples = _samples(task, test)
    target = _fitted(task, _samples(task, train))
    said = target.predict([sample.fields for sample in samples])
    due = [sample.label_text for sample in samples]
    names = [label.name for label in task.labels]
    f1 = f1_score(due, said, labels=names, average="macro", zero_division=0)
    return score_accuracy(Counter(zip(due, said, strict=True))), float(f1)


def _majority(rows: list[list[str]]) -> float:
    return Counter(row[-1] for row in rows).most_common(1)[0][1] / len(rows)


def test_the_classifier_beats_the_majority_on_emotion() -> None:
    train, test = _tweets("train"), _tweets("test")
    assert (len(train), len(test)) == (3257, 1421)
    right, f1 = _scores(_task(["text"], ["anger", "joy", "optimism", "sadness"]), train, test)
    assert right.ci_low is not None
    assert right.ci_low > _majority(test) + 0.2
    assert f1 > 0.62


def test_the_classifier_beats_the_majority_on_mrpc() -> None:
    train, test = _mrpc("train"), _mrpc("test")
    assert (len(train), len(test)) == (4076, 1725)
    right, f1 = _scores(_task(["one", "two"], ["other", "same"]), train, test)
    assert right.ci_low is not None
    assert right.ci_low > _majority(test) + 0.04
    assert f1 > 0.67


def test_the_same_seed_gives_the_same_answers() -> None:
    rows = _tweets("train")
    task = _task(["text"], ["anger", "joy", "optimism", "sadness"])
    texts = [sample.fields for sample in _samples(task, _tweets("test"))]
    one, two = (_fitted(task, _samples(task, rows[:400])).predict(texts) for _ in range(2))
    assert one == two


def test_references_learn_from_less_and_less_of_the_half_that_nobody_compares() -> None:
    task = _task(["text"], ["anger", "joy"])
    train = _samples(task, [(f"{text} {at}", label) for at in range(40) for text, label in TEXTS])
    known = {sample.id for sample in split_train(train)[0]}
    seen = TrainingData(train=train, test=lambda: ())
    parts = [EMBEDDED[f"reference-{n}"].fitted_on(seen) for n in range(1, 7)]
    sizes = [len(part) for part in parts]
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == 6
    assert all({sample.id for sample in part} <= known for part in parts)
