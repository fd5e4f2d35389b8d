"""How personas answer further questions: by what they know, and read as models are."""

from datetime import date

import pytest

from coreeval.config import NumleakConfig
from coreeval.evaluation.numleak.audit import Audit, audit_replies
from coreeval.evaluation.numleak.personas import PersonaQuestion, open_persona
from coreeval.evaluation.numleak.probes import questions_about
from coreeval.evaluation.numleak.series import Series
from coreeval.evaluation.numleak.statistics import AuditSettings
from tests.support.tides import tides

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
