"""Metrics against the libraries that define them, and what they do at their edges."""

import math
import re
import tracemalloc
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer  # type: ignore[import-untyped]
from sacrebleu.metrics.bleu import BLEU
from sklearn.metrics import f1_score  # type: ignore[import-untyped]

from coreeval.errors import UsageError
from coreeval.evaluation.benchmarks.items import LAYOUTS
from coreeval.evaluation.metrics import (
    CONSISTENCY,
    PERFORMANCE,
    THRESHOLD,
    PerItem,
    at_least,
    cosine_similarity,
)
from coreeval.evaluation.metrics.performance import (
    average_scores,
    count_common_words,
    mean_score,
)
from coreeval.evaluation.metrics.text import find_words
from coreeval.evaluation.modifications import BY_RULE, DECADE_SHIFTS, FLOOR, PIECE, SHIFTS
from coreeval.tools.embeddings import MINILM, PACKAGE, open_embeddings
from tests.evaluation.recorded import Recorded, beside, recorded

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


def test_a_long_document_beside_a_short_text_takes_little_memory() -> None:
    document = [f"a{at:x}" for at in range(50_000)]
    tracemalloc.start()
    for pair in ((document, document[::500]), (document[::500], document)):
        assert count_common_words(*pair) == 100
    assert tracemalloc.get_traced_memory()[1] < 5e6
    tracemalloc.stop()


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
    values = scored(name, *pairs).resample(np.stack([weights, weights]))
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


def test_vowel_signs_are_parts_of_words() -> None:
    """Python counts them as signs between words."""
    boy, girl = "वह लड़का अच्छा है", "वह लड़की अच्छी है"
    assert find_words(boy) == [unicodedata.normalize("NFC", word) for word in boy.split()]
    assert scored("rouge_1", (boy, girl)).score == scored("rouge_l", (boy, girl)).score == 0.5
    assert scored("rouge_1", (boy, boy)).score == 1
    assert find_words("தமிழ் নদী ಕನ್ನಡ") == ["தமிழ்", "নদী", "ಕನ್ನಡ"]
    assert find_words("\u05de\u05b6\u05dc\u05b6\u05da, \u0645\u064e\u0644\u0650\u0643") == [
        "\u05de\u05dc\u05da", "\u0645\u0644\u0643"
    ]  # fmt: skip
    assert find_words("\u0130stanbul x\u0302 \u2764\ufe0f 1\ufe0f\u20e3") == ["istanbul", "x", "1"]


def test_answers_in_another_script_are_named() -> None:
    found = scored("rouge_l", ("The rate rose", "利率上升"), ("The rate fell", "It fell"))
    assert found.score == pytest.approx((0 + 2 / 5) / 2)
    assert found.notes == (
        "1 of 2 answers are written in CJK letters, their references in LATIN, so they rarely "
        "match, whether right or wrong",
    )
    assert scored("rouge_l", ("93.5 %", "利率 93.5"), ("B", "")).notes == ()


def test_a_long_text_is_scored_at_once() -> None:
    """A table of all pairs of words would have 4 * 10^8 cells here."""
    text = " ".join(str(n) for n in range(20_000))
    assert scored("rouge_l", (text, text.removesuffix(" 19999"))).score == pytest.approx(
        1, abs=1e-4
    )


DUE, SAID = ["a", "b", "a", "b"], (["a", "b", "b", "b"], ["b", "b", "a", "c"])


def test_scores_of_the_same_items_are_averaged_on_every_resample() -> None:
    parts = [PERFORMANCE["macro_f1"](DUE, said) for said in SAID]
    both = average_scores(parts)
    assert both.score == pytest.approx(np.mean([part.score for part in parts]))
    weights = np.random.default_rng(1).multinomial(4, [0.25] * 4, size=50).astype(float)
    each = [part.resample(weights) for part in parts]
    assert both.resample(weights) == pytest.approx(np.mean(each, axis=0))


def test_a_score_by_itself_stays_as_it_is() -> None:
    part = mean_score([1.0, 0.0, 0.5], [True, True, False])
    assert average_scores([part]).score == part.score == 0.5


def test_notes_are_told_once() -> None:
    first, second = mean_score([1.0], notes=("odd",)), mean_score([0.0], notes=("odd", "rare"))
    assert average_scores([first, second]).notes == ("odd", "rare")


def test_where_one_score_is_unknown_so_is_the_mean() -> None:
    assert np.isnan(average_scores([mean_score([1.0]), mean_score([1.0], [False])]).score)


pytestmark = beside


def performance(rows: list[Recorded], metric: str) -> float:
    references, outputs = [row.reference for row in rows], [row.original_output for row in rows]
    return round(PERFORMANCE[metric](references, outputs).score, 4)


@pytest.mark.parametrize(
    ("folder", "name", "m", "c"),
    [
        ("gpt", "post_{}_dev", 0, 0.7706),
        ("gpt", "post_{}_val", 0, 0.7489),
        ("baichuan", "post_{}_dev", 0.4235, 0.4765),
        ("baichuan", "post_{}_val", 0.4544, 0.4674),
        ("finma_full", "post_post_{}_dev", 0.1824, 0.2706),
        ("finma_full", "post_post_{}_val", 0.1451, 0.2502),  # the paper has M 0.1706
    ],
)
def test_fineval(folder: str, name: str, m: float, c: float) -> None:
    rows = recorded(f"fineval/{folder}", f"{name}.json.gz")
    assert performance(rows, "exact_match_squad") == m
    assert round(CONSISTENCY["option"](rows).score, 4) == c


@pytest.mark.parametrize(
    ("folder", "split", "m", "c"),
    [
        ("finma_full", "train", 0.2304, 0.7270),
        ("finma_full", "dev", 0.0943, 0.5662),
        ("finma_full", "test", 0.1084, 0.5706),
        ("gpt", "train", 0.0209, 0.4562),
        ("gpt", "dev", 0.0217, 0.4604),
        ("gpt", "test", 0.0208, 0.4505),
    ],
)
def test_finqa(folder: str, split: str, m: float, c: float) -> None:
    rows = recorded(f"finqa/{folder}", f"{{}}_{split}.json.gz")
    assert performance(rows, "rouge_l") == m
    assert round(CONSISTENCY["jaccard"](rows).score, 4) == c


@pytest.mark.parametrize(("split", "m", "c"), [("train", 0.7790, 0.8946), ("eval", 0.5792, 0.8880)])
def test_alphafin(split: str, m: float, c: float) -> None:
    """The paper's C, 0.8964 and 0.8884, leaves out five items that its code names."""
    rows = recorded("alphafin/finma_full", f"research_{{}}_{split}.json.gz")
    assert performance(rows, "rouge_l") == m
    found = CONSISTENCY["jaccard"](rows)
    assert round(found.score, 4) == c
    silent = {"train": 49, "eval": 37}[split]
    assert found.notes == (f"{silent} of 500 pairs are two empty answers, counted as consistent",)


@pytest.mark.parametrize(
    ("split", "scores"),
    [
        ("train", (0.0485, 0.0067, 0.0359)),
        ("val", (0.0554, 0.0073, 0.0382)),  # the paper has 0.0559, 0.0074, 0.0387
        ("test", (0.0413, 0.0044, 0.0315)),
    ],
)
def test_ectsum(split: str, scores: tuple[float, ...]) -> None:
    """The paper's Table 10, where Baichuan's Chinese words count for nothing."""
    rows = recorded("ectsum/baichuan", f"{{}}_{split}_samples.json.gz")
    found = tuple(performance(rows, name) for name in ("rouge_1", "rouge_2", "rouge_l"))
    assert found == scores


def test_ectsum_has_no_pair_that_means_the_same() -> None:
    """The paper's C is 0 for Baichuan; the shortest pairs of validation, to be quick."""
    pytest.importorskip(PACKAGE, reason="the weights of MiniLM are not installed")
    rows = recorded("ectsum/baichuan", "{}_val_samples.json.gz")
    short = sorted(rows, key=lambda row: len(row.original_output + row.modified_output))[:12]
    similarity = cosine_similarity(short, open_embeddings("minilm"))
    assert 0.3 < similarity.mean() < 0.7
    assert at_least(similarity, THRESHOLD).score == 0


def test_chinese_answers_to_english_references_are_named() -> None:
    rows = recorded("ectsum/baichuan", "{}_train_samples.json.gz")
    references, outputs = [row.reference for row in rows], [row.original_output for row in rows]
    (note,) = PERFORMANCE["rouge_2"](references, outputs).notes
    assert note.startswith("15 of 100 answers are written in CJK letters")


@pytest.mark.parametrize(("split", "plain", "gained"), [("dev", 0.1529, 5), ("val", 0.1295, 18)])
def test_what_the_squad_normalisation_adds_here(split: str, plain: float, gained: int) -> None:
    """FinMA puts letters into quotation marks; `'A'` and the gold `A` both become nothing."""
    rows = recorded("fineval/finma_full", f"post_post_{{}}_{split}.json.gz")
    assert performance(rows, "exact_match") == plain
    quoted = [row for row in rows if row.original_output.strip() == f"'{row.reference}'"]
    assert len(quoted) == gained
    assert performance(rows, "exact_match_squad") == pytest.approx(
        plain + gained / len(rows), abs=1e-4
    )


DOCS = (Path(__file__).parents[3] / "docs" / "scoring.md").read_text(encoding="utf-8")


def test_every_name_is_described() -> None:
    described = set(re.findall(r"`(\w+)`", DOCS))
    assert {*PERFORMANCE, *CONSISTENCY, *LAYOUTS, *BY_RULE, MINILM} <= described


def test_the_numbers_are_those_of_the_code() -> None:
    assert f"threshold={THRESHOLD}" in DOCS
    assert f"similarity of at least {FLOOR}" in DOCS
    assert f"pieces of {PIECE} words" in DOCS
    assert all(f"±{shift}" in DOCS for shift in {*map(abs, SHIFTS + DECADE_SHIFTS)})
