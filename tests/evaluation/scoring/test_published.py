"""Performance and consistency of the answers that CAP's authors recorded, to their four digits."""

import pytest

from coreeval.evaluation.scoring import (
    CONSISTENCY,
    PERFORMANCE,
    THRESHOLD,
    at_least,
    cosine_similarity,
)
from coreeval.tools.embeddings import PACKAGE, open_embeddings
from tests.evaluation.recorded import Recorded, beside, recorded

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
