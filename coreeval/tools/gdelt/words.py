"""Words as search keys: the same normal form for queries, titles and names (research: gdelt §5)."""

import re
import unicodedata
from functools import lru_cache


def word_set(words: str) -> frozenset[str]:
    """Return the words of a list written with spaces."""
    return frozenset(words.split())


STOP_WORDS = word_set(
    "a about after again against all also am amid an and any are as at be because been before "
    "being  but by can could did do does doing down during each few for from had has have he "
    "her here hers  him his how i if in into is it its itself just may me might more most "
    "must my no nor not now of  off on once only or other our out over own per same says she "
    "should so some such than that the  their them then there these they this those through "
    "to too under until up us via was we were  what when where which while who whom whose why "
    "will with would yet you your"
)
TITLES_AND_SUFFIXES = word_set(
    "mr mrs ms dr sir dame lord lady prof rev hon inc incorporated ltd limited plc corp "
    "corporation  co llc llp gmbh ag sa nv bv spa pty"
)
_POSSESSIVE = re.compile(r"['\u2019\u02bc](?:s|S)?\b|\b['\u2019](?=\s|$)")
_INITIALS = re.compile(r"\b(?:[^\W\d_]\.){2,}")
_AMPERSAND = re.compile(r"\b([^\W\d_]{1,2}) ?& ?([^\W\d_]{1,2})\b")
_TOKEN = re.compile(r"\w+")
_VOWEL = re.compile(r"[aeiouy]")


def keys(text: str) -> list[str]:
    """Return the content words of a text as search keys, in order, repeats kept."""
    return [key for word in plain_words(text) if (key := key_of(word))]


def query_keys(text: str) -> frozenset[str]:
    """Return a query's keys without forms of address and corporate suffixes, if others remain."""
    found = keys(text)
    return frozenset(key for key in found if key not in TITLES_AND_SUFFIXES) or frozenset(found)


def plain_words(text: str) -> list[str]:
    """Split into words without accents, possessives and punctuation; U.S. and S&P stay one."""
    text = unicodedata.normalize("NFKC", text).replace("_", " ")
    text = _INITIALS.sub(lambda match: match[0].replace(".", "") + " ", text)
    text = _AMPERSAND.sub(r"\1\2", text)
    text = _POSSESSIVE.sub(" ", text)
    if not text.isascii():
        letters = unicodedata.normalize("NFD", text)
        text = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return _TOKEN.findall(text)


def key_of(word: str) -> str:
    """Return a word's search key, empty for a function word."""
    folded = word.casefold()
    if folded in STOP_WORDS:
        # An upper-case function word is a name (US, WHO, IT) and keeps its case as a key.
        return word if len(word) > 1 and word.isupper() else ""
    return stem(folded)


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Strip plurals and -ing, nothing else: two forms of one noun or verb meet."""
    if not word.isascii() or not word.isalpha() or len(word) < 4:
        return word
    return _without_ing(_singular(word))


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if re.search(r"(?:[sx]|z|[cs]h)es$", word) and len(word) > 4:
        return word[:-2] if re.search(r"(?:ss|x|zz|[cs]h)es$", word) else word[:-1]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _without_ing(word: str) -> str:
    base = word[:-3]
    if not word.endswith("ing") or len(base) < 3 or not _VOWEL.search(base):
        return word
    if base[-1] == base[-2] and base[-1] not in "lsz":
        return base[:-1]
    silent_e = re.fullmatch(r"[^aeiouy]*[aeiouy][^aeiouywx]", base)
    return base + "e" if silent_e else base
