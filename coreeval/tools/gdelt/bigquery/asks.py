"""What is looked for: the distinct word sets of all queries, and every form of their words.

The tables hold plain text, so the words that `coreeval.tools.gdelt.words` makes of a text cannot be
stored beside it. The other way round it works: each search key is sent with all the words that have
it as their key, and one equality join finds them.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from coreeval.schema import EntityQuery
from coreeval.tools.gdelt.search.questions import TOPIC_SHARE
from coreeval.tools.gdelt.words import query_keys, stem


class Ask(NamedTuple):
    """Words that an article must have together: a name, or a topic by a share of them."""

    words: str
    """Search keys in alphabetical order, a space between them."""
    least: float
    """Share of their weight that is needed; 1 for a name."""


class Form(NamedTuple):
    """A word of a text, in lower case, that has a search key."""

    form: str
    word: str
    """The search key; where it is in capitals, only the word in capitals counts: US, WHO, IT."""


def asks(queries: Sequence[EntityQuery]) -> list[Ask]:
    """Return what the queries ask for, each thing once, in the order of the queries."""
    found = (
        Ask(" ".join(sorted(words)), 1.0 if query.rung in ("named", "alias") else TOPIC_SHARE)
        for query in queries
        for spelling in _spellings(query)
        if (words := query_keys(spelling))
    )
    return list(dict.fromkeys(found))


def _spellings(query: EntityQuery) -> Iterator[str]:
    """Yield all names of a query, and as GKG has them: cut at the first letter beyond ASCII."""
    for name in (query.text, *query.aliases):
        yield name
        kept = name[: next((at for at, letter in enumerate(name) if not letter.isascii()), 0)]
        if len(kept.split()) > 1:
            yield kept


def forms(asked: Sequence[Ask]) -> list[Form]:
    """Return every form of every word that is asked for."""
    words = dict.fromkeys(word for ask in asked for word in ask.words.split(" "))
    return [form for word in words for form in _forms(word)]


def _forms(word: str) -> Iterator[Form]:
    folded = word.casefold()
    if word != folded:
        yield Form(folded, word)
        return
    for form in sorted({word, *_inflected(word)}):
        if stem(form) == word:
            yield Form(form, word)


def _inflected(word: str) -> Iterator[str]:
    """Yield all that `stem` may have taken a plural or an -ing from, and more."""
    bases = [word, f"{word}ing", f"{word}{word[-1]}ing"]
    bases += [f"{word[:-1]}ing"] if word.endswith("e") else []
    for base in bases:
        yield from (base, f"{base}s", f"{base}es")
        if base.endswith("y"):
            yield f"{base[:-1]}ies"
