"""What an answer says besides numbers: that it declines, takes back, or was cut off."""

import re
from typing import Final

_DECLINES: Final = re.compile(
    r"""(?ix)
      \b(?:do|does|did|could|can|will|would|was|am|is)(?:\ not|n't)\ (?:\w+\ ){0,3}?
      (?:have|know|recall|remember|access|determine|verify|provide|give|share|answer|retrieve|
         supply|guess|predict|fabricate|invent|state|compare|speculate|confirm|find|able|sure|
         certain|aware|familiar|confident|appear\ to\ (?:be|exist)|exist|a\ real|something\ i)\b
    | \bcannot\b | \bunable\ to\b | \brather\ not\b | \bi'm\ (?:not|unable|sorry)\b | \bsorry\b
    | \bno\ (?:\w+\ ){0,2}?(?:data|information|records?|access|knowledge|idea|figures?|way)\b
    | \b(?:isn't|not|un)\ ?available\b | \bunknown\b | \bfictional\b | \bfictitious\b
    | \b(?:beyond|past|outside|after)\ (?:of\ )?my\ (?:knowledge|training)\b
    | \bknowledge\ (?:cutoff|cut-off|was\ last\ updated)\b | \bin\ the\ future\b
    | \bas\ an\ ai\b | ^\W*(?:n\.?/?a\.?|none|null|nan|not\ applicable|decline)\W*$
    """
)
_TAKES_BACK: Final = re.compile(
    r"(?:^|[.!?\n-]\s*)(?:(?:oh|hmm|no|sorry),? )?(?:wait|hold on|scratch that|correction:"
    r"|(?:let me|i should|i need to) (?:re-?(?:consider|check|think|calculate|examine)|correct)"
    r"|on second thought|actually, (?:no|let|that|i )|i (?:misspoke|was wrong|made (?:a|an)))\b",
    re.IGNORECASE,
)
_ENDED: Final = re.compile(r"[.!?)\]\"'%…]\W*$")


def declines(text: str) -> bool:
    """Whether a plain text says that it does not know or will not say."""
    return _DECLINES.search(text) is not None


def stands(text: str) -> str:
    """Return what a plain text has not taken back: all behind its last "wait"."""
    return text[max((found.end() for found in _TAKES_BACK.finditer(text)), default=0) :]


def cut_off(text: str) -> bool:
    """Whether a plain text of some words ends in the middle of a sentence."""
    return len(text.split()) > 3 and _ENDED.search(text) is None
