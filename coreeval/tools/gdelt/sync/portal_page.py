"""Parses facts from the HTML of a day's page of Wikipedia's Portal:Current events.

The page is a nested list: categories in bold, topics below them, and facts as leaves. A leaf's
words are a fact, its links to articles are the fact's names, and its external links are the cited
news. Content outside the list is ignored.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from lxml import etree  # type: ignore[import-untyped]

MOST_TOPICS: Final = 6
"""The most topics above a fact that are kept, nearest first; real pages have at most five."""
MOST_LINKS: Final = 200
_CONTENT = "current-events-content"
_HEADING = "current-events-content-heading"
_VOID = frozenset(("br", "col", "embed", "hr", "img", "input", "link", "meta", "wbr"))
_HIDDEN_TAGS = frozenset(("style", "script", "sup"))
_BLOCKS = frozenset(("div", "li", "ul"))
_HIDDEN_CLASSES = frozenset(("noprint", "mw-editsection", "reference"))
_EMPTY_BRACKETS = re.compile(r"\(\s*[,;/]*\s*\)|\[\s*\]")
_ARTICLE = re.compile(
    r"(?:(?:https?:)?//en\.(?:m\.)?wikipedia\.org)?/wiki/"
    r"(?!(?:[A-Za-z_]+_talk|Category|File|Help|Portal|Special|Talk|Template|User|Wikipedia):)"
)
"""A link to an article of the same Wikipedia."""


@dataclass(slots=True)
class PageFact:
    """A fact as on its page, not cleaned yet."""

    text: str
    category: str = ""
    topics: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    """The articles that the sentence links to."""
    sources: tuple[str, ...] = ()
    """The addresses of the news that it cites."""


class UnknownLayout(Exception):
    """The page has no list of current events."""


def read_page(html: str) -> Iterator[PageFact]:
    """Yield the facts of a day's page; none if nothing happened on that day.

    Raises:
        UnknownLayout: the page is not a page of current events, or has another layout.
    """
    reader = _PageReader()
    try:
        parser = etree.HTMLParser(target=reader, encoding="utf-8", no_network=True)
        etree.fromstring(html.encode("utf-8", "replace"), parser)
    except (etree.LxmlError, ValueError):
        raise UnknownLayout from None
    if not reader.found:
        raise UnknownLayout
    return iter(reader.facts)


@dataclass(slots=True)
class _Item:
    """An item of the list that is still open."""

    words: list[str] = field(default_factory=list)
    entities: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    is_topic: bool = False
    """Whether it has a list of its own."""
    topic: str = ""
    """Its text above its first list, read once."""

    def text(self) -> str:
        return _join(_EMPTY_BRACKETS.sub(" ", _join("".join(self.words))))

    def begin_list(self) -> None:
        """Record that the item has a list of its own."""
        if not self.is_topic:
            self.is_topic, self.topic = True, self.text()


def _join(text: str) -> str:
    return " ".join(text.split())


class _PageReader:
    """A target of lxml's parser that collects the leaves of the list in the page's content."""

    def __init__(self) -> None:
        self.found = False
        self.facts: list[PageFact] = []
        self._depth = 0
        """The number of open `div`s from the content's own `div` on; 0 outside of it."""
        self._hidden: list[str] = []
        """The open tags of a hidden element, the outermost first."""
        self._items: list[_Item] = []
        self._category = ""
        self._heading: list[str] | None = None
        """The words of the category that is being read; None outside of one."""
        self._citing = False

    def start(self, tag: str, given: Mapping[str, str]) -> None:
        """Process the start of an element."""
        classes = given.get("class", "").split()
        if not self._depth:
            self._enter(tag, classes)
        elif self._hidden or _is_hidden(tag, classes):
            if tag not in _VOID:
                self._hidden.append(tag)
        else:
            self._open(tag, classes, given)

    def _enter(self, tag: str, classes: list[str]) -> None:
        if tag == "div" and _CONTENT in classes:
            self._depth, self.found = 1, True

    def _open(self, tag: str, classes: list[str], given: Mapping[str, str]) -> None:
        if tag == "div":
            self._depth += 1
        if not self._items and (tag == "b" or _HEADING in classes):
            self._heading = []
        if tag == "ul" and self._items:
            self._items[-1].begin_list()
        elif tag == "li":
            self._items.append(_Item())
        elif tag == "br" and self._items:
            self._items[-1].words.append(" ")
        elif tag == "a" and self._items:
            self._follow(classes, given)

    def _follow(self, classes: list[str], given: Mapping[str, str]) -> None:
        item, href = self._items[-1], given.get("href", "")
        if "external" in classes:
            self._citing = True
            if len(item.sources) < MOST_LINKS:
                item.sources.append(f"https:{href}" if href.startswith("//") else href)
        elif _ARTICLE.match(href) and len(item.entities) < MOST_LINKS:
            item.entities.append(given.get("title", ""))

    def end(self, tag: str) -> None:
        """Process the end of an element."""
        depth = len(self._hidden)
        opened = next((at for at in reversed(range(depth)) if self._hidden[at] == tag), None)
        if opened is not None:
            del self._hidden[opened:]
            return
        if self._hidden and tag in _BLOCKS:  # a hidden element was never closed
            self._hidden.clear()
        if self._depth and not self._hidden:
            self._close(tag)

    def _close(self, tag: str) -> None:
        if self._heading is not None and tag in ("b", "div"):
            self._category = " ".join("".join(self._heading).split()) or self._category
            self._heading = None
        if tag == "a":
            self._citing = False
        elif tag == "li" and self._items:
            self._finish_item()
        elif tag == "div":
            self._depth -= 1
            if not self._depth:
                self._items.clear()

    def _finish_item(self) -> None:
        item = self._items.pop()
        text = "" if item.is_topic else item.text()
        if text:
            above = (each.topic for each in reversed(self._items[-MOST_TOPICS:]))
            self.facts.append(
                PageFact(
                    text=text,
                    category=self._category,
                    topics=tuple(topic for topic in above if topic)[::-1],
                    entities=tuple(dict.fromkeys(filter(None, item.entities))),
                    sources=tuple(dict.fromkeys(item.sources)),
                )
            )

    def data(self, data: str) -> None:
        """Process a piece of text."""
        if self._hidden or not self._depth:
            return
        if self._heading is not None:
            self._heading.append(data)
        elif self._items and not self._citing:
            self._items[-1].words.append(data)

    def close(self) -> None:
        """Process the end of the page."""


def _is_hidden(tag: str, classes: list[str]) -> bool:
    return tag in _HIDDEN_TAGS or not _HIDDEN_CLASSES.isdisjoint(classes)
