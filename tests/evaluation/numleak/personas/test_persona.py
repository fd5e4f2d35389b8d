import re
from dataclasses import replace

import numpy as np
import pytest

from coreeval.errors import ConfigError
from coreeval.evaluation.numleak.parsing.probe_answers import read_score
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.personas import (
    PERSONAS,
    Persona,
    PersonaQuestion,
    open_persona,
    synthetic_series,
)
from coreeval.evaluation.numleak.replies import Variant
from coreeval.evaluation.numleak.series.definition import Series

RETURNS = synthetic_series("returns", seed=1)
KNOWN = replace(RETURNS, values=dict(list(RETURNS.values.items())[:400]))
ASKED = list(KNOWN.values)[100:300]
LATER = list(RETURNS.values)[420:]


@pytest.fixture(scope="module", name="personas")
def taught_personas() -> dict[str, Persona]:
    return {name: open_persona(f"offline:{name}", [KNOWN], seed=1) for name in PERSONAS}


def asked(persona: Persona, period: Period, variant: Variant = "value", draw: int = 0) -> str:
    return persona.answer(
        PersonaQuestion(variant=variant, series="synthetic-returns", period=period, draw=draw)
    )


def number_in(answer: str) -> float | None:
    plain = re.sub(r"\b[12]\d{3}\b", "", answer.replace("\u2212", "-"))
    found = re.search(r"[-+]\d+\.\d+", plain)
    return float(found[0]) if found else None


def recalled(persona: Persona, variant: Variant = "value") -> tuple[float, float]:
    """Return r and the mean absolute error of all that is answered with a number."""
    said = {at: number_in(asked(persona, at, variant)) for at in ASKED}
    pairs = [(value, KNOWN.values[at]) for at, value in said.items() if value is not None]
    estimates, truths = np.array(pairs).T
    return float(np.corrcoef(estimates, truths)[0, 1]), float(np.abs(estimates - truths).mean())


def test_personas_are_ordered_by_what_they_know(personas: dict[str, Persona]) -> None:
    r, mae = zip(
        *(recalled(personas[each]) for each in ("memorizing", "half-remembering", "guessing")),
        strict=True,
    )

    assert r[0] > 0.999 and mae[0] < 0.2
    assert 0.6 < r[1] < 0.97 and mae[0] * 3 < mae[1] < mae[2] / 2
    assert abs(r[2]) < 0.2


def test_the_fluent_one_knows_the_direction_and_not_the_number(
    personas: dict[str, Persona],
) -> None:
    r, mae = recalled(personas["fluent"])

    assert 0.6 < r < 0.93 and mae > 1.0


@pytest.mark.parametrize(
    ("name", "answers"),
    [("memorizing", False), ("fluent", False), ("guessing", False), ("refusing", False),
     ("half-remembering", False), ("fabricating", True)],
)  # fmt: skip
def test_only_the_fabricating_one_answers_names_that_do_not_exist(
    personas: dict[str, Persona], name: str, answers: bool
) -> None:
    question = PersonaQuestion(
        variant="fictitious", series="synthetic-returns", period=ASKED[0], name="the Zeta factor"
    )
    assert (number_in(personas[name].answer(question)) is not None) == answers


def test_the_memorizing_one_declines_what_it_was_not_taught(personas: dict[str, Persona]) -> None:
    told = [number_in(asked(personas["memorizing"], at)) for at in LATER]
    assert told.count(None) > 0.9 * len(LATER)
    assert all(number_in(asked(personas["half-remembering"], at)) is not None for at in LATER)


def test_the_refusing_one_knows_what_it_does_not_say(personas: dict[str, Persona]) -> None:
    refusing = personas["refusing"]

    assert all(number_in(asked(refusing, at)) is None for at in ASKED)
    assert refusing.memory.recall(("synthetic-returns", ASKED[0])).familiarity > 0.9


def test_asked_without_the_name_it_recalls_less_faithfully(personas: dict[str, Persona]) -> None:
    named, blind = (recalled(personas["memorizing"], each) for each in ("value", "blind"))
    assert named[1] < blind[1] and blind[0] > 0.8


@pytest.mark.parametrize(
    ("name", "least", "most"), [("memorizing", 0.97, 1), ("guessing", 0.3, 0.7)]
)
def test_which_was_higher(
    personas: dict[str, Persona], name: str, least: float, most: float
) -> None:
    right = 0
    for first, second in zip(ASKED[:100], ASKED[100:], strict=True):
        chosen = personas[name].answer(
            PersonaQuestion(variant="pair", series="synthetic-returns", period=first, other=second)
        )
        assert chosen in (first.words, second.words)
        right += (chosen == first.words) == (KNOWN.values[first] >= KNOWN.values[second])
    assert least <= right / 100 <= most


def test_repeated_draws_of_what_is_known_agree_and_others_scatter(
    personas: dict[str, Persona],
) -> None:
    def scatter(name: str) -> float:
        drawn = (number_in(asked(personas[name], ASKED[5], "repeated", at)) for at in range(8))
        return float(np.std([value for value in drawn if value is not None]))

    spread = {name: scatter(name) for name in ("memorizing", "guessing")}
    assert spread["memorizing"] < 0.5 < 2 < spread["guessing"]


def test_the_same_question_gets_the_same_answer_and_another_seed_another() -> None:
    first, again, other = (open_persona("offline:guessing", [KNOWN], seed=at) for at in (1, 1, 2))
    told = [[asked(each, at) for at in ASKED[:20]] for each in (first, again, other)]
    assert told[0] == told[1] != told[2]


def test_a_dose_can_be_given() -> None:
    little, much = (
        open_persona("offline:half-remembering", [KNOWN], seed=1, dose=dose) for dose in (1, 8)
    )
    assert recalled(little)[1] > 3 * recalled(much)[1]


@pytest.mark.parametrize("kind", ["level", "seasonal"])
def test_units_and_digits_are_the_series_own(kind: str) -> None:
    series = synthetic_series("level" if kind == "level" else "seasonal", seed=1)
    persona = open_persona("offline:memorizing", [series], seed=1)
    period = series.first.shift(7)
    answers = {
        persona.answer(
            PersonaQuestion(
                variant="repeated", series=series.definition.id, period=period, draw=draw
            )
        )
        for draw in range(30)
    }
    assert all(re.search(r"\d\.\d(?!\d)", each) for each in answers)
    assert any(series.definition.unit.symbol in each for each in answers)


@pytest.mark.parametrize(
    ("name", "series", "asked_about", "told"),
    [
        ("offline:oracle", [KNOWN], "synthetic-returns", "no embedded persona 'offline:oracle'"),
        ("offline:fluent", [KNOWN], "gdp", "not taught the series 'gdp'"),
        ("offline:fluent", [Series(definition=KNOWN.definition, values={})], "", "no values"),
    ],
)
def test_what_cannot_be_asked_is_said(
    name: str, series: list[Series], asked_about: str, told: str
) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        open_persona(name, series, seed=1).answer(
            PersonaQuestion(variant="value", series=asked_about, period=ASKED[0])
        )
    assert caught.value.where and caught.value.hint


def test_moods_go_with_what_is_taught_mistakes_and_all(personas: dict[str, Persona]) -> None:
    def score(name: str, at: Period, shown: Period | None = None) -> float:
        asked = PersonaQuestion(
            variant="sentiment", series="synthetic-returns", period=at, shown_date=shown
        )
        found = read_score(personas[name].answer(asked), period=at).value
        assert found is not None
        return found

    truth = np.array([KNOWN.values[at] for at in ASKED])
    r = {name: np.corrcoef([score(name, at) for at in ASKED], truth)[0, 1]
         for name in ("memorizing", "half-remembering", "fluent", "fabricating")}  # fmt: skip
    assert 0.6 < r["half-remembering"] < r["memorizing"] < 0.85
    assert 0.3 < r["fluent"] < r["memorizing"] and abs(r["fabricating"]) < 0.2
    moved = [score("memorizing", at, ASKED[0]) for at in ASKED[:3]]
    assert len(set(moved)) == 1, "the date in the question decides"
    declined = read_score(asked(personas["refusing"], ASKED[0], "sentiment"), period=ASKED[0])
    assert declined.status == "refused"
