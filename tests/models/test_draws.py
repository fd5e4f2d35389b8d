"""The draws of a question: what is shown again, and the remedy for each kind of bad answer."""

from collections.abc import Sequence

import pytest

from coreeval.models.draws import LONGER, Draw
from coreeval.tools.stores.call_records import CallRecord

QUESTION = ({"role": "system", "content": "You label."}, {"role": "user", "content": "a text"})
FIRST = Draw(QUESTION, 100)


def said(text: str) -> CallRecord:
    return CallRecord(key="k", draw=0, role="r", request="{}", response=text, valid=False)


def chain(*reasons: str) -> list[Draw]:
    """Return the draws of a chain whose answers are bad for these reasons."""
    draws = [FIRST]
    for left, reason in zip(range(len(reasons), 0, -1), reasons, strict=True):
        draws.append(draws[-1].after(said("bad"), reason, left=left))
    return draws


def test_the_first_draw_is_the_plain_question() -> None:
    assert (FIRST.messages, FIRST.max_tokens, FIRST.number) == (list(QUESTION), 100, 0)
    assert FIRST.plain and not FIRST.looser


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("refusal", "declined"),
        ("truncated", "cut off"),
        ("empty", "was empty"),
        ("label is missing", "cannot be used: label is missing"),
    ],
)
def test_a_bad_answer_is_shown_with_what_is_wrong(reason: str, told: str) -> None:
    again = FIRST.after(said("my answer"), reason, left=2)
    assert again.messages[:2] == list(QUESTION)
    answer, wrong = again.messages[2:]
    assert answer == {"role": "assistant", "content": "my answer"}
    assert wrong["role"] == "user" and told in wrong["content"]
    assert wrong["content"].endswith("Tries left: 2.")
    assert not again.plain and again.number == 1


def test_turns_alternate_and_do_not_pile_up() -> None:
    roles = [message["role"] for message in chain("empty", "empty")[2].messages]
    assert roles == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize(("text", "shown"), [("", "(no answer)"), ("x" * 9999, "x" * 2000)])
def test_what_is_shown_again_is_neither_empty_nor_long(text: str, shown: str) -> None:
    assert FIRST.after(said(text), "empty", left=1).messages[2]["content"] == shown


@pytest.mark.parametrize(
    ("reasons", "limits"),
    [
        (["truncated", "truncated", "truncated"], [100, 200, 200, 200]),
        (["empty", "truncated"], [100, 100, 200]),
        (["truncated", "empty"], [100, 200, 200]),
        (["refusal", "invalid"], [100, 100, 100]),
    ],
)
def test_what_was_cut_off_may_be_longer_once(reasons: Sequence[str], limits: list[int]) -> None:
    assert LONGER == 2
    assert [draw.max_tokens for draw in chain(*reasons)] == limits


@pytest.mark.parametrize(
    ("reasons", "looser"),
    [
        (["bad", "bad", "bad"], [False, False, True, True]),
        (["empty", "empty"], [False, False, True]),
        (["truncated", "bad"], [False, False, True]),
        (["bad", "truncated"], [False, False, False]),
        (["bad", "refusal"], [False, False, False]),
    ],
)
def test_a_second_answer_that_is_none_is_asked_for_less_strictly(
    reasons: Sequence[str], looser: list[bool]
) -> None:
    assert [draw.looser for draw in chain(*reasons)] == looser


def test_the_next_chain_begins_with_the_plain_question_and_counts_on() -> None:
    draw = chain("truncated", "bad")[-1].anew()
    assert draw == Draw(QUESTION, 100, number=3)
    assert draw.plain and (draw.max_tokens, draw.looser) == (100, False)


def test_no_two_draws_of_a_chain_are_the_same_request() -> None:
    sent = [str(draw.messages) for draw in chain("empty", "empty", "empty")]
    assert len(set(sent)) == 4
