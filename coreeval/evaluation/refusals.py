"""Recognise texts whose author does not know the answer or refuses to give it."""

import re
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


def declines(text: str) -> bool:
    """Return whether the author of a plain text does not know the answer or refuses to give it."""
    return _DECLINES.search(text) is not None
