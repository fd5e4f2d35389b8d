"""Planned spans are put in, locked ones stay, and the new text is about as long."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coreeval.agents.edits import (
    LengthLimits,
    count_free_words,
    keeps_lock,
    length_limits,
    list_changed_spans,
    substitute,
)
from coreeval.schema import (
    Entity,
    Evidence,
    EvidenceDepth,
    Extraction,
    Lock,
    LockReason,
    Plan,
    Replacement,
    Statement,
    Task,
)

from .builders import PAIRS, TWEETS, replacement, sample, statement


def put(text: str, *changes: Replacement) -> str:
    plan = Plan(
        decision="use",
        statements=(statement("Gold tops $4,500."), statement("Oil falls.")),
        replacements=changes,
    )
    return substitute(sample(text), plan)["text"]


def swap(old: str, new: str, tail: str = "same", new_tail: str = "same") -> Replacement:
    return replacement((old, "is", tail), (new, "is", new_tail))


@pytest.mark.parametrize(
    ("text", "old", "new", "result"),
    [
        ("We love Ford today", "Ford", "Apple", "We love Apple today"),
        ("art is a party", "art", "music", "music is a party"),
        ("it FEELS: BITCOIN up", "bitcoin", "gold", "it FEELS: GOLD up"),
        ("my bitcoin is up", "Bitcoin", "Gold", "my gold is up"),
        ("Bitcoin is up. bitcoin!", "bitcoin", "gold", "Gold is up. gold!"),
        ("I sold GM shares", "GM", "Ford", "I sold Ford shares"),
        ("Wal-Mart 's profit", "Wal-Mart's profit", "Target's loss", "Target's loss"),
        ("Tom &amp; Co won", "Tom & Co", "Ann & Co", "Ann & Co won"),
        ("nothing here", "Ford", "Apple", "nothing here"),
    ],
)
def test_spans_are_replaced_as_whole_words_in_their_case(
    text: str, old: str, new: str, result: str
) -> None:
    assert put(text, swap(old, new)) == result


def test_the_longest_span_goes_first_and_nothing_twice() -> None:
    changes = (swap("York", "Rome"), swap("New York", "York"))
    assert put("from York to New York", *changes) == "from Rome to York"


def test_heads_and_tails_of_one_triple() -> None:
    change = replacement(("Ford", "cuts", "900 jobs"), ("Chevron", "cuts", "800 jobs"))
    assert put("so Ford cuts 900 jobs", change) == "so Chevron cuts 800 jobs"


def test_an_insertion_is_the_statement_once() -> None:
    twice = (replacement(None, ("Gold", "tops", "$4,500")),) * 2
    assert put("I cry", *twice) == "I cry Gold tops $4,500."


def test_only_the_named_field_changes() -> None:
    pair = sample("Ford fell .", "Ford rose .")
    change = swap("Ford", "Apple").model_copy(update={"field": "sentence2"})
    plan = Plan(decision="use", statements=(statement("Apple rises"),), replacements=(change,))
    assert substitute(pair, plan) == {"sentence1": "Ford fell .", "sentence2": "Apple rose ."}


def test_an_unchanged_end_is_no_pair() -> None:
    change = replacement(("My Birthday", "is", "today"), ("my birthday", "is", "hot"))
    assert list_changed_spans(Plan(decision="use", replacements=(change,)), "text") == [
        ("today", "hot")
    ]


@given(text=st.text(), old=st.text(), new=st.text())
def test_any_text_survives_any_plan(text: str, old: str, new: str) -> None:
    result = put(text, swap(old, new))
    assert result == text or old.strip()


@given(st.text())
def test_a_plan_without_replacements_changes_nothing(text: str) -> None:
    assert put(text) == text


@pytest.mark.parametrize(
    ("span", "why", "text", "kept"),
    [
        ("This solution", "anaphor", "Part of this solution is new", True),
        ("so glad", "label_carrier", "So glad it is over", True),
        ("NOT", "label_carrier", "It is not", False),
        ("I hate", "label_carrier", "i hate it", False),
        ("He said", "quotation", "what he said", False),
        ("Climate", "target", "the CLIMATE", True),
    ],
)
def test_ordinary_words_may_begin_a_sentence_now(
    span: str, why: LockReason, text: str, kept: bool
) -> None:
    assert keeps_lock(text, Lock(span=span, field="text", why=why)) is kept


TOLD = Plan(
    decision="use",
    statements=(
        Statement(
            text="Gold tops 4,500 dollars", evidence_ids=("e",), quote="Gold", modality="asserted"
        ),
    ),
)


@pytest.mark.parametrize(
    ("task", "count", "limits"),
    [
        (TWEETS, 8, LengthLimits(8, 4, 12)),
        (TWEETS, 40, LengthLimits(40, 30, 50)),
        (PAIRS, 40, LengthLimits(40, 24, 56)),
        (TWEETS, 2, LengthLimits(2, 1, 6)),
    ],
)
def test_lengths_of_tweets_and_sentences(task: Task, count: int, limits: LengthLimits) -> None:
    assert length_limits(task, "word " * count) == limits


def test_a_sentence_need_not_be_longer_than_its_news() -> None:
    assert length_limits(PAIRS, "word " * 40, TOLD) == LengthLimits(40, 4, 56)
    assert length_limits(PAIRS, "word " * 5, TOLD) == LengthLimits(5, 1, 9)
    assert length_limits(TWEETS, "word " * 40, TOLD) == LengthLimits(40, 30, 50)


def test_passages_of_articles_with_enough_words_keep_a_long_premise_long() -> None:
    def report(words: int, depth: EvidenceDepth) -> Evidence:
        return Evidence(
            id="e",
            url="https://example.org",
            domain="example.org",
            title="A title",
            snippet="word " * words,
            published_at=datetime(2026, 5, 1, tzinfo=UTC),
            published_precision="exact",
            origin="test",
            depth=depth,
        )

    whole, short = LengthLimits(40, 24, 56), LengthLimits(40, 4, 56)
    text = "word " * 40
    assert length_limits(PAIRS, text, TOLD, [report(25, "article"), report(20, "article")]) == whole
    assert length_limits(PAIRS, text, TOLD, [report(30, "article")]) == short
    assert length_limits(PAIRS, text, TOLD, [report(80, "description")]) == short


def named(span: str, field: str = "text") -> Entity:
    return Entity(span=span, field=field, kind="named", type="other", query_name=span)


@pytest.mark.parametrize(
    ("text", "free"),
    [
        ("@ann #winning https://a.b/c \U0001f602", 0),
        ("@ann so happy #blessed \U0001f602\U0001f602 !!", 2),
        ("Ford won't say \u201cso good\u201d again", 3),
        ("Ford said it cost 900 dollars", 5),
    ],
)
def test_words_that_must_stay_are_not_free(text: str, free: int) -> None:
    topic = named("dollars").model_copy(update={"kind": "topic"})
    extraction = Extraction(entities=(named("Ford"), topic))
    assert count_free_words(sample(text).fields, extraction) == free


def test_the_free_words_of_a_pair_are_counted_together() -> None:
    pair = sample("Ford won .", "Ford lost @bob .")
    entities = (named("Ford", "sentence1"), named("Ford", "sentence2"))
    locked = (Lock(span="lost", field="sentence1", why="pun"),)
    assert count_free_words(pair.fields, Extraction(entities=entities, locked=locked)) == 2
