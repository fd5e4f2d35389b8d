"""Which option an answer in free text chooses: one letter, or none where that is not clear.

The surest ways of saying it are looked for first, and the first that is found decides. An answer
that names several letters in that way is unclear, whatever else it says.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache

Way = tuple[re.Pattern[str], ...]
"""Patterns that are as sure as each other; what they name are groups."""
_WRAP = r"""(?:[\s"'\u2018-\u201d`*_(\[{【「《<:$\\=]|boxed|textbf|text|mathrm)*"""
"""What may stand between the words before a letter and the letter: marks, Markdown, LaTeX."""
_END = r"""(?=\s*(?:\Z|[.:,;、)\]}'"\u2019\u201d*。」】>\n]))"""
_IS = r"(?i:\s+(?:is|are|would be|should be|must be|will be|option|choice|letter|the|correct))*"
_SHALL = r"(?:\s|应该|应当|应|可能|就|则|只能|最终|更|选项|选择|选|[是为]){0,4}"
_SIGNS = " \t\n\r.。\"'`*,;"


def read_choice(text: str, options: Mapping[str, str]) -> str:
    """Return the letter of the option that an answer chooses; empty where that is not clear.

    Clear are a letter alone, "the answer is (B)", "答案:B", "选B", a letter with its mark or its
    option behind it at the beginning, and the very text of one option. Full-width letters are like
    others, small ones are none, and neither the article A nor the pronoun I is a choice.
    """
    said = unicodedata.normalize("NFKC", text).strip()
    for way in _ways("".join(options)):
        if found := {letter for pattern in way for letter in _named(pattern, said)}:
            return found.pop() if len(found) == 1 else ""
    return _quoted(said, options)


def _named(pattern: re.Pattern[str], said: str) -> Iterator[str]:
    for match in pattern.finditer(said):
        names = "".join(match.groups())
        if names not in ("A", "I") or not re.match(r" [a-z]", said[match.end() :]):
            yield from (sign for sign in names if sign.isupper())


@cache
def _ways(letters: str) -> tuple[Way, ...]:
    """Return the ways to name a letter, the surest first."""
    one = f"[{letters}]"
    joint = r"(?:\s*[、,/&+和与及或]\s*|\s+(?:and|or)\s+)?"
    named = rf"(?<![A-Za-z0-9])({one}(?:{joint}{one})*)(?![A-Za-z0-9])"
    ways = (
        (rf"\A{_WRAP}{named}[\s.。)\]}}'\"*`】」>]*\Z",),
        (
            rf"答案{_SHALL}{_WRAP}(?:选项|选择|选)?{_WRAP}{named}",
            rf"(?i:\banswers?\b){_IS}{_WRAP}(?i:(?:option|choice)\s+)?{_WRAP}{named}",
        ),
        (
            rf"\A{_WRAP}(?:选项|选择|选|(?i:option|choice)\s)?{_WRAP}{named}{_END}",
            rf"(?s:\A{_WRAP}({one})['\"]?\s*[:,].*?[\s\[(,'\"]((?!\1){one})['\"]?\s*[:\],])",
        ),
        (
            rf"(?<![不未可以挑供被])(?:选择|选)(?:\s|答案|[是为]){{0,3}}{_WRAP}{named}",
            rf"(?<!不)[是为]{_WRAP}(?:选项)?{_WRAP}{named}{_END}",
            rf"(?i:\b(?:choice|option)){_IS}{_WRAP}{named}{_END}",
            rf"(?i:\b(?:choose|chose|select|pick)\s+(?:option\s+)?){_WRAP}{named}",
        ),
        (rf"(?:选项|(?i:\b(?:option|choice)\s)){_WRAP}{named}", rf"(?<!\w)\({named}\)"),
    )
    return tuple(tuple(map(re.compile, way)) for way in ways)


def _quoted(said: str, options: Mapping[str, str]) -> str:
    """Return the letter of the one option whose text the answer is, its letter before it or not."""
    bare = _bare(said)
    found = [
        letter
        for letter, option in options.items()
        if bare == _bare(option)
        or (said[:1] == letter and _bare(said[1:]).startswith(_bare(option)))
    ]
    return found[0] if len(found) == 1 else ""


def _bare(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).split()).strip(_SIGNS)
