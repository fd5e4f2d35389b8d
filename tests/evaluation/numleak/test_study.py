"""From answers to verdicts, and the document of them."""

import json
from dataclasses import replace

import pytest

from coreeval.evaluation.numleak.document import as_json, audits_document, numleak_document
from coreeval.evaluation.numleak.replies import Reply
from coreeval.evaluation.numleak.study import Audit, audited
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
    (one,) = audited(slips(knows("a", tides), 1), {"tides": tides}, SETTINGS, {})
    assert one.verdict == "memorized"
    assert "1 of 60 answers lies far beyond" in one.reasons[-1] and "940 for" in one.reasons[-1]
    assert one.measured.overall.mae.estimate > 10, "what is reported has it"


def test_slips_make_no_memory_and_many_unmake_none() -> None:
    tides = series()
    guessing, wild = guesses("a", tides), slips(knows("b", tides), 6)
    for verdict, replies in (("fabricating", slips(guessing, 3)), ("memorized", wild)):
        (one,) = audited(replies, {"tides": tides}, SETTINGS, {})
        assert one.verdict == verdict


def test_why_answers_are_unparsed_is_told() -> None:
    tides = series()
    abroad = [each.model_copy(update={"response": "31 degrees"}) for each in knows("a", tides)]
    (one,) = audited(abroad, {"tides": tides}, SETTINGS, {})
    assert one.notes[-1] == "why answers are unparsed: a number in another unit (60)"


def test_siblings_are_those_of_the_family_that_the_same_model_was_asked_about() -> None:
    one, two, strange = series(), series("winds", 4), series("rocks", 5, family=None)
    known = {each.definition.id: each for each in (one, two, strange)}
    replies = [*knows("a", one), *knows("a", two), *knows("a", strange), *knows("b", one)]
    tides, winds, rocks, alone = audited(replies, known, SETTINGS, {})
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
