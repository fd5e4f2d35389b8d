"""Gaps in difficulty, memory, and what references tell apart; planted worlds with few studies."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from coreeval.evaluation.excess import MIN_LINE
from coreeval.evaluation.pcr import Comparison, Pair, PcrSettings, study
from coreeval.evaluation.pcr.comparison_document import comparison_document
from tests.evaluation.pcr.kit import pair

ASKED = PcrSettings(metric="exact_match", consistency="exact", draws=300)
Shares = tuple[float, float]


def model(shares: Shares, seed: int, *, n: int = 400, known: Shares = (0, 0)) -> list[Pair]:
    """Return answers that are right so often on train and on test, or known by heart."""
    rng, made = np.random.default_rng(seed), []
    for split, share, heart in zip(("train", "test"), shares, known, strict=True):
        for number in range(n):
            by_heart = rng.random() < heart
            said = "yes" if by_heart or rng.random() < share else "no"
            same = by_heart or rng.random() < 0.75
            made.append(pair(split, number, "yes", (said, said if same else "perhaps")))
    return made


def clean(gap: float, count: int = 5) -> dict[str, list[Pair]]:
    """Return references that find test easier by so many hundredths."""
    levels = [0.35 + 0.07 * place for place in range(count)]
    return {f"r{n}": model((at, at + gap), 100 + n) for n, at in enumerate(levels)}


def judged(
    answers: Sequence[Pair], references: dict[str, list[Pair]], settings: PcrSettings = ASKED
) -> Comparison:
    return study({"m": answers}, settings, references=references)["m"]


def test_a_gap_that_references_share_is_no_memory() -> None:
    """Version 0.1.0 said `contaminated` here."""
    easier = model((0.4, 0.56), 1)
    alone = judged(easier, {})
    assert alone.verdict == "difficulty_or_memory" and alone.adjusted is None
    found = judged(easier, clean(0.16))
    assert found.verdict == "inconclusive" and found.test.basis == "references"
    assert found.adjusted and found.adjusted.method == "line"
    assert found.adjusted.points.estimate.ci_low < 0 < found.adjusted.points.estimate.ci_high
    assert found.difference == replace(alone.difference), "the difference keeps its meaning"


@pytest.mark.parametrize(
    ("known", "verdict"), [((0.3, 0.0), "fine_tuned"), ((0.0, 0.3), "contaminated")]
)
@pytest.mark.parametrize("gap", [0.0, 0.1])
def test_memory_is_found_whatever_the_gap(known: Shares, verdict: str, gap: float) -> None:
    found = judged(model((0.4, 0.4 + gap), 7, known=known), clean(gap))
    assert found.verdict == verdict
    assert "this assumes that the references have seen neither split" in found.reason
    points = found.adjusted and found.adjusted.points.estimate
    assert points and f"{points.estimate:+.1f} ({points.ci_low:+.1f} to" in found.reason


def test_a_weak_reference_of_an_able_model() -> None:
    """The same gap in difficulty is half as many points to a model that is right nine times."""
    able = model((0.87, 0.94), 3)
    assert judged(able, clean(0.16)).verdict == "inconclusive"


def test_few_references_give_their_mean_gap_and_one_gives_none() -> None:
    answers = model((0.4, 0.4), 2)
    few = judged(answers, clean(0, MIN_LINE - 1))
    assert few.adjusted and few.adjusted.method == "mean_gap"
    wide, narrow = (
        one.adjusted and one.adjusted.points.standard_error
        for one in (judged(answers, clean(0, 2)), few)
    )
    assert wide and narrow and wide > narrow
    one = judged(answers, clean(0, 1))
    assert one.adjusted is None and "at least 2 are needed" in one.notes[-1]


def test_references_that_answered_other_items_are_not_used() -> None:
    other = {
        name: [replace(each, id=f"other {each.id}") for each in pairs]
        for name, pairs in clean(0).items()
    }
    found = judged(model((0.4, 0.4), 2), other)
    assert found.adjusted is None and "(0 of train and 0 of test)" in found.notes[-1]


def test_only_shared_items_count_and_their_order_does_not_matter() -> None:
    answers, references = model((0.4, 0.4), 2), clean(0)
    found = judged(answers, references)
    turned = {name: pairs[::-1] for name, pairs in references.items()}
    assert judged(answers, turned).adjusted == found.adjusted
    fewer = judged(answers, {**references, "r0": references["r0"][50:]})
    assert fewer.adjusted and fewer.adjusted.shared == {"train": 350, "test": 400}


def test_splits_too_unlike_to_carry_over_contradict_a_vouch() -> None:
    """As where items are divided by what the references themselves got right."""
    answers = model((0.3, 0.6), 2)
    sided = {f"r{n}": model((0.1, 0.9), n) for n in range(5)}
    found = judged(answers, sided, replace(ASKED, exchangeable=True))
    assert (found.verdict, found.test.basis) == ("difficulty_or_memory", "none")
    assert "points on average, which is too much to predict another model's" in found.notes[-1]


def test_a_vouch_that_the_texts_contradict_does_not_stand() -> None:
    settings = replace(ASKED, exchangeable=True)
    files = {"m": model((0.4, 0.4), 7, known=(0.4, 0))}
    assert study(files, settings)["m"].verdict == "fine_tuned"
    unlike = study(files, settings, covariates="texts of train are shorter")["m"]
    assert unlike.verdict == "difficulty_or_memory"
    assert "the splits are not treated as exchangeable, because" in unlike.reason


def test_the_document_has_the_references() -> None:
    document = comparison_document(judged(model((0.4, 0.4), 2), clean(0)))
    assert set(document["adjusted"]) == {
        *document["difference"], "references", "method", "shared",
    }  # fmt: skip
    assert [dose["share"] for dose in document["doses"]] == [0.1, 0.25, 0.5]
    found = [dose["found"] for dose in document["doses"]]
    assert found == sorted(found) and found[0] < 0.5 < found[2]


def test_by_heart_lowers_pcr_where_performance_is_above_consistency() -> None:
    """The sign is that of performance: version 0.1.0 could call such a model `fine_tuned`."""
    rng, made = np.random.default_rng(4), []
    for split, known in (("train", 0.0), ("test", 0.35)):
        for number in range(2000):
            heart = rng.random() < known
            said = "yes" if heart or rng.random() < 0.7 else "no"
            made.append(pair(split, number, "yes", (said, said if heart or rng.random() < 0.45
                                                   else "perhaps")))  # fmt: skip
    found = study({"m": made}, replace(ASKED, exchangeable=True))["m"]
    assert found.difference.pcr.ci_low > 0, "PCR alone points at train"
    assert found.verdict == "contaminated"
