"""Gates that fail only because there are few samples say so; all others fail as before."""

import pytest

from coreeval.evaluation.scores import score_proportion
from coreeval.releases.gates.check import GateFinding, format_finding
from coreeval.runs.quality import LabelNoise, LabelShare, estimate_noise_bound
from tests.releases.gates.kit import QUALITY, found


def check(gate: str, limit: dict[str, object], kept: int = 0, **quality: object) -> GateFinding:
    return found(gate, limit, kept=kept, quality=QUALITY.model_copy(update=quality))


def noise(contrary: int, originals: int, refused: int, texts: int) -> LabelNoise:
    original, updated = score_proportion(contrary, originals), score_proportion(refused, texts)
    bound = estimate_noise_bound(original, updated)
    return LabelNoise(original=original, updated=updated, bound=bound)


def label(name: str, accepted: int, total: int) -> LabelShare:
    share = score_proportion(accepted, total)
    return LabelShare(
        label=name, total=total, accepted=share, original_share=0.1, updated_share=0.1
    )


@pytest.mark.parametrize(
    ("judged", "status"),
    [
        ((0, 3, 0, 3), "too_few"),
        ((1, 4, 0, 3), "too_few"),
        ((0, 15, 0, 15), "too_few"),
        ((0, 16, 0, 16), "met"),
        ((4, 16, 4, 16), "not_met"),
        ((8, 10, 8, 10), "not_met"),  # few, but evidently bad
        ((40, 100, 40, 100), "not_met"),
    ],
)
def test_judgements_that_could_not_meet_the_limit_are_too_few(
    judged: tuple[int, int, int, int], status: str
) -> None:
    limit = {"max": 0.06, "missing": "skip"}
    said = check("label_noise", limit, label_noise=noise(*judged))
    assert said.status == status and said.stops == (status == "not_met")
    if status == "too_few":
        assert "can be met with about 16 of each" in format_finding(said)
        assert check("label_noise", {"max": 0.06}, label_noise=noise(*judged)).stops
        assert check("label_noise", limit, 2, label_noise=noise(*judged)).status == "not_met"
    assert check("label_noise", {"max": 0}, label_noise=noise(*judged)).status == "not_met"


@pytest.mark.parametrize(
    ("labels", "status"),
    [
        ([("A", 3, 3), ("B", 0, 1)], "too_few"),
        ([("A", 3, 3), ("B", 0, 3)], "too_few"),
        ([("A", 3, 3), ("B", 0, 4)], "not_met"),
        ([("A", 0, 50), ("B", 0, 1)], "not_met"),
        ([("A", 2, 50), ("B", 1, 2)], "not_met"),
        ([("A", 3, 3), ("B", 1, 4)], "met"),
    ],
)
def test_labels_with_hardly_any_sample_cannot_be_judged(
    labels: list[tuple[str, int, int]], status: str
) -> None:
    shares = tuple(label(*one) for one in labels)
    said = check("label_acceptance", {"min": 0.1, "missing": "skip"}, by_label=shares)
    assert said.status == status
    if status == "too_few":
        assert "too few samples to judge: B has" in said.reason
        strict = check("label_acceptance", {"min": 0.1, "by": "ci_low"}, by_label=shares)
        assert strict.status == "not_met"


@pytest.mark.parametrize(
    ("labels", "shift", "status"),
    [
        ([("A", 1, 1), ("B", 1, 1), ("C", 1, 1), ("D", 0, 1)], 0.25, "too_few"),
        ([("A", 9, 50), ("B", 0, 50)], 0.5, "not_met"),  # nine of nine are no chance
        ([("A", 6, 10), ("B", 4, 10)], 0.12, "not_met"),  # ten texts can be judged
        ([("A", 2, 5), ("B", 2, 5)], 0.0, "met"),
    ],
)
def test_the_balance_of_a_handful_of_texts_cannot_be_judged(
    labels: list[tuple[str, int, int]], shift: float, status: str
) -> None:
    shares = tuple(label(*one) for one in labels)
    limit = {"max": 0.1, "missing": "skip"}
    said = check("balance_shift", limit, by_label=shares, balance_shift=shift)
    assert said.status == status
    assert ("too few to judge" in said.reason) == (status == "too_few")
