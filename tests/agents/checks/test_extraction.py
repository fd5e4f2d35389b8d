from coreeval.agents.checks import clean_extraction
from coreeval.schema import Entity, Extraction, FieldTriple, Lock, Sensitive

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
    pair = sample('He said " we won " .', "They won .")
    found = clean_extraction(PAIRS, pair, Extraction())
    assert [(lock.field, lock.span) for lock in found.locked] == [("sentence1", '" we won "')]


def test_a_lock_inside_a_longer_one_goes() -> None:
    one = sample("He was serious?? Serious. was he")
    long = Lock(span="He was serious??", field="text", why="label_carrier")
    locks = [Lock(span=span, field="text", why="label_carrier") for span in ("serious??", "was")]
    found = clean_extraction(TWEETS, one, Extraction(locked=(*locks, long)))
    assert [lock.span for lock in found.locked] == ["was", "He was serious??"]
