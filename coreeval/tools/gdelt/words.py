"""The words of titles: search keys, language, names, and themes for looking up topics.

Queries, titles and names have one normal form (research: gdelt §5). The stated language of a file
is checked against the words. Names are found without a model: as runs of capitalised words that
recur.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache


def word_set(words: str) -> frozenset[str]:
    """Return the words of a space-separated list."""
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


def search_keys(text: str) -> list[str]:
    """Return the content words of a text as search keys, in order, with repetitions."""
    return [key for word in plain_words(text) if (key := key_of(word))]


def count_shared_keys(first: str, second: str) -> tuple[int, int]:
    """Return how many different keys of the second text the first has, and how many there are."""
    known, asked = set(search_keys(first)), set(search_keys(second))
    return len(asked & known), len(asked)


def query_keys(text: str) -> frozenset[str]:
    """Return a query's keys without forms of address and corporate suffixes, if others remain."""
    found = search_keys(text)
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
    """Return a word's search key; "" for a function word."""
    folded = word.casefold()
    if folded in STOP_WORDS:
        # An upper-case function word is a name (US, WHO, IT) and keeps its case as a key.
        return word if len(word) > 1 and word.isupper() else ""
    return stem(folded)


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Strip plurals and -ing only, so that two forms of a noun or verb match."""
    if not word.isascii() or not word.isalpha() or len(word) < 4:
        return word
    return _without_ing(_to_singular(word))


def _to_singular(word: str) -> str:
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


UNKNOWN_LANGUAGE = "und"

_LANGUAGE_CODES = {
    "english": "en", "eng": "en", "spanish": "es", "spa": "es", "portuguese": "pt", "por": "pt",
    "french": "fr", "fra": "fr", "german": "de", "deu": "de", "italian": "it", "ita": "it",
    "dutch": "nl", "nld": "nl", "chinese": "zh", "zho": "zh", "japanese": "ja", "jpn": "ja",
    "korean": "ko", "kor": "ko", "arabic": "ar", "ara": "ar", "turkish": "tr", "tur": "tr",
    "greek": "el", "ell": "el", "russian": "ru", "rus": "ru", "ukrainian": "uk", "ukr": "uk",
    "polish": "pl", "pol": "pl", "romanian": "ro", "ron": "ro", "hungarian": "hu", "hun": "hu",
    "czech": "cs", "ces": "cs", "slovak": "sk", "slk": "sk", "bulgarian": "bg", "bul": "bg",
    "croatian": "hr", "hrv": "hr", "serbian": "sr", "srp": "sr", "slovenian": "sl", "slv": "sl",
    "albanian": "sq", "sqi": "sq", "macedonian": "mk", "mkd": "mk", "swedish": "sv", "swe": "sv",
    "norwegian": "no", "nor": "no", "danish": "da", "dan": "da", "finnish": "fi", "fin": "fi",
    "indonesian": "id", "ind": "id", "malay": "ms", "msa": "ms", "vietnamese": "vi", "vie": "vi",
    "thai": "th", "tha": "th", "hindi": "hi", "hin": "hi", "urdu": "ur", "urd": "ur",
    "bengali": "bn", "ben": "bn", "tamil": "ta", "tam": "ta", "telugu": "te", "tel": "te",
    "malayalam": "ml", "mal": "ml", "kannada": "kn", "marathi": "mr", "gujarati": "gu",
    "persian": "fa", "fas": "fa", "hebrew": "he", "heb": "he", "catalan": "ca", "cat": "ca",
    "galician": "gl", "basque": "eu", "estonian": "et", "latvian": "lv", "lithuanian": "lt",
    "azerbaijani": "az", "armenian": "hy", "georgian": "ka", "kazakh": "kk", "mongolian": "mn",
    "icelandic": "is", "swahili": "sw", "somali": "so", "afrikaans": "af",
}  # fmt: skip

_ENGLISH = word_set(
    "the of to and for is are was were be been has have had will would can could may not with "
    "by as  at on in from that this these it its their his her our your you we they he she "
    "who what how  why when where after over into than more about amid against says said new "
    "an or but if up out  all no do does which while during before between under"
)
_FOREIGN = word_set(
    "di del della delle dello dei degli il gli che è e sul sui sulla nel nella nei un una uno "
    "dai dal  dalla dalle agli alla alle ai su tra sono non più la le lo el los las y por "
    "para que en se al  les des du et une avec pour dans sur au aux est qui der das dem und "
    "mit für von im ein eine ist  nicht auf zu zum zur da dos em uma um não ao às os het een "
    "voor op zijn yang untuk dari  dengan ini pada och för att på av som med ve bir için și "
    "cu pentru din na się ze oraz de  o og til af det"
)  # none of these words may be common in English headlines: no `con`, `den`, `van`, `com`
FOREIGN_WORDS = tuple(sorted(word for word in _FOREIGN if word.isascii()))
"""Foreign words without accents; an ASCII title without any of them counts as English."""
_LETTERS_ONLY = re.compile(r"(?<![\w-])[^\W\d_]+(?![\w-])")
FOREIGN_LETTERS = 0.2
"""The share of non-Latin letters above which a title is not English."""


def language_code(mark: str) -> str:
    """Return the ISO 639-1 code for `English`, `eng`, `en` or `en-GB`; `und` if unknown."""
    name = mark.strip().lower()
    code = re.split(r"[-_]", name)[0]
    if len(code) == 2 and code.isalpha():
        return code
    return _LANGUAGE_CODES.get(name, UNKNOWN_LANGUAGE)


def check_language(code: str, title: str) -> str:
    """Return the marked language, or `und` if a title marked English is not (pilot §2)."""
    return UNKNOWN_LANGUAGE if code == "en" and not looks_english(title) else code


def looks_english(title: str) -> bool:
    """Return whether a title may be English, judging by its letters and function words."""
    words = _LETTERS_ONLY.findall(title)
    letters = "".join(words)
    if not letters or sum(ord(letter) > 0x24F for letter in letters) > FOREIGN_LETTERS * len(
        letters
    ):
        return False
    english = sum(word.lower() in _ENGLISH for word in words)
    # Capitalised function words are names in English titles: La Niña, El Paso, LA, Das Auto.
    foreign = sum(word in _FOREIGN for word in words)
    if english == foreign == 0:
        return sum(not word.isascii() for word in words) < 2
    return english >= foreign


OTHER_TITLES = 2
"""The number of other titles that must contain a run for it to count as a name (first guess,
untuned)."""
LONGEST_NAME_WORDS = 4
SENTENCE_CASE = 2
"""The fewest lower-case content words of a headline; one in title case does not reveal names."""

_CALENDAR = word_set(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may "
    "june july august september october november december jan feb mar apr jun jul aug sep sept oct "
    "nov dec"
)
_NAME_WORD = re.compile(r"[^\W_](?:[\w&.-]|['\u2019](?!s\b))*[^\W_]|[^\W_]")


def find_title_names(titles: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the names in each title: capitalised runs in sentence-case titles, seen elsewhere.

    A single word that also occurs in lower case is a common word, not a name.
    """
    found = [list(_find_runs(title)) for title in titles]
    candidates = {run.casefold() for runs in found for run in runs}
    seen, lower = _count_candidates(titles, candidates)
    named = {run for run in candidates if seen[run] > OTHER_TITLES and run not in lower}
    named -= _CALENDAR
    return [tuple(run for run in dict.fromkeys(runs) if run.casefold() in named) for runs in found]


def _find_runs(title: str) -> Iterator[str]:
    """Yield the capitalised runs of a sentence-case title; a first word only as part of a run."""
    words = _NAME_WORD.findall(title)
    plain = [word for word in words if len(word) > 2 and word.islower() and word not in STOP_WORDS]
    if len(plain) < SENTENCE_CASE:
        return
    start: int | None = None
    for at, word in enumerate([*words, ""]):
        if word[:1].isupper():
            start = at if start is None else start
        elif start is not None:
            run = _trim_head(words[start:at])
            if (
                0 < len(run) <= LONGEST_NAME_WORDS
                and (len(run) > 1 or start > 0)
                and " ".join(run) in title
            ):
                yield " ".join(run)
            start = None


def _trim_head(run: list[str]) -> list[str]:
    """Drop a capitalised function word at the head of a title: `The Pentagon`."""
    return run[1:] if run[0].casefold() in STOP_WORDS and not run[0].isupper() else run


def _count_candidates(titles: Sequence[str], candidates: set[str]) -> tuple[Counter[str], set[str]]:
    """Count the titles that contain each candidate, and collect those also in lower case."""
    seen: Counter[str] = Counter()
    lower: set[str] = set()
    for title in titles:
        words = _NAME_WORD.findall(title)
        grams = [
            " ".join(words[at : at + size])
            for size in range(1, LONGEST_NAME_WORDS + 1)
            for at in range(len(words) - size + 1)
        ]
        seen.update({gram.casefold() for gram in grams} & candidates)
        lower.update(word for word in words if word in candidates and word.islower())
    return seen, lower


THEMES = {
    "climate change": "ENV_CLIMATECHANGE",
    "immigration": "IMMIGRATION",
    "inflation": "ECON_INFLATION",
    "natural disaster": "NATURAL_DISASTER",
    "natural gas": "ENV_NATURALGAS",
    "oil price": "ECON_OILPRICE",
    "refugees": "REFUGEES",
    "stock market": "ECON_STOCKMARKET",
    "unemployment": "UNEMPLOYMENT",
}
"""The themes of topics that contain these words; all of them occur in real rows."""
