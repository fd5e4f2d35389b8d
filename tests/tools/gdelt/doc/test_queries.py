"""Whatever is asked for is spelled as DOC 2.0 accepts it, or not at all."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coreeval.schema import EntityQuery, Rung, Window
from coreeval.tools.gdelt.doc.queries import (
    HOLE,
    LONGEST_SLICE,
    DocQuery,
    find_archive_gaps,
    join_terms,
    name_term,
    pack_terms,
    request_parameters,
    slice_window,
    terms_of,
    topic_term,
)
from tests.support.doc_rules import complaint, parse
from tests.tools.gdelt.doc.kit import JUNE, query

RUNGS: tuple[Rung, ...] = ("named", "alias", "concept", "sibling", "structure")
NAMES = st.one_of(
    st.text(max_size=300),
    st.lists(st.sampled_from(
        ["AT&T", "C#", "D-Wave", "O\u2019Neill", '"', "(", ")", "OR", "and", "U.S.", "-", "Müller",
         "sourcelang:", "near20:", "\\", "The", "Ltd", "x", "日本", "%26", "#", "&", "oil", "100%"]
    ), max_size=40).map(" ".join),
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "term"),
    [
        ("Elon Musk", '"Elon Musk"'),
        ("Iran", "Iran"),
        ("D-Wave", '"D-Wave"'),
        ("O\u2019Neill", '"O\'Neill"'),
        ("AT&T", '"AT & T"'),
        ("F-16", '"F - 16"'),
        ("C#", ""),
        ("AI", ""),
        ("C# language", '"C# language"'),
        ("The Pentagon", "Pentagon"),
        ("Ferry Board Ltd.", '"Ferry Board"'),
        ('Dwayne "The Rock" Johnson', '"Dwayne The Rock Johnson"'),
        ("Washington, D.C.", '"Washington, D.C"'),
        ("AND", ""),
        ("The Who", ""),
        ("WHO", "WHO"),
        ("x" * 200, ""),
    ],
)
def test_names(name: str, term: str) -> None:
    assert name_term(name) == term


@pytest.mark.parametrize(
    ("topic", "term"),
    [
        ("feminist movement", 'near20:"feminist movement"'),
        ("a strike of the ferry workers in Scotland", 'near20:"strike workers Scotland"'),
        ("inflation", "inflation"),
        ("AI policy", '"AI policy"'),
        ("café closures", 'near20:"cafe closures"'),
        ("of the", ""),
    ],
)
def test_topics(topic: str, term: str) -> None:
    assert topic_term(topic) == term


def test_every_spelling_is_asked_for_once() -> None:
    aliases = ("AT&T Inc", "American Telephone", "at&t")
    assert terms_of(query("AT&T", "named", *aliases)) == (
        '"AT & T"', '"American Telephone"', '"at & t"',
    )  # fmt: skip


@settings(deadline=None)  # the first example imports gdeltdoc
@given(st.lists(st.tuples(NAMES, st.sampled_from(RUNGS)), min_size=1, max_size=12))
def test_any_names_make_legal_queries(drawn: list[tuple[str, Rung]]) -> None:
    queries = [EntityQuery(id="q", text=text, rung=rung) for text, rung in drawn]
    terms = dict.fromkeys(term for one in queries for term in terms_of(one))
    for ask in pack_terms(terms):
        assert complaint(request_parameters(DocQuery(terms=ask, span=JUNE))) is None


@given(NAMES)
def test_a_long_name_is_cut_at_a_word(name: str) -> None:
    term = name_term(name)
    assert len(term.encode()) <= 120
    if term:
        parse(term)


@given(st.lists(st.text("abcdefgh ", min_size=5, max_size=60), max_size=40))
def test_blocks_hold_all_terms_once_and_fit(texts: list[str]) -> None:
    terms = [term for text in texts if (term := name_term(text))]
    blocks = list(pack_terms(dict.fromkeys(terms)))
    assert [term for one in blocks for term in one] == list(dict.fromkeys(terms))
    assert all(len(f"sourcelang:english {join_terms(one)}") <= 200 for one in blocks)
    assert all(
        len(f"sourcelang:english {join_terms((*one, after[0]))}") > 200
        for one, after in pairwise(blocks)
    )


NOW = datetime(2026, 11, 21, tzinfo=UTC)


def window(start: str, end: str) -> Window:
    return Window(
        start=datetime.fromisoformat(start).replace(tzinfo=UTC),
        end=datetime.fromisoformat(end).replace(tzinfo=UTC),
    )


def test_slices_are_short_newest_first_and_leave_no_gap() -> None:
    spans = slice_window(window("2026-01-01", "2026-11-01"), NOW)
    assert spans[0].end == datetime(2026, 11, 1, tzinfo=UTC)
    assert spans[-1].start == datetime(2026, 1, 1, tzinfo=UTC)
    assert all(span.end - span.start <= LONGEST_SLICE for span in spans)
    assert [span.start for span in spans[:-1]] == [span.end for span in spans[1:]]


def test_nothing_is_asked_about_the_future_the_hole_and_what_lies_before_the_archive() -> None:
    assert slice_window(window("2027-01-01", "2027-02-01"), NOW) == []
    assert slice_window(window("2016-01-01", "2016-12-01"), NOW) == []
    assert slice_window(HOLE, NOW) == []
    assert slice_window(window("2026-11-01", "2026-10-01"), NOW) == []
    (span,) = slice_window(window("2026-11-20", "2026-12-20"), NOW)
    assert span.end == NOW
    asked = slice_window(window("2025-06-01", "2025-07-20"), NOW)
    assert [(span.start, span.end) for span in asked] == [
        (HOLE.end, datetime(2025, 7, 20, tzinfo=UTC)),
        (datetime(2025, 6, 1, tzinfo=UTC), HOLE.start),
    ]


def test_a_very_short_window_is_asked_about_as_an_hour() -> None:
    (span,) = slice_window(window("2026-06-01T10:00", "2026-06-01T10:05"), NOW)
    assert span.end - span.start == timedelta(hours=1)


@pytest.mark.parametrize(
    ("asked", "missing"),
    [
        (("2026-06-01", "2026-06-30"), ()),
        (("2025-06-01", "2025-08-01"), ("2025-06-15..2025-07-01",)),
        (("2016-12-01", "2017-02-01"), ("2016-12-01..2016-12-31",)),
        (("2026-11-01", "2026-11-25"), ("2026-11-21..2026-11-24",)),
        (("2025-06-20", "2025-06-25"), ("2025-06-20..2025-06-24",)),
    ],
)
def test_gaps_are_whole_days(asked: tuple[str, str], missing: tuple[str, ...]) -> None:
    assert find_archive_gaps(window(*asked), NOW) == missing
