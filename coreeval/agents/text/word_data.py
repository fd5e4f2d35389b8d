"""Parses the word lists of a language, and builds its number words from their parts."""

from collections.abc import Mapping


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text in the form used for comparisons, with ss for ß."""
    return frozenset(words.casefold().split())


def joined_tens(tens: Mapping[str, int], ones: Mapping[str, int], pattern: str) -> dict[str, int]:
    """Return the words for ten and one together, such as `einundzwanzig` and `treinta y uno`.

    Args:
        tens: The words for tens.
        ones: The words for one to nine, in the forms that are combined with tens.
        pattern: The pattern that combines `ten` and `one`.
    """
    return {
        pattern.format(one=one, ten=ten): value + more
        for ten, value in tens.items()
        for one, more in ones.items()
    }
