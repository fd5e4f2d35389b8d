"""What DOC 2.0 makes of a query, by the rules and in the words that were recorded of it.

The sources are beside each rule in research: gdelt §1. Where reports differ the stricter one
counts, so that a query which passes here passes there.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

from coreeval.tools.gdelt.rows import parse_stamp

TOO_LONG = "Your query was too short or too long."
ILLEGAL = (
    "One or more of your keywords contained an illegal character. To use a dash in a word, place it"
    ' in quotes like "f-16".'
)
SHORT_PHRASE = "The specified phrase is too short."
SHORT_WORD = "Your search contained a keyword that was too short."
TOO_COMMON = "One or more of your keywords were too short, too long or too common: ({})"
LOOSE_OR = "Queries containing OR'd terms must be surrounded by ()."
ONLY_ORS = "Parentheses may only be used around OR'd statements."
CLAUSES = "One or more of your parenthetical clauses had an error in it."
TIMESPAN = "Timespan is too short."
START_DATE = "Invalid query start date."
LONGEST = 213
"""Characters of the longest query that was seen to be accepted."""

Row = Mapping[str, object]
Test = Callable[["Page"], bool]
_TOKEN = re.compile(
    r'\(|\)|(?P<operator>-?[a-z]+\d*):(?P<value>"[^"]*"|[^\s()"]+)|"[^"]*"|[^\s()]+'
)


class Refused(Exception):
    """The service's own words."""


@dataclass(frozen=True)
class Page:
    """An article as the service searches it."""

    row: Row
    seen: datetime
    language: str
    text: str
    """Words of title and text in lower case, signs apart, a space round each."""

    def has(self, wanted: tuple[str, ...]) -> bool:
        """Tell whether the words stand there in a row."""
        return f" {' '.join(wanted)} " in self.text


@dataclass
class _Parsed:
    all_of: list[Test] = field(default_factory=list)
    any_of: list[Test] | None = None
    """The members of the OR block that is open."""
    after_or: bool = True


def tokens(text: str) -> tuple[str, ...]:
    """Split as the service does: every sign is a word of its own, quotation marks are lost."""
    return tuple(re.findall(r'\w+|[^\w\s"]', text.casefold()))


def pages(rows: Iterable[Row]) -> list[Page]:
    """Make articles searchable, newest first; what one was found by stands for its text."""
    made = []
    for row in rows:
        seen = parse_stamp(str(row.get("seendate") or row.get("date") or ""))
        told = " ".join(str(row.get(key) or "") for key in ("title", "company"))
        language = str(row.get("language", "")).casefold()
        if seen:
            made.append(Page(row, seen, language, f" {' '.join(tokens(told))} "))
    return sorted(made, key=lambda page: page.seen, reverse=True)


def complaint(parameters: Mapping[str, str]) -> str | None:
    """Return why a request is refused, if it is."""
    try:
        parse(parameters.get("query", ""))
        _check_span(parameters)
    except Refused as refused:
        return str(refused)
    return None


def parse(query: str) -> Callable[[Page], bool]:
    """Return what tells whether an article answers a query.

    Raises:
        Refused: the query is against the rules.
    """
    if not query.strip() or len(query.encode()) > LONGEST:
        raise Refused(TOO_LONG)
    if query.count('"') % 2:
        raise Refused(ILLEGAL)
    parsed = _Parsed()
    for token in _TOKEN.finditer(query):
        _take(parsed, token)
    if parsed.any_of is not None:
        raise Refused(CLAUSES)
    return lambda article: all(test(article) for test in parsed.all_of)


def _take(parsed: _Parsed, token: re.Match[str]) -> None:
    if token[0] == "(":
        if parsed.any_of is not None:
            raise Refused(CLAUSES)
        parsed.any_of, parsed.after_or = [], True
    elif token[0] == ")":
        _close(parsed)
    elif token[0] == "OR":
        if parsed.any_of is None:
            raise Refused(LOOSE_OR)
        if parsed.after_or:
            raise Refused(CLAUSES)
        parsed.after_or = True
    else:
        _add(parsed, _test(token))


def _close(parsed: _Parsed) -> None:
    members = parsed.any_of
    if members is None or parsed.after_or:
        raise Refused(CLAUSES)
    if len(members) == 1:
        raise Refused(ONLY_ORS)
    parsed.all_of.append(lambda article: any(member(article) for member in members))
    parsed.any_of = None


def _add(parsed: _Parsed, test: Test) -> None:
    if parsed.any_of is None:
        parsed.all_of.append(test)
        return
    if not parsed.after_or:
        raise Refused(CLAUSES)
    parsed.any_of.append(test)
    parsed.after_or = False


def _test(token: re.Match[str]) -> Test:
    if token["operator"]:
        return _operator(token["operator"], token["value"], token[0])
    if token[0].startswith('"'):
        return _phrase(token[0].strip('"'))
    return _word(token[0])


def _phrase(text: str) -> Test:
    if len(text) < 5:
        raise Refused(SHORT_PHRASE)
    wanted = tokens(text)
    return lambda article: article.has(wanted)


def _word(text: str) -> Test:
    if not text.isalnum():
        raise Refused(ILLEGAL)
    if len(text) < 3:
        raise Refused(SHORT_WORD)
    if text.casefold() in {"and", "not", "the"} or len(text.encode()) > 120:
        raise Refused(TOO_COMMON.format(text))
    wanted = tokens(text)
    return lambda article: article.has(wanted)


def _operator(name: str, value: str, whole: str) -> Test:
    if name == "sourcelang":
        return lambda article: article.language == value
    near = re.fullmatch(r"near(\d+)", name)
    if near and value.startswith('"'):
        return _near(int(near[1]), value.strip('"'))
    raise Refused(TOO_COMMON.format(whole))


def _near(distance: int, text: str) -> Test:
    wanted = text.casefold().split()
    if len(wanted) < 2 or any(not word.isalnum() or len(word) < 3 for word in wanted):
        raise Refused(SHORT_PHRASE)

    def test(article: Page) -> bool:
        if not all(article.has((word,)) for word in wanted):
            return False
        words = article.text.split()
        spans = (words[at : at + distance + 1] for at in range(len(words)))
        return any(set(wanted) <= set(span) for span in spans)

    return test


def _check_span(parameters: Mapping[str, str]) -> None:
    start, end = span(parameters)
    if start.year < 2017:
        raise Refused(START_DATE)
    if end - start < timedelta(minutes=15):
        raise Refused(TIMESPAN)


def span(parameters: Mapping[str, str]) -> tuple[datetime, datetime]:
    """Return the time that is asked about.

    Raises:
        Refused: it is not told as the service wants it.
    """
    stamps = [parameters.get(key, "") for key in ("startdatetime", "enddatetime")]
    times = [parse_stamp(stamp) for stamp in stamps if re.fullmatch(r"\d{14}", stamp)]
    if len(times) != 2 or times[0] is None or times[1] is None:
        raise Refused(START_DATE)
    return times[0], times[1]


def answering(articles: Sequence[Page], parameters: Mapping[str, str]) -> Iterator[Row]:
    """Yield the articles that answer a request, as many as it may have.

    Raises:
        Refused: the query is against the rules.
    """
    test, (start, end) = parse(parameters["query"]), span(parameters)
    ordered = articles if parameters.get("sort") == "datedesc" else articles[::-1]
    found = (page.row for page in ordered if start <= page.seen <= end and test(page))
    yield from islice(found, min(250, int(parameters.get("maxrecords", 75))))
