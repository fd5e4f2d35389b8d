"""Arms that differ in a known way are told apart in that way; those that are alike are not."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from coreeval.errors import ModelUnusable
from coreeval.evaluation.answer_codes import code_answers
from coreeval.evaluation.comparability.measure import (
    EMBEDDED,
    ArmPairs,
    PairedAccuracy,
    SampleEvidence,
    TextPair,
    average_accuracy,
    measure_comparability,
    median_interval,
    share_interval,
    share_words,
)
from coreeval.evaluation.scores import score_proportion
from coreeval.evaluation.text_measures import count_sentences
from coreeval.schema import AnswerKind
from coreeval.tools.embeddings import Vectors
from coreeval.tools.stores.run_tables import TargetAnswer
from tests.evaluation.comparability.kit import cites, compared, measure, pairs, text


def test_premises_of_less_than_half_their_words_are_not_comparable() -> None:
    found = compared(pairs(18, 0.42))
    assert found.verdict == "not_comparable"
    ratio = measure(found, "length_ratio", "premise")
    assert (ratio.word, ratio.score.n) == ("differs", 18)
    assert ratio.score.estimate == pytest.approx(0.42, abs=0.02)
    assert measure(found, "length_ratio", "hypothesis").word == "alike"
    assert any("field premise are shorter" in each for each in found.sentences)


@pytest.mark.parametrize(("ratio", "word"), [(1.0, "alike"), (1.6, "differs"), (0.7, "differs")])
def test_the_ratio_of_words_both_ways(ratio: float, word: str) -> None:
    assert measure(compared(pairs(80, ratio)), "length_ratio", "premise").word == word


def test_arms_that_are_alike_are_comparable_if_they_are_many() -> None:
    found = compared(pairs(1200))
    assert (found.verdict, found.sentences, found.needed) == ("comparable", (), None)


def test_few_samples_that_are_alike_cannot_be_told_and_it_says_how_many_would_do() -> None:
    found = compared(pairs(30))
    assert found.verdict == "cannot_tell"
    assert found.needed is not None and 100 <= found.needed <= 2000
    assert f"About {found.needed:,} samples would suffice" in found.sentences[0]


def test_so_many_samples_as_are_named_do_tell() -> None:
    few = compared(pairs(60))
    assert few.verdict == "cannot_tell" and few.needed is not None
    words = [compared(pairs(3 * few.needed, seed=seed)).verdict for seed in range(4)]
    assert words.count("comparable") >= 2
    assert "not_comparable" not in words


def test_alike_arms_are_seldom_said_to_differ() -> None:
    said = [compared(pairs(40, seed=seed)).verdict for seed in range(40)]
    assert said.count("not_comparable") <= 3


CHANGES = {
    "sentences": (lambda each: each.replace(" ", ". ", 3), "more sentences"),
    "numbers": (lambda each: each.replace(" ", " 7 ", 4), "more numbers"),
    "capitals": (str.title, "more capitals"),
    "grade": (lambda each: each.replace("ter", "terminations"), "harder to read"),
    "rare_words": (
        lambda each: " ".join(f"{w}{hash_of(each, i)}" for i, w in enumerate(each.split())),
        "more rare words",
    ),
}


def hash_of(said: str, place: int) -> str:
    """Return letters that hardly any other text has at a place."""
    return "".join(chr(97 + (sum(map(ord, said)) * (place + 7) // 3**k) % 26) for k in range(6))


@pytest.mark.parametrize("name", CHANGES)
def test_each_difference_is_found_and_said(name: str) -> None:
    change, words = CHANGES[name]
    found = compared(pairs(80, change=change))
    assert measure(found, name).word == "differs"
    assert any(words in each for each in found.sentences)


def test_the_words_that_a_hypothesis_shares_with_its_premise() -> None:
    premise = "The minister opened a new bridge in the city."
    assert share_words({"a": premise, "b": "A minister opened the bridges."}) == 100
    assert share_words({"a": premise, "b": "A minister closed it."}) == 50
    assert share_words({"a": premise, "b": "of the"}) == 100
    chance = np.random.default_rng(5)
    texts = [
        TextPair(
            {"a": (one := text(20, chance)), "b": one[: len(one) // 2]},
            {"a": text(20, chance), "b": text(8, chance)},
            str(n),
        )
        for n in range(60)
    ]
    shared = measure(compared(texts), "field_overlap")
    assert shared.word == "differs"
    assert shared.original == pytest.approx(97, abs=4)


def test_a_task_with_one_field_has_no_overlap_and_no_ratio_by_field() -> None:
    one = [TextPair({"t": "Some words."}, {"t": "Other words."}, str(n)) for n in range(9)]
    found = compared(one)
    assert found.find("field_overlap") is None and "field_overlap" in found.absent
    assert found.find("length_ratio", "t") is None


def test_samples_of_one_cluster_count_as_one() -> None:
    apart = pairs(60)
    together = [each._replace(cluster=str(n // 10)) for n, each in enumerate(apart)]
    one, other = (measure(compared(each), "length_ratio").score for each in (apart, together))
    assert one.ci_low and one.ci_high and other.ci_low and other.ci_high
    assert other.ci_high - other.ci_low > 1.3 * (one.ci_high - one.ci_low)


def test_the_interval_of_a_median_covers_it() -> None:
    chance = np.random.default_rng(1)
    held = 0
    for _ in range(400):
        found = median_interval(chance.lognormal(size=40), np.arange(40))
        held += (found.ci_low or 9) <= 1 <= (found.ci_high or 0)
    assert 0.92 <= held / 400 <= 0.99


def test_the_interval_of_a_share_is_wilsons_if_each_is_its_own() -> None:
    hits = np.repeat([1.0, 0.0], [7, 13])
    plain = share_interval(hits, np.arange(20))
    other = score_proportion(7, 20)
    assert plain.ci_low == pytest.approx(other.ci_low, abs=0.01)
    paired = share_interval(np.repeat(hits, 5), np.repeat(np.arange(20), 5))
    assert paired.ci_low == pytest.approx(plain.ci_low, abs=0.01)
    assert paired.n == 100
    none = share_interval(np.zeros(40), np.arange(40) // 4)
    assert none.ci_high == pytest.approx(score_proportion(0, 10).ci_high)


def test_news_that_many_samples_rest_on() -> None:
    found = compared(pairs(48), cites(48, samples_each=4))
    assert measure(found, "reuse").word == "differs"
    assert (found.most_reused, found.events) == (4, {"4": 12})
    twice = compared(pairs(48), cites(48, samples_each=2))
    assert (measure(twice, "reuse").score.estimate, twice.most_reused) == (0, 2)


def test_news_of_the_right_shape_alone_and_headlines_alone() -> None:
    shaped = [*cites(30, rung="structure", depth="headline"), *cites(10)]
    found = compared(pairs(40), shaped)
    assert measure(found, "structure").word == "differs"
    assert found.rungs == {"structure": 30, "named": 10}
    assert found.depths == {"headline": 30, "article": 10}
    assert measure(found, "headline_only").word == "differs"
    assert not any("headlines" in each for each in found.sentences)


def test_a_run_without_accepted_samples_has_nothing_to_compare() -> None:
    found = compared([])
    assert (found.verdict, found.measures) == ("cannot_tell", ())
    assert found.sentences == ("No accepted sample has texts to compare.",)
    rests_on_nothing = [SampleEvidence("none", frozenset(), "headline", str(n)) for n in range(9)]
    assert {"structure", "reuse"} <= compared(pairs(9), rests_on_nothing).absent.keys()


def test_one_sample_and_samples_that_are_equal_are_no_error() -> None:
    assert compared(pairs(1)).verdict == "cannot_tell"
    same = [TextPair({"t": "Same."}, {"t": "Same."}, str(n)) for n in range(12)]
    assert measure(compared(same), "grade").word == "alike"
    empty = [TextPair({"a": "", "b": ""}, {"a": "", "b": ""}, str(n)) for n in range(12)]
    assert compared(empty).verdict in {"comparable", "cannot_tell"}


class Letters:
    """An embedder for which texts are about the same if they have the same letters."""

    name = "letters"

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, texts: Sequence[str]) -> Vectors:
        self.asked += len(texts)
        counts = [[each.lower().count(chr(97 + n)) for n in range(26)] for each in texts]
        return np.array(counts, np.float32)


class Broken(Letters):
    def __call__(self, texts: Sequence[str]) -> Vectors:
        raise ModelUnusable("no vectors today")


def topical(n: int, *, same: bool) -> list[TextPair]:
    """Return texts of which each is about a word of its own, or about that of another sample."""
    chance = np.random.default_rng(2)
    words = ["".join(chance.choice(list("abcdefghijklmnopqrstuvwxyz"), 8)) for _ in range(n)]
    return [
        TextPair({"t": f"{word} {word} one"}, {"t": f"{words[k if same else k - 7]} two"}, str(k))
        for k, word in enumerate(words)
    ]


def test_texts_about_something_else_are_told_by_their_distance() -> None:
    for same, word in ((True, "alike"), (False, "differs")):
        given, embed = ArmPairs(texts=topical(40, same=same), evidence=cites(40)), Letters()
        assert measure(measure_comparability(given, embed), "topic").word == word
    many = ArmPairs(texts=topical(150, same=True), evidence=cites(150))
    measure_comparability(many, counted := Letters())
    assert counted.asked == 2 * EMBEDDED


def test_few_samples_that_agree_in_all_are_not_certain() -> None:
    texts = topical(8, same=True)
    sure = np.ones(8)
    same = PairedAccuracy(sure, sure, np.arange(8))
    found = measure_comparability(
        ArmPairs(texts=texts, evidence=cites(8), accuracy=same), Letters()
    )
    topic, hard = (measure(found, name) for name in ("topic", "difficulty"))
    assert (topic.score.estimate, topic.word) == (1.0, "cannot_tell")
    assert topic.score.ci_low == pytest.approx(score_proportion(8, 8).ci_low)
    assert (hard.score.estimate, hard.word) == (0.0, "cannot_tell")
    assert hard.score.ci_high == pytest.approx(2.365 / 8, abs=0.001)
    many = np.ones(100)
    wide = ArmPairs(
        texts=texts, evidence=cites(8), accuracy=PairedAccuracy(many, many, np.arange(100))
    )
    assert measure(measure_comparability(wide), "difficulty").word == "alike"


def test_without_embeddings_their_absence_is_said() -> None:
    given = ArmPairs(texts=topical(9, same=True), evidence=cites(9))
    assert "embeddings" in measure_comparability(given).absent["topic"]
    assert "no vectors today" in measure_comparability(given, Broken()).absent["topic"]


def answers(target: str, right: Mapping[str, Sequence[str]]) -> tuple[str, list[TargetAnswer]]:
    """Return a target's answers to two templates: those of `right` get yes, which is due."""
    kinds: dict[str, AnswerKind] = {"yes": "answered", "no": "answered", "": "refused"}
    return target, [
        (arm, template, str(n), answer, kinds[answer], None, None)
        for arm, said in right.items()
        for template in (1, 2)
        for n, answer in enumerate(said)
    ]


def test_reference_models_tell_which_arm_is_harder() -> None:
    gold = {str(n): "yes" for n in range(80)}
    said = {"original": ["yes"] * 60 + ["no"] * 20, "updated": ["yes"] * 79 + ["no"]}
    coded = code_answers([answers("a", said), answers("b", said)], gold=gold, labels=("yes", "no"))
    accuracy = average_accuracy(coded)
    assert accuracy is not None and accuracy.original.mean() == 0.75
    given = ArmPairs(texts=pairs(20), evidence=cites(20), accuracy=accuracy)
    easier = measure(measure_comparability(given), "difficulty")
    assert (easier.word, easier.score.n) == ("differs", 80)
    assert "easier for the reference models" in easier.sentence


def test_refused_questions_and_unasked_arms_are_in_no_accuracy() -> None:
    gold = {str(n): "yes" for n in range(4)}
    said = {"original": ["yes", "no", "", "yes"], "updated": ["yes", "yes", "yes", "no"]}
    alone = {"original": ["yes"] * 4}
    coded = code_answers([answers("a", said), answers("b", alone)], gold=gold, labels=("yes", "no"))
    found = average_accuracy(coded)
    assert found is not None
    assert (list(found.original), list(found.updated)) == ([1, 0, 1], [1, 1, 0])
    assert average_accuracy(()) is None


def test_a_point_inside_a_number_ends_no_sentence() -> None:
    assert count_sentences("It rose 3.5 % in the U.K. today. “Well.” Really?!") == 4
    assert count_sentences("no end") == 1
