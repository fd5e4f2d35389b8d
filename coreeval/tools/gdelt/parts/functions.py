"""Functions for SQL: vectorised where a text is plain, this package's own Python where it is odd.

So the rules are written once, in Python, and the common case costs a tenth of it. `PLAIN` decides
which is which, and a test holds both against each other.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import duckdb
from duckdb.func import SPECIAL

from coreeval.tools.gdelt.dates import date_in_url
from coreeval.tools.gdelt.language import FOREIGN_WORDS, looks_english
from coreeval.tools.gdelt.screen import MACROS as SCREEN
from coreeval.tools.gdelt.titles import without_outlet
from coreeval.tools.gdelt.urls import canonical, host_of, is_front_page
from coreeval.tools.gdelt.words import key_of, plain_words

PLAIN = (
    "[ -%''-^`-~\u00c0-\u024f\u1e00-\u1eff\u2018\u2019\u201c\u201d\u2013\u2014\u2026\u20ac£¥°«»]*"
)
"""Texts of these characters that are ASCII without their accents are split by SQL: no `&`, which
may join letters, and no `_`."""
_MARKS = "[ -~\u2018\u2019\u201c\u201d\u2013\u2014\u2026\u20ac£¥°«»]*"
_MACROS = f"""
CREATE MACRO host_part(url) AS lower(split_part(url, '/', 3));
CREATE MACRO is_plain_url(url) AS
    regexp_full_match(url, 'https?://[A-Za-z0-9.-]+(?:/[!$-.0-;=@-Z_a-z~/]*)?')
    AND NOT contains(url, '/amp');
CREATE MACRO site_of(url) AS
    CASE WHEN is_plain_url(url) THEN regexp_replace(host_part(url), '^www\\.', '')
         ELSE host_of(url) END;
CREATE MACRO plain_page(url) AS
    regexp_replace(regexp_replace(host_part(url), '^www\\.', ''),
                   '^(?:www[0-9]?|amp|m|mobile)\\.', '')
    || rtrim(substr(url, length(split_part(url, '/', 1)) + length(host_part(url)) + 3), '/');
CREATE MACRO page_of(url) AS
    ('0x' || left(sha256(CASE WHEN is_plain_url(url) THEN plain_page(url)
                              ELSE canonical(url) END), 16))::UBIGINT;
CREATE MACRO day_named(url, crawled) AS
    CASE WHEN regexp_matches(url, '/[0-9]{{4}}/[0-9A-Za-z]{{1,3}}/[0-9]|[0-9]{{4}}-[0-9]{{2}}-')
         THEN date_in_url(url, crawled) END;
CREATE MACRO names_a_site(url) AS
    CASE WHEN regexp_matches(url, '^[^/]*//[^/?#]*/*(?:index[.](?:html|php))?/*(?:[?#]|$)')
         THEN is_front_page(url) ELSE false END;
CREATE MACRO headline(title) AS
    CASE WHEN regexp_matches(title, ' [|\u2013\u2014-] ') THEN without_outlet(title) ELSE title END;
CREATE MACRO may_be_english(title) AS
    CASE WHEN regexp_full_match(title, '{_MARKS}')
              AND regexp_matches(title, '(?:^|[^\\w-])[A-Za-z]+(?:$|[^\\w-])')
              AND NOT regexp_matches(title, '\\b(?:{"|".join(FOREIGN_WORDS)})\\b')
         THEN true ELSE looks_english(title) END;
CREATE MACRO is_plain(text) AS
    regexp_full_match(text, '{PLAIN}') AND regexp_full_match(strip_accents(text), '{_MARKS}')
    AND NOT regexp_matches(text, '[''\u2019][sS]?[\u00c0-\u024f\u1e00-\u1eff]')
    AND NOT regexp_matches(strip_accents(text), '[A-Za-z]\\.[A-Za-z]\\.');
CREATE MACRO is_plainest(text) AS
    regexp_full_match(text, '[ -%(-^`-~]*') AND NOT regexp_matches(text, '[A-Za-z]\\.[A-Za-z]\\.');
CREATE MACRO split_words(text) AS
    CASE WHEN is_plainest(text) THEN regexp_extract_all(text, '[A-Za-z0-9]+')
         WHEN is_plain(text) THEN regexp_extract_all(
        regexp_replace(strip_accents(text), '[''\u2019][sS]\\b', ' ', 'g'), '[A-Za-z0-9]+')
    ELSE plain_words(text) END;
"""


def add_functions(connection: duckdb.DuckDBPyConnection) -> None:
    """Add this module's macros to a connection that the caller closes."""
    for function, arguments, result in _PYTHON:
        name = function.__name__.lstrip("_")
        connection.create_function(name, function, arguments, result, null_handling=SPECIAL)
    connection.execute(_MACROS + SCREEN)


def _date_in_url(url: str, crawled_at: int) -> int | None:
    """Return `date_in_url` in epoch seconds."""
    day = date_in_url(url, datetime.fromtimestamp(crawled_at, tz=UTC))
    return int(day.timestamp()) if day else None


_PYTHON: tuple[tuple[Callable[..., Any], list[Any], str], ...] = (
    (canonical, ["VARCHAR"], "VARCHAR"),
    (host_of, ["VARCHAR"], "VARCHAR"),
    (without_outlet, ["VARCHAR"], "VARCHAR"),
    (looks_english, ["VARCHAR"], "BOOLEAN"),
    (is_front_page, ["VARCHAR"], "BOOLEAN"),
    (plain_words, ["VARCHAR"], "VARCHAR[]"),
    (key_of, ["VARCHAR"], "VARCHAR"),
    (_date_in_url, ["VARCHAR", "BIGINT"], "BIGINT"),
)
