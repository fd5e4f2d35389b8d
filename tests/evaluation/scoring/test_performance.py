"""Metrics against the libraries that define them, and what they do at their edges."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer  # type: ignore[import-untyped]
from sacrebleu.metrics.bleu import BLEU
from sklearn.metrics import f1_score  # type: ignore[import-untyped]

from coreeval.errors import UsageError
from coreeval.evaluation.scoring import PERFORMANCE, PerItem

TEXTS = st.lists(
    st.sampled_from(["a", "rate", "Rate.", "rose", "2.5%", "3", "$", "to", "the", "_", "up\n"]),
    max_size=9,
).map(" ".join)
PAIRS = st.lists(st.tuples(TEXTS.filter(str.strip), TEXTS), min_size=1, max_size=8)
LABELS = st.lists(st.tuples(*[st.sampled_from("abc")] * 2), min_size=1, max_size=20)


def scored(name: str, *pairs: tuple[str, str]) -> PerItem:
    return PERFORMANCE[name]([due for due, _ in pairs], [said for _, said in pairs])


@given(TEXTS, TEXTS)
def test_rouge_is_rouge_scores(reference: str, output: str) -> None:
    kinds = ["rouge1", "rouge2", "rougeL"]
    theirs = RougeScorer(kinds).score(reference, output)
    for kind, ours in zip(kinds, ("rouge_1", "rouge_2", "rouge_l"), strict=True):
        value = scored(ours, (reference, output)).score
        expected = theirs[kind].fmeasure if reference.strip() else math.nan
        assert value == pytest.approx(expected, nan_ok=True)


@given(PAIRS)
def test_bleu_is_sacrebleus(pairs: list[tuple[str, str]]) -> None:
    references, outputs = zip(*pairs, strict=True)
    theirs = BLEU().corpus_score(list(outputs), [list(references)]).score
    assert scored("bleu", *pairs).score == pytest.approx(theirs / 100)


@given(LABELS)
def test_macro_f1_is_scikit_learns(pairs: list[tuple[str, str]]) -> None:
    gold, said = zip(*pairs, strict=True)
    labels = sorted(set(gold))
    theirs = f1_score(gold, said, labels=labels, average="macro", zero_division=0)
    assert scored("macro_f1", *pairs).score == pytest.approx(theirs)


@pytest.mark.parametrize("name", PERFORMANCE)
def test_resampling_the_sums_is_scoring_the_resampled_items(name: str) -> None:
    pairs = [("up", "up"), ("down", "up"), ("up", "Up ."), ("", "up"), ("the up", "down"),
             ("down", "down")]  # fmt: skip
    drawn = [0, 1, 1, 3, 4, 5, 5]
    weights = np.bincount(drawn, minlength=len(pairs)).astype(float)
    values = scored(name, *pairs).resampled(np.stack([weights, weights]))
    expected = scored(name, *(pairs[place] for place in drawn)).score
    assert values.tolist() == pytest.approx([expected, expected])


@pytest.mark.parametrize("name", PERFORMANCE)
def test_an_empty_reference_is_not_counted(name: str) -> None:
    answered = ("the rate rose by two", "the rate rose by two")
    assert scored(name, answered, (" ", "the rate")).score == pytest.approx(1)
    assert math.isnan(scored(name, ("", "the rate")).score)


def test_exact_match_looks_past_outer_blanks_only() -> None:
    same = scored("exact_match", ("93.5%", " 93.5%\n"), ("Rise", "rise"), ("B", "B."))
    assert same.sums.tolist() == [[1, 1], [0, 1], [0, 1]]
    assert scored("accuracy", ("Rise", "rise "), ("B", "B.")).score == 0.5


def test_the_squad_normalisation_empties_the_answer_a() -> None:
    pairs = [("A", ""), ("A", " ... "), ("A", "the"), ("A", "A"), ("A", "B")]
    assert scored("exact_match_squad", *pairs).sums[:, 0].tolist() == [1, 1, 1, 1, 0]
    assert scored("exact_match", *pairs).sums[:, 0].tolist() == [0, 0, 0, 1, 0]
    assert scored("exact_match_squad", ("The rate", "rate!")).score == 1


def test_macro_f1_of_texts_is_refused() -> None:
    texts = [(f"reference {n}", "x") for n in range(201)]
    with pytest.raises(UsageError, match="201 different references"):
        scored("macro_f1", *texts)


def test_unspaced_scripts_are_scored_by_character() -> None:
    pair = ("持续经营", "答案是持续经营")
    assert scored("rouge_1", pair).score == pytest.approx(2 * 4 / (4 + 7))
    assert scored("rouge_2", pair).score == pytest.approx(2 * 3 / (3 + 6))
    assert scored("rouge_l", pair).score == pytest.approx(2 * 4 / (4 + 7))
    assert scored("bleu", pair).score == pytest.approx(
        BLEU(tokenize="zh").corpus_score([pair[1]], [[pair[0]]]).score / 100
    )
    assert scored("rouge_1", ("Процент вырос", "процент упал")).score == 0.5


def test_answers_in_another_script_are_named() -> None:
    found = scored("rouge_l", ("The rate rose", "利率上升"), ("The rate fell", "It fell"))
    assert found.score == pytest.approx((0 + 2 / 5) / 2)
    assert found.notes == (
        "1 of 2 answers are written in CJK letters, their references in LATIN: "
        "they can hardly match, right or wrong",
    )
    assert scored("rouge_l", ("93.5 %", "利率 93.5"), ("B", "")).notes == ()


def test_a_long_text_is_scored_at_once() -> None:
    """A table of all pairs of words would have 4 * 10^8 cells here."""
    text = " ".join(str(n) for n in range(20_000))
    assert scored("rouge_l", (text, text.removesuffix(" 19999"))).score == pytest.approx(
        1, abs=1e-4
    )
