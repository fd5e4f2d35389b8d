"""Why a sample was not accepted, in few enough words that samples can be grouped by it."""

import re

MOST = 90
"""Characters of a cause."""
_SAID = re.compile(r"'[^']*'|\"[^\"]*\"|\([^)]*\)|\d[\d.,]*")
"""What differs from sample to sample: words that are quoted, remarks, numbers."""


def cause_of(outcome: str, reason: str) -> str:
    """Return what a sample's reason has in common with others of its outcome.

    Of a rejection that is the first check or judge that said no, of a failure the message without
    what it quotes.
    """
    if outcome.startswith("rejected"):
        return reason.partition(":")[0][:MOST]
    if outcome == "no_knowledge":
        reason = reason.partition(" for '")[0]
    plain = " ".join(_SAID.sub("…", reason.partition("\n")[0]).split())
    return plain if len(plain) <= MOST else f"{plain[: MOST - 2]} …"
