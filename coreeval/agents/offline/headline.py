"""Parses a headline as a clause with subject, verb and rest, by rules.

A title that the rules cannot parse is skipped: no clause is better than a wrong one.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Literal

from coreeval.agents.offline.tokens import collect_numbers, split_tokens
from coreeval.agents.offline.word_lists import HeadlineVerb, load_verb_forms, load_words

Tense = Literal["present", "past", "future", "modal", "passive"]
_TAIL = re.compile(r"(?<!\s)\s+(?:[|\u2013—-]|::)\s+[^|\u2013—]{2,40}$")
_KICKER = re.compile(
    r"^(?:update \d+|exclusive|breaking(?: news)?|watch|photos?|video|analysis|explainer|report|"
    r"study|survey|poll|in pictures|just in)\s*[:|\u2013-]\s+",
    re.IGNORECASE,
)
_UNREADABLE = re.compile(
    r"[\"“”\u2018:;!*#@\[\]{}<>]|\.\.\.|\(|\)|…|(?<!\w)['\u2019]|  |https?:|[a-z]\. ?[A-Z]"
)
_ADDRESS = re.compile(
    r"^(?:forget|meet|watch|get|save|check|discover|see|read|try|buy|find|delete|sign up)(?!\w)|"
    r"(?<!\w)(?:does|do|did|is|are|was|were|has|have|had|ca|wo|could|would|should)nt(?!\w)|"
    r"(?<!\w)(?:i|we|you|your|our|my|us|he|she|his|her|they|here|this|these)(?!\w)",
    re.IGNORECASE,
)
"""A command to the reader, a contraction without its apostrophe, or a pronoun without its noun."""
_NO_STATEMENT = re.compile(r"^(?:the question is|a list of|a look at|read|watch|see)\b", re.I)
_AUXILIARIES = frozenset(
    ("will", "may", "could", "might", "can", "must", "would",
     "is", "are", "was", "were", "has", "have", "had")
)  # fmt: skip
_COMMA_WORD = re.compile(r"\s?, (\w+) ")
MIN_WORDS, MAX_WORDS, MOST_SUBJECT = 5, 18, 9
"""The most words of a title and of its subject: titles average 12 (pilot §2), longer ones are
lists."""


@dataclass(frozen=True, kw_only=True)
class HeadlineClause:
    """The parts of a headline."""

    subject: str
    verb: str
    """The verb as written, with its auxiliary or `to`."""
    rest: str
    tense: Tense
    entry: HeadlineVerb | None
    """The verb's forms; None for a modal or future clause, which does not need them."""

    @property
    def plural(self) -> bool:
        """Return whether the subject takes `have` rather than `has`."""
        core = re.split(r"\s(?:of|in|on|at|for|from|across|with)\s", self.subject)[0]
        return " and " in core or is_plural(core.split()[-1])


def clean_title(title: str) -> str | None:
    """Return a title without outlet and kicker; None if the rules cannot use it."""
    bare = _KICKER.sub("", _TAIL.sub("", title.strip())).strip().rstrip(".")
    bare = _cut_second_verb(bare)
    count = len(split_tokens(bare))
    if not MIN_WORDS <= count <= MAX_WORDS or bare.isupper() or not bare.isascii():
        return None
    participle = re.match(r"\w+ed (?:in|on|by|at|with)\b", bare)
    return None if participle or _UNREADABLE.search(bare) or _ADDRESS.search(bare) else bare


def _cut_second_verb(title: str) -> str:
    """Return a title cut before `, drops ...`, a second predicate without `and`."""
    for found in _COMMA_WORD.finditer(title):
        verb = load_verb_forms().get(found.group(1).casefold())
        if verb and verb.third == found.group(1).casefold():
            return title[: found.start()].rstrip()
    return title


def clean_sentence(snippet: str) -> str | None:
    """Return the first sentence of a snippet; None if it is truncated or unusable."""
    first, *rest = re.split(r"(?<=[a-z0-9%)])[.!?](?:\s|$)", snippet.strip(), maxsplit=1)
    if not rest or not MIN_WORDS <= len(split_tokens(first)) <= 2 * MAX_WORDS:
        return None
    unusable = (pattern.search(first) for pattern in (_NO_STATEMENT, _UNREADABLE, _ADDRESS))
    return None if any(unusable) else first.strip()


@lru_cache(maxsize=4096)
def parse_clause(text: str) -> HeadlineClause | None:
    """Return a title parsed as a clause; None if its verb cannot be found."""
    tokens = text.split()
    place = _find_verb(tokens)
    return _read_clause(tokens, place) if place else None


def _find_verb(tokens: list[str]) -> int | None:
    """Return the index of the verb: the first certain one, or else the first possible one."""
    places = range(1, len(tokens))
    sure = (i for i in places if _is_sure_verb(tokens, i))
    likely = (i for i in places if _is_likely_verb(tokens, i))
    return next(chain(sure, likely), None)


def _is_sure_verb(tokens: list[str], i: int) -> bool:
    """Return whether a token is certainly the verb, regardless of the rest of the title."""
    word = tokens[i].casefold()
    if word in _AUXILIARIES:
        return i + 1 < len(tokens)
    if word == "to":
        return _is_future(tokens, i)
    verb = load_verb_forms().get(word)
    third = verb is not None and word == verb.third and not verb.noun
    return third and not _follows_noun_opener(tokens, i) and not is_plural(tokens[i - 1])


def _is_likely_verb(tokens: list[str], i: int) -> bool:
    """Return whether a token that may be a noun or a participle is probably the verb."""
    word = tokens[i].casefold()
    verb = load_verb_forms().get(word)
    if verb is None or _follows_noun_opener(tokens, i):
        return False
    plural_before = is_plural(tokens[i - 1]) or bool(collect_numbers(tokens[0]))
    if word == verb.third:
        return not plural_before and not _has_preposition(tokens[:i]) and i + 1 < len(tokens)
    if word == verb.base and word != verb.past:
        following = " ".join(tokens[i + 1 : i + 2]).casefold()
        return plural_before and (following in load_words("function") or not verb.noun)
    return True


def _follows_noun_opener(tokens: list[str], i: int) -> bool:
    before = tokens[i - 1].casefold()
    return (
        before in load_words("before_noun")
        or before.endswith(("'s", "\u2019s", ","))
        or before.isdigit()
    )


def _has_preposition(tokens: list[str]) -> bool:
    return any(token.casefold() in load_words("before_noun") for token in tokens[1:])


def _is_future(tokens: list[str], i: int) -> bool:
    """Return whether `to` at this position starts the predicate, as in `Spain to ban flights`."""
    closing = tokens[-1].casefold() in {"says", "suggests", "shows", "finds", "warns"}
    if i + 1 >= len(tokens) or i > 4 or closing:
        return False
    known = load_verb_forms().get(tokens[i + 1].casefold())
    earlier = any(_is_likely_verb(tokens, j) for j in range(1, i))
    return bool(known and known.base == tokens[i + 1].casefold() and not earlier)


def _read_clause(tokens: list[str], i: int) -> HeadlineClause | None:
    """Return the clause whose verb is at an index."""
    subject, word, rest = " ".join(tokens[:i]), tokens[i].casefold(), " ".join(tokens[i + 1 :])
    following = " ".join(tokens[i + 1 : i + 2]).casefold()
    if word == "set" and following == "for":
        return _make_clause(subject, "is set", rest, "modal")
    if word == "to" or (word == "set" and following == "to"):
        start = i if word == "to" else i + 1
        verb, rest = " ".join(tokens[start : start + 2]), " ".join(tokens[start + 2 :])
        return _make_clause(subject, verb, rest, "future")
    if word in _AUXILIARIES:
        return _make_clause(subject, tokens[i], rest, "modal")
    return _read_verb_form(subject, tokens[i], rest, load_verb_forms()[word])


def _read_verb_form(
    subject: str, verb: str, rest: str, entry: HeadlineVerb
) -> HeadlineClause | None:
    """Return the clause of a listed form. Headlines use the present, so past forms are passives.

    A form that may be past or participle is only accepted if its object is missing: `made`
    before a noun phrase could be either, and a wrong guess would reverse a fact.
    """
    form = verb.casefold()
    if form == entry.base or (form == entry.third != entry.past):
        return _make_clause(subject, verb, rest, "present", entry)
    if form == entry.past != entry.participle:
        return _make_clause(subject, verb, rest, "past", entry)
    first = rest.split(" ")[0].casefold()
    passive = entry.transitive and (not rest or first in load_words("passive_next"))
    return _make_clause(subject, verb, rest, "passive", entry) if passive else None


def _make_clause(
    subject: str, verb: str, rest: str, tense: Tense, entry: HeadlineVerb | None = None
) -> HeadlineClause | None:
    """Return a clause; None if its subject may hide another clause or its predicate is empty."""
    tokens = subject.split()
    two = "and" in tokens and any(_is_likely_verb(tokens, i) for i in range(1, len(tokens) - 1))
    long = len(tokens) > MOST_SUBJECT or "," in subject or tokens[-1] == "and"
    relative = any(token.casefold() in load_words("relative") for token in tokens)
    if two or long or relative or (not rest and tense in {"future", "modal"}):
        return None
    return HeadlineClause(subject=subject, verb=verb, rest=rest, tense=tense, entry=entry)


def is_plural(word: str) -> bool:
    """Return whether a noun looks plural, by its ending and a few exceptions."""
    plain = word.casefold().rstrip(",")
    if plain in {"people", "police", "women", "men", "children", "thousands", "dozens", "hundreds"}:
        return True
    ends = plain.endswith("s") and not plain.endswith(("ss", "us", "is", "'s", "ics", "news"))
    return ends and len(plain) > 3


def split_clause(text: str) -> tuple[str, str, str]:
    """Return head, relation and tail of a statement, split at its verb, or else in the middle.

    All three are substrings of the statement, as the parts of a triple must be.
    """
    clause = parse_clause(text)
    if clause and clause.rest:
        return clause.subject, clause.verb, clause.rest
    tokens = text.split()
    verbs = (i for i in range(1, len(tokens) - 1) if tokens[i].casefold() in load_verb_forms())
    middle = next(verbs, len(tokens) // 2)
    return " ".join(tokens[:middle]), tokens[middle], " ".join(tokens[middle + 1 :])
