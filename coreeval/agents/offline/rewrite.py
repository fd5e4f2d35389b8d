"""Plays the rewriter by rules: keeps the facts and rewords the text outside locks.

It swaps synonyms and expands contractions; it changes voice, clause order, and the position of the
speaker and of the time, each by one reliable rule.
"""

import re
from collections.abc import Callable, Sequence

from coreeval.agents.offline.headline import is_plural
from coreeval.agents.offline.tokens import capitalise, fold_word
from coreeval.agents.offline.word_lists import (
    HeadlineVerb,
    load_contractions,
    load_verb_forms,
    load_words,
)
from coreeval.agents.offline.wording import swap_synonyms
from coreeval.agents.roles import Fields
from coreeval.agents.text.words import measure_containment
from coreeval.schema import Defect, Extraction, Rewrite, Sample

Transform = Callable[[str], str | None]
"""Returns a sentence in another form, or None if its rule may not apply."""

_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
)
_LINKED = re.compile(
    r"^(?P<main>[^.!?]{12,}?) ?,? (?P<link>because|when|while|after|before|although|though)"
    r" (?P<side>[^.!?,]{8,}?)(?P<end> ?[.!?]*)$"
)
_FRONTED = re.compile(
    r"^(?P<link>Because|When|While|After|Before|Although|Though|As|In|On|At|From) "
    r"(?P<side>[^,.!?]{3,}?) ?, (?P<main>[^.!?]{12,}?)(?P<end> ?[.!?]*)$"
)
_SAYS = re.compile(
    r"^(?P<who>[A-Z][\w.&' -]{1,30}?)(?P<says> said| says| announced)"
    r"(?: that)? (?P<what>(?!in |on |it |he |she |they |an? )[^,\"]{12,}?)(?P<end> ?\.?)$"
)
_SAID = re.compile(
    r"^(?P<what>[^\"]{12,}?) ?, (?P<who>[\w ]{2,25}) (?P<says>said|says)(?P<end> ?\.?)$"
)
_ENDING_TIME = re.compile(
    rf"^(?P<main>.{{15,}}?) (?P<when>(?:in|on) (?:{_MONTH}(?: \d{{1,2}})?(?: ?, ?\d{{4}}| "
    r"\d{4})?|\d{4}))(?P<end> ?\.?)$"
)
_PASSIVE = re.compile(
    r"^(?P<what>[^,.]{3,60}?) (?:was|were) (?P<verb>\w+) by "
    r"(?P<who>(?:the )?[A-Z][\w&']*(?: [A-Z][\w&']*)*)(?P<rest>[^,]*?)(?P<end> ?\.?)$"
)
_TIED_WORDS = re.compile(
    r"\b(?:right|just|shortly|soon|long|hours?|days?|weeks?|months?|years?|minutes|than|even|"
    r"known|seen|described|same|such|only|especially)$",
    re.IGNORECASE,
)
"""Ends of a main clause that belong to the following conjunction, as in `the week after`."""
MOST_SUBJECT, MOST_OBJECT = 6, 9
"""The most words of a subject and of an object that are swapped: longer ones may contain a
clause."""


def make_passive(sentence: str) -> str | None:
    """Turn `Shell sold the plant in May.` into `The plant was sold by Shell in May`."""
    found = re.search(r"(?: |(?<![.!?]))[.!?]+$", sentence)
    end = found.group() if found else ""
    tokens = sentence.removesuffix(end).split(" ")
    for i in range(1, min(len(tokens) - 1, MOST_SUBJECT + 1)):
        verb = load_verb_forms().get(tokens[i])
        if verb and verb.transitive and tokens[i] == verb.past and _is_subject(tokens[:i]):
            return _write_passive(tokens, i, verb, end)
    return None


def _write_passive(tokens: Sequence[str], i: int, verb: HeadlineVerb, end: str) -> str | None:
    """Return the passive of a clause whose verb is at an index; None if its object is unclear."""
    stops = load_words("object_stops") | {",", "."}
    stop = next((j for j in range(i + 2, len(tokens)) if tokens[j] in stops), len(tokens))
    thing, rest = tokens[i + 1 : stop], " ".join(tokens[stop:])
    joined = "and" in thing or " and " in f" {rest} "
    no_object = thing[0] in load_words("owners") | load_words("no_object")
    if joined or no_object or len(thing) > MOST_OBJECT:
        return None
    head = thing[thing.index("of") - 1] if "of" in thing[1:] else thing[-1]
    be = "were" if is_plural(head) else "was"
    who = lower_first(" ".join(tokens[:i]))
    new = f"{capitalise(' '.join(thing))} {be} {verb.participle} by {who} {rest}"
    return f"{new.rstrip()}{end}"


def _is_subject(tokens: Sequence[str]) -> bool:
    """Return whether tokens are a plain subject: a name, or an article and one or two nouns."""
    if tokens[0].casefold() in load_words("pronouns") or "," in " ".join(tokens):
        return False
    named = all(token[0].isupper() or token in {"of", "the", "'s", "&"} for token in tokens)
    return named or (tokens[0] in {"The", "A", "An"} and len(tokens) <= 3)


def make_active(sentence: str) -> str | None:
    """Turn `The plant was sold by Shell.` into `Shell sold the plant`."""
    found = _PASSIVE.match(sentence)
    verb = load_verb_forms().get(found["verb"]) if found else None
    if not found or not verb or verb.participle != found["verb"]:
        return None
    who = capitalise(found["who"])
    return f"{who} {verb.past} {lower_first(found['what'])}{found['rest']}{found['end']}"


def move_side_first(sentence: str) -> str | None:
    """Turn `X because Y.` into `Because Y, X`."""
    found = _LINKED.match(sentence)
    first = re.split(r"\W", found["main"])[0].casefold() if found else ""
    tied = found and (_TIED_WORDS.search(found["main"]) or "," in found["main"])
    if not found or tied or first in load_verb_forms() or first.endswith("ing"):
        return None
    main, link = lower_first(found["main"]), capitalise(found["link"])
    return f"{link} {found['side']}, {main}{found['end']}"


def move_main_first(sentence: str) -> str | None:
    """Turn `Because Y, X.` into `X because Y`."""
    found = _FRONTED.match(sentence)
    if not found:
        return None
    return f"{capitalise(found['main'])} {found['link'].lower()} {found['side']}{found['end']}"


def move_speaker_last(sentence: str) -> str | None:
    """Turn `The mayor said that X.` into `X, the mayor said`."""
    found = _SAYS.match(sentence)
    if not found:
        return None
    return f"{capitalise(found['what'])}, {lower_first(found['who'])}{found['says']}{found['end']}"


def move_speaker_first(sentence: str) -> str | None:
    """Turn `X, the mayor said.` into `The mayor said that X`."""
    found = _SAID.match(sentence)
    if not found:
        return None
    what = lower_first(found["what"])
    return f"{capitalise(found['who'])} {found['says']} that {what}{found['end']}"


def move_time_first(sentence: str) -> str | None:
    """Turn `X in July 2015.` into `In July 2015, X`."""
    found = _ENDING_TIME.match(sentence)
    if not found:
        return None
    return f"{capitalise(found['when'])}, {lower_first(found['main'])}{found['end']}"


TRANSFORMS: tuple[Transform, ...] = (
    make_passive,
    make_active,
    move_side_first,
    move_speaker_first,
    move_speaker_last,
    move_main_first,
    move_time_first,
)


def lower_first(text: str) -> str:
    """Return a clause for mid-sentence use: its first word in lower case unless it is a name."""
    first = re.split(r"\W", text, maxsplit=1)[0]
    common = first.casefold() in load_words("function") | load_words("plain")
    return text[0].lower() + text[1:] if common and first != "I" else text


async def rewrite_offline(
    sample: Sample,
    extraction: Extraction,
    *,
    feedback: Sequence[Defect] = (),
    previous: Fields | None = None,
) -> Rewrite:
    """Return the reworded sample, or the same text with the reason that it did not change.

    The sides of a pair try the transforms in a different order, so that their results differ.
    """
    fields = {}
    for number, (name, text) in enumerate(sample.fields.items()):
        turns = TRANSFORMS if (number + bool(feedback)) % 2 == 0 else TRANSFORMS[::-1]
        locked = [lock.span for lock in extraction.locked if lock.field == name]
        fields[name] = reword(text, locked, turns)
    if fields != dict(sample.fields):
        return Rewrite(fields=fields, reworded=True)
    reason = "no listed synonym, contraction or clause to turn round outside the locks"
    return Rewrite(fields=fields, reworded=False, reason=reason)


def reword(text: str, locked: Sequence[str], turns: Sequence[Transform]) -> str:
    """Return a text reworded outside its locked spans, with each sentence transformed once."""
    parts = re.split(r"(?<=[a-z0-9)][.!?])(\s+)", text)
    changed = "".join(_transform_sentence(part, turns) if part.strip() else part for part in parts)
    kept = changed if all(span in changed for span in locked) else text
    return _reword_unlocked(kept, locked)


def _transform_sentence(sentence: str, turns: Sequence[Transform]) -> str:
    """Return the sentence transformed once or twice, whichever repeats the original less."""
    bare = sentence.strip()
    once = [other for turn in turns if (other := turn(bare)) is not None]
    twice = [other for one in once for turn in turns if (other := turn(one)) is not None]
    return min([sentence, *once, *twice], key=lambda other: measure_containment(other, bare))


def _reword_unlocked(text: str, locked: Sequence[str]) -> str:
    """Return a text with expanded contractions and swapped synonyms outside the locks."""
    spans = sorted({span for span in locked if span}, key=len, reverse=True)
    held = "(" + "|".join([*map(re.escape, spans), *_HELD]) + ")"
    parts = re.split(held, text)
    return "".join(part if i % 2 else _swap_words(part) for i, part in enumerate(parts))


_HELD = (r"[#@]\w+", r"\"[^\"]*\"", r"``(?:[^`\n]|`(?!`))*?''", r"https?://\S+", r"\b[A-Z]{2,}\b")
"""Hashtags, mentions, quotations, links and acronyms, which are never reworded."""
_CONTRACTION = re.compile(
    r"(?<!\w)(?:" + "|".join(load_contractions()).replace("'", "['\u2019]") + r")(?!\w)",
    re.IGNORECASE,
)


def _swap_words(text: str) -> str:
    return swap_synonyms(_CONTRACTION.sub(_expand_contraction, text), loose=True)


def _expand_contraction(found: re.Match[str]) -> str:
    full = load_contractions()[fold_word(found.group())]
    upper = found.group()[0].isupper() or full.startswith("i ")
    return capitalise(full) if upper else full
