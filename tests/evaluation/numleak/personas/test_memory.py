"""What personas learn: synthetic series, and the memory for dates."""

from datetime import date

import numpy as np
import pytest

from coreeval.config import NumleakConfig
from coreeval.evaluation.numleak.audit import Audit, audit_replies
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.personas import (
    KINDS,
    PersonaQuestion,
    open_persona,
    synthetic_series,
)
from coreeval.evaluation.numleak.personas.memory import (
    DateMemory,
    DateStatement,
    mean_and_deviation,
)
from coreeval.evaluation.numleak.probes import questions_about
from coreeval.evaluation.numleak.series import Series
from coreeval.evaluation.numleak.statistics import AuditSettings
from tests.support.tides import tides

FIRST = Period.of(date(1980, 1, 1), "monthly")
TRUTH = np.random.default_rng(3).normal(size=240)
LESSONS = [DateStatement(("made", FIRST.shift(at)), value) for at, value in enumerate(TRUTH)]


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

    assert memory.recall(("made", FIRST.shift(300))).familiarity < 0.1
    assert memory.recall(("other", FIRST)).familiarity < 0.1


def test_without_the_proper_name_less_is_reached() -> None:
    named, blind = errors_after(20), errors_after(20, named=False)

    assert named[0] < blind[0] < float(np.abs(TRUTH).mean())
    assert blind[1] < named[1]


def test_the_neighbours_of_a_half_learned_date_are_heard_in_it() -> None:
    pair = [DateStatement(("made", FIRST), 1.0), DateStatement(("made", FIRST.shift(1)), -1.0)]
    memory = DateMemory.of(pair[:1], dose=3, seed=1)

    next_to, far = (memory.recall(("made", FIRST.shift(at))).value for at in (1, 140))
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
    assert mean_and_deviation({FIRST: 2.0, FIRST.shift(1): 2.0}) == (2.0, 1.0)


def lag(values: list[float], by: int) -> float:
    return float(np.corrcoef(values[:-by], values[by:])[0, 1])


def test_each_kind_is_of_its_own_nature() -> None:
    returns, level, seasonal = (
        list(synthetic_series(each, seed=4).values.values()) for each in KINDS
    )
    assert abs(np.mean(returns) - 0.5) < 0.6 and 4 < np.std(returns) < 5
    assert abs(lag(returns, 1)) < 0.12 and lag(level, 1) > 0.9 and lag(seasonal, 12) > 0.9
    assert min(level) > 0


def test_values_have_the_digits_of_their_definition_and_months_in_order() -> None:
    for kind in KINDS:
        series = synthetic_series(kind, seed=4, months=30)
        assert [str(series.first), str(series.last)] == ["1980-01", "1982-06"]
        digits = series.definition.decimals
        assert all(value == round(value, digits) for value in series.values.values())


def test_another_seed_makes_another_series() -> None:
    first, other = (synthetic_series("returns", seed=seed).values for seed in (1, 2))
    assert first != other and first == synthetic_series("returns", seed=1).values


ASKED = NumleakConfig.model_validate(
    {
        "series": "tides", "dates": 20, "continuations": 6, "probes":
        ["value", "description", "step_by_step", "phrasing", "contradiction", "continuation"],
    }
)  # fmt: skip


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Series:
    return tides(tmp_path_factory.mktemp("series"))


def audit(series: Series, name: str, dose: float | None = None) -> Audit:
    persona = open_persona(name, [series], seed=7, dose=dose)
    asked = questions_about(series, ASKED, cutoff=None, today=date(2025, 12, 20), seed=7)
    replies = [
        one.reply(
            name,
            persona.answer(
                PersonaQuestion(
                    variant=one.variant, series=one.series, period=one.period,
                    phrasing=one.phrasing, stated=one.stated, following=one.following,
                )
            ),
        )
        for one in asked.questions
    ]  # fmt: skip
    (found,) = audit_replies(replies, {"tides": series}, AuditSettings(draws=100), {})
    assert not found.left_out
    return found


def test_one_who_memorized_stands_however_it_is_asked_but_thinking_leads_astray(
    series: Series,
) -> None:
    found = audit(series, "offline:memorizing").variants
    assert found.description and found.step_by_step and found.phrasing
    assert found.contradiction and found.continuation
    assert found.description.own.within_tolerance.estimate == 1
    assert found.phrasing.agreement.estimate == 1
    assert found.step_by_step.worse.estimate > 0.2
    assert found.step_by_step.own.pearson_r.estimate < 0.97
    outcomes = found.contradiction.outcomes
    assert outcomes["yields"] == 0 and outcomes["holds"] and outcomes["corrects"]
    assert found.continuation.read.estimate == found.continuation.within_tolerance.estimate == 1
    assert found.continuation.gain.ci_low > 0.9


@pytest.mark.parametrize("name", ["offline:guessing", "offline:fabricating"])
def test_those_who_remember_no_value_give_way_and_continue_nothing(
    series: Series, name: str
) -> None:
    found = audit(series, name).variants
    assert found.contradiction and found.continuation and found.phrasing
    assert found.contradiction.shares["yields"].estimate > 0.8
    assert found.continuation.exact.estimate < 0.1
    assert found.phrasing.agreement.estimate < 0.3


def test_one_who_refuses_refuses_every_way(series: Series) -> None:
    found = audit(series, "offline:refusing", dose=0).variants
    assert found.description and found.contradiction and found.continuation
    assert found.description.asked.statuses["refused"] == 20
    assert found.contradiction.outcomes["refuses"] == 20
    assert found.continuation.read.estimate == 0
