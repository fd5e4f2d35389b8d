"""Names that titles mention, found without a model: runs of capitalised words that come back."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from coreeval.tools.gdelt.words import STOP_WORDS, word_set

OTHER_TITLES = 2
"""A run is taken for a name if at least so many other titles have it (first guess, untuned)."""
LONGEST = 4
SENTENCE_CASE = 2
"""Content words in lower case that a headline needs; one in title case shows no names."""

_CALENDAR = word_set(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may "
    "june july august september october november december jan feb mar apr jun jul aug sep sept oct "
    "nov dec"
)
_WORD = re.compile(r"[^\W_](?:[\w&.-]|['\u2019](?!s\b))*[^\W_]|[^\W_]")


def title_names(titles: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the names in each title: runs of capitals in sentence-case titles, seen elsewhere.

    A single word that also occurs in lower case is a common word, not a name.
    """
    found = [list(_runs(title)) for title in titles]
    candidates = {run.casefold() for runs in found for run in runs}
    seen, lower = _count(titles, candidates)
    named = {run for run in candidates if seen[run] > OTHER_TITLES and run not in lower}
    named -= _CALENDAR
    return [tuple(run for run in dict.fromkeys(runs) if run.casefold() in named) for runs in found]


def _runs(title: str) -> Iterator[str]:
    """Yield the capitalised runs of a sentence-case title, its first word only as part of one."""
    words = _WORD.findall(title)
    plain = [word for word in words if len(word) > 2 and word.islower() and word not in STOP_WORDS]
    if len(plain) < SENTENCE_CASE:
        return
    start: int | None = None
    for at, word in enumerate([*words, ""]):
        if word[:1].isupper():
            start = at if start is None else start
        elif start is not None:
            run = _trimmed(words[start:at])
            if 0 < len(run) <= LONGEST and (len(run) > 1 or start > 0) and " ".join(run) in title:
                yield " ".join(run)
            start = None


def _trimmed(run: list[str]) -> list[str]:
    """Drop a capitalised function word at the head of a title: `The Pentagon`."""
    return run[1:] if run[0].casefold() in STOP_WORDS and not run[0].isupper() else run


def _count(titles: Sequence[str], candidates: set[str]) -> tuple[Counter[str], set[str]]:
    """Count the titles that hold each candidate, and collect those that stand in lower case."""
    seen: Counter[str] = Counter()
    lower: set[str] = set()
    for title in titles:
        words = _WORD.findall(title)
        grams = [
            " ".join(words[at : at + size])
            for size in range(1, LONGEST + 1)
            for at in range(len(words) - size + 1)
        ]
        seen.update({gram.casefold() for gram in grams} & candidates)
        lower.update(word for word in words if word in candidates and word.islower())
    return seen, lower
