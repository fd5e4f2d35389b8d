"""An answer in one way of writing: one minus sign, plain digits, no markup, words as numbers."""

import re
from typing import Final

_DASHES: Final = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\u2796"
_FULL_WIDTH: Final = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_PLAIN: Final[dict[int, int | str]] = {
    **_FULL_WIDTH,
    **dict.fromkeys(map(ord, _DASHES), "-"),
    **dict.fromkeys(map(ord, "\u2018\u2019\u02bc"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u00ab\u00bb"), '"'),
    **dict.fromkeys(map(ord, "\u2248\u223c\u2245\u2243"), "~"),
    **dict.fromkeys(map(ord, "\u00b9\u00b2\u00b3\u2070\u2074\u2075\u2076\u2077\u2078\u2079"), ""),
    **dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff"), ""),
}
_GROUPING: Final = re.compile(r"(?<=\d)['\u00a0\u202f\u2009](?=\d{3}(?!\d))")
_SPACES: Final = re.compile(r"[^\S\n]+")
_BOXED: Final = re.compile(r"\\boxed\{(?:\\text\{)?([^{}]*)\}+")
_MATHS: Final = re.compile(r"\\[()\[\]]|\$(?=[^$\n]{1,40}\$)|(?<=[\d%])\$(?!\d)|\\(?=[%$])|\\[,;!]")
_MARKUP: Final = re.compile(r"\*\*|__|`|(?<!\w)_|_(?!\w)")
_QUOTED_LINE: Final = re.compile(r"^[ >|#]+|[ |]+$", re.MULTILINE)

_ONES: Final = [
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    "nineteen",
]
_TENS: Final = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_VALUES: Final = {
    **{word: value for value, word in enumerate(_ONES)},
    **{word: 10 * value for value, word in enumerate(_TENS, 2)},
}
_ONE: Final = "|".join(sorted(_ONES, key=len, reverse=True))
_SMALL: Final = rf"(?:(?:{'|'.join(_TENS)})(?:[- ](?:{_ONE})\b)?|(?:{_ONE})\b)"
_IN_WORDS: Final = re.compile(
    rf"\b(?P<whole>{_SMALL}(?: hundred(?:(?: and)? {_SMALL})?)?)"
    rf"(?:(?P<digits> point(?: (?:{_ONE}|oh)\b)+)|(?P<part> and a (?:half|quarter)\b))?"
    r"(?![- ](?:months?|years?|days?|weeks?|of)\b)(?!\w)",
    re.IGNORECASE,
)


LONGEST: Final = 8000
"""Characters of an answer that are read, from its end: some 2,000 tokens of thinking aloud."""


def plain(response: str) -> str:
    """Return an answer without markup, in ASCII signs, its numbers in digits."""
    text = _GROUPING.sub("_", response[-LONGEST:].translate(_PLAIN))
    text = _SPACES.sub(" ", text)
    text = _MATHS.sub("", _BOXED.sub(r"the answer: \1", text))
    text = _QUOTED_LINE.sub("", _MARKUP.sub("", text))
    return _IN_WORDS.sub(_digits, text).strip()


def _digits(found: re.Match[str]) -> str:
    """Return a number in words as digits: "twenty-one point five" as 21.5."""
    value = str(_whole(found["whole"].lower()))
    if found["part"]:
        return value + (".5" if "half" in found["part"].lower() else ".25")
    words = (found["digits"] or "").lower().split()[1:]
    return value + ("." if words else "") + "".join(str(_VALUES.get(word, 0)) for word in words)


def _whole(words: str) -> int:
    total = 0
    for word in re.findall(r"[a-z]+", words):
        total = total * 100 if word == "hundred" else total + _VALUES.get(word, 0)
    return total
