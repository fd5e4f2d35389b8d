"""Every link of the pages leads somewhere: to a file, a heading of it, or another host."""

import re
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from scripts.gallery import CONTENTS
from tests.docs.pages import PAGES, ROOT

_PARSER = MarkdownIt("commonmark").enable("table")
_RAW_ANCHOR = re.compile(r'<a (?:id|name)="([^"]+)"')


def find_links(text: str) -> set[str]:
    """Return the targets of all links and images."""
    found = set[str]()
    for token in _iter_tokens(_PARSER.parse(text)):
        target = token.attrs.get("href") or token.attrs.get("src")
        if target:
            found.add(str(target))
    return found


def _iter_tokens(tokens: list[Token]) -> list[Token]:
    return [each for token in tokens for each in (token, *_iter_tokens(token.children or []))]


@cache
def find_anchors(path: Path) -> frozenset[str]:
    """Return the anchors of a page's headings as GitHub and the site make them."""
    text = path.read_text("utf-8")
    seen, anchors = Counter[str](), set(_RAW_ANCHOR.findall(text))
    tokens = _PARSER.parse(text)
    for token, inside in pairwise(tokens):
        if token.type == "heading_open":
            words = "".join(each.content for each in inside.children or [])
            slug = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
            anchors.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
            seen[slug] += 1
    return frozenset(anchors)


def find_problem(page: Path, target: str) -> str:
    """Return what is wrong with a link; nothing for a good one and for one to another host."""
    if re.match(r"[a-z][a-z+.-]*:", target):
        return "" if target.startswith(("https://", "http://", "mailto:")) else "no such protocol"
    name, _, anchor = target.partition("#")
    if page == ROOT / "docs" / "gallery.md" and name.startswith("gallery/"):
        place = name.removeprefix("gallery/")
        return "" if place in CONTENTS else "not in the gallery"
    path = (page.parent / name).resolve() if name else page
    if not path.exists():
        return "no such file"
    if anchor and anchor not in find_anchors(path):
        return "no such heading"
    return ""


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    problems = {
        target: problem
        for target in find_links(PAGES[page])
        if (problem := find_problem(ROOT / page, target))
    }
    assert not problems


def test_broken_links_are_found() -> None:
    page, here = ROOT / "docs" / "run.md", "docs/run.md"
    assert len(find_links(PAGES[here])) > 5
    assert find_problem(page, "nowhere.md") == "no such file"
    assert find_problem(page, "#nowhere") == "no such heading"
    assert find_problem(page, "json.md#nowhere") == "no such heading"
    assert find_problem(page, "json.md#coreeval-refresh") == ""
    assert find_problem(page, "http:/x") == "no such protocol"


def test_every_page_that_is_named_is_there() -> None:
    for page, text in PAGES.items():
        if page != "CHANGELOG.md":
            named = {*re.findall(r"\bdocs/(\w+\.md)\b", text)}
            assert not [name for name in named if not (ROOT / "docs" / name).exists()], page


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    nav = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2]
    listed = re.findall(r"^ +- [^:#]+: (\S+\.md)$", nav, re.M)
    pages = [page.removeprefix("docs/") for page in PAGES if page.startswith("docs/")]
    assert sorted(listed) == sorted(pages)
