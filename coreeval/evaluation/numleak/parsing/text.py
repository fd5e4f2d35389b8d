"""An answer in one way of writing: one minus sign, plain digits, no markup, words as numbers."""

import calendar
import re
from typing import Final

from coreeval.evaluation.numleak.parsing.objects import with_objects_told
from coreeval.evaluation.numleak.parsing.tables import with_rows_told
from coreeval.models.answer_text import extract_final_answer

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
    ord("\u066a"): "%",
    ord("\u3002"): ". ",
    ord("\u3001"): ",",
}
_GROUPING: Final = re.compile(r"(?<=\d)['\u00a0\u202f\u2009](?=\d{3}(?!\d))")
_SPACES: Final = re.compile(r"[^\S\n]+")
_LATEX: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"\\(?:text|mathrm|mathbf|textbf|mathit|textit)\{([^{}\n]{0,200})\}"), r"\1"),
    (re.compile(r"_\{[^{}\n]{0,80}\}"), ""),
    (re.compile(r"(?<=\d)\{,\}(?=\d)"), ","),
    (re.compile(r"\\(?:boxed|fbox)\{([^{}]*)\}+"), r"the answer: \1"),
    (re.compile(r"\\(?:approx|sim)\b"), "~"),
    (
        re.compile(r"\\[()\[\]]|\$\$|\$(?=[^$\n]{1,40}\$)|(?<=[\d%.])\$(?!\d)|\\(?=[%$])|\\[,;!]"),
        "",
    ),
)
_MARKUP: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"~~[^~\n]{1,80}~~"), ""),
    (re.compile(r"(?<!^)\[\^?\d{1,3}\](?!\()"), ""),
    (re.compile(r"!?\[([^\[\]\n]{1,200})\]\([^()\n]{0,300}\)"), r"\1"),
    (re.compile(r"</?[A-Za-z][\w-]{0,30}\s?/?>"), " "),
    (re.compile(r"<[A-Za-z][\w-]{0,30}\s([^<>\n]{1,200})>"), r" \1: "),
    (re.compile(r"^ *```\w*[ ]*$", re.MULTILINE), ""),
    (re.compile(r"\*\*|__|`|(?<!\w)\*(?=[^\s*])|(?<=[^\s*])\*(?!\w)|(?<!\w)_|_(?!\w)"), ""),
)
_QUOTED_LINE: Final = re.compile(r"^(?:[ |]|>(?!\d)|#+(?!\d))+|[ |]+$", re.MULTILINE)
_GROUPED_BY_BLANKS: Final = re.compile(r"[^\w\n]*\d{1,3}(?: \d{3}){1,4}[.,]\d+[^\w\n]*")
_EAST_ASIAN: Final = "\u3040-\u30ff\u3400-\u9fff"
_EAST_ASIAN_DATE: Final = re.compile(
    r"(?<!\d)(\d{4}) ?\u5e74 ?(\d{1,2}) ?\u6708(?: ?(\d{1,2}) ?\u65e5)?"
)
_EAST_ASIAN_MONTH: Final = re.compile(r"(?<!\d)(1[0-2]|0?[1-9]) ?\u6708")
_EAST_ASIAN_EDGE: Final = re.compile(
    rf"(?<=[{_EAST_ASIAN}])(?=[-+]?\d)|(?<=[\d%])(?=[{_EAST_ASIAN}])"
)

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
    """Return what an answer says without markup, in ASCII signs, its numbers in digits.

    Thoughts are no part of it; objects and tables are lines of words.
    """
    text = with_objects_told(extract_final_answer(response)[-LONGEST:]).translate(_PLAIN)
    text = with_rows_told(_without(_MARKUP, _without(_LATEX, _GROUPING.sub("_", text))))
    text = _EAST_ASIAN_MONTH.sub(_month_name, _EAST_ASIAN_DATE.sub(_iso_date, text))
    text = _EAST_ASIAN_EDGE.sub(" ", text)
    text = _QUOTED_LINE.sub("", _SPACES.sub(" ", text))
    if _GROUPED_BY_BLANKS.fullmatch(text):
        text = re.sub(r"(?<=\d) (?=\d)", "_", text)
    return _IN_WORDS.sub(_digits, text).strip()


def in_plain_signs(text: str) -> str:
    """Return a text with the signs that a plain text has in their place."""
    return text.translate(_PLAIN)


def _without(marks: tuple[tuple[re.Pattern[str], str], ...], text: str) -> str:
    for mark, left in marks:
        text = mark.sub(left, text)
    return text


def _month_name(found: re.Match[str]) -> str:
    return f" {calendar.month_name[int(found[1])]} "


def _iso_date(found: re.Match[str]) -> str:
    parts = (part.zfill(2) for part in found.groups() if part)
    return f" {'-'.join(parts)} "


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
