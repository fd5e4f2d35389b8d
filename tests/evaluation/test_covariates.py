"""Texts that differ in length or in words are told from texts that are alike."""

import tracemalloc

import numpy as np
import pytest

from coreeval.errors import UsageError
from coreeval.evaluation.covariates import compare_covariates, describe_unlike_splits
from coreeval.evaluation.text_measures import measure_texts

RNG = np.random.default_rng(3)
WORDS = ("rain", "sun", "wind", "snow", "hail", "fog", "cloud", "storm")
MANY_WORDS = tuple("".join(RNG.choice([*"abcdefghijklmnopqrstuvwxyz"], 4)) for _ in range(2000))


def _texts(n: int, length: float, words: tuple[str, ...] = WORDS) -> list[str]:
    return [" ".join(RNG.choice(words, 3 + RNG.poisson(length))) + "." for _ in range(n)]


@pytest.mark.parametrize("paired", [True, False])
def test_a_longer_group_is_told_with_both_means_and_the_interval(paired: bool) -> None:
    found = compare_covariates(
        _texts(200, 12), _texts(200, 18), paired=paired, names=("control", "updated")
    )
    one = next(each for each in found.covariates if each.covariate == "words")
    assert one.differs and one.effect < -1
    of = one.difference
    assert of.estimate is not None and of.ci_low is not None and of.ci_high is not None
    assert of.ci_low < of.estimate < of.ci_high
    assert one.means["updated"] - one.means["control"] == pytest.approx(-of.estimate)
    said = next(each for each in found.sentences if each.startswith("words:"))
    assert f"{one.means['control']:.3g} (control), {one.means['updated']:.3g} (updated)" in said


def test_groups_that_are_alike_differ_in_nothing() -> None:
    differing = [
        compare_covariates(_texts(60, 12), _texts(60, 12), paired=paired).sentences
        for paired in (True, False)
        for _ in range(20)
    ]
    assert sum(map(bool, differing)) <= 5


def test_odd_words_are_odd_to_a_model_that_has_not_read_them() -> None:
    odd = tuple("".join(RNG.choice([*"abcdefghijklmnopqrstuvwxyz"], 5)) for _ in range(400))
    found = measure_texts({"plain": _texts(200, 12), "odd": _texts(200, 12, odd)})
    assert found["odd"]["oddness"].mean() > found["plain"]["oddness"].mean() + 1


def test_measures_are_what_they_say() -> None:
    found = measure_texts({"": ["The 3 Dogs ran. They ran far.", ""]})[""]
    assert found["words"][0] == 7 and found["characters"][0] == 29
    assert found["numbers"][0] == pytest.approx(100 / 7)
    assert found["capitals"][0] == pytest.approx(300 / 7)
    assert found["grade"][0] == pytest.approx(0.0588 * 2000 / 7 - 0.296 * 200 / 7 - 15.8, abs=0.9)
    assert all(np.isfinite(each).all() for each in found.values())


def test_texts_of_one_document_count_as_one() -> None:
    first = [text for text in _texts(20, 12) for _ in range(5)]
    second = [text for text in _texts(20, 12) for _ in range(5)]
    documents = [str(place // 5) for place in range(100)]
    alone = compare_covariates(first, second, paired=True).covariates[0].difference
    together = compare_covariates(first, second, paired=True, clusters=documents)
    wide = together.covariates[0].difference
    assert wide.ci_high is not None and wide.ci_low is not None
    assert alone.ci_high is not None and alone.ci_low is not None
    assert wide.ci_high - wide.ci_low > 1.8 * (alone.ci_high - alone.ci_low)


def test_a_cluster_may_be_named_by_a_whole_text() -> None:
    """Samples without a cluster are named by their texts."""
    first, second = _texts(300, 12), _texts(300, 12)
    names = ["x" * 200_000, *map(str, range(299))]
    compare_covariates(first, second, paired=True)
    tracemalloc.start()
    named = compare_covariates(first, second, paired=True, clusters=names)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000_000
    alone = compare_covariates(first, second, paired=True).covariates[0].difference
    assert named.covariates[0].difference == alone


def test_groups_that_cannot_be_paired_are_refused() -> None:
    with pytest.raises(UsageError, match="3 and 2 texts"):
        compare_covariates(["a", "b", "c"], ["a", "b"], paired=True)
    with pytest.raises(UsageError, match="has 1 text"):
        compare_covariates(["a"], ["a", "b"], paired=False)


def _shared_passages(number: int, questions: int) -> tuple[list[str], list[str]]:
    """Return texts of samples that share a passage with others, and their clusters."""
    texts = [text for text in _texts(number, 25, MANY_WORDS) for _ in range(questions)]
    return texts, [str(place // questions) for place in range(len(texts))]


def test_a_text_that_samples_of_a_cluster_share_is_as_odd_as_one_that_they_do_not() -> None:
    before, clusters = _shared_passages(60, 3)
    after, _ = _shared_passages(180, 1)
    found = measure_texts({"before": before, "after": after}, clusters)
    rare = {name: each["rare_words"].mean() for name, each in found.items()}
    odd = {name: each["oddness"].mean() for name, each in found.items()}
    assert rare["before"] > 1 and rare["before"] == pytest.approx(rare["after"], abs=2)
    assert odd["before"] == pytest.approx(odd["after"], abs=0.2)
    alone = measure_texts({"before": before, "after": after})
    assert alone["before"]["rare_words"].max() == 0
    assert alone["before"]["oddness"].mean() < odd["before"] - 0.5


def test_samples_that_are_their_own_clusters_have_the_measures_of_samples_without_any() -> None:
    texts = {"one": _texts(31, 12), "other": _texts(31, 12)}
    names = [f"{31 - place}" for place in range(31)]
    for name, measures in measure_texts(texts, names).items():
        for key, values in measure_texts(texts)[name].items():
            assert np.array_equal(values, measures[key])


def test_splits_of_passages_with_several_questions_are_compared_by_passage() -> None:
    unlike = 0
    for _ in range(20):
        train, first = _shared_passages(40, 5)
        test, second = _shared_passages(200, 1)
        splits = {
            "train": [(text, f"train {name}") for text, name in zip(train, first, strict=True)],
            "test": [(text, f"test {name}") for text, name in zip(test, second, strict=True)],
        }
        unlike += bool(describe_unlike_splits(splits))
    assert unlike <= 3


def test_splits_with_a_single_document_are_not_compared() -> None:
    train = [(text, "one") for text in _texts(20, 12)]
    test = [(text, str(place)) for place, text in enumerate(_texts(20, 40))]
    assert describe_unlike_splits({"train": train, "test": test}) == ""
