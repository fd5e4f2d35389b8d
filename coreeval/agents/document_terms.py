"""Limits the text of reports in published documents to what their licences allow.

Texts under a licence that lets everybody redistribute them are included in full, and so are dated
facts from Wikipedia. Any other report is reduced to its title and an excerpt.
"""

import re
from collections.abc import Iterable
from typing import Final, Literal

from coreeval.schema import Evidence

DocumentTexts = Literal["excerpts", "private"]
SNIPPET_CHARS: Final = 300
"""The most characters of a publisher's text that are redistributed as an excerpt."""
_OPEN: Final = re.compile(
    r"\bcc[\W_]*0\b|\bpublic[\W_]domain\b|creativecommons\.org/publicdomain/"
    r"|\bapache[\W_]*2\b"
    r"|(?:\bcc[\W_]|creativecommons\.org/licenses/)by(?:[\W_]sa)?(?![\W_](?:nc|nd|sa[\W_]n))\b",
    re.IGNORECASE,
)
_LAST_WORD: Final = re.compile(r"\s+\S*$")


def may_be_passed_on(item: Evidence) -> bool:
    """Return whether the licence of a report's text lets everybody redistribute and change it."""
    return _OPEN.search(item.licence) is not None


def cut_to_terms(items: Iterable[Evidence], texts: DocumentTexts) -> list[Evidence]:
    """Return reports with as much of their texts as a document may contain.

    If the run's texts stay private, they are complete.
    """
    return [item if texts == "private" or may_be_passed_on(item) else _cut(item) for item in items]


def _cut(item: Evidence) -> Evidence:
    if len(item.snippet) <= SNIPPET_CHARS:
        return item
    excerpt = _LAST_WORD.sub("", item.snippet[: SNIPPET_CHARS + 1])[:SNIPPET_CHARS]
    return item.model_copy(update={"snippet": excerpt})
