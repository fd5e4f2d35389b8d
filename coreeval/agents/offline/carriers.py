"""Which words of a text carry its label: whole clauses where enough else stays free for news."""

import re
from collections.abc import Sequence

from coreeval.agents.offline import lexicon
from coreeval.agents.offline.text import Segment, has_any, segments, without_edges, words_of

_CLAUSE_WORDS = (10, 6, 0)
"""Words up to which the clause around a label carrier is locked whole, tried in this order."""
MOST_LOCKED = 0.6
"""Share of a text's words that may be locked for its label: the rest must have room for news."""
_CLAUSE_CUT = re.compile(r",\s*|:\s+|;\s*|(?<!\s)\s+(?:and|but|so|because|when|while|that)\s+|\\n")
_DANGLING = re.compile(r"\b(?:when|like|how|says|than|because|who|of|to)$", re.IGNORECASE)


def label_spans(text: str, label: str, pattern: re.Pattern[str] | None) -> list[str]:
    """Return the spans that carry a label, told by the pattern of its words."""
    if pattern is None:
        return []
    total = len(words_of(text))
    spans: list[str] = []
    for longest in _CLAUSE_WORDS:
        spans = _telling(text, pattern, longest)
        if _count(spans) <= MOST_LOCKED * total:
            break
    else:
        spans = [found.group() for found in pattern.finditer(text)]
    parts = segments(text)
    return spans or (_punchline(parts[-1]) if label == "irony" and len(parts) > 1 else [])


def _count(spans: Sequence[str]) -> int:
    return sum(len(words_of(span)) for span in spans)


def _telling(text: str, pattern: re.Pattern[str], longest: int) -> list[str]:
    """Return one carrier for each segment that has one; fragments only where there is no more."""
    found = (_carrier_span(segment, pattern, longest) for segment in segments(text))
    spans = [span for span in found if span]
    return [span for span in spans if len(words_of(span)) > 2] or spans


def _carrier_span(segment: Segment, pattern: re.Pattern[str], longest: int) -> str | None:
    """Return the clause of a segment that carries the label, or of a long clause its core."""
    found = [match for match in pattern.finditer(segment.text) if not match.group().startswith("#")]
    if not found:
        tags = [match.group() for match in pattern.finditer(segment.text)]
        return tags[0] if tags else None
    first = found[0]
    for whole in (without_edges(segment.text), _clause_around(segment.text, first)):
        if len(words_of(whole)) <= longest and first.group() in whole:
            return None if _lacks_subject(whole) else whole
    return _core(segment.text, first)


def _lacks_subject(clause: str) -> bool:
    """Tell whether a clause begins with its verb, so that cut out it would have no subject."""
    first = clause.split()[0].casefold() if clause.split() else ""
    verb = lexicon.verb_forms().get(first)
    return verb is not None and first == verb.third and not verb.noun


def _punchline(last: Segment) -> list[str]:
    """Return a short last clause in the author's voice: where irony without a cue mostly sits."""
    bare = without_edges(last.text)
    voice = has_any(bare, lexicon.words("subjective") | lexicon.words("personal"))
    return [bare] if voice and len(words_of(bare)) <= _CLAUSE_WORDS[0] else []


def _clause_around(text: str, found: re.Match[str]) -> str:
    """Return the clause between commas and conjunctions that holds a match."""
    cuts = [(cut.start(), cut.end()) for cut in _CLAUSE_CUT.finditer(text)]
    start = max((end for _, end in cuts if end <= found.start()), default=0)
    end = min((begin for begin, _ in cuts if begin >= found.end()), default=len(text))
    return without_edges(text[start:end])


def _plain(word: re.Match[str]) -> str:
    return word.group().casefold().replace("\u2019", "'")


def _core(text: str, found: re.Match[str]) -> str | None:
    """Return a carrier with the words that lead to it, if they start as a clause may."""
    start = found.start()
    for word in reversed(list(re.finditer(r"[\w'\u2019]+", text[:start]))[-4:]):
        if _plain(word) not in lexicon.words("modifiers"):
            break
        start = word.start()
    led = list(re.finditer(r"[\w'\u2019]+", text[start : found.start()]))
    opening = next((w.start() for w in led if _plain(w) in lexicon.words("openings")), None)
    core = text[start + opening if opening is not None else found.start() : found.end()]
    return None if _DANGLING.search(core) else core
