"""Whatever is asked for is spelled as DOC 2.0 accepts it, or not at all."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coreeval.schema import EntityQuery, Rung
from coreeval.tools.gdelt.doc.filters import parameters
from coreeval.tools.gdelt.doc.packing import Ask, block, packed
from coreeval.tools.gdelt.doc.terms import name_term, terms_of, topic_term
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
    for ask in packed(terms):
        assert complaint(parameters(Ask(terms=ask, span=JUNE))) is None


@given(NAMES)
def test_a_long_name_is_cut_at_a_word(name: str) -> None:
    term = name_term(name)
    assert len(term.encode()) <= 120
    if term:
        parse(term)


@given(st.lists(st.text("abcdefgh ", min_size=5, max_size=60), max_size=40))
def test_blocks_hold_all_terms_once_and_fit(texts: list[str]) -> None:
    terms = [term for text in texts if (term := name_term(text))]
    blocks = list(packed(dict.fromkeys(terms)))
    assert [term for one in blocks for term in one] == list(dict.fromkeys(terms))
    assert all(len(f"sourcelang:english {block(one)}") <= 200 for one in blocks)
    assert all(
        len(f"sourcelang:english {block((*one, after[0]))}") > 200
        for one, after in pairwise(blocks)
    )
