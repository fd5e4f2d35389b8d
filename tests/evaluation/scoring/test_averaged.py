import numpy as np
import pytest

from coreeval.evaluation.scoring import PERFORMANCE
from coreeval.evaluation.scoring.items import averaged, mean

DUE, SAID = ["a", "b", "a", "b"], (["a", "b", "b", "b"], ["b", "b", "a", "c"])


def test_scores_of_the_same_items_are_averaged_on_every_resample() -> None:
    parts = [PERFORMANCE["macro_f1"](DUE, said) for said in SAID]
    both = averaged(parts)
    assert both.score == pytest.approx(np.mean([part.score for part in parts]))
    weights = np.random.default_rng(1).multinomial(4, [0.25] * 4, size=50).astype(float)
    each = [part.resampled(weights) for part in parts]
    assert both.resampled(weights) == pytest.approx(np.mean(each, axis=0))


def test_a_score_by_itself_stays_as_it_is() -> None:
    part = mean([1.0, 0.0, 0.5], [True, True, False])
    assert averaged([part]).score == part.score == 0.5


def test_notes_are_told_once() -> None:
    first, second = mean([1.0], notes=("odd",)), mean([0.0], notes=("odd", "rare"))
    assert averaged([first, second]).notes == ("odd", "rare")


def test_where_one_score_is_unknown_so_is_the_mean() -> None:
    assert np.isnan(averaged([mean([1.0]), mean([1.0], [False])]).score)
