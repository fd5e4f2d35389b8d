"""Which option an answer in free text chooses: one letter, or none where that is not clear.

The surest ways of saying it are looked for first, and the first that is found decides. An answer
that names several letters in that way is unclear, whatever else it says.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from coreeval.models.answer_text import extract_final_answer, iter_objects

Way = tuple[re.Pattern[str], ...]
"""Patterns that are as sure as each other; what they name are groups."""
_WRAP = r"""(?:[\s"'\u2018-\u201d`*_(\[{【「《<:$\\=]|boxed|textbf|text|mathrm){0,16}"""
"""What may stand between the words before a letter and the letter: marks, Markdown, LaTeX."""
_END = r"""(?=\s*(?:\Z|[.:,;、)\]}'"\u2019\u201d*。」】>\n])|\s[-\u2013\u2014]\s)"""
_EMOJI = "\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
_CORRECT = (
    r"(?=['\"*_`)\]]*\s+(?i:is|are|would be|must be|should be|seems)\s+(?i:(?:the|most|likely)\s+)*"
    r"(?i:(?:(?:correct|right|best|true)\b|(?:final\s+)?(?:answer|choice|option)\b)))"
)
"""What says behind a letter that it is the answer."""
_ELSEWHERE = (
    r"(?i:\b(?:antwort|r\u00e9ponse|respuesta|risposta|resposta)\b"
    r"(?:\s+(?:richtige|korrekte|correcte|correcta|corretta|correta|ist|lautet|est|es|\u00e8|\u00e9))*)"
)
"""The answer is, in other languages."""
_IS = r"(?i:\s+(?:is|are|would be|should be|must be|will be|option|choice|letter|the|correct))*"
_SHALL = r"(?:\s|应该|应当|应|可能|就|则|只能|最终|更|选项|选择|选|[是为]){0,4}"
_REJECTED = re.compile(
    r"\s*\?|[\s.)\]:]*(?:\w+\s+){0,4}?(?:is|are)\s+(?:wrong|incorrect|false|not\s+(?:the\s+)?"
    r"(?:correct|right|answer))\b",
    re.IGNORECASE,
)
"""Behind a letter that is asked about, or is not the answer."""
_IS_WORD = re.compile(r" (?!(?:is|would be|must be|should be|seems) )[a-z]")
"""Behind the article A or the pronoun I."""
_LISTED = re.compile(r"\A(?:[>#\u2022*-]+\s+)+")
_ANSWER_IS = re.compile(
    r"\A(?:the\s+)?(?:(?:final|correct|right|best)\s+)?answer(?:\s+is)?\s*:?\s+", re.IGNORECASE
)
_SURE_KEYS: Final = ("answer", "final_answer", "choice", "option", "label")
_REASONS: Final = frozenset({"reason", "reasoning", "explanation", "rationale", "analysis"})
_LONGEST: Final = 20_000
"""Characters of an answer that are looked at, from its end."""
_SIGNS = " \t\n\r.。\"'`*,;"


def read_choice(text: str, options: Mapping[str, str]) -> str:
    """Return the letter of the option that an answer chooses; empty where that is not clear.

    Clear are a letter alone, "the answer is (B)", "答案:B", "选B", a letter with its mark or its
    option behind it at the beginning, and the very text of one option. Full-width letters are like
    others, small ones are none, and neither the article A nor the pronoun I is a choice.
    """
    answer = extract_final_answer(text)[-_LONGEST:]
    if objects := [value for value, _, _ in iter_objects(answer) if isinstance(value, dict)]:
        found = {letter for one in objects for letter in _in_object(one, options)}
        return found.pop() if len(found) == 1 else ""
    said = _LISTED.sub("", unicodedata.normalize("NFKC", answer).strip())
    for way in _ways("".join(options)):
        if found := {letter for pattern in way for letter in _named(pattern, said)}:
            return found.pop() if len(found) == 1 else ""
    return _quoted(said, options)


def _in_object(value: Mapping[str, object], options: Mapping[str, str]) -> Iterator[str]:
    """Yield what the texts of an object choose, under a key for the answer or else under any."""
    sure = [key for key in _SURE_KEYS if key in value][:1]
    for key in sure or [key for key in value if key.lower() not in _REASONS]:
        inner = value[key]
        for text in inner if isinstance(inner, list) else [inner]:
            if isinstance(text, str):
                yield read_choice(text, options)


def _named(pattern: re.Pattern[str], said: str) -> Iterator[str]:
    for match in pattern.finditer(said):
        names = "".join(name for name in match.groups() if name)
        if _REJECTED.match(said[match.end() :]):
            continue
        if names not in ("A", "I") or not _IS_WORD.match(said[match.end() :]):
            yield from (sign for sign in names if sign.isupper())


@cache
def _ways(letters: str) -> tuple[Way, ...]:
    """Return the ways to name a letter, the surest first."""
    one = f"[{letters}]"
    joint = r"(?:\s*[、,/&+和与及或]\s*|\s+(?:and|or)\s+)?"
    named = rf"(?<![A-Za-z0-9])({one}(?:{joint}{one})*)(?![A-Za-z0-9])"
    ways = (
        (rf"\A{_WRAP}{named}[\s.。)\]}}'\"*`】」>{_EMOJI}]*\Z",),
        (
            rf"答案{_SHALL}{_WRAP}(?:选项|选择|选)?{_WRAP}{named}",
            rf"(?i:\banswers?\b){_IS}{_WRAP}(?i:(?:option|choice)\s+)?{_WRAP}{named}",
            rf"{_ELSEWHERE}{_WRAP}{named}",
            rf"(?i:\Ait(?:'s|\s+is)\s+){_WRAP}{named}{_END[:-1]}|\s*!)",
            rf"(?i:\bnot\s+){_WRAP}[{letters}]{_WRAP}(?i:\s+but\s+){_WRAP}{named}",
            rf"(?:\A|[.!?:;\n]\s*|(?i:\b(?:so|thus|therefore|hence|but|only|option|choice),?\s+)){_WRAP}{named}{_CORRECT}",
        ),
        (
            rf"\A{_WRAP}(?:选项|选择|选|(?i:option|choice)\s)?{_WRAP}{named}{_END}",
            rf"(?s:\A{_WRAP}({one})['\"]?\s*[:,].*?[\s\[(,'\"]((?!\1){one})['\"]?\s*[:\],])",
        ),
        (
            rf"(?<![不未可以挑供被])(?:选择|选)(?:\s|答案|[是为]){{0,3}}{_WRAP}{named}",
            rf"(?<!不)[是为]{_WRAP}(?:选项)?{_WRAP}{named}{_END}",
            rf"(?i:\b(?:choice|option)){_IS}{_WRAP}{named}{_END}",
            rf"(?i:\b(?:choose|chose|select|pick|go with)\s+(?:option\s+)?){_WRAP}{named}",
        ),
        (rf"(?:选项|(?i:\b(?:option|choice)\s)){_WRAP}{named}", rf"(?<!\w)\({named}\)"),
    )
    return tuple(tuple(map(re.compile, way)) for way in ways)


def _quoted(said: str, options: Mapping[str, str]) -> str:
    """Return the letter of the one option whose text the answer is, its letter before it or not."""
    bare = _bare(_ANSWER_IS.sub("", said))
    found = [
        letter
        for letter, option in options.items()
        if bare == _bare(option)
        or (said[:1] == letter and _bare(said[1:]).startswith(_bare(option)))
    ]
    return found[0] if len(found) == 1 else ""


def _bare(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).split()).strip(_SIGNS).casefold()
