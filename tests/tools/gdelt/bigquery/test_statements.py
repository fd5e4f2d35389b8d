"""Bounds are checked before anything is sent, and every form of a word is sent."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coreeval.config.knowledge import Feed
from coreeval.schema import EntityQuery, Window
from coreeval.tools.gdelt.bigquery.statements import (
    ScanTooLarge,
    WordForm,
    WordSet,
    build_statement,
    check_bounds,
    list_word_forms,
    list_word_sets,
)
from coreeval.tools.gdelt.words import STOP_WORDS, search_keys, stem
from tests.support.bigquery.engine import Engine
from tests.support.bigquery.wire import values
from tests.tools.gdelt.bigquery.conftest import HASTE  # noqa: F401 - Google's packages are there
from tests.tools.gdelt.bigquery.news import GKG, JUNE

ASKED = [WordSet("mary smith", 1.0)]


@pytest.mark.parametrize("feed", ["gkg", "gal"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("@first_day", "(SELECT MIN(x) FROM UNNEST([1]) AS x)"),
        ("@end_day", "CURRENT_TIMESTAMP()"),
        (" < @end_day", " < @end_day OR TRUE OR date < @end_day"),
        ("WHERE", "WHERE TRUE OR"),
        ("gdeltv2.g", "gdeltv2.events_g"),
        ("FROM `gdelt-bq", "FROM `gdelt-bq.gdeltv2.gkg`, `gdelt-bq"),
        ("FROM `gdelt-bq", "FROM gdelt-bq.gdeltv2.gkg, `gdelt-bq"),
    ],
)
def test_a_statement_without_both_bounds_is_refused(feed: Feed, old: str, new: str) -> None:
    good = build_statement(feed, JUNE, ASKED, list_word_forms(ASKED))
    assert old in good.sql
    with pytest.raises(ScanTooLarge):
        check_bounds(replace(good, sql=good.sql.replace(old, new)))


def test_bounds_that_hold_no_day_are_refused() -> None:
    with pytest.raises(ScanTooLarge, match="contain no day"):
        build_statement(
            "gal", Window(start=JUNE.end, end=JUNE.start), ASKED, list_word_forms(ASKED)
        )


def test_only_the_days_between_the_bounds_are_read() -> None:
    from coreeval.tools.gdelt.bigquery.jobs import to_parameters

    engine = Engine()
    engine.add(gkg=GKG)

    def scanned(first: int, last: int) -> int:
        window = Window(
            start=datetime(2026, 6, first, 5, tzinfo=UTC), end=datetime(2026, 6, last, tzinfo=UTC)
        )
        asked = build_statement("gkg", window, ASKED, list_word_forms(ASKED))
        named = values([each.to_api_repr() for each in to_parameters(asked)])
        assert len(str(named["first_batch"])) == len(str(named["end_batch"])) == 14
        return engine.scanned(asked.sql, named)

    assert scanned(1, 5) == 0
    assert 0 < scanned(20, 22) < scanned(10, 22) == scanned(9, 30)


def test_what_is_asked_for_twice_is_sent_once() -> None:
    queries = [
        EntityQuery(id="1", text="Mary Smith"),
        EntityQuery(id="2", text="Smith, Mary", aliases=("Dr. Mary Smith",)),
        EntityQuery(id="3", text="Mary Smith", rung="concept"),
        EntityQuery(id="4", text="Carla Espinoza Gutiérrez"),
    ]
    assert [ask.words for ask in list_word_sets(queries)] == [
        "mary smith",
        "mary smith",
        "carla espinoza gutierrez",
        "carla espinoza guti",
    ]
    assert [ask.least for ask in list_word_sets(queries)] == [1.0, 0.3, 1.0, 1.0]


def test_words_that_are_names_in_capitals_only() -> None:
    assert list_word_forms([WordSet("US", 1.0)]) == [WordForm("us", "US")]


@given(st.text(alphabet="abeghiklnorstuyz", min_size=1, max_size=9),
       st.sampled_from(["", "s", "es", "ies", "ing", "ings", "ting", "us"]))  # fmt: skip
def test_every_form_of_a_word_is_sent(base: str, ending: str) -> None:
    word = base + ending
    if word not in STOP_WORDS:
        assert search_keys(word) == [stem(word)]
        assert word in [form.form for form in list_word_forms([WordSet(stem(word), 1.0)])]
