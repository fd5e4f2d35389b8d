"""An article's text, or the reason that only a headline or a description is available."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final, Literal, get_args

from coreeval.schema import Evidence, Precision, Value
from coreeval.tools.gdelt.page_text import without_unseen

TextSource = Literal["file", "ccnews", "web"]
DateSource = Literal["stated", "estimated", "file", "feed"]
"""The source of the date: the page's metadata; htmldate, from the page; the user's file; the
feed."""
WhyNoText = Literal[
    "not_wanted", "not_found", "taken_down", "licence", "forbidden", "robots_unknown", "opted_out",
    "address", "host_busy", "daily_cap", "out_of_time", "unreachable", "refused", "gone",
    "redirects", "not_html", "too_large", "unreadable", "too_short", "wall", "other_title",
    "other_language", "other_date",
]  # fmt: skip
WHY_NO_TEXT: Final[Mapping[WhyNoText, str]] = MappingProxyType(
    {
        "not_wanted": "knowledge.text does not request the texts of articles",
        "not_found": "no file contains the article, and the page was not fetched",
        "taken_down": "the text names someone on the takedown list",
        "licence": "the licence of the text forbids its use in other works",
        "forbidden": "robots.txt forbids requests for the page",
        "robots_unknown": "robots.txt could not be read, so the page was not requested",
        "opted_out": "the publisher does not allow text mining",
        "address": "the address is not a public web page",
        "host_busy": "the host requires a longer pause between requests",
        "daily_cap": "the daily page limit of the host is reached",
        "out_of_time": "the time limit was reached",
        "unreachable": "the host did not answer",
        "refused": "the host refused the page",
        "gone": "the host has no such page",
        "redirects": "the page redirects too many times",
        "not_html": "the response is not an HTML page",
        "too_large": "the page is too large",
        "unreadable": "no text could be extracted",
        "too_short": "the text is too short",
        "wall": "the page is a paywall, a captcha or a block page",
        "other_title": "the text does not share enough words with its title",
        "other_language": "the text is in another language",
        "other_date": "the date of the page differs from the date in the feed",
    }
)
LASTING: Final[frozenset[WhyNoText]] = frozenset(get_args(WhyNoText)) - {
    "not_wanted", "not_found", "licence", "robots_unknown", "host_busy", "daily_cap", "out_of_time",
    "unreachable",
}  # fmt: skip
"""Reasons that stay valid for a while, so that such pages are not fetched again immediately."""
MOST_CHARACTERS: Final = 200_000
"""The most characters of a text; a longer one is cut at a line (own choice; news has 3,400)."""


class ArticleText(Value):
    """The text of an article, whose body stays private: only excerpts may be published."""

    id: str
    """The id of the evidence."""
    url: str
    """The address of the page that the text is from, after redirects."""
    text: str
    text_sha256: str
    title: str
    publisher: str
    published_at: datetime
    date_source: DateSource
    published_precision: Precision
    """`exact` if the page or the user's file states the date; otherwise that of the evidence."""
    language: str
    """The ISO 639-1 code; `und` if unknown."""
    source: TextSource
    licence: str = ""
    """The licence as stated; empty if none is stated."""
    depth: Literal["article"] = "article"
    was_cut: bool = False
    """Whether the text was longer than `MOST_CHARACTERS`."""
    instruction_like: bool = False
    """Whether the text reads like an instruction to a model."""


class NoText(Value):
    """The reason that there is no text."""

    id: str
    reason: WhyNoText
    depth: Literal["headline", "description"]
    """The text that is available instead."""
    detail: str = ""
    """The details, such as a status or a date; the words may be the host's."""
    stated_at: datetime | None = None
    """The date that the page states, if that is the reason."""


class TextRetrieval(Value):
    """The results for a list of evidence."""

    by_id: dict[str, ArticleText | NoText]
    """The result for each evidence id."""
    notes: tuple[str, ...] = ()
    """Notes for the user, one sentence each."""

    def count_reasons(self) -> Counter[WhyNoText]:
        """Return the number of items without a text, by reason."""
        missing = (item for item in self.by_id.values() if isinstance(item, NoText))
        return Counter(item.reason for item in missing)

    def count_sources(self) -> Counter[TextSource]:
        """Return the number of items with a text, by source."""
        found = (item for item in self.by_id.values() if isinstance(item, ArticleText))
        return Counter(item.source for item in found)


@dataclass(frozen=True, kw_only=True, slots=True)
class WantedText:
    """An article whose text is wanted."""

    id: str
    url: str
    title: str = ""
    domain: str = ""
    published_at: datetime | None = None
    """None if the date is unknown; then the page's date is not checked."""
    precision: Precision = "crawl"
    language: str = "und"
    has_description: bool = False

    def without_text(
        self, reason: WhyNoText, detail: str = "", stated_at: datetime | None = None
    ) -> NoText:
        """Return the result for an article without a text."""
        return NoText(
            id=self.id,
            reason=reason,
            depth="description" if self.has_description else "headline",
            detail=detail,
            stated_at=stated_at,
        )


def to_wanted(item: Evidence) -> WantedText:
    """Return the article to search for a piece of evidence."""
    return WantedText(
        id=item.id,
        url=item.url,
        title=item.title,
        domain=item.domain,
        published_at=item.published_at,
        precision=item.published_precision,
        language=item.language,
        has_description=bool(item.snippet),
    )


def tidy_text(raw: str) -> tuple[str, bool]:
    """Return a text as lines without invisible characters, and whether it was cut."""
    head = cut_text(raw)
    lines = (without_unseen(line) for line in head.splitlines())
    return "\n".join(line for line in lines if line), len(head) < len(raw)


def cut_text(text: str) -> str:
    """Return at most `MOST_CHARACTERS` of a text, whole lines or words if possible."""
    if len(text) <= MOST_CHARACTERS:
        return text
    head = text[:MOST_CHARACTERS]
    return head.rpartition("\n")[0] or head.rpartition(" ")[0] or head


def hash_text(text: str) -> str:
    """Return the sha256 of a text in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
