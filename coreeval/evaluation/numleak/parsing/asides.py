"""Numbers that say nothing of a value: of tables, notes and steps, and how sure someone is."""

import re
from typing import Final

_STRUCK: Final = "\u2020"
_PERCENT: Final = r"(?:%|percent|per cent)"
_SURE: Final = (
    r"(?:sure|certain|confident|confidence|certainty|chance|probability|likelihood|likely)"
)
_ASIDES: Final = re.compile(
    rf"""(?ix)
      \b(?:tables?|sections?|figures?|fig\.?|pages?|steps?|chapters?|appendix|option|version|id|no\.
         |footnotes?|case|phase|point)\ \#?\d+(?:\.\d+)*(?![\d%.]|,\d|\ ?{_PERCENT})
    | \b{_SURE}\b(?:\ (?:level|score|interval|rating|in\ this|of|is|was|about|at|roughly|that))*
      \ ?[:=(~]?\ ?~?\d[\d.]*\ ?(?:/\ ?\d+|{_PERCENT})?
    | (?<![\d.])\d[\d.]*\ ?{_PERCENT}?\ (?:{_SURE})\b
    """
)
_NUMBERING: Final = re.compile(r"^ *\d{1,2}[.)](?= [^\n]*(?:\d|\n))", re.MULTILINE)


def without_asides(text: str) -> str:
    """Return a plain text with numbers of steps, tables and certainty struck out."""
    return _NUMBERING.sub(_strike, _ASIDES.sub(_strike, text))


def _strike(found: re.Match[str]) -> str:
    """Strike out the digits alone: the words are read for what they say."""
    return re.sub(r"[\d.%]", _STRUCK, found[0])
