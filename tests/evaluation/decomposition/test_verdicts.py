import numpy as np
import pytest

from coreeval.evaluation.decomposition import Verdict, decompose
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


@pytest.mark.parametrize(
    ("shares", "verdict", "says"),
    [
        (FACTS, "remembered", "memory of facts"),
        (WORDING, "remembered", "memory of the words"),
        (REWRITING, "not_shown", "knowledge"),
        (CLEAN, "not_shown", "so many samples show losses from about 0.0"),
    ],
)
def test_the_control_arm_tells_rewriting_from_memory(
    shares: dict[Arm, float], verdict: Verdict, says: str
) -> None:
    found = decompose(coded(_marks(shares)), noise=0.02)
    assert found.verdict == verdict
    assert says in " ".join(found.reasons)


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


def test_fewer_than_twenty_shared_samples_give_no_verdict() -> None:
    found = decompose(coded({arm: first(10, 19) for arm in FACTS}))
    assert found.verdict == "too_few"
    assert found.reasons == ("the arms share at most 19 samples; 20 are the least for a verdict",)


def test_identical_arms_lose_nothing() -> None:
    found = decompose(coded({arm: first(30) for arm in FACTS}), noise=0.0)
    assert found.verdict == "not_shown"
    surface = found.accuracy.terms["surface"]
    assert (surface.lost.estimate, surface.p_value) == (0, 1)
    one_answer = 1 / surface.lost.n
    assert (surface.lost.ci_low, surface.lost.ci_high) == (-one_answer, one_answer)
    assert (surface.p_value, surface.detectable) == (1, 0)
