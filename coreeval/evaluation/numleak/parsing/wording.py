"""The words round a number: declining, taking back, being cut off, saying what it is."""

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Final

_DECLINES: Final = re.compile(
    r"""(?ix)
      \b(?:do|does|did|could|will|would|was|am|is|have|has)(?:\ not|n't)\ (?:\w+\ ){0,3}?
      (?:have|hold|possess|retain|include|contain|know|recall|recogni[sz]e|remember|memori[sz]ed
         |access|determine|verify|provide|give|tell|say|share|answer|retrieve|supply|guess|predict
         |fabricate|invent|state|compare|speculate|confirm|find|possible|in\ a\ position|able|sure
         |certain|aware|familiar|confident|appear\ to\ (?:be|exist)|exist|a\ real)\b
    | \bnot\ something\ (?:that\ )?i\b
    | \bcan(?:'t|\ ?not)\b | \bwon't\b | \b(?:unable|impossible|hesitate)\ (?:for\ me\ )?to\b
    | \b(?:rather|prefer)\ not\b | \b(?:must|have\ to|i)\ (?:decline|refuse)\b
    | \bi'm\ (?:not|unable|sorry)\b | \bsorry\b | \bi\ (?:lack|never\ learned)\b
    | \b(?:no|without)\ (?:\w+\ ){0,2}?
      (?:data|information|records?|access|knowledge|memory|recollection|idea|figures?|way)\b
    | \bwould\ (?:only\ )?be\ (?:an?\ )?(?:pure\ )?(?:fabricat|invent|irresponsibl|misleading|guess)
    | \b(?:isn't|not|un)\ ?available\b | \b(?:un|not\ )known\b | \bfictional\b | \bfictitious\b
    | \b(?:beyond|past|outside|after)\ (?:of\ )?my\ (?:knowledge|training)\b
    | \bknowledge\ (?:cutoff|cut-off|was\ last\ updated)\b | \bin\ the\ future\b
    | \bas\ an\ ai\b | ^\W*(?:n\.?/?a\.?|none|null|nan|not\ applicable|decline)\W*$
    """
)
_SENDS_AWAY: Final = re.compile(
    r"\b(?:please|should|recommend|suggest|need to|would have to|best to)\b"
    r"(?: \w+){0,3}? (?:consult(?:ing)?|check(?:ing)?|refer(?:ring)?|look(?:ing)?|verify(?:ing)?"
    r"|visit(?:ing)?|download(?:ing)?)\b",
    re.IGNORECASE,
)
_TAKES_BACK: Final = re.compile(
    r"(?:^|[.!?\n-][^\S\n]*)(?:(?:oh|hmm|no|sorry),? )?(?:wait|hold on|scratch that|correction:"
    r"|(?:let me|i should|i need to) (?:re-?(?:consider|check|think|calculate|examine)|correct)"
    r"|on second thought|i meant|or rather|make that|actually, (?:no|let|that|i )"
    r"|i (?:misspoke|was wrong|made (?:a|an)))\b"
    r"|[,;.?(] ?(?:(?:sorry|oops|correction|or rather|make that|rather)[,:]? (?:i (?:mean|meant) )?"
    r"|i (?:mean|meant) |no[,:.;]? (?:wait[,:]? ?)?)(?=(?:i think )?(?:it (?:is|was) )?~?[-+]?\d)"
    r"|- no[,:]? wait[,:]?",
    re.IGNORECASE,
)
_ENDS: Final = frozenset(".!?)]\"'%…")
_LIKELY: Final = (
    r"(?:[\s~:=('\"*]|\b(?:approximately|approx\.?|about|around|roughly|nearly|likely|probably|some"
    r"|somewhere|circa|of|at|in|the|an?|range|between|negative|positive)\b)*"
)
_SUBJECT: Final = (
    r"(?:it|that|this|(?:the|its) (?:[\w-]+ ){0,5}?(?:return|rate|value|figure|temperature|level"
    r"|number|reading|inflation|change|factor))"
)
_SAID: Final = (
    r"(?:was|is|were|are|would be|stood at|averaged|came (?:in )?(?:at|to)|returned|:|=|~)"
)
_POINT_CUE: Final = re.compile(
    r"\b(?:(?:point|final|single|one-number) (?:\w+ )?(?:estimate|answer|figure|guess|value)"
    r"|the answer|answer(?: is|:)|pressed)\b[^!?]{0,80}$",
    re.IGNORECASE,
)
_CUE: Final = re.compile(
    r"\b(?:estimate[sd]?|guess|i(?: would|'d|'ll| will) (?:say|put|go with)"
    r"|i (?:recall|remember|believe|think)|answer"
    r"|so (?=about|around|roughly|approximately)|settle on|therefore|hence)\b"
    rf"[^!?]{{0,90}}$|\b{_SUBJECT}\b[^.!?]{{0,30}}?{_SAID} ?{_LIKELY}$",
    re.IGNORECASE,
)
_EXAMPLE: Final = re.compile(
    r"(?:\b(?:e\.g|for example|for instance|such as|typical(?:ly)?|historical(?:ly)?"
    r"|on average|average(?: monthly)? (?:return|premium)|usually|ranges?|ranged|ranging"
    r"|uncertainty|off by|margin|fabricat\w+|made-up|invent\w*|hypothetical(?:ly)?|tolerance)\b"
    r"|\b(?:like|as) ?\(?\")[^;\n]{0,70}$",
    re.IGNORECASE,
)
_OWN_RANGE: Final = re.compile(
    r"\b(?:in|within) (?:the|a) (?:\w+ )?range of\b[^;\n]{0,40}$", re.IGNORECASE
)
_BOUND: Final = re.compile(
    r"\b(?:(?:more|less|greater|lower|higher|other|better|worse|fewer) than|at (?:least|most)|over"
    r"|under|above|below|exceed(?:s|ed|ing)?|up to|within|threshold(?: of)?|not)"
    r"(?: (?:about|around|roughly|approximately|an?))* ?[~(]*$|(?<![=-])[<>\u2264\u2265] ?~?$",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(
    r"(?<!\.[A-Za-z])(?<!approx)[.!?](?=\s|$)|(?<!:)\n+"
    r"|\b(?:but|however|though|nevertheless)\b",
    re.IGNORECASE,
)
_SEEN: Final = 300
"""Characters before a number in which its sentence is looked for."""


def declines(text: str) -> bool:
    """Whether a plain text says that it does not know or will not say."""
    return _DECLINES.search(text) is not None


def sends_away(text: str) -> bool:
    """Whether a plain text tells where to look instead; beside a number that is no refusal."""
    return _SENDS_AWAY.search(text) is not None


def stands(text: str) -> str:
    """Return what a plain text has not taken back: all behind its last "wait"."""
    return text[max((found.end() for found in _TAKES_BACK.finditer(text)), default=0) :]


def cut_off(text: str) -> bool:
    """Whether a plain text of some words ends in the middle of a sentence."""
    return len(text.split()) > 3 and not _ENDS & set(_behind_words(text))


def _behind_words(text: str) -> Iterator[str]:
    """Yield the signs and spaces behind the last word, from the end."""
    return takewhile(lambda sign: not (sign.isalnum() or sign == "_"), reversed(text))


def sentence_before(text: str, at: int) -> str:
    """Return the part of its sentence that stands before a place; "but" begins one too."""
    near = text[max(0, at - _SEEN) : at]
    return near[max((found.end() for found in _SENTENCE.finditer(near)), default=0) :]


def no_statement(before: str) -> bool:
    """Whether words introduce an example, a bound, or what values are like in general."""
    if _BOUND.search(before):
        return True
    return _EXAMPLE.search(before) is not None and _OWN_RANGE.search(before) is None


def endorsement(before: str) -> int:
    """Return 2 for words that introduce a point estimate or the answer, 1 for an estimate, or 0."""
    return 2 if _POINT_CUE.search(before) else int(_CUE.search(before) is not None)
