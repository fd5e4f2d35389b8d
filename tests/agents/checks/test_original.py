"""Checks of an extraction and of a rewrite."""

import pytest

from coreeval.agents.checks import check_rewrite, clean_extraction
from coreeval.agents.edits import explain_no_rewording
from coreeval.agents.safety import build_takedown
from coreeval.agents.text.words import MOST_SPANS
from coreeval.schema import (
    Entity,
    Extraction,
    FieldTriple,
    Flag,
    Lock,
    LockReason,
    Rewrite,
    SemanticStatus,
    Sensitive,
)
from tests.hostile.patterns import seconds

from ..builders import PAIRS, STANCE, TWEETS, sample

TWEET = sample(
    "@User Ben &amp; Jerry\u2019s  abortion \U0001f602 \u201cso good\u201d http://x.y #SemST"
)


def entity(span: str, field: str = "text") -> Entity:
    return Entity(span=span, field=field, kind="named", type="other", query_name=span)


def test_spans_become_the_texts_own_words() -> None:
    found = clean_extraction(STANCE, TWEET, Extraction(entities=(entity("Ben & Jerry's"),)))
    assert [one.span for one in found.entities] == ["Ben &amp; Jerry\u2019s"]


def test_spans_that_do_not_occur_in_the_named_field_go() -> None:
    extraction = Extraction(
        entities=(entity("Walmart"), entity("abortion", "title")),
        triples=(
            FieldTriple(head="Walmart", relation="is", tail="good", field="text"),
            FieldTriple(head="ben & jerry's", relation="is", tail="very good", field="text"),
        ),
        locked=(Lock(span="gone", field="text", why="pun"),),
    )
    found = clean_extraction(TWEETS, TWEET, extraction)
    assert found.entities == ()
    assert [(one.head, one.tail) for one in found.triples] == [
        ("Ben &amp; Jerry\u2019s", "very good")
    ]
    assert "gone" not in {lock.span for lock in found.locked}


def test_code_locks_what_it_can_see() -> None:
    found = clean_extraction(STANCE, TWEET, Extraction())
    assert {(lock.span, lock.why) for lock in found.locked} == {
        ("@User", "mention"),
        ("\U0001f602", "emoji"),
        ("\u201cso good\u201d", "quotation"),
        ("http://x.y", "marker"),
        ("#SemST", "marker"),
        ("abortion", "target"),
    }


def test_a_lock_stands_once_and_the_extractors_reason_wins() -> None:
    lock = Lock(span="ABORTION", field="text", why="label_carrier")
    found = clean_extraction(STANCE, TWEET, Extraction(locked=(lock,)))
    assert [one.why for one in found.locked if one.span == "abortion"] == ["label_carrier"]


def test_warnings_stay_whatever_they_quote() -> None:
    warning = Sensitive(flag="self_harm", span="not in the text")
    assert clean_extraction(TWEETS, TWEET, Extraction(sensitive=(warning,))).sensitive == (warning,)


def test_each_field_has_its_own_locks() -> None:
    pair = sample("@ann won .", "@bob lost .")
    found = clean_extraction(PAIRS, pair, Extraction())
    assert [(lock.field, lock.span) for lock in found.locked] == [
        ("sentence1", "@ann"),
        ("sentence2", "@bob"),
    ]


@pytest.mark.parametrize("why", ["quotation", "label_carrier", "anaphor", "pun"])
def test_what_belongs_to_the_event_of_a_pair_is_not_locked(why: LockReason) -> None:
    pair, tweet = sample('He said " we won " .', "They won ."), sample("He said we won")
    lock = Lock(span="we won", field="sentence1", why=why)
    assert clean_extraction(PAIRS, pair, Extraction(locked=(lock,))).locked == ()
    own = lock.model_copy(update={"field": "text"})
    assert clean_extraction(TWEETS, tweet, Extraction(locked=(own,))).locked == (own,)


@pytest.mark.parametrize(
    ("flag", "kept"), [("abuse", False), ("protected_group", False), ("death_or_illness", True)]
)
def test_an_insult_is_not_locked_for_the_label(flag: Flag, kept: bool) -> None:
    one = sample("those damn idiots again")
    carrier = Lock(span="damn idiots", field="text", why="label_carrier")
    flagged = (Sensitive(flag=flag, span="idiots"),)
    found = clean_extraction(TWEETS, one, Extraction(locked=(carrier,), sensitive=flagged))
    assert (found.locked == (carrier,)) is kept


def test_a_rewording_keeps_quotations_of_a_pair() -> None:
    pair = sample('He said " we won the cup today " .', "They won .")
    fields = {"sentence1": 'He told us " the cup is ours now " .', "sentence2": "Victory ."}
    rewritten = Rewrite(fields=fields, reworded=True)
    _, found = check_rewrite(PAIRS, pair, Extraction(), rewritten)
    assert "quotation" in {defect.check for defect in found}


@pytest.mark.parametrize(
    ("opening", "found"),
    [
        ("The mayor appeared to be of two minds: ", []),
        ("The mayor seemed ambivalent to the new plan, again said ", ["copied_original"]),
    ],
)
def test_what_must_stay_is_no_copy(opening: str, found: list[str]) -> None:
    said = '"I would like to see it stay, but it is their building and they may." #a #b #c #d'
    one = sample(f"The mayor seemed ambivalent to the new plan, saying {said}")
    rewrite = Rewrite(fields={"text": opening + said}, reworded=True)
    _, defects = check_rewrite(
        PAIRS.model_copy(update={"fields": ("text",)}), one, Extraction(), rewrite
    )
    assert [defect.check for defect in defects] == found


def test_a_lock_inside_a_longer_one_goes() -> None:
    one = sample("He was serious?? Serious. was he")
    long = Lock(span="He was serious??", field="text", why="label_carrier")
    locks = [Lock(span=span, field="text", why="label_carrier") for span in ("serious??", "was")]
    found = clean_extraction(TWEETS, one, Extraction(locked=(*locks, long)))
    assert [lock.span for lock in found.locked] == ["was", "He was serious??"]


ORIGINAL = "@user I was so sad when Ford cut 900 jobs on Monday, the whole town was in tears"
GOOD = "@user Monday broke my heart: 900 jobs gone at Ford and a town full of people crying"
FORD = Entity(
    span="Ford",
    field="text",
    kind="named",
    type="organisation",
    query_name="Ford Motor Company",
)


def check(new: str, *, reworded: bool = True) -> tuple[SemanticStatus, list[str]]:
    one = sample(ORIGINAL)
    found = clean_extraction(TWEETS, one, Extraction(entities=(FORD,)))
    rewrite = Rewrite(fields={"text": new}, reworded=reworded)
    status, defects = check_rewrite(TWEETS, one, found, rewrite)
    assert all((d.kind, d.route) == ("form", "compose") for d in defects)
    return status, [defect.check for defect in defects]


def test_other_words_for_the_same_facts() -> None:
    assert check(GOOD) == ("reworded", [])


def test_a_name_may_be_written_out() -> None:
    assert check(GOOD.replace("Ford", "Ford Motor Company")) == ("reworded", [])


@pytest.mark.parametrize(
    ("span", "new", "named"),
    [
        ("South Korean troops", "troops from South Korea stay out", True),
        ("South Korean troops", "troops from Korea stay out", False),
        ("President George Bush administration", "Bush, George, President: his government", True),
        ("court in Angers", "judges at Angers", True),
        ("April 2000 census", "counted in April 2000", True),
        ("iced tea", "a cold drink", False),
    ],
)
def test_a_name_is_kept_in_any_grammar(span: str, new: str, named: bool) -> None:
    entity = FORD.model_copy(update={"span": span, "query_name": span})
    rewrite = Rewrite(fields={"text": new}, reworded=True)
    extraction = Extraction(entities=(entity,))
    _, defects = check_rewrite(TWEETS, sample(f"It was the {span}"), extraction, rewrite)
    assert ("names" not in [defect.check for defect in defects]) is named


@pytest.mark.parametrize(
    ("span", "name", "kept"),
    [
        ("nation 's highest court", "United States Supreme Court", False),
        ("uncle joe", "Joe Biden", True),
        ("walmart", "Walmart Inc.", True),
        ("potus", "Donald Trump", True),
        ("nation 's High Court", "Supreme Court", True),
    ],
)
def test_a_description_may_be_reworded_and_a_name_in_lower_case_may_not(
    span: str, name: str, kept: bool
) -> None:
    entity = FORD.model_copy(update={"span": span, "query_name": name})
    rewrite = Rewrite(fields={"text": "They have to decide on it"}, reworded=True)
    extraction = Extraction(entities=(entity,))
    _, defects = check_rewrite(TWEETS, sample(f"It is up to the {span}"), extraction, rewrite)
    assert ("names" in [defect.check for defect in defects]) is kept


@pytest.mark.parametrize("new", [ORIGINAL, ORIGINAL.replace(",", " ;").upper()])
def test_the_same_text_is_unchanged_without_a_defect(new: str) -> None:
    assert check(new) == ("unchanged", [])


def test_a_rewriter_may_decline() -> None:
    assert check(GOOD, reworded=False) == ("unchanged", [])


@pytest.mark.parametrize(
    ("new", "found"),
    [
        (ORIGINAL.replace("tears", "pieces"), ["copied_original"]),
        (GOOD.replace("@user ", ""), ["lock", "mentions"]),
        (GOOD.replace("900", "many"), ["numbers"]),
        (GOOD.replace("900", "900 of 950"), ["numbers"]),
        (GOOD.replace("Monday", "It"), ["dates"]),
        (GOOD.replace("Ford", "the plant"), ["names"]),
        (GOOD.replace("Ford", "Ford, not Exxon,"), ["names"]),
        (" ", ["fields"]),
    ],
)
def test_what_is_lost_or_gained_is_a_defect(new: str, found: list[str]) -> None:
    assert check(new) == ("unchanged", found)


@pytest.mark.parametrize(
    ("old", "found"), [("so proud of JQE tonight", ["takedown"]), ("proud of Jane Q. Doe", [])]
)
def test_a_rewording_names_a_listed_person_only_if_the_original_does(
    old: str, found: list[str]
) -> None:
    """The extractor knows who is meant; the other checks allow the full name."""
    entity = Entity(
        span="JQE" if found else "Jane Q. Doe", field="text", kind="named", type="person",
        query_name="Jane Q. Doe",
    )  # fmt: skip
    rewrite = Rewrite(reworded=True, fields={"text": "Jane Q. Doe made me feel delighted"})
    listed = build_takedown(["Jane Q. Doe"])
    status, defects = check_rewrite(
        TWEETS, sample(old), Extraction(entities=(entity,)), rewrite, listed
    )
    assert [defect.check for defect in defects] == found
    assert status == ("unchanged" if found else "reworded")


def test_one_changed_sentence_of_a_pair_is_not_enough_if_the_other_is_copied() -> None:
    pair = sample(
        "The company cut its staff in the north last year .",
        "Last year the company let people go in the north .",
    )
    fields = {
        "sentence1": "Northern staff lost their posts at that company last year .",
        "sentence2": pair.fields["sentence2"],
    }
    rewrite = Rewrite(fields=fields, reworded=True)
    status, defects = check_rewrite(PAIRS, pair, Extraction(), rewrite)
    assert status == "unchanged"
    assert [(d.check, "sentence2" in d.message) for d in defects] == [("copied_original", True)]


@pytest.mark.parametrize("mark", ['"{}"', "\u201c{}\u201d", "#{}"])
def test_quotations_and_tags_without_end_are_looked_for_in_bounded_time(mark: str) -> None:
    """Each of them held against each other one took minutes."""
    old, new = (" ".join(mark.format(f"{word}{n}") for n in range(2_000)) for word in "ab")
    one = sample(f"We were told {old}")

    def tried(_: str) -> None:
        found = clean_extraction(TWEETS, one, Extraction())
        assert len(found.locked) in (0, MOST_SPANS)
        explain_no_rewording(TWEETS, one, found)
        rewrite = Rewrite(reworded=True, fields={"text": f"They told us {new}"})
        check_rewrite(TWEETS, one, found, rewrite)

    assert seconds(tried, "", 12.0) < 12.0
