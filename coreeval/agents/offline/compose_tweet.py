"""Candidates for one short text: what carries the label stays, the news is its new occasion."""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from coreeval.agents.offline import lexicon
from coreeval.agents.offline.habits import in_habit
from coreeval.agents.offline.text import (
    EMOJI,
    Segment,
    capitalise,
    has_any,
    segments,
    tags_start,
    words_of,
)
from coreeval.agents.offline.wording import ways_to_tell
from coreeval.agents.roles import Brief, Fields
from coreeval.schema import Lock, Statement, Task

_LEAD = re.compile(r"^(?:\s*@\w+)+")
OPENERS = (
    "",
    "So ",
    "Just read that ",
    "Apparently ",
    "Saw in the news that ",
    "And now I read that ",
    "I was just reading in the news that ",
    "Was scrolling through the news over coffee and read that ",
)
"""Ways to bring up a piece of news, in the first person of an anonymous author (pilot §4.5)."""
LONGEST_OPENER = max(len(words_of(opener)) for opener in OPENERS)
_CUT = re.compile(r"[,;:] +|(?<! ) +(?:and|but|so|because|when|while) +|\\\\n")
_BROKEN = "\0"
"""Stands for a piece that cannot be kept in this way."""
_Shorten = Callable[[str, Sequence[str]], str]


@dataclass(frozen=True, kw_only=True)
class _Frame:
    """What stays of a text."""

    lead: str
    """Mentions at its beginning."""
    before: str
    """Kept words that stood before the occasion."""
    after: str
    tail: str
    """Hashtags, markers and emoji at its end."""


def tweet_candidates(
    task: Task, brief: Brief, proper: frozenset[str], seed: int
) -> Iterator[Fields]:
    """Yield candidates, nearest to the original's length first, ties broken by the seed."""
    field = task.fields[0]
    wanted = len(words_of(brief.sample.fields[field]))
    chance = random.Random(f"{seed}:{brief.sample.id}")
    found: dict[str, int] = {}
    for place, frame in enumerate(_frames(brief, field)):
        for statement in brief.plan.statements:
            for told in _told(statement, brief, proper):
                text = in_habit(brief.sample.fields[field], _join(frame, told), proper)
                found.setdefault(text, place)
    keyed = [
        (abs(len(words_of(text)) - wanted) // 3, place, chance.random(), text)
        for text, place in found.items()
    ]
    for *_, text in sorted(keyed):
        yield {field: text}


def _told(statement: Statement, brief: Brief, proper: frozenset[str]) -> Iterator[str]:
    for wording in ways_to_tell(statement, brief.evidence, proper):
        if statement.modality == "question":
            yield capitalise(wording)
            continue
        for opener in OPENERS:
            yield f"{opener}{wording}" if opener else capitalise(wording)


def _frames(brief: Brief, field: str) -> list[_Frame]:
    """Return what stays: the clauses around the locks whole, or only the locked words."""
    text = brief.sample.fields[field]
    locks = [lock for lock in brief.extraction.locked if lock.field == field]
    lead = _LEAD.match(text)
    start, end = lead.end() if lead else 0, tags_start(text)
    body = [part for part in segments(text[:end]) if part.end > start]
    frames = []
    for shorten in (_whole, _clauses, _locked_only):
        pieces = [_piece(part, locks, start, shorten, brief) for part in body]
        if not any(_BROKEN in piece for piece in pieces):
            frames.append(_frame(text, start, end, pieces))
    return list(dict.fromkeys(frames))


def _frame(text: str, start: int, end: int, pieces: Sequence[str]) -> _Frame:
    """Put the kept pieces before or after the place of the first piece that goes."""
    gone = next((i for i, piece in enumerate(pieces) if not piece), None)
    place = gone if gone is not None else 0
    tail = text[end:].strip()
    inner = [found.group() for found in EMOJI.finditer(text[start:end])]
    kept = " ".join(pieces)
    missing = [sign for sign in inner if sign not in kept]
    return _Frame(
        lead=text[:start].strip(),
        before=_sentences(pieces[:place]),
        after=_sentences(pieces[place:]),
        tail=" ".join([*missing, *_inner_tags(text[start:end], kept), tail]).strip(),
    )


def _sentences(pieces: Sequence[str]) -> str:
    """Return kept pieces as sentences; the last is ended where its neighbour is known."""
    kept = [piece for piece in pieces if piece]
    return " ".join([*map(_ended, kept[:-1]), *kept[-1:]])


def _inner_tags(text: str, kept: str) -> list[str]:
    """Return the tags and mentions that stood inside what goes."""
    return [found for found in re.findall(r"[#@]\w+", text) if found not in kept]


def _piece(
    part: Segment, locks: Sequence[Lock], start: int, shorten: _Shorten, brief: Brief
) -> str:
    """Return what stays of a segment; empty when it goes."""
    own = part.text if part.start >= start else part.text[start - part.start :].strip()
    held = [
        lock.span
        for lock in locks
        if lock.span in own and lock.why not in {"mention", "emoji", "marker"}
    ]
    if not held:
        return ""
    return _swapped(shorten(own, held), brief)


def _whole(own: str, held: Sequence[str]) -> str:
    """Keep the clause if it is the author's own view: a fact in it would stay unsupported."""
    words = lexicon.words("subjective") | lexicon.words("personal")
    return own if has_any(own, words) else _locked_only(own, held)


def _clauses(own: str, held: Sequence[str]) -> str:
    """Keep from the start of the first clause with a lock to the end of the last."""
    cuts = [(0, 0), *((c.start(), c.end()) for c in _CUT.finditer(own)), (len(own), len(own))]
    first, last = min(map(own.index, held)), max(own.index(span) + len(span) for span in held)
    start = max(end for _, end in cuts if end <= first)
    end = min(begin for begin, _ in cuts if begin >= last)
    return own[start:end].rstrip(" ,;:")


def _locked_only(own: str, held: Sequence[str]) -> str:
    """Keep the one locked span; several of them in one clause make no sentence."""
    outer = {span for span in held if not any(span != other and span in other for other in held)}
    if len(outer) > 1:
        return _BROKEN
    text = outer.pop()
    end = re.search(r"(?<![!?…])[!?…]+$", own)
    return text if not end or text.endswith(end.group()) else text + end.group()


def _swapped(text: str, brief: Brief) -> str:
    """Return a kept clause with the planned names in place of the old ones."""
    for change in brief.plan.replacements:
        if change.mode == "replace" and change.before and change.same_type:
            pattern = rf"(?<!\w){re.escape(change.before.head)}(?!\w)"
            text = re.sub(pattern, change.after.head.replace("\\", ""), text)
    return text


def _join(frame: _Frame, told: str) -> str:
    """Return the whole text; a kept clause keeps its own first letter, being locked."""
    first = f"{_ended(frame.before)} " if frame.before else ""
    body = first + told
    if frame.after:
        small = frame.after[0].islower()
        body = f"{body.rstrip('.')}... {frame.after}" if small else f"{_ended(body)} {frame.after}"
    body = body if frame.tail or body[-1:] in ".!?…" else f"{body}."
    return " ".join(part for part in (frame.lead, body, frame.tail) if part).strip()


def _ended(text: str) -> str:
    """Return a sentence with an end mark."""
    done = text.rstrip(" ,;:-")
    return done if done[-1:] in ".!?…" or EMOJI.search(done[-1:]) else f"{done}."
