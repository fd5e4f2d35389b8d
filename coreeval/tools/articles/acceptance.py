"""Checks that a text is the wanted article's body, by its length, title, language and date."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from coreeval.tools.articles.article_text import (
    ArticleText,
    DateSource,
    NoText,
    TextSource,
    WantedText,
    WhyNoText,
    hash_text,
)
from coreeval.tools.gdelt.page_text import is_instruction_like, without_outlet, without_unseen
from coreeval.tools.gdelt.rows import host_of
from coreeval.tools.gdelt.words import search_keys
from coreeval.tools.licences import forbids_changes

LEAST_CHARACTERS: Final = 400
"""The fewest characters of a body; a teaser has about 200 (research: articles §4)."""
MOST_DAYS_APART: Final = timedelta(days=2)
"""The largest difference between the page's date and the feed's (research: articles §4)."""
LEAST_TITLE_SHARE: Final = 0.3
"""The least share of the title's content words that the text must contain (own choice)."""
_LEAST_TITLE_WORDS: Final = 2
_TITLE_REACH: Final = 5000
"""The number of characters of a text that are searched for the title's words (own choice)."""
_SHORT: Final = 2500
"""The number of characters below which a phrase of a wall counts: an article may quote one."""
_WALL = re.compile(
    r"subscribe (?:now |today )?to (?:continue|read|keep|unlock)|to continue reading"
    r"|(?:already|not) a subscriber\?|this (?:article|content|story) is (?:for|only available to)"
    r" (?:paying )?(?:subscribers|members)|log ?in to (?:continue|read)|create an account to read"
    r"|register to (?:continue|read)|you have reached your (?:article )?limit|verify (?:that )?you"
    r" are (?:a )?human|are you a robot|unusual (?:traffic|activity)|captcha|access denied"
    r"|checking your browser|enable javascript and cookies|please enable (?:javascript|cookies)"
    r"|you have been blocked|attention required|request unsuccessful"
    r"|weiterlesen mit|jetzt abonnieren|sie haben bereits ein abo"
    r"|(?:suscr[ií]bete|suscr[ií]base) para|contenido exclusivo para suscriptores"
    r"|r[ée]serv[ée] aux abonn[ée]s|abonnez-vous pour",
    re.IGNORECASE,
)
"""Phrases of paywalls, captchas and block pages."""
_NEAR: Final = (
    frozenset({"no", "nb", "nn", "da"}), frozenset({"hr", "bs", "sr"}), frozenset({"id", "ms"}),
    frozenset({"cs", "sk"}), frozenset({"gl", "pt", "es"}),
)  # fmt: skip
"""Languages that may be mistaken for each other."""
_UNSPACED: Final = frozenset({"zh", "ja", "th", "ko"})
"""Languages whose words are not separated by spaces, or have changing endings."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundText:
    """A text from any source that may be the wanted one."""

    source: TextSource
    url: str
    text: str
    was_cut: bool = False
    title: str = ""
    publisher: str = ""
    language: str = "und"
    licence: str = ""
    dated_at: datetime | None = None
    date_source: DateSource = "feed"
    opted_out: bool = False
    paywalled: bool = False


def judge_text(found: FoundText, wanted: WantedText) -> ArticleText | NoText:
    """Return the text of an article, or the first reason why this text is not used."""
    for reason, detail in _objections(found, wanted):
        stated = found.dated_at if reason == "other_date" else None
        return wanted.without_text(reason, detail, stated)
    return _to_article(found, wanted)


def _objections(found: FoundText, wanted: WantedText) -> Iterator[tuple[WhyNoText, str]]:
    yield from _ban(found)
    if not found.text.strip():
        yield "unreadable", ""
    if len(found.text) < LEAST_CHARACTERS:
        yield "too_short", f"{len(found.text)} characters"
    if not shares_title(found.text, wanted.title or found.title, found.language):
        yield "other_title", found.title[:100]
    if not _is_language(found.language, wanted.language):
        yield "other_language", f"{found.language}, not {wanted.language}"
    if not _is_date(found.dated_at, wanted.published_at):
        yield "other_date", f"{found.dated_at:%Y-%m-%d}"


def _ban(found: FoundText) -> Iterator[tuple[WhyNoText, str]]:
    """Yield why a text must not be used, regardless of its content."""
    if found.opted_out:
        yield "opted_out", "the page's metadata"
    if forbids_changes(found.licence):
        yield "licence", found.licence[:100]
    if found.paywalled:
        yield "wall", "the page declares that it is not free"
    wall = _find_wall(found)
    if wall:
        yield "wall", wall


def _find_wall(found: FoundText) -> str:
    """Return a wall's words in a short text of a page; a user's files have none."""
    if found.source == "file" or len(found.text) >= _SHORT:
        return ""
    match = _WALL.search(found.text) or _WALL.search(found.title)
    return match[0] if match else ""


def shares_title(text: str, title: str, language: str) -> bool:
    """Return whether a text contains enough of a title's content words; True if it has none."""
    title, text = without_outlet(title), text[:_TITLE_REACH]
    if language in _UNSPACED:
        wanted, present = _pairs(title), _pairs(text)
    else:
        wanted, present = set(search_keys(title)), set(search_keys(text))
    if not wanted:
        return True
    least = max(min(_LEAST_TITLE_WORDS, len(wanted)), LEAST_TITLE_SHARE * len(wanted))
    return len(wanted & present) >= least


def _pairs(text: str) -> set[str]:
    """Return the pairs of neighbouring letters."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    letters = [letter for letter in plain if letter.isalnum()]
    return {first + second for first, second in pairwise(letters)}


def _is_language(found: str, wanted: str) -> bool:
    unknown = "und" in (found, wanted) or not found or not wanted
    return unknown or found == wanted or any({found, wanted} <= near for near in _NEAR)


def _is_date(found: datetime | None, wanted: datetime | None) -> bool:
    return not found or not wanted or abs(found.date() - wanted.date()) <= MOST_DAYS_APART


def _to_article(found: FoundText, wanted: WantedText) -> ArticleText | NoText:
    dated_at = found.dated_at or wanted.published_at
    if dated_at is None:
        return wanted.without_text("other_date", "neither the page nor the feed has a date")
    known = found.dated_at is not None
    sure = known and found.date_source in ("stated", "file")
    return ArticleText(
        id=wanted.id,
        url=found.url,
        text=found.text,
        text_sha256=hash_text(found.text),
        title=found.title or without_unseen(wanted.title),
        publisher=found.publisher or wanted.domain or host_of(found.url),
        published_at=dated_at if sure or not wanted.published_at else wanted.published_at,
        date_source=found.date_source if known else "feed",
        published_precision="exact" if sure else wanted.precision,
        language=found.language,
        source=found.source,
        licence=found.licence[:200],
        was_cut=found.was_cut,
        instruction_like=is_instruction_like(found.title, found.text),
    )
