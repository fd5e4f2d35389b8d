"""The inverted index of one part: which articles have a word, a name or a theme, and when.

Articles are numbered in order of publication, names and words in order of the alphabet. Everything
stays in the mapped file until it is looked at.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from coreeval.schema import EntityType
from coreeval.tools.gdelt.parts.arrays import Arrays, open_arrays
from coreeval.tools.gdelt.parts.postings import Postings, Strings
from coreeval.tools.gdelt.parts.texts import Texts

INDEX, TEXTS = "index.bin", "texts.bin"
"""A part's files."""
KINDS: tuple[EntityType, ...] = tuple(
    sorted(get_args(EntityType), key=lambda kind: (kind == "other", kind))
)
"""Types of names; an array holds the position. `other`, which stands for none, is the last."""


@dataclass(frozen=True, slots=True)
class Articles:
    """What ranking needs of articles, by number."""

    published: NDArray[np.int64]
    """Epoch seconds."""
    precision: NDArray[np.uint8]
    """Place in `PRECISIONS`."""
    prior: NDArray[np.float32]
    """What the score has whatever is asked: how many sites tell the story, and quality."""
    story: NDArray[np.uint32]
    """Head of the story's id, 0 where nobody else tells it."""
    teller: NDArray[np.uint32]
    """Hash of the site, where there is a story."""

    @classmethod
    def of(cls, parts: Sequence[Arrays]) -> "Articles":
        """Return the articles of some parts, one after the other."""
        return cls(*(np.concatenate([part[name] for part in parts]) for name in cls.__slots__))


@dataclass(frozen=True, slots=True)
class Index:
    """The look-up tables of one part."""

    first: int
    """Number in the store of the part's first article."""
    first_name: int
    """The same of its first name; a name that several parts have is several."""
    published: NDArray[np.int64]
    precision: NDArray[np.uint8]
    terms: Strings
    """Words of headlines, descriptions and names."""
    words: Postings
    """Articles by term; the flag says that the headline has it."""
    names: Postings
    """Names by term."""
    shown: Strings
    """Names as they are written."""
    hashes: NDArray[np.uint64]
    """One of each name in lower case, the same in all parts."""
    mentions: Postings
    """Articles by name; the flag says that GKG names it, not only the headline."""
    depths: NDArray[np.uint8]
    """Of each mention: how many of its day are ranked before it, where they are very many."""
    kinds: NDArray[np.uint8]
    """Of each mention: the type of the name, a place in `KINDS`."""
    themes: Postings
    """Articles by theme; the key is its place in `THEMES`."""

    @classmethod
    def of(cls, arrays: Arrays, first: int, first_name: int) -> "Index":
        """Return the index that a part's arrays are."""

        def strings(name: str) -> Strings:
            return Strings(arrays[f"{name}_starts"], arrays[f"{name}_text"])

        def postings(name: str) -> Postings:
            return Postings(arrays[f"{name}_starts"], arrays[name])

        return cls(
            first=first,
            first_name=first_name,
            published=arrays["published"],
            precision=arrays["precision"],
            terms=strings("terms"),
            words=postings("words"),
            names=postings("names"),
            shown=strings("shown"),
            hashes=arrays["hashes"],
            mentions=postings("mentions"),
            depths=arrays["depths"],
            kinds=arrays["kinds"],
            themes=postings("themes"),
        )


def pages_of(folder: Path) -> NDArray[np.uint64]:
    """Return the pages of a part's articles: the first 64 bits of their ids."""
    pages: NDArray[np.uint64] = open_arrays(folder / INDEX)["page"]
    return pages


def is_whole(folder: Path) -> bool:
    """Tell whether a part's files are there, in this version's format, as they were written."""
    try:
        open_arrays(folder / INDEX, checked=True)
        Texts(folder / TEXTS).close()
    except (OSError, ValueError):
        return False
    return True
