"""Audits of recorded answers, from the replies to the verdict and its document."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from coreeval.cli.numleak_output import audits_lines
from coreeval.evaluation.numleak.audit import (
    Audit,
    as_json,
    audit_replies,
    audits_document,
    infer_series,
    numleak_document,
)
from coreeval.evaluation.numleak.audit_page import write_page
from coreeval.evaluation.numleak.defences.effects import defence_replies_document
from coreeval.evaluation.numleak.leak.signals import Signal
from coreeval.evaluation.numleak.periods import Frequency, Period
from coreeval.evaluation.numleak.plots import draw_audits
from coreeval.evaluation.numleak.replies import Reply, Variant
from coreeval.evaluation.numleak.series import Series
from coreeval.evaluation.numleak.statistics import AuditSettings
from tests.evaluation.numleak.audits import (
    CUTOFF,
    HOSTILE,
    MONTHS,
    SETTINGS,
    audits,
    guesses,
    knows,
    series,
)

METRICS = ("parse_rate", "pearson_r", "mae", "within_tolerance", "sign_accuracy")


@pytest.fixture(scope="module")
def found() -> tuple[Audit, ...]:
    return audits()


def test_each_model_has_its_verdict_on_each_series(found: tuple[Audit, ...]) -> None:
    assert [(one.series, one.verdict) for one in found] == [
        ("tides", "memorized"),
        ("winds", "fabricating"),
        ("tides", "refusing"),
    ]
    knowing, _, refusing = found
    assert (knowing.cutoff, refusing.cutoff, refusing.model) == (CUTOFF, None, HOSTILE)
    assert {point.stratum for point in knowing.points} == {"pre", "near", "post"}
    assert set(knowing.measured.baselines) > {"constant"}, "the whole series is compared with"


def slips(replies: list[Reply], count: int) -> list[Reply]:
    """Return the answers with so many slips of the point."""
    wild = [each.model_copy(update={"response": "940%"}) for each in replies[:count]]
    return [*wild, *replies[count:]]


def test_one_slip_among_many_answers_does_not_hide_a_memory() -> None:
    tides = series()
    (one,) = audit_replies(slips(knows("a", tides), 1), {"tides": tides}, SETTINGS, {})
    assert one.verdict == "memorized"
    assert "far outside" in one.reasons[-1] and "940 for" in one.reasons[-1]
    assert one.measured.overall.mae.estimate > 10, "what is reported has it"


def test_slips_make_no_memory_and_many_unmake_none() -> None:
    tides = series()
    guessing, wild = guesses("a", tides), slips(knows("b", tides), 6)
    for verdict, replies in (("fabricating", slips(guessing, 3)), ("memorized", wild)):
        (one,) = audit_replies(replies, {"tides": tides}, SETTINGS, {})
        assert one.verdict == verdict


def test_why_answers_are_unparsed_is_told() -> None:
    tides = series()
    abroad = [each.model_copy(update={"response": "31 degrees"}) for each in knows("a", tides)]
    (one,) = audit_replies(abroad, {"tides": tides}, SETTINGS, {})
    assert one.notes[-1] == "reasons for unparsed answers: a number in another unit (60)"


def test_siblings_are_those_of_the_family_that_the_same_model_was_asked_about() -> None:
    one, two, strange = series(), series("winds", 4), series("rocks", 5, family=None)
    known = {each.definition.id: each for each in (one, two, strange)}
    replies = [*knows("a", one), *knows("a", two), *knows("a", strange), *knows("b", one)]
    tides, winds, rocks, alone = audit_replies(replies, known, SETTINGS, {})
    assert set(tides.measured.cross_series) == {"winds"}
    assert set(winds.measured.cross_series) == {"tides"}
    assert not rocks.measured.cross_series and not alone.measured.cross_series
    assert all(each.measured.p_adjusted >= each.measured.p_value for each in (tides, alone))


def test_the_contract_of_the_document(found: tuple[Audit, ...]) -> None:
    document = audits_document(found, SETTINGS)
    assert set(document) == {"series", "settings", "notes"}
    assert document["settings"] == {"draws": 200, "seed": 1, "level": 0.95}
    for one in document["series"]:
        assert {"model", "series", "n", "parsed", "nulls", "verdict", "reasons"} <= set(one)
        for metric in METRICS:
            assert {"estimate", "ci_low", "ci_high"} <= set(one[metric])
    knowing, _, refusing = document["series"]
    assert (knowing["n"], knowing["parsed"], refusing["parsed"]) == (60, 60, 0)
    assert knowing["cutoff"] == "2018-06-30" and refusing["cutoff"] is None
    assert knowing["within_tolerance"]["estimate"] == 1
    assert refusing["pearson_r"]["estimate"] is None
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_the_document_is_a_function_of_the_answers() -> None:
    tides = series()
    replies = [*knows("a", tides), *guesses("b", tides)]
    first = numleak_document(replies, {"tides": tides}, SETTINGS, {"a": CUTOFF})
    assert numleak_document(iter(replies), {"tides": tides}, SETTINGS, {"a": CUTOFF}) == first
    other = numleak_document(replies, {"tides": tides}, replace(SETTINGS, seed=2), {"a": CUTOFF})
    mae, otherwise = (document["series"][1]["mae"] for document in (first, other))
    assert mae["estimate"] == otherwise["estimate"] and mae != otherwise
    assert numleak_document([], {}, SETTINGS, {})["series"] == []


def test_answers_that_cannot_be_counted_are_listed_with_their_reason() -> None:
    tides = series()
    strange = knows("a", tides)[0].model_copy(update={"date": "1999-12"})
    undated = strange.model_copy(update={"date": "last May"})
    pair = Reply(model="a", series="tides", date=str(MONTHS[0]), other_date=str(MONTHS[0]),
                 variant="pair", response="2000-01")  # fmt: skip
    replies = [*knows("a", tides), strange, undated, pair]
    (one,) = numleak_document(replies, {"tides": tides}, SETTINGS, {})["series"]
    assert one["n"] == 60
    assert [(bad["date"], bad["variant"]) for bad in one["left_out"]] == [
        ("1999-12", "value"), ("last May", "value"), ("2000-01", "pair"),
    ]  # fmt: skip
    assert "2000-01 to 2019-12" in one["left_out"][0]["reason"]


def test_json_has_no_number_that_is_none() -> None:
    said = as_json({1.5: (float("nan"), float("inf"), 2), "day": [True, None, "x"]})
    assert said == {"1.5": [None, None, 2], "day": [True, None, "x"]}


def records(*dates: str, truths: tuple[float | None, ...], text: str = "5") -> list[Reply]:
    return [
        Reply(model="m", series="Mkt-RF (US)", date=day, truth=truth, response=text)
        for day, truth in zip(dates, truths, strict=True)
    ]


@pytest.mark.parametrize(
    ("dates", "frequency"),
    [
        (("1999", "2001"), "annual"),
        (("1999-Q1", "2001-Q4"), "quarterly"),
        (("1999-02", "200104"), "monthly"),
        (("1999-02-01", "2001-04-01"), "monthly"),
        (("1999-02-28", "2001-04-30"), "monthly"),
        (("1999-02-01", "2001-04-02"), "daily"),
    ],
)
def test_the_frequency_is_how_dates_are_written(dates: tuple[str, str], frequency: str) -> None:
    found = infer_series("x", records(*dates, truths=(1.0, 2.0)), file="f")
    assert found and found.definition.frequency == frequency
    assert list(found.values.values()) == [1.0, 2.0]


def test_a_line_with_another_date_does_not_spoil_the_others() -> None:
    said = records("1999-02", "last May", "2001-04", truths=(1.0, 9.0, 2.0))
    found = infer_series("x", said, file="f")
    assert found and list(found.values.values()) == [1.0, 2.0]


def test_what_is_implied_is_said() -> None:
    said = records("2001-01", "2000-01", "2002-01", truths=(-4.25, 4.5, None), text="+1.2 %")
    found = infer_series("Mkt-RF (US)", said, file="said.jsonl")
    assert found
    one = found.definition
    assert (one.id, one.unit.name, one.sign, one.decimals) == ("mkt-rf-us", "percent", "signed", 2)
    assert one.tolerances == (0.22,)
    assert [str(each) for each in found.values] == ["2000-01", "2001-01"]
    assert "tolerance is 0.22, one twentieth of the standard deviation" in found.notes[0]
    plain = infer_series("x", records("2000", "2001", truths=(1.0, 2.0)), file="f")
    assert plain and plain.definition.unit.symbol == "" and plain.definition.sign == "positive"


def test_a_definition_is_kept_where_there_is_one() -> None:
    tides = series()
    found = infer_series(
        "tides", records("2000-01", truths=(1.0,)), file="f", definition=tides.definition
    )
    assert found and found.definition is tides.definition and not found.notes


@pytest.mark.parametrize(
    ("dates", "truths"),
    [
        (("2000-01", "2000-02"), (None, None)),
        (("2000-01", "2000-02"), (3.0, 3.0)),
        (("2000-01", "2000-02"), (0.0, 2e-323)),
        (("2000-01", "last May"), (1.0, 2.0)),
        (("2000-13", "2000-14"), (1.0, 2.0)),
    ],
)
def test_nothing_is_made_up(dates: tuple[str, str], truths: tuple[float | None, ...]) -> None:
    assert infer_series("x", records(*dates, truths=truths), file="f") is None


NO_NUMBER = re.compile(r"(?<![\w-])[+-]?(?:nan|inf)(?![\w-])")
ONE_MOVE = [50.0 if at == 3 else 1.0 for at in range(30)]
VALUES = {
    "one date": [3.0],
    "two dates": [1.0, 2.0],
    "never moves": [2.0] * 30,
    "only zeros": [0.0] * 30,
    "moves once": ONE_MOVE,
}
SAID = {
    "the truth": "{:.2f}%",
    "its opposite": "{:.2f}% below zero",
    "one number": "1.00%",
    "no number": "what a month",
    "a refusal": "I cannot say.",
}


def report(folder: Path, replies: list[Reply], about: Series) -> str:
    """Return all that a report says, in words and on its page."""
    known = {about.definition.id: about}
    rows = {str(month): float(at % 3) for at, month in enumerate(about.values)}
    tone = Signal(name="tone", path=Path("tone.csv"), rows=rows)
    found = audit_replies(replies, known, SETTINGS, {}, [tone])
    document = {
        **audits_document(found, SETTINGS),
        "defences": defence_replies_document(replies, (), known, {}),
        **{"backtest": None, "bad_rows": [], "plots": [], "page": None},
    }
    json.dumps(document, allow_nan=False)
    page = write_page(folder / "page.html", found, document)
    return "\n".join([*audits_lines(document), page.read_text("utf-8")])


def asked(about: Series, said: str, variants: tuple[Variant, ...]) -> list[Reply]:
    return [
        Reply(model="m", series="tides", date=str(month), variant=variant,
              response=said.format(value))
        for variant in variants for month, value in about.values.items()
    ]  # fmt: skip


def short(values: list[float]) -> Series:
    return Series(definition=series().definition, values=dict(zip(MONTHS, values, strict=False)))


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("values", VALUES)
def test_a_report_of_hardly_anything_is_made_without_a_number_that_is_none(
    tmp_path: Path, values: str, said: str
) -> None:
    about = short(VALUES[values])
    replies = asked(about, SAID[said], ("value", "sentiment", "placebo"))
    assert NO_NUMBER.findall(report(tmp_path, replies, about)) == []


def test_a_gain_that_rests_on_one_date_has_no_interval(tmp_path: Path) -> None:
    about = short(ONE_MOVE)
    text = report(tmp_path, asked(about, "-{:.2f}%", ("value",))[:24], about)
    assert "times (no interval, n 23) that of a baseline that predicts" in " ".join(text.split())


@pytest.mark.parametrize("variant", ["sentiment", "placebo", "blind", "repeated", "description"])
def test_without_a_question_for_a_value_there_is_a_report_and_no_verdict(
    tmp_path: Path, variant: Variant
) -> None:
    about = short([2.0, 4.0])
    text = report(tmp_path, asked(about, "1%", (variant,)), about)
    assert (
        "The model was not asked for the value on any date." in text
        and NO_NUMBER.findall(text) == []
    )


def test_pictures_of_hardly_anything_are_drawn(tmp_path: Path) -> None:
    about = short([3.0])
    found = audit_replies(asked(about, "3.00%", ("value",)), {"tides": about}, SETTINGS, {})
    assert len(draw_audits(tmp_path, found)) == 3


Floats = NDArray[np.float64]


def slow_series(seed: int = 4) -> Series:
    """Return a slow series with one decimal, as a rate of unemployment."""
    steps = np.random.default_rng(seed).normal(0, 0.15, len(MONTHS))
    values = np.round(6 + np.cumsum(steps), 1).tolist()
    definition = series().definition.model_copy(update={"decimals": 1})
    return Series(definition=definition, values=dict(zip(MONTHS, values, strict=True)))


def audit(
    about: Series, said: Mapping[Period, float], decimals: int, *, cutoff: bool = False
) -> Audit:
    replies = [
        Reply(model="m", series="tides", date=str(month), response=f"{value:.{decimals}f}")
        for month, value in said.items()
    ]
    cutoffs = {"m": CUTOFF if cutoff else None}
    (found,) = audit_replies(replies, {"tides": about}, SETTINGS, cutoffs)
    return found


def asked_dates_only(about: Series, said: Mapping[Period, float], decimals: int) -> Audit:
    """Return the audit with the truth in the answers, and no other values."""
    few = {month: about.values[month] for month in said}
    return audit(replace(about, values=few), said, decimals)


def test_a_year_known_by_its_mean_is_not_memorized_if_only_the_asked_values_are_known() -> None:
    verdicts = []
    for seed in range(5):
        about = slow_series(seed)
        known = np.array(list(about.values.values()))
        means = dict(zip(MONTHS, np.repeat(known.reshape(-1, 12).mean(axis=1), 12), strict=True))
        dates = sorted(np.random.default_rng(seed).choice(len(MONTHS), 40, replace=False))
        found = asked_dates_only(about, {MONTHS[at]: float(means[MONTHS[at]]) for at in dates}, 1)
        verdicts.append(found.verdict)
        assert any("fewer than half of the periods" in note for note in found.notes)
        if found.verdict == "inconclusive":
            assert "the values of most periods are unknown" in " ".join(found.reasons)
    assert set(verdicts) <= {"inconclusive", "fluent"}


@pytest.mark.parametrize("frequency", ["annual", "weekly"])
def test_a_level_of_every_other_period_is_not_memorized(frequency: Frequency) -> None:
    start = Period.parse("1900-01-01", frequency)
    verdicts = set[str]()
    for seed in range(4):
        rng = np.random.default_rng(seed)
        level = 50 + np.cumsum(rng.choice([-1, 0, 0, 1], 62))
        dates = [start.shift(2 * n) for n in range(62)]
        definition = series().definition.model_copy(update={"decimals": 0, "frequency": frequency})
        about = Series(
            definition=definition, values=dict(zip(dates, map(float, level), strict=True))
        )
        near = map(float, level + rng.choice([-1, 0, 0, 1], 62))
        verdicts.add(audit(about, dict(zip(dates, near, strict=True)), 0).verdict)
    assert verdicts <= {"inconclusive", "fluent"}


@pytest.mark.parametrize("about", [series(), slow_series()], ids=["noise", "slow"])
def test_exact_digits_are_memory_if_only_the_asked_values_are_known(about: Series) -> None:
    said = {month: about.values[month] for month in MONTHS[::5]}
    assert asked_dates_only(about, said, about.definition.decimals).verdict == "memorized"


def test_no_shift_is_named_if_only_the_asked_values_are_known() -> None:
    about = series()
    dates = MONTHS[::5]
    said = {month: about.values[before] for before, month in pairwise(dates)}
    found = asked_dates_only(about, said, 2)
    assert found.verdict not in ("memorized", "partly_memorized") and not found.basis.shift


def test_last_known_values_after_the_cutoff_do_not_unmake_memory() -> None:
    about = slow_series()
    before = [month for month in MONTHS if month.months_after(CUTOFF) < -7][::7][:30]
    after = [month for month in MONTHS if month.months_after(CUTOFF) > 7][:10]
    last = about.values[before[-1]]
    said = {month: about.values[month] for month in before} | dict.fromkeys(after, last)
    found = audit(about, said, 1, cutoff=True)
    assert len(before) == 30 and found.verdict == "memorized"
    assert found.basis.strata == ("pre",) and found.basis.dates == 30
    assert any("dates up to six months" in each for each in found.reasons)
    assert found.measured.overall.n == 40, "numbers are over all that was asked"


@pytest.mark.parametrize("about", [series(), slow_series()], ids=["noise", "slow"])
def test_a_quarter_by_heart_is_partly_memorized(about: Series) -> None:
    rng, values = np.random.default_rng(2), list(about.values.values())
    guesses = rng.normal(np.mean(values), np.std(values), len(MONTHS))
    said = {
        month: about.values[month] if at % 4 == 0 else float(guesses[at])
        for at, month in enumerate(MONTHS)
        if at % 5 == 0
    }
    found = audit(about, said, about.definition.decimals)
    assert found.verdict == "partly_memorized"
    assert 0.25 <= found.judged.exactness.share.estimate < 0.32, "and a guess hits now and then"
    assert (
        "of the answers match a published value to the last digit (p < 0.0001)" in found.reasons[0]
    )


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("lag", [-1, 3])
def test_shifted_memory_is_named(lag: int, noisy: bool) -> None:
    about = series()
    rng, known = np.random.default_rng(6), list(about.values.values())
    said = {
        month: known[at + lag] + (float(rng.normal(0, 0.2)) if noisy else 0.0)
        for at, month in enumerate(MONTHS)
        if at % 5 == 0 and 0 <= at + lag < len(MONTHS)
    }
    found = audit(about, said, 2)
    assert found.verdict == "memorized" and found.basis.shift == lag
    side = "before" if lag < 0 else "after"
    assert any(f"{abs(lag)} period{'' if lag == -1 else 's'} {side}" in r for r in found.reasons)


@pytest.mark.parametrize(("factor", "decimals"), [(100.0, 0), (0.01, 4), (1000.0, 0)])
def test_rescaled_memory_is_named(factor: float, decimals: int) -> None:
    about = series()
    said = {month: factor * about.values[month] for month in MONTHS[::5]}
    found = audit(about, said, decimals)
    assert found.verdict == "memorized" and found.basis.factor == factor
    assert any(f"{factor:g} times the published values" in reason for reason in found.reasons)
    (document,) = audits_document([found], AuditSettings())["series"]
    assert document["basis"]["factor"] == factor and document["basis"]["shift"] == 0


def test_an_error_worse_than_the_means_is_not_fluent() -> None:
    about = series()
    rng, known = np.random.default_rng(1), np.array(list(about.values.values()))
    wild = 0.35 * known + rng.normal(0, 1.6 * np.std(known), len(known))
    said = {month: float(wild[at]) for at, month in enumerate(MONTHS)}
    found = audit(about, said, 2)
    r = found.measured.overall.pearson_r
    assert r.ci_low > 0 and found.measured.baselines["constant"].gain.estimate < 0
    assert found.verdict in ("no_recall", "inconclusive")
