"""Why a sample was not accepted, in few enough words that samples can be grouped by it."""

import re
from typing import get_args

from coreeval.schema import Flag

MOST = 90
"""Characters of a cause."""
_SAID = re.compile(r"'[^']*'|\"[^\"]*\"|\([^)]{0,400}\)|\d+[.,]\d+|\d{4,}")
"""What differs from sample to sample: words that are quoted, remarks, measures."""
_NOT_FOUND = re.compile(
    r"(?:(?:no_news|not_covered|throttled|rejected|unavailable)(?:, )?)+(?= for )"
)
_NO_NEWS = ("the text mentions nothing to search for", "no other news after")


def cause_of(outcome: str, reason: str) -> str:
    """Return what a sample's reason has in common with others of its outcome; empty if accepted.

    Of a rejection that is the first check or judge that said no; of a failure the message without
    what it quotes; where a model gave the reason in its own words, what it was asked.
    """
    if outcome.startswith("rejected"):
        return reason.partition(":")[0][:MOST]
    if outcome == "no_knowledge":
        return _why_no_news(reason)
    if outcome == "unsafe":
        flag = reason.partition(":")[0]
        return flag if flag in get_args(Flag) else "the news on offer may not be used"
    return "" if outcome == "accepted" else _general(reason)


def _why_no_news(reason: str) -> str:
    if found := _NOT_FOUND.match(reason):
        return found.group()
    return next((each for each in _NO_NEWS if reason.startswith(each)), "no news on offer fits")


def _general(reason: str) -> str:
    plain = " ".join(_SAID.sub("…", reason.partition("\n")[0]).split())
    return plain if len(plain) <= MOST else f"{plain[: MOST - 2]} …"
