"""Queries for DOC 2.0: terms that it accepts, in few requests, for spans that it covers.

Its rules are in research: gdelt §1. gdeltdoc's Filters build the query, without network access.
gdeltdoc's client is not used: it sends the query unencoded (`AT&T` is cut at the `&`), has no
timeout, and reads a notice of throttling as the number 5 (research: gdelt §6).
"""

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from coreeval.errors import KnowledgeError
from coreeval.schema import EntityQuery, Window
from coreeval.tools.extras import require_extra
from coreeval.tools.gdelt.sync.feeds import HOLES
from coreeval.tools.gdelt.words import TITLES_AND_SUFFIXES, plain_words, search_keys

SHORTEST_WORD = 3
SHORTEST_PHRASE = 5
"""The fewest characters between quotation marks; any phrase of four is refused."""
LONGEST_TERM = 120
"""The most bytes of a term, so that it fits into a request; longer names are cut at a word."""
NEAR = 20
"""The number of words within which a topic's words must occur (own choice; GDELT's examples have 10
and 20)."""
TOPIC_WORDS = 3
"""The most words of a topic in a query, the longest ones, because they are rare (own choice).
Hardly any article contains more of them close together."""
OPERATORS = frozenset({"and", "or", "not"})

_REFUSED = re.compile(r"[^\w&#+\-.,'/%$ ]|_")
"""Characters that are removed even from a quoted phrase."""
_SIGN = re.compile(r"(?:(?<! ) +)?([^\w ]) *")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\u00b4`", "'"))


def terms_of(query: EntityQuery) -> tuple[str, ...]:
    """Return a query's spellings as DOC 2.0 terms; none if all of them are too short."""
    spell = name_term if query.rung in ("named", "alias") else topic_term
    spelled = (spell(text) for text in (query.text, *query.aliases))
    return tuple(dict.fromkeys(term for term in spelled if term))


def name_term(name: str) -> str:
    """Return a name as a word or a quoted phrase, without forms of address and suffixes."""
    words = _trim(_clean(name).split())
    if len(words) == 1 and words[0].isalnum():
        return _word(words[0])
    return _fit(words, _phrase)


def topic_term(text: str) -> str:
    """Return a topic as words near each other, or as a phrase or a word if it is short."""
    words = list(dict.fromkeys(word for word in plain_words(_clean(text)) if search_keys(word)))
    if len(words) == 1 and words[0].isalnum():
        return _word(words[0])
    long = [word for word in words if len(word) >= SHORTEST_WORD and word.isalnum()]
    if len(long) < 2:
        return _fit(words, _phrase)
    rarest = sorted(long, key=len, reverse=True)[:TOPIC_WORDS]
    return _fit([word for word in long if word in rarest], _near)


def _clean(text: str) -> str:
    """Keep only letters, digits and the signs of names: AT&T, C#, F-16, O'Neill, U.S., and/or."""
    return _REFUSED.sub(" ", unicodedata.normalize("NFKC", text).translate(_APOSTROPHES))


def _trim(words: list[str]) -> list[str]:
    """Drop words at both ends that are too general to search: The Pentagon, Ferry Board Ltd."""
    telling = [at for at, word in enumerate(words) if _is_telling(word)]
    return words[telling[0] : telling[-1] + 1] if telling else []


def _is_telling(word: str) -> bool:
    return any(key not in TITLES_AND_SUFFIXES for key in search_keys(word))


def _fit(words: Sequence[str], spell: Callable[[Sequence[str]], str]) -> str:
    """Return a term of as many of the words as fit."""
    spelled = (spell(words[:count]) for count in range(len(words), 0, -1))
    return next((term for term in spelled if len(term.encode()) <= LONGEST_TERM), "")


def _word(word: str) -> str:
    short, long = len(word) < SHORTEST_WORD, len(word.encode()) > LONGEST_TERM
    return "" if short or long or word.casefold() in OPERATORS else word


def _phrase(words: Sequence[str]) -> str:
    """Quote words, adding spaces to short ones as in DOC's own titles: `AT & T`, `F - 16`."""
    text = " ".join(words).lstrip("-.,'/&+#% ").rstrip("-.,'/& ")
    if len(text) < SHORTEST_PHRASE:
        text = _SIGN.sub(r" \1 ", text).strip()
    return f'"{text}"' if len(text) >= SHORTEST_PHRASE else ""


def _near(words: Sequence[str]) -> str:
    return f'near{NEAR}:"{" ".join(words)}"' if len(words) > 1 else _word(words[0])


FIRST_DAY = datetime(2017, 1, 1, tzinfo=UTC)
"""The first day of the archive; earlier starts are refused: `Invalid query start date.`"""
HOLE = Window(start=HOLES[0].start, end=HOLES[0].end)
"""A period for which GDELT recorded nothing."""


def split_by_archive(window: Window, now: datetime) -> Iterator[Window]:
    """Yield the spans of a window that the archive can contain, newest first."""
    start, end = max(window.start, FIRST_DAY), min(window.end, now)
    for one in (
        Window(start=max(start, HOLE.end), end=end),
        Window(start=start, end=min(end, HOLE.start)),
    ):
        if one.start < one.end:
            yield one


def find_archive_gaps(window: Window, now: datetime) -> tuple[str, ...]:
    """Return the whole days of a window that the archive cannot contain, both ends included."""
    spans = sorted(split_by_archive(window, now), key=lambda span: span.start)
    edges = [window.start, *itertools.chain.from_iterable((s.start, s.end) for s in spans)]
    missing = zip(edges[::2], [*edges[1::2], window.end], strict=True)
    return tuple(days for start, end in missing if (days := _whole_days(start, end)))


def _whole_days(start: datetime, end: datetime) -> str:
    one = timedelta(days=1)
    first = (start.astimezone(UTC) + one - timedelta(microseconds=1)).date()
    last = end.astimezone(UTC).date() - one
    return f"{first}..{last}" if first <= last else ""


LANGUAGE = "english"
LONGEST_QUERY = 200
"""The most bytes of a query: 213 characters were accepted, 290 refused (research: gdelt §1)."""
LONGEST_BLOCK = LONGEST_QUERY - len(f" sourcelang:{LANGUAGE}")
LONGEST_SLICE = timedelta(days=30)
"""The longest span of one request; a request for a year was silently answered for three months
(research: gdelt §1)."""
SHORTEST_SLICE = timedelta(hours=1)
"""The shortest span of one request; shorter ones are refused: `Timespan is too short.`"""


@dataclass(frozen=True, kw_only=True)
class DocQuery:
    """A request to send, and its result so far."""

    terms: tuple[str, ...]
    span: Window
    depth: int = 0
    """The number of times that the answer was full and its rest requested again."""
    throttled: int = 0
    failed: int = 0
    rejected: str = ""
    """The service's message when it refused a larger request with these terms; "" if it did not."""
    empty: bool = False
    """Whether an earlier answer was empty, which may be a mistake."""


def join_terms(terms: Sequence[str]) -> str:
    """Return a query for articles with any of the terms; only ORs are put in parentheses."""
    return terms[0] if len(terms) == 1 else f"({' OR '.join(terms)})"


def pack_terms(terms: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield the terms in order, in blocks that fit into one query each."""
    filling: tuple[str, ...] = ()
    for term in terms:
        if filling and len(join_terms((*filling, term)).encode()) > LONGEST_BLOCK:
            yield filling
            filling = ()
        filling = (*filling, term)
    if filling:
        yield filling


def slice_window(window: Window, now: datetime) -> list[Window]:
    """Return the parts of a window that can be requested, newest first."""
    spans = list[Window]()
    for span in split_by_archive(window, now):
        end = span.end
        while end > span.start:
            start = max(span.start, end - LONGEST_SLICE)
            spans.append(Window(start=min(start, end - SHORTEST_SLICE), end=end))
            end = start
    return spans


MOST_ROWS = 250
"""The most rows of an answer; DOC 2.0 has no second page (research: gdelt §1)."""
_FIXED = {"mode": "artlist", "format": "json", "sort": "datedesc"}
"""Newest first: if a list is full, the missing articles are older than its last row."""


def require_gdeltdoc() -> None:
    """Check that the package is installed before sending any request.

    Raises:
        KnowledgeError: the package is not installed.
    """
    with require_extra(
        "doc",
        "the doc backend",
        where="knowledge.backends",
        otherwise="remove doc from the list",
        error=KnowledgeError,
    ):
        import gdeltdoc  # type: ignore[import-untyped] # noqa: F401 - it takes a second


def request_parameters(ask: DocQuery) -> Mapping[str, str]:
    """Return the parameters of a request, not yet encoded.

    The terms are passed to gdeltdoc as they are to be sent. Its Filters' `keyword` would quote a
    single word (rejected if it has fewer than five letters), leave a dash unquoted, and put
    parentheses around a list of one term (rejected).
    """
    from gdeltdoc import Filters

    filters = Filters(
        near=f"{join_terms(ask.terms)} ",
        language=LANGUAGE,
        start_date=ask.span.start.astimezone(UTC),
        end_date=ask.span.end.astimezone(UTC),
        num_records=MOST_ROWS,
    )
    others = [part for part in filters.query_params if part.startswith("&")]
    query = [part for part in filters.query_params if not part.startswith("&")]
    # Filters puts its operators before `near`; DOC 2.0 accepts any order.
    pairs = (other[1:].partition("=") for other in others)
    return {"query": "".join(query).strip(), **{key: value for key, _, value in pairs}, **_FIXED}
