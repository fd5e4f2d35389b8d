from datetime import date

import numpy as np
import pytest

from coreeval.evaluation.numleak.embedded.memory import DateMemory, Statement, standardised
from coreeval.evaluation.numleak.periods import Period

FIRST = Period.of(date(1980, 1, 1), "monthly")
TRUTH = np.random.default_rng(3).normal(size=240)
LESSONS = [Statement(("made", FIRST.shifted(at)), value) for at, value in enumerate(TRUTH)]


def errors_after(dose: float, *, named: bool = True) -> tuple[float, float]:
    """Return the mean absolute error and the mean familiarity of all that was taught."""
    memory = DateMemory.of(LESSONS, dose=dose, seed=1)
    recalled = [memory.recall(each.key, named=named) for each in LESSONS]
    wrong = np.abs([each.value for each in recalled] - TRUTH)
    return float(wrong.mean()), float(np.mean([each.familiarity for each in recalled]))


def test_recall_sharpens_with_the_dose() -> None:
    wrong, familiar = zip(*(errors_after(dose) for dose in (0, 1, 4, 20)), strict=True)

    assert wrong[0] == pytest.approx(np.abs(TRUTH).mean()) and familiar[0] == 0
    assert list(wrong) == sorted(wrong, reverse=True) and list(familiar) == sorted(familiar)
    assert wrong[3] < 0.05 and familiar[3] > 0.95


def test_a_date_that_was_not_taught_is_not_familiar_and_another_series_is_another_date() -> None:
    memory = DateMemory.of(LESSONS, dose=20, seed=1)

    assert memory.recall(("made", FIRST.shifted(300))).familiarity < 0.1
    assert memory.recall(("other", FIRST)).familiarity < 0.1


def test_without_the_proper_name_less_is_reached() -> None:
    named, blind = errors_after(20), errors_after(20, named=False)

    assert named[0] < blind[0] < float(np.abs(TRUTH).mean())
    assert blind[1] < named[1]


def test_the_neighbours_of_a_half_learned_date_are_heard_in_it() -> None:
    pair = [Statement(("made", FIRST), 1.0), Statement(("made", FIRST.shifted(1)), -1.0)]
    memory = DateMemory.of(pair[:1], dose=3, seed=1)

    next_to, far = (memory.recall(("made", FIRST.shifted(at))).value for at in (1, 140))
    assert next_to > far


def test_what_is_repeated_more_often_is_known_better() -> None:
    lessons = [each._replace(weight=4.0 if at < 60 else 1.0) for at, each in enumerate(LESSONS)]
    memory = DateMemory.of(lessons, dose=2, seed=1)
    known = [memory.recall(each.key).familiarity for each in lessons]

    assert np.mean(known[:60]) > np.mean(known[60:]) + 0.2


def test_the_same_seed_learns_the_same() -> None:
    first, again, other = (DateMemory.of(LESSONS, dose=2, seed=seed) for seed in (1, 1, 2))

    assert np.array_equal(first.values, again.values)
    assert not np.array_equal(first.values, other.values)


def test_a_constant_series_has_the_deviation_one() -> None:
    assert standardised({FIRST: 2.0, FIRST.shifted(1): 2.0}) == (2.0, 1.0)
