import numpy as np
import pytest

from coreeval.evaluation.decomposition import (
    Decomposition,
    Verdict,
    compare_arm_texts,
    decompose,
    judge_losses,
    measure_losses,
)
from coreeval.schema import Arm
from tests.support.planted import UNASKED, Marks, coded, first, some

N = (400, 2)


def _marks(shares: dict[Arm, float]) -> dict[Arm, Marks]:
    rng = np.random.default_rng(11)
    return {arm: some(rng, share, N) for arm, share in shares.items()}


FACTS: dict[Arm, float] = {"original": 0.8, "semantic": 0.8, "control": 0.8, "updated": 0.6}
REWRITING: dict[Arm, float] = {"original": 0.8, "semantic": 0.8, "control": 0.6, "updated": 0.6}
WORDING: dict[Arm, float] = {"original": 0.8, "semantic": 0.6, "control": 0.6, "updated": 0.6}
CLEAN: dict[Arm, float] = dict.fromkeys(FACTS, 0.8)


TEXTS = {
    arm: {str(key): f"Some word {(key + place) % 7}, and no other." for key in range(60)}
    for place, arm in enumerate(FACTS)
}
"""Texts of four arms that are alike."""
LONGER = TEXTS | {"updated": {key: f"{text} Much more." for key, text in TEXTS["updated"].items()}}


def among_others(
    shares: dict[Arm, float], *others: dict[Arm, float], texts: object = TEXTS
) -> Decomposition:
    """Judge a target beside others, with a bound on label noise of 0.02."""
    said = [coded(_marks(each), target=f"t{place}") for place, each in enumerate([shares, *others])]
    losses = [measure_losses(each, noise=0.02, draws=300) for each in said]
    compared = compare_arm_texts(texts) if texts else None  # type: ignore[arg-type]
    return judge_losses(losses, texts=compared, references=[each.target for each in losses[1:]])[0]


OTHERS = [{arm: share for arm in FACTS} for share in (0.5, 0.6, 0.7, 0.75, 0.85, 0.9)]


@pytest.mark.parametrize(
    ("shares", "verdict", "says"),
    [
        (FACTS, "remembered", "evidence of memory of facts: the loss exceeds that of "),
        (WORDING, "remembered", "evidence of memory of the words: the loss exceeds that of "),
        (REWRITING, "not_shown", "knowledge"),
        (CLEAN, "not_shown", "would be detected in 80 % of such tests"),
    ],
)
def test_memory_is_a_loss_that_neither_rewriting_nor_others_explain(
    shares: dict[Arm, float], verdict: Verdict, says: str
) -> None:
    found = among_others(shares, *OTHERS)
    assert found.verdict == verdict
    assert says in " ".join(found.reasons)


def test_an_arm_that_is_as_hard_for_others_is_not_memory() -> None:
    harder = [{**each, "updated": each["updated"] * 0.75} for each in OTHERS]
    found = among_others(FACTS, *harder)
    assert found.verdict == "arms_differ"
    assert "other targets may lose as much" in found.reasons[0]
    assert found.checks["facts"].excess.ci_low is not None
    reworded = [
        {**dict.fromkeys(FACTS, each["original"] * 0.75), "original": each["original"]}
        for each in OTHERS
    ]
    assert among_others(WORDING, *reworded).verdict == "arms_differ"


def test_texts_that_differ_leave_open_that_they_are_harder() -> None:
    found = among_others(FACTS, *OTHERS, texts=LONGER)
    assert found.verdict == "arms_differ"
    assert "the arms differ in words: 6 (control), 8 (updated); difference -2" in found.reasons[0]
    assert among_others(WORDING, *OTHERS, texts=LONGER).verdict == "remembered"
    assert "were not compared" in among_others(FACTS, *OTHERS, texts=None).reasons[0]


@pytest.mark.parametrize("shares", [FACTS, WORDING])
def test_a_target_alone_is_never_said_to_remember(shares: dict[Arm, float]) -> None:
    found = among_others(shares, *OTHERS[:3])
    assert found.verdict == "arms_differ"
    assert "3 other targets" in found.reasons[0] and "role: reference" in found.reasons[0]


def test_answers_in_prose_are_not_a_loss() -> None:
    target = coded(_marks(CLEAN), target="t")
    column = target.columns["updated"]
    for way in column.values():
        target.table.said[:120, way] = target.table.labels  # unparsed
    losses = [measure_losses(target, noise=0.02, draws=300)]
    losses += [
        measure_losses(coded(_marks(each), target=str(place)), draws=300)
        for place, each in enumerate(OTHERS)
    ]
    found = judge_losses(losses, texts=compare_arm_texts(TEXTS))[0]
    assert found.verdict == "arms_differ"
    said = "% of answers without a label: 0 (semantic and control), 30 (updated)"
    assert said in found.reasons[0]


def test_wrong_labels_may_explain_a_drop() -> None:
    assert decompose(coded(_marks(FACTS)), noise=0.25).verdict == "not_shown"


def test_without_a_control_arm_a_drop_is_not_called_memory() -> None:
    marks = _marks(FACTS)
    del marks["control"]
    found = decompose(coded(marks), noise=0.02)
    assert found.verdict == "no_control"
    assert "run.control_window" in found.reasons[0]
    assert decompose(coded(_marks(CLEAN) | {"control": marks["original"]})).verdict == "not_shown"


def test_a_control_arm_of_few_samples_tells_nothing() -> None:
    marks = _marks(FACTS)
    marks["control"][19:] = UNASKED
    found = decompose(coded(marks))
    assert found.verdict == "no_control"
    assert "shares 19 samples" in found.reasons[0]


def test_without_a_semantic_arm_words_and_facts_are_not_told_apart() -> None:
    marks = _marks(FACTS)
    found = decompose(coded({"original": marks["original"], "updated": marks["updated"]}))
    assert found.verdict == "too_few"
    assert "no answers on the semantic arm" in found.reasons[0]
    assert "run.arms" in found.reasons[0]


def test_fewer_than_twenty_shared_samples_give_no_verdict() -> None:
    found = decompose(coded({arm: first(10, 19) for arm in FACTS}))
    assert found.verdict == "too_few"
    assert found.reasons == ("the arms share at most 19 samples; a verdict needs at least 20",)


def test_identical_arms_lose_nothing() -> None:
    found = decompose(coded({arm: first(30) for arm in FACTS}), noise=0.0)
    assert found.verdict == "not_shown"
    surface = found.accuracy.terms["surface"]
    assert (surface.lost.estimate, surface.p_value) == (0, 1)
    one_answer = 1 / surface.lost.n
    assert (surface.lost.ci_low, surface.lost.ci_high) == (-one_answer, one_answer)
    assert (surface.p_value, surface.detectable) == (1, 0)
