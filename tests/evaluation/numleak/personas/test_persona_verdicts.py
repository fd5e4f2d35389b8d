"""From a persona's words over parser and statistics to the verdict: all six are given."""

import numpy as np
import pytest

from coreeval.evaluation.numleak.memory_verdicts import MemoryJudgement, Verdict, judge_memory
from coreeval.evaluation.numleak.parsing.points import read_points
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.personas import PersonaQuestion, open_persona, synthetic_series
from coreeval.evaluation.numleak.replies import Reply, Variant
from coreeval.evaluation.numleak.statistics.estimation import measure
from coreeval.evaluation.numleak.statistics.measurements import AuditSettings

RETURNS = synthetic_series("returns", seed=11)
DRAWN = np.random.default_rng(5).permutation(len(RETURNS.values))
DATES = [list(RETURNS.values)[at] for at in DRAWN[:40]]
INVENTED = RETURNS.definition.fictitious[0]


def judged(name: str, dates: list[Period]) -> MemoryJudgement:
    """Audit a persona: values of dates, and as many of a series that does not exist."""
    persona = open_persona(f"offline:{name}", [RETURNS], seed=11)

    def reply(variant: Variant, period: Period, invented: str | None) -> Reply:
        asked = PersonaQuestion(
            variant=variant, series=RETURNS.definition.id, period=period, name=invented
        )
        return Reply(
            model=name,
            series=asked.series,
            date=str(period),
            variant=variant,
            response=persona.answer(asked),
            name=invented,
        )

    replies = [reply("value", each, None) for each in dates]
    replies += [reply("fictitious", each, INVENTED) for each in dates]
    read = read_points(replies, RETURNS, None)
    assert not read.bad
    measured = measure(
        read.points,
        definition=RETURNS.definition,
        values=RETURNS.values,
        settings=AuditSettings(draws=200),
    )
    return judge_memory(measured)


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("memorizing", "memorized"),
        ("half-remembering", "inconclusive"),
        ("fluent", "fluent"),
        ("guessing", "no_recall"),
        ("fabricating", "fabricating"),
        ("refusing", "refusing"),
    ],
)
def test_each_persona_gets_its_verdict(name: str, verdict: Verdict) -> None:
    assert judged(name, DATES).verdict == verdict


def test_a_dozen_dates_decide_nothing_even_of_one_who_remembers() -> None:
    found = judged("memorizing", DATES[:12])
    assert found.verdict == "inconclusive" and "8 more are needed" in found.reasons[0]
