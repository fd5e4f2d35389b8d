"""Telling what DOC 2.0 means: news, nothing, too often, no such question, or no sense at all.

Neither the status nor the content type can be trusted: the notice of throttling was seen with 200
as text/html, text/plain and application/json, and refusals are plain text with 200 (research: gdelt
§1). So the body decides.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from coreeval.tools.gdelt.doc.wire import Reply
from coreeval.tools.gdelt.lenient import lenient_object

Row = Mapping[str, object]

THROTTLED = ("please limit requests to one every", "larger queries", "too many requests")
REJECTED = (
    "specified phrase is too short",
    "contained a keyword that was too short",
    "query was too short or too long",
    "too short, too long or too common",
    "or'd terms must be surrounded by ()",
    "or's may only appear inside of a () clause",
    "parentheses may only be used around or'd statements",
    "parenthetical clauses had an error in it",
    "contained an illegal character",
    "timespan is too short",
    "invalid query start date",
    "invalid query end date",
    "invalid/unsupported country",
    "contained an invalid location search",
    "must contain at least one station",
)
"""What the service was seen to say, in lower case."""
LONGEST_REFUSAL = 200
"""Characters; a short sentence that is no JSON is a refusal in words not seen before."""


@dataclass(frozen=True)
class Listed:
    """Articles, as the service describes them."""

    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Nothing:
    """No match, or a mistake of the service: `{}` was seen for both."""


@dataclass(frozen=True)
class Throttled:
    """Asked too often."""

    retry_after_s: float | None = None


@dataclass(frozen=True)
class Rejected:
    """The question itself is refused; asking again is no use."""

    message: str


@dataclass(frozen=True)
class Failed:
    """The service is not itself."""

    message: str


Answer = Listed | Nothing | Throttled | Rejected | Failed


def read(reply: Reply) -> Answer:
    """Tell what a reply means."""
    # A stray Latin-1 byte harms one character, not the list.
    text = reply.body.decode("utf-8", errors="replace").removeprefix("\ufeff").strip()
    document = _document(text) if reply.status == 200 else None
    if document is not None:
        return _articles(document)
    folded = text.casefold()
    if reply.status == 429 or any(notice in folded for notice in THROTTLED):
        return Throttled(retry_after_s(reply.retry_after))
    if reply.status not in (200, 400):
        return Failed(f"status {reply.status}")
    return _refusal(text, folded)


def _document(text: str) -> Row | None:
    """Parse a JSON object; stray backslashes and control characters are kept as characters."""
    if not text.startswith("{"):
        return None
    return lenient_object(text)


def _articles(document: Row) -> Answer:
    if not document:
        return Nothing()
    rows = document.get("articles")
    if not isinstance(rows, list):
        return Failed("JSON without articles")
    listed = tuple(row for row in rows if isinstance(row, dict))
    return Listed(listed) if listed else Nothing()


def _refusal(text: str, folded: str) -> Answer:
    if not text:
        return Failed("an empty answer")
    if text.startswith("{"):
        return Failed("JSON that breaks off")
    if text.startswith("<") or "<html" in folded:
        return Failed("a page of HTML")
    known = any(refusal in folded for refusal in REJECTED)
    if known or (len(text) <= LONGEST_REFUSAL and text[0].isupper()):
        return Rejected(" ".join(text.split())[:LONGEST_REFUSAL])
    return Failed("an answer that is neither JSON nor a sentence")


def retry_after_s(header: str, now: datetime | None = None) -> float | None:
    """Return the seconds that a Retry-After header asks for: a number or an HTTP date."""
    try:
        seconds = float(header)
    except ValueError:
        return _until(header, now or datetime.now(UTC))
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _until(header: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max((aware - now).total_seconds(), 0.0)
