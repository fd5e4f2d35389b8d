"""Candidates for a pair of sentences: each side tells its statements, in words of its own."""

import re
from collections.abc import Iterator, Sequence
from itertools import product

from coreeval.agents.offline.text import capitalise, content, words_of
from coreeval.agents.offline.wording import lower_key, swap, wordings
from coreeval.agents.roles import Brief, Fields
from coreeval.schema import Statement, Task

_SAYS_AFTER = re.compile(
    r"^(?P<what>.+), (?P<who>(?:an?|the) [\w ]{3,40}?) (?P<says>says|said|shows|reports|finds|found|has found)$",
    re.IGNORECASE,
)
_ACCORDING = re.compile(r"^(?P<what>.+?),? according to (?P<who>[\w ]+)$", re.IGNORECASE)
_SAYS_FIRST = re.compile(
    r"^(?P<who>(?:an?|the) [\w ]*?(?:study|report|survey|monitor|paper)) (?P<says>says|said|finds|found)"
    r"(?: that)? (?P<what>.+)$",
    re.IGNORECASE,
)
PER_SIDE = 10
"""Versions of one side that are combined with those of the other."""


def pair_candidates(task: Task, brief: Brief, proper: frozenset[str]) -> Iterator[Fields]:
    """Yield candidates whose two sides share as few word sequences as possible, first."""
    first, second = task.fields
    sides = [list(_versions(brief, name, proper))[:PER_SIDE] for name in (first, second)]
    ranked = sorted(product(*sides), key=lambda pair: _cost(brief, task, pair))
    for one, other in ranked:
        if one != other:
            yield {first: one, second: other}


def _cost(brief: Brief, task: Task, pair: Sequence[str]) -> float:
    """Return how far a pair is from the original's lengths and how much its sides copy."""
    lengths = [len(words_of(brief.sample.fields[name])) for name in task.fields]
    off = sum(abs(len(words_of(t)) - n) / n for t, n in zip(pair, lengths, strict=True))
    return off + _copied(*pair)


def _copied(one: str, other: str) -> float:
    """Return the share of word pairs of the shorter text that the longer has too."""
    grams = [set(zip(ws, ws[1:], strict=False)) for ws in map(content, (one, other))]
    least = min(map(len, grams))
    return len(grams[0] & grams[1]) / least if least else 0.0


def _versions(brief: Brief, field: str, proper: frozenset[str]) -> Iterator[str]:
    told = [
        brief.plan.statements[change.statement_index]
        for change in brief.plan.replacements
        if change.field == field and not change.same_type
    ]
    ways = [list(prose(statement, proper))[:6] for statement in told]
    for chosen in product(*ways):
        for joined in _joined(chosen):
            yield capitalise(joined) + "."


def _joined(parts: Sequence[str]) -> Iterator[str]:
    if len(parts) == 1:
        yield parts[0]
        return
    yield f"{parts[0]}, while {parts[1]}"
    yield f"{parts[0]}. {capitalise(parts[1])}"


def prose(statement: Statement, proper: frozenset[str]) -> Iterator[str]:
    """Yield ways to tell a statement in prose, with the attribution that it has."""
    text = lower_key(statement.text, proper)
    found = dict.fromkeys([*_attributed(text), *wordings(statement.text, proper), swap(text)])
    if statement.modality == "attributed" or _is_prose(statement.text):
        found[text] = None
    if statement.modality == "asserted":
        for plain in list(found):
            found[f"it was reported that {plain}"] = None
            found[f"{plain}, according to news reports"] = None
    yield from found


def _is_prose(text: str) -> bool:
    return any(word in {"the", "a", "an", "has", "have", "is", "are"} for word in text.split())


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
