"""Plays the composer by rules: writes candidates and returns the first that passes the checks.

A run makes the same checks later; making them here saves an attempt. If no candidate passes, the
best one is returned, so that the run can report its defects. In a short text, the label's carrier
stays, and the news becomes its new occasion, in the author's habits.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from coreeval.agents import checks
from coreeval.agents.offline.pairs import write_pairs
from coreeval.agents.offline.tokens import (
    EMOJI,
    TextSegment,
    capitalise,
    find_tags_start,
    has_word,
    split_segments,
    split_tokens,
)
from coreeval.agents.offline.wording import phrase_statement
from coreeval.agents.roles import CompositionRequest, Fields
from coreeval.agents.text import voice
from coreeval.agents.thresholds import thresholds_of
from coreeval.schema import Composition, Evidence, Statement, Task, Window

_LAST_STOP = re.compile(r"(?<![.])\.(?=(?:\s*(?:[#@]\w+|[^\w\s.])+)*\s*$)")
_FIRST_WORD = re.compile(r"(?<![#@\w])[^\W\d_]\w*")


def apply_habits(original: str, text: str, proper: frozenset[str]) -> str:
    """Return a text without the final stop or first capital that its author omits."""
    if voice.ends_open(original):
        text = _LAST_STOP.sub("", text)
    return _lower_first_word(text, proper) if voice.starts_lower(original) else text


def _lower_first_word(text: str, proper: frozenset[str]) -> str:
    first = _FIRST_WORD.search(text)
    word = first.group() if first else ""
    if not first or word in proper or word == "I" or word[1:] != word[1:].lower():
        return text
    return text[: first.start()] + word.lower() + text[first.end() :]


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
"""Phrases that introduce news, in the first person of an anonymous author (pilot §4.5)."""
LONGEST_OPENER = max(len(split_tokens(opener)) for opener in OPENERS)
_MARK = re.compile(r"[#@]\w+")
_CUT = re.compile(r"[,;:] +|(?<! ) +(?:and|but|so|because|when|while) +|\\\\n")
_BROKEN = "\0"
"""A mark for a segment that cannot be kept in one way."""
_Shorten = Callable[[str, Sequence[str]], str]


@dataclass(frozen=True, kw_only=True)
class _TextFrame:
    """The parts of a text that stay."""

    lead: str
    """Mentions at the beginning."""
    before: str
    """Kept words before the news."""
    after: str
    """Kept words after the news."""
    tail: str
    """Hashtags, markers and emoji at the end."""


def write_tweets(
    task: Task, request: CompositionRequest, proper: frozenset[str], seed: int
) -> Iterator[Fields]:
    """Yield candidates, closest to the original's length first; the seed breaks ties."""
    field = task.fields[0]
    original = request.sample.fields[field]
    wanted = len(split_tokens(original))
    chance = random.Random(f"{seed}:{request.sample.id}")
    told = [
        way for one in request.plan.statements for way in _phrase_with_opener(one, request, proper)
    ]
    found: dict[str, int] = {}
    for place, frame in enumerate(_find_frames(request, field)):
        for way in told:
            found.setdefault(apply_habits(original, _join_frame(frame, way), proper), place)
    keyed = [
        (abs(len(split_tokens(text)) - wanted) // 3, place, chance.random(), text)
        for text, place in found.items()
    ]
    yield from ({field: text} for *_, text in sorted(keyed))


def _phrase_with_opener(
    statement: Statement, request: CompositionRequest, proper: frozenset[str]
) -> Iterator[str]:
    """Yield the wordings of a statement after each opener; a question has none."""
    openers = OPENERS[:1] if statement.modality == "question" else OPENERS
    for wording in phrase_statement(statement, request.evidence, proper):
        yield from (capitalise(f"{opener}{wording}") for opener in openers)


def _find_frames(request: CompositionRequest, field: str) -> list[_TextFrame]:
    """Return the frames to keep: complete clauses around the locks, or only the locked words."""
    text = request.sample.fields[field]
    spans = [
        lock.span
        for lock in request.extraction.locked
        if lock.field == field and lock.why not in {"mention", "emoji", "marker"}
    ]
    lead = _LEAD.match(text)
    start, end = lead.end() if lead else 0, find_tags_start(text)
    body = [part for part in split_segments(text[:end]) if part.end > start]
    frames = []
    for shorten in (_keep_whole, _keep_clauses, _keep_locked):
        pieces = [_keep_piece(part, spans, start, shorten, request) for part in body]
        if not any(_BROKEN in piece for piece in pieces):
            frames.append(_make_frame(text, start, end, pieces))
    return list(dict.fromkeys(frames))


def _make_frame(text: str, start: int, end: int, pieces: Sequence[str]) -> _TextFrame:
    """Return a frame with the kept pieces before and after the first segment that is removed.

    Emoji, tags and mentions of removed segments move to the end.
    """
    place = next((i for i, piece in enumerate(pieces) if not piece), 0)
    body, kept = text[start:end], " ".join(pieces)
    missing = [sign for sign in EMOJI.findall(body) + _MARK.findall(body) if sign not in kept]
    return _TextFrame(
        lead=text[:start].strip(),
        before=_join_sentences(pieces[:place]),
        after=_join_sentences(pieces[place:]),
        tail=" ".join([*missing, text[end:].strip()]).strip(),
    )


def _join_sentences(pieces: Sequence[str]) -> str:
    """Return kept pieces as sentences; the end mark of the last one depends on the next text."""
    kept = [piece for piece in pieces if piece]
    return " ".join([*map(_end_sentence, kept[:-1]), *kept[-1:]])


def _keep_piece(
    part: TextSegment,
    spans: Sequence[str],
    start: int,
    shorten: _Shorten,
    request: CompositionRequest,
) -> str:
    """Return the kept part of a segment; empty if the segment is removed."""
    own = part.text[max(0, start - part.start) :].strip()
    held = [span for span in spans if span in own]
    return _swap_names(shorten(own, held), request) if held else ""


def _keep_whole(own: str, held: Sequence[str]) -> str:
    """Keep a clause with the author's own view; a fact in other clauses would lack support."""
    return own if has_word(own, "subjective", "personal") else _keep_locked(own, held)


def _keep_clauses(own: str, held: Sequence[str]) -> str:
    """Keep everything from the first clause with a lock to the end of the last one."""
    cuts = list(_CUT.finditer(own))
    first, last = min(map(own.index, held)), max(own.index(span) + len(span) for span in held)
    start = max((cut.end() for cut in cuts if cut.end() <= first), default=0)
    end = min((cut.start() for cut in cuts if cut.start() >= last), default=len(own))
    return own[start:end].rstrip(" ,;:")


def _keep_locked(own: str, held: Sequence[str]) -> str:
    """Keep the only locked span; several spans in one clause do not form a sentence."""
    outer = {span for span in held if not any(span != other and span in other for other in held)}
    if len(outer) > 1:
        return _BROKEN
    text = outer.pop()
    end = re.search(r"(?<![!?…])[!?…]+$", own)
    return text if not end or text.endswith(end.group()) else text + end.group()


def _swap_names(text: str, request: CompositionRequest) -> str:
    """Return a kept clause with the planned names in place of the old ones."""
    for change in request.plan.replacements:
        if change.mode == "replace" and change.before and change.same_type:
            pattern = rf"(?<!\w){re.escape(change.before.head)}(?!\w)"
            text = re.sub(pattern, change.after.head.replace("\\", ""), text)
    return text


def _join_frame(frame: _TextFrame, told: str) -> str:
    """Return the whole text; the first letter of a kept clause is locked and stays."""
    first = f"{_end_sentence(frame.before)} " if frame.before else ""
    body = first + told
    if frame.after:
        body = f"{body.rstrip('.')}..." if frame.after[0].islower() else _end_sentence(body)
        body = f"{body} {frame.after}"
    body = body if frame.tail or body[-1:] in ".!?…" else f"{body}."
    return " ".join(part for part in (frame.lead, body, frame.tail) if part).strip()


def _end_sentence(text: str) -> str:
    """Return a sentence with an end mark."""
    done = text.rstrip(" ,;:-")
    return done if done[-1:] in ".!?…" or EMOJI.search(done[-1:]) else f"{done}."


MOST_CHECKED = 8
"""The most candidates that are checked, since the checks take most of the time."""


@dataclass(frozen=True)
class OfflineComposer:
    """Writes D-hat from the plan's statements and the original's locked spans."""

    task: Task
    names: frozenset[str]
    """Words of known names, which keep their capital in running text."""
    seed: int = 0

    async def __call__(self, request: CompositionRequest) -> Composition:
        """Return the first candidate without a defect, or else the one with the fewest defects.

        If the rules find no wording for the plan, return the original with all replacements
        dropped: the checks report it as unchanged, so that no unfinished text can pass.
        """
        proper = self.names | find_proper_words(request.evidence)
        written = [
            fields for fields in self._candidates(request, proper) if fields != request.previous
        ]
        fitting = [fields for fields in written if self._fits(request, fields)]
        fields = self._best(request, fitting or written[:1])
        if fields is None:
            told = tuple(statement.text for statement in request.plan.statements)
            return Composition(fields=dict(request.sample.fields), dropped=told)
        used = tuple(range(len(request.plan.replacements)))
        return Composition(fields=fields, used_replacements=used)

    def _candidates(self, request: CompositionRequest, proper: frozenset[str]) -> Iterator[Fields]:
        if len(self.task.fields) > 1:
            return write_pairs(self.task, request, proper)
        return write_tweets(self.task, request, proper, self.seed)

    def _fits(self, request: CompositionRequest, fields: Fields) -> bool:
        """Return whether all fields have about the original's length: the cheapest check."""
        limits = thresholds_of(self.task)
        for name, text in fields.items():
            old, new = len(split_tokens(request.sample.fields[name])), len(split_tokens(text))
            if abs(old - new) > max(limits.length_words, limits.length_share * old):
                return False
        return True

    def _best(self, request: CompositionRequest, candidates: Sequence[Fields]) -> Fields | None:
        """Return the first candidate without a defect, or else the one with the fewest defects."""
        window = _find_window(request.evidence)
        counts: list[int] = []
        for fields in candidates[:MOST_CHECKED]:
            spaced = {
                name: checks.restore_spacing(self.task, text) for name, text in fields.items()
            }
            counts.append(len(checks.check_composition(self.task, request, spaced, window)))
            if counts[-1] == 0:
                break
        return candidates[counts.index(min(counts))] if counts else None


def find_proper_words(evidence: Sequence[Evidence]) -> frozenset[str]:
    """Return the words that are names according to the evidence itself."""
    named = (e.name for item in evidence for e in item.entities if e.type != "other")
    inside = (word for item in evidence for word in item.snippet.split()[1:] if word[:1].isupper())
    return frozenset(
        word.strip(",.()").removesuffix("'s").removesuffix("\u2019s")
        for phrase in [*named, *inside]
        for word in phrase.split()
    )


def _find_window(evidence: Sequence[Evidence]) -> Window:
    """Return the period of the evidence; the run has already applied its own window."""
    moments = [item.published_at for item in evidence]
    return Window(start=min(moments), end=max(moments) + timedelta(seconds=1))
