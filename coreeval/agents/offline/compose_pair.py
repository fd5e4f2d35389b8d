"""Candidates for a pair of sentences: each side tells its statements, in words of its own."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise, product

from coreeval.agents.offline.text import capitalise, content, words_of
from coreeval.agents.offline.wording import lower_key, ways_to_tell
from coreeval.agents.roles import Brief, Fields
from coreeval.agents.thresholds import THRESHOLDS
from coreeval.agents.words import containment
from coreeval.schema import Evidence, Statement, Task

_SAYS_AFTER = re.compile(
    r"^(?P<what>.+), (?P<who>(?:an?|the) [\w ]{3,40}?) "
    r"(?P<says>says|said|shows|reports|finds|found|has found)$",
    re.IGNORECASE,
)
_ACCORDING = re.compile(r"^(?P<what>.+?),? according to (?P<who>[\w ]+)$", re.IGNORECASE)
_SAYS_FIRST = re.compile(
    r"^(?P<who>(?:an?|the) [\w ]*?(?:study|report|survey|monitor|paper)) "
    r"(?P<says>says|said|finds|found)(?: that)? (?P<what>.+)$",
    re.IGNORECASE,
)
PER_SIDE, MOST_WAYS = 8, 6
"""Versions of a side combined with the other's, and ways of one statement within a side."""


def pair_candidates(task: Task, brief: Brief, proper: frozenset[str]) -> Iterator[Fields]:
    """Yield candidates whose two sides share as few word sequences as possible, first."""
    first, second = task.fields
    sides = [
        side_versions(_told(brief, name), brief.evidence, brief.sample.fields[name], proper)
        for name in (first, second)
    ]
    ranked = sorted(product(*sides), key=lambda pair: _cost(brief, task, pair))
    for one, other in ranked:
        if one != other:
            yield {first: one, second: other}


def _told(brief: Brief, field: str) -> list[Statement]:
    return [
        brief.plan.statements[change.statement_index]
        for change in brief.plan.replacements
        if change.field == field and not change.same_type
    ]


def side_versions(
    told: Sequence[Statement],
    evidence: Sequence[Evidence],
    original: str,
    proper: frozenset[str] = frozenset(),
) -> list[str]:
    """Return versions of a side of about the old length that repeat no headline, nearest first."""
    limits = THRESHOLDS["sentence"]
    wanted = len(words_of(original))
    slack = max(limits.length_words, limits.length_share * wanted)

    def away(text: str) -> int:
        return abs(len(words_of(text)) - wanted)

    near = [text for text in _versions(told, evidence, proper) if away(text) <= slack]
    fresh = (
        text
        for text in sorted(near, key=away)
        if all(
            containment(text, item.title, fewest=limits.judged_trigrams) <= limits.copied_title
            for item in evidence
        )
    )
    return list(islice(fresh, PER_SIDE))


def _cost(brief: Brief, task: Task, pair: Sequence[str]) -> float:
    """Return how far a pair is from the original's lengths and how much its sides copy."""
    lengths = [len(words_of(brief.sample.fields[name])) for name in task.fields]
    off = sum(abs(len(words_of(t)) - n) / n for t, n in zip(pair, lengths, strict=True))
    return off + _copied(*pair)


def _copied(one: str, other: str) -> float:
    """Return the share of word pairs of the shorter text that the longer has too."""
    grams = [set(pairwise(ws)) for ws in map(content, (one, other))]
    least = min(map(len, grams))
    return len(grams[0] & grams[1]) / least if least else 0.0


def _versions(
    told: Sequence[Statement], evidence: Sequence[Evidence], proper: frozenset[str]
) -> Iterator[str]:
    ways = [list(prose(statement, evidence, proper))[:MOST_WAYS] for statement in told]
    for chosen in product(*ways):
        for joined in _joined(chosen):
            yield capitalise(joined) + "."


def _joined(parts: Sequence[str]) -> Iterator[str]:
    if len(parts) == 1:
        yield parts[0]
        return
    yield f"{parts[0]}, while {parts[1]}"
    yield f"{parts[0]}. {capitalise(parts[1])}"


def prose(
    statement: Statement, evidence: Sequence[Evidence], proper: frozenset[str]
) -> Iterator[str]:
    """Yield ways to tell a statement in prose, with the attribution that it has."""
    text = lower_key(statement.text, proper)
    found = dict.fromkeys([*_attributed(text), *ways_to_tell(statement, evidence, proper)])
    if statement.modality == "asserted":
        for plain in list(found)[:2]:
            found[f"it was reported that {plain}"] = None
            found[f"{plain}, according to news reports"] = None
    yield from found


def _attributed(text: str) -> Iterator[str]:
    """Yield a reported statement with its source at the other end."""
    if found := _SAYS_AFTER.match(text):
        who, what = found["who"], found["what"]
        yield f"according to {who}, {what}"
        yield f"{who} {found['says']} that {what}"
    elif found := _ACCORDING.match(text):
        yield f"according to {found['who']}, {found['what']}"
    elif found := _SAYS_FIRST.match(text):
        yield f"{found['what']}, {found['who']} {found['says']}"
        yield f"{found['what']}, according to {found['who']}"
