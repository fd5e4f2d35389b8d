"""The sources of a dataset's facts, their terms, and the resulting duties of users.

GDELT's headlines are quoted as excerpts. A fact from Wikipedia is a whole sentence under CC BY-SA
4.0, so attribution and share-alike apply to everything adapted from it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from coreeval.schema import EvidenceSource, Value
from coreeval.tools.markdown import escape

SHARE_ALIKE: Final = "CC BY-SA"
LICENCE_URLS: Final[Mapping[str, str]] = {
    "CC BY-SA 4.0": "https://creativecommons.org/licenses/by-sa/4.0/"
}
NAMES: Final[Mapping[EvidenceSource, str]] = {
    "gdelt": "headlines and descriptions, found by the GDELT Project (https://www.gdeltproject.org/)",
    "current_events": "Wikipedia, Portal:Current events "
    "(https://en.wikipedia.org/wiki/Portal:Current_events)",
    "file": "texts from the user's disk",
    "ccnews": "articles in CC-NEWS of Common Crawl (https://commoncrawl.org/)",
    "web": "articles fetched from their publishers",
    "plugin": "articles found by a plugin (its name is in the run's manifest)",
}
EXCERPTS: Final = (
    "Headlines and excerpts belong to their publishers. At most 300 characters of each are quoted, "
    "with the URL."
)
OBLIGATIONS: Final = """\
{facts} of the new facts rest on sentences from {owner}, licensed under {licence}. If you
redistribute texts that adapt them, such as those of the updated arm, you must:

- name {owner} and link to the page (`url` in provenance) and to the licence ({url});
- say that the sentences were changed;
- license adaptations under the same or a compatible licence (share-alike), and add no
  terms that forbid what it allows.

The rows of these facts have `{licence}` in the `licence` column of provenance."""


class SourceTerms(Value):
    """A source of facts and its terms."""

    source: EvidenceSource
    licence: str
    """The short name of the licence; empty if the texts are under their publishers' own terms."""
    licence_url: str = ""
    facts: int
    """The number of replaced facts that use it."""
    share_alike: bool = False
    """Whether adaptations must be redistributed under the same licence."""


def count_sources(used: Iterable[tuple[str, str]]) -> tuple[SourceTerms, ...]:
    """Return sources and their terms, most facts first, given source and licence of each fact."""
    counted = Counter(used)
    return tuple(
        SourceTerms.model_validate(
            {
                "source": source,
                "licence": licence,
                "licence_url": LICENCE_URLS.get(licence, ""),
                "facts": facts,
                "share_alike": licence.startswith(SHARE_ALIKE),
            }
        )
        for (source, licence), facts in sorted(counted.items(), key=lambda one: (-one[1], one[0]))
    )


def describe_sources(sources: Sequence[SourceTerms]) -> str:
    """Return the part of a dataset card about sources and licences of the news, in Markdown."""
    rows = "\n".join(
        f"| {escape(NAMES[one.source])} | {one.facts} | {escape(one.licence or _PUBLISHERS)} |"
        for one in sources
    )
    table = f"| source of facts | facts | licence |\n|---|---|---|\n{rows}" if rows else _NO_FACTS
    asked = [describe_share_alike(one) for one in sources if one.share_alike]
    return "\n\n".join((table, EXCERPTS, *asked))


_OWNERS: Final[Mapping[EvidenceSource, str]] = {"current_events": "Wikipedia"}
_NO_FACTS = "No fact was replaced."
_PUBLISHERS = "the terms of each publisher"


def describe_share_alike(terms: SourceTerms) -> str:
    """Return the user's duties under a share-alike licence, in Markdown."""
    return OBLIGATIONS.format(
        facts=terms.facts,
        owner=_OWNERS.get(terms.source, "the publisher"),
        licence=escape(terms.licence),
        url=terms.licence_url or "see the name of the licence",
    )
