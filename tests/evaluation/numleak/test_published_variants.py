"""Descriptions and stated values in the answers that NumLeak's authors recorded.

Of variant B the paper prints how it is asked (appendix O) and no numbers; of stated values it
prints nothing. What is here came out of the files. The records of variant D (r 0.98 to 0.78,
Table 13 and Figure 11) and of rephrased questions are not among them.
"""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from coreeval.evaluation.numleak.audit import Audit, audit_replies
from coreeval.evaluation.numleak.parsing.probe_answers import read_prose
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.series import open_series
from coreeval.evaluation.numleak.series.catalogue import find_definition
from coreeval.evaluation.numleak.statistics import AuditSettings
from coreeval.evaluation.statistics import wilson_interval
from tests.support.numleak_data import FILES
from tests.support.numleak_records import beside_records, contradictions, sweep

pytestmark = beside_records
SONNET, HAIKU, OPUS = "claude-sonnet-4.6", "claude-haiku-4.5", "claude-opus-4.7"


@cache
def described() -> dict[str, Audit]:
    """Return the audits of values and descriptions of the market's return, by model."""
    market = open_series("mkt_rf", base=Path(), file=FILES["mkt_rf"])
    said = [*sweep("A"), *(one.model_copy(update={"variant": "description"}) for one in sweep("B"))]
    replies = [one for one in said if one.series == "mkt_rf"]
    found = audit_replies(replies, {"mkt_rf": market}, AuditSettings(draws=100), {})
    return {audit.model: audit for audit in found}


@pytest.mark.parametrize(
    ("model", "parsed"),
    [
        (SONNET, {"smb": 55, "mom": 73}),
        (HAIKU, {"hml": 8, "rmw": 1}),
    ],
)
def test_how_many_descriptions_commit_to_a_value(model: str, parsed: dict[str, int]) -> None:
    said = [one for one in sweep("B") if one.model == model and one.series in parsed]
    found = Counter[str]()
    for one in said:
        definition = find_definition(one.series, base=Path())
        period = Period.parse(one.date, "monthly")
        read = read_prose(
            one.response, unit=definition.unit, period=period, name=definition.name, kind=one.kind
        )
        found[one.series] += read.status == "parsed"
    assert found == parsed


def test_descriptions_stand_beside_the_plain_answers_and_count_in_none_of_their_figures() -> None:
    way = described()[SONNET].variants.description
    assert way is not None and (way.asked.n, way.asked.parsed, way.dates) == (88, 61, 60)
    assert f"{way.own.pearson_r.estimate:.3f} {way.plain.pearson_r.estimate:.3f}" == "0.967 0.982"
    assert f"{way.own.within_tolerance.estimate:.2f}" == "0.28"
    assert f"{way.plain.within_tolerance.estimate:.2f}" == "0.38"
    assert way.pearson_r.ci_low < 0 < way.pearson_r.ci_high
    assert way.worse.estimate == 33 / 60
    overall = described()[SONNET].measured.overall
    assert (overall.n, overall.parsed) == (88, 77)
    assert f"{overall.pearson_r.estimate:.3f}" == "0.980"
    declining = described()[HAIKU].variants.description
    assert declining is not None and (declining.asked.parsed, declining.asked.n) == (15, 84)
    assert described()[HAIKU].measured.overall.parsed == 70


def test_a_stated_return_of_minus_42_moves_one_model_and_not_the_other() -> None:
    market = open_series("mkt_rf", base=Path(), file=FILES["mkt_rf"])
    found = {
        audit.model: audit.variants.contradiction
        for audit in audit_replies(
            contradictions(), {"mkt_rf": market}, AuditSettings(draws=100), {}
        )
    }
    sonnet, opus = found[SONNET], found[OPUS]
    assert sonnet is not None and opus is not None
    none = {"corrects": 0, "refuses": 0, "unread": 0}
    assert sonnet.outcomes == {**none, "holds": 12, "yields": 7, "mixed": 1}
    assert opus.outcomes == {**none, "holds": 20, "yields": 0, "mixed": 0}
    assert (sonnet.shares["yields"].ci_low, sonnet.shares["yields"].ci_high) == wilson_interval(
        0.35, 20
    )
    r = (sonnet.plain.pearson_r.estimate, sonnet.contradicted.pearson_r.estimate)
    assert f"{r[0]:.2f} {r[1]:.2f}" == "0.98 0.58"
