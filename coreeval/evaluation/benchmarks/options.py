"""The options of a multiple-choice question, as its text shows them."""

import re
from collections.abc import Mapping
from typing import NamedTuple

_FINEVAL = re.compile(
    r"\['A'\s*:(.*?),\s*'B'\s*:(.*?),\s*'C'\s*:(.*?),\s*'D'\s*:(.*)\]", flags=re.DOTALL
)
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Span(NamedTuple):
    """Where a text stands in another."""

    start: int
    end: int


def bracketed_options(text: str) -> dict[str, str]:
    """Return the options of FinEval's form `['A': one, 'B': two, …]`; none where it has not it."""
    found = _FINEVAL.search(text)
    return dict(zip("ABCD", map(str.strip, found.groups()), strict=True)) if found else {}


def lettered(texts: list[str]) -> dict[str, str]:
    """Give each text a letter, from A on; 26 at most."""
    return dict(zip(_LETTERS, texts, strict=False))


def option_spans(text: str, options: Mapping[str, str]) -> dict[str, Span] | None:
    """Return where each option's text stands, each behind its letter and in their order.

    None where they do not stand so. Of several such lists the last counts.
    """
    patterns = [_option_pattern(letter, option) for letter, option in options.items()]
    for first in reversed([*patterns[0].finditer(text)]):
        found, at = [Span(*first.span(1))], first.end()
        for pattern in patterns[1:]:
            if not (match := pattern.search(text, at)):
                break
            found.append(Span(*match.span(1)))
            at = match.end()
        if len(found) == len(patterns):
            return dict(zip(options, found, strict=True))
    return None


def _option_pattern(letter: str, option: str) -> re.Pattern[str]:
    after = r"(?![A-Za-z0-9])" if option[-1:].isascii() and option[-1:].isalnum() else ""
    return re.compile(rf"(?<![^\W_]){re.escape(letter)}[^\w\n]{{1,6}}({re.escape(option)}){after}")
