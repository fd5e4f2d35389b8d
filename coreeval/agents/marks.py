"""The marks of a text that are not its words: mentions, hashtags, addresses, emoji, quotations."""

import re

from coreeval.agents.words import normalise

_MENTION = re.compile(r"(?<![\w.])@\w+")
_HASHTAG = re.compile(r"(?<![\w&])#\w*[^\W\d]\w*")
_URL = re.compile(r"https?://\S+|\bwww\.\S+|\bpic\.twitter\.com/\S+", re.IGNORECASE)
_PICTURE = (
    "[\U0001f000-\U0001f0ff\U0001f300-\U0001f3fa\U0001f400-\U0001faff\u2600-\u27bf\u2b00-\u2bff"
    "\u2300-\u23ff]"
)
_ONE = f"{_PICTURE}\ufe0f?[\U0001f3fb-\U0001f3ff]?"
_EMOJI = re.compile(
    f"[\U0001f1e6-\U0001f1ff]{{2}}|{_ONE}(?:\u200d(?:{_ONE}|[\u2640\u2642]\ufe0f?))*"
    "|[0-9#*]\ufe0f?\u20e3|[\U0001f3fb-\U0001f3ff]"
)
_SINGLE_QUOTED = re.compile(r"(?<!\w)'(?=\S)([^']{2,}?(?:(?<=\w)'\w+[^']*?)*)(?<=\S)'(?!\w)")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_LETTER = re.compile(r"[^\W\d_]")


def mentions(text: str) -> list[str]:
    """Return the @names of a text, in order."""
    return _MENTION.findall(text)


def hashtags(text: str) -> list[str]:
    """Return the #tags of a text, in order."""
    return _HASHTAG.findall(_URL.sub(" ", text))


def urls(text: str) -> list[str]:
    """Return the addresses in a text, in order."""
    return _URL.findall(text)


def emoji(text: str) -> list[str]:
    """Return the emoji of a text, one item for each joined sequence or flag."""
    return _EMOJI.findall(text)


def without_marks(text: str) -> str:
    """Return a text without addresses, @names, #tags and emoji; `.` stands in for an emoji."""
    plain = _MENTION.sub(" ", _HASHTAG.sub(" ", _URL.sub(" ", text)))
    return _EMOJI.sub(" . ", plain)


def quotations(text: str) -> list[str]:
    """Return what stands in quotation marks, the marks left off.

    A mark without a partner opens a quotation up to the end: sentences of pairs are often cut out
    of the middle of one.
    """
    plain = normalise(text)
    double = plain.split('"')[1::2]
    single = [inner for inner in _SINGLE_QUOTED.findall(plain) if len(inner.split()) >= 3]
    return [part.strip() for part in (*double, *single) if re.search(r"\w", part)]


def closed_quotations(text: str) -> list[str]:
    """Return the quotations that both open and close in a text, marks and spelling as they are."""
    pattern = r"\"[^\"]+\"|\u201c[^\u201c\u201d]+\u201d|``(?:[^`\n]|`(?!`))+?''|&quot;.+?&quot;"
    return re.findall(pattern, text)


def marker_spellings(text: str, marker: str) -> list[str]:
    """Return a marker as often as it stands in a text as a whole token, as the text spells it."""
    return re.findall(rf"(?<!\w){re.escape(marker)}(?!\w)", text, re.IGNORECASE)


def marker_count(text: str, marker: str) -> int:
    """Return how often a marker stands in a text."""
    return len(marker_spellings(text, marker))


def target_spellings(text: str, terms: tuple[str, ...]) -> list[str]:
    """Return the words of a text that name a stance's target, hashtags that hold it included."""
    tags = [tag for tag in hashtags(text) if any(_glued(term) in tag.casefold() for term in terms)]
    plain = _HASHTAG.sub(" ", text)
    found = [match for term in terms for match in _term(term).findall(plain)]
    return list(dict.fromkeys([*tags, *found]))


def _glued(term: str) -> str:
    return re.sub(r"\W", "", term.casefold())


def _term(term: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)@?{re.escape(term)}(?!\w)", re.IGNORECASE)


def latin_share(text: str) -> float:
    """Return the share of a text's letters that are Latin; 1 for a text without letters."""
    letters = _LETTER.findall(text)
    return len(_LATIN.findall(text)) / len(letters) if letters else 1.0
