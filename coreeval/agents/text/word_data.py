"""How the word lists of a language are written: as text, and number words as their parts."""

from collections.abc import Mapping


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text in the form in which texts are compared, with ss for ß."""
    return frozenset(words.casefold().split())


def joined_tens(tens: Mapping[str, int], ones: Mapping[str, int], pattern: str) -> dict[str, int]:
    """Return the words for ten and one together, such as `einundzwanzig` and `treinta y uno`.

    Args:
        tens: The words for tens.
        ones: The words for one to nine, in the forms that are joined to a ten.
        pattern: How `ten` and `one` are joined.
    """
    return {
        pattern.format(one=one, ten=ten): value + more
        for ten, value in tens.items()
        for one, more in ones.items()
    }
