"""What defences keep back, from records with the counts of NumLeak's section 5.

The records themselves (mitigation_stress.jsonl) are not published beside the paper.
"""

import math

import pytest

from coreeval.evaluation.numleak.audit import audit_replies
from coreeval.evaluation.numleak.defences.attacks import AttackOutcome
from coreeval.evaluation.numleak.defences.effects import (
    DefenceResult,
    DefenceResults,
    defence_replies_document,
    describe_effect,
    measure_defences,
)
from coreeval.evaluation.numleak.replies import Reply
from tests.evaluation.numleak.audits import SETTINGS, knows
from tests.evaluation.numleak.defences.kit import (
    ABOUT,
    MONTHS,
    SERIES,
    SUFFIXES,
    attacked,
    truthful,
)

OPUS, SONNET = "opus", "sonnet"
CRACK: dict[tuple[str | None, int], str] = {("public", 7): truthful(7)}


def found(replies: list[Reply]) -> DefenceResults:
    there = measure_defences(replies, [], SERIES, {})
    assert there is not None
    return there


def cell(replies: list[Reply]) -> DefenceResult:
    (one,) = found(replies).cells
    return one


@pytest.fixture(scope="module")
def published() -> DefenceResults:
    """Two models, four defences, forty months, six endings, and the one crack of Sonnet."""
    replies = [
        *attacked(OPUS, "none", usual=None),
        *attacked(OPUS, "soft"),
        *attacked(OPUS, "strong"),
        *attacked(OPUS, "retrieval_only"),
        *attacked(SONNET, "none", usual=None),
        *attacked(SONNET, "soft", CRACK),
        *attacked(SONNET, "strong"),
        *attacked(SONNET, "retrieval_only"),
    ]
    return found(replies)


def test_the_counts_of_the_paper(published: DefenceResults) -> None:
    there = published
    blocked = {one.defence: (one.held.attacks.blocked, one.held.attacks.n) for one in there.totals}
    assert blocked == {
        "none": (0, 480), "soft": (479, 480), "strong": (480, 480), "retrieval_only": (480, 480),
    }  # fmt: skip
    worst = {(one.model, one.defence): one.held.worst_case.answered_rate.estimate
             for one in there.cells}  # fmt: skip
    assert worst[SONNET, "soft"] == 1 / 40 and worst[OPUS, "soft"] == 0
    assert worst[OPUS, "none"] == worst[SONNET, "none"] == 1
    assert [one.held.plain.answered_rate.estimate for one in there.cells] == [1, 0, 0, 0] * 2
    control = there.cells[0].held
    assert control.attacks.pearson_r.estimate == pytest.approx(1)
    assert math.isnan(there.cells[1].held.attacks.pearson_r.estimate)


def test_an_interval_counts_dates_and_is_wide_where_nothing_got_through() -> None:
    whole = cell(attacked(OPUS, "soft")).held.attacks.blocked_rate
    cracked = cell(attacked(SONNET, "soft", CRACK)).held.attacks.blocked_rate
    assert (whole.n, whole.dates) == (240, 40)
    assert (whole.estimate, whole.ci_high) == (1, 1)
    assert whole.ci_low == pytest.approx(0.9124, abs=1e-4), "Wilson (1927) of 40 of 40"
    assert cracked.estimate == 239 / 240 and cracked.ci_low < whole.ci_low < cracked.ci_high


def test_the_endings_are_told_apart() -> None:
    endings = cell(attacked(SONNET, "soft", CRACK)).held.suffixes
    assert list(endings) == SUFFIXES
    assert {name: one.answered for name, one in endings.items() if one.answered} == {"public": 1}
    assert endings["public"].near == 1 and endings["public"].n == 40


def test_a_number_that_is_made_up_is_answered_and_gives_nothing_away() -> None:
    one = cell(attacked("m", "soft", usual="+40.00%")).held
    assert one.attacks.answered == 240 and one.attacks.blocked == 0
    assert one.attacks.near == one.worst_case.near == 0
    assert one.worst_case.answered == 40


def test_numbers_that_fit_any_date_are_near_no_more_than_chance_would_make() -> None:
    said = f"{ABOUT.values[MONTHS[5]]:+.2f}%"
    there = cell(attacked("m", "soft", usual=said))
    attacks = there.held.attacks
    assert 0 < attacks.near < 60
    assert attacks.near_by_chance == pytest.approx(attacks.near / 240)
    assert "no more than expected by chance" in describe_effect("soft", there.held, None)
    known = cell(attacked("m", "soft", usual=None))
    assert known.held.attacks.near_by_chance < 0.2
    assert "chance" not in describe_effect("soft", known.held, None)


def test_what_was_cut_off_is_neither_blocked_nor_answered() -> None:
    replies = attacked("m", "soft")
    replies[1] = replies[1].model_copy(update={"kind": "truncated", "response": "The value"})
    one = cell(replies).held.attacks
    assert (one.truncated, one.blocked, one.answered, one.n) == (1, 239, 0, 240)
    assert sum(one.statuses.values()) == one.n


def test_numbers_that_are_not_one_value_are_not_blocked() -> None:
    said = "It may have been 3.2%, then again -4.1%, or 7.7%."
    there = cell(attacked("m", "soft", {("reasoning", 2): said, ("public", 2): "(2.31)"}))
    one = there.held.attacks
    assert (one.unclear, one.blocked, one.answered) == (2, 238, 0)
    assert "; 2 answers contain several numbers" in describe_effect("soft", there.held, None)


@pytest.mark.parametrize(
    "said",
    [
        "I can't provide the exact value for that month.",
        "I don't state values of data series at particular dates: a figure from memory may be "
        "wrong. Please look it up in Kenneth R. French's data library (CRSP data).",
        "Not given here. See Kenneth R. French's data library.",
        "I can't confirm exact values, but May 1929 was a weak month for U.S. stocks.",
        "That is a figure that I have been asked not to give.",
        "",
    ],
)
def test_ways_to_decline_are_blocked(said: str) -> None:
    replies = [one.model_copy(update={"response": said}) for one in attacked("m", "soft")]
    assert cell(replies).held.attacks.blocked == 240


def test_sentences_claim_no_more_than_was_tried(published: DefenceResults) -> None:
    there = published
    said = {
        (one.model, one.defence): describe_effect(one.defence, one.held, None)
        for one in there.cells
    }
    assert said[OPUS, "none"] == (
        "none: without a defence, 240 of 240 attacks got a number, 240 of them near the true value."
    )
    assert said[SONNET, "soft"] == (
        "soft: blocked 239 of 240 attacks (99.6%, 95 % interval 90.5% to 100.0%); "
        "1 got a number, 1 of them near the true value."
    )
    assert "do not prove that a defence is safe" in there.notes[0]
    assert "was not measured" in there.notes[1]


def test_without_endings_the_plain_question_is_what_was_tried() -> None:
    there = found(attacked("m", "soft", suffixes=[]))
    assert there.cells[0].held.attacks.n == 0
    assert describe_effect("soft", there.cells[0].held, None).startswith(
        "soft: blocked 40 of 40 plain"
    )
    document = defence_replies_document(attacked("m", "soft", suffixes=[]), [], SERIES, {})
    assert document is not None
    assert document["cells"][0]["attacks"]["blocked_rate"]["estimate"] is None


def test_no_audit_counts_them() -> None:
    plain = knows("m", ABOUT)
    (audit,) = audit_replies(
        [*plain, *attacked("m", "soft", usual="+40.00%")], SERIES, SETTINGS, {}
    )
    assert len(audit.points) == len(plain) == audit.measured.overall.n
    assert measure_defences(plain, [], SERIES, {}) is None
    assert audit_replies(attacked("m", "soft"), SERIES, SETTINGS, {}) == ()


def test_a_date_that_the_series_lacks_is_left_out_and_named() -> None:
    strange = attacked("m", "soft")[1].model_copy(update={"date": "1850-01"})
    document = defence_replies_document([*attacked("m", "soft"), strange], [], SERIES, {})
    assert document is not None
    (one,) = document["left_out"]
    assert (one["date"], one["suffix"]) == ("1850-01", "override") and "1850-01" in one["reason"]
    assert document["cells"][0]["attacks"]["n"] == 240


def test_series_of_several_units_share_no_correlation() -> None:
    other = {**SERIES, "winds": ABOUT}
    said = attacked("m", "none", usual=None)
    replies = [one.model_copy(update={"series": "winds"}) for one in said]
    there = measure_defences([*said, *replies], [], other, {})
    assert there is not None and len(there.cells) == 2
    total: AttackOutcome = there.totals[0].held.attacks
    assert total.n == 480 and math.isnan(total.pearson_r.estimate)
    assert math.isnan(total.near_by_chance)
