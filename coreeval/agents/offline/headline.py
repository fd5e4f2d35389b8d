"""Reads a headline as a clause: who, does what, to what. It uses rules only, no parser.

A title that the rules cannot read is left out: no clause is better than a wrong one.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from coreeval.agents.offline import word_lists
from coreeval.agents.offline.tokens import collect_numbers, split_tokens

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
# An order to the reader, a contraction whose mark was lost, a pronoun without its noun.
_ADDRESS = re.compile(
    r"^(?:forget|meet|watch|get|save|check|discover|see|read|try|buy|find|delete|sign up)(?!\w)|"
    r"(?<!\w)(?:does|do|did|is|are|was|were|has|have|had|ca|wo|could|would|should)nt(?!\w)|"
    r"(?<!\w)(?:i|we|you|your|our|my|us|he|she|his|her|they|here|this|these)(?!\w)",
    re.IGNORECASE,
)
_NO_STATEMENT = re.compile(r"(?:the question is|a list of|a look at|read|watch|see)\b", re.I)
_MODAL = {"will", "may", "could", "might", "can", "must", "would"}
_BE_HAVE = {"is", "are", "was", "were", "has", "have", "had"}
_COMMA_WORD = re.compile(r"\s?, (\w+) ")
MIN_WORDS, MAX_WORDS, MOST_SUBJECT = 5, 18, 9
"""Titles average 12 words (pilot §2); shorter ones say little, longer ones are lists."""


@dataclass(frozen=True, kw_only=True)
class HeadlineClause:
    """A headline taken apart."""

    subject: str
    verb: str
    """The verb as written, its auxiliary or `to` included."""
    rest: str
    tense: Tense
    entry: word_lists.HeadlineVerb | None
    """The verb's forms; None where they are not needed."""

    @property
    def plural(self) -> bool:
        """Return whether the subject takes `have` rather than `has`."""
        core = re.split(r"\s(?:of|in|on|at|for|from|across|with)\s", self.subject)[0]
        if " and " in core:
            return True
        last = core.split()[-1]
        return is_plural(last)


def clean_title(title: str) -> str | None:
    """Return a title without outlet and kicker; None if the rules cannot use it."""
    bare = _KICKER.sub("", _TAIL.sub("", title.strip())).strip().rstrip(".")
    bare = _cut_second_verb(bare)
    count = len(split_tokens(bare))
    if not MIN_WORDS <= count <= MAX_WORDS or _UNREADABLE.search(bare) or bare.isupper():
        return None
    if re.match(r"\w+ed (?:in|on|by|at|with)\b", bare):
        return None
    return None if _ADDRESS.search(bare) or not bare.isascii() else bare


def _cut_second_verb(title: str) -> str:
    """Return a title cut before `, drops ...`, a second predicate without `and`."""
    for found in _COMMA_WORD.finditer(title):
        verb = word_lists.load_verb_forms().get(found.group(1).casefold())
        if verb and verb.third == found.group(1).casefold():
            return title[: found.start()].rstrip()
    return title


def clean_sentence(snippet: str) -> str | None:
    """Return the first sentence of a snippet; None if it is truncated or unusable."""
    first = re.split(r"(?<=[a-z0-9%)])[.!?](?:\s|$)", snippet.strip(), maxsplit=1)
    if (
        len(first) < 2
        or _NO_STATEMENT.match(first[0])
        or _UNREADABLE.search(first[0])
        or _ADDRESS.search(first[0])
    ):
        return None
    return first[0].strip() if MIN_WORDS <= len(split_tokens(first[0])) <= 2 * MAX_WORDS else None


@lru_cache(maxsize=4096)
def parse_clause(text: str) -> HeadlineClause | None:
    """Return a title parsed as a clause; None if its verb cannot be found."""
    tokens = text.split()
    place = _find_verb(tokens)
    return _read_clause(tokens, place) if place else None


def _find_verb(tokens: list[str]) -> int | None:
    """Return the index of the verb: the first certain one, or else the first possible one."""
    for surely in (_is_sure_verb, _is_likely_verb):
        places = [i for i in range(1, len(tokens)) if surely(tokens, i)]
        if places:
            return places[0]
    return None


def _is_sure_verb(tokens: list[str], i: int) -> bool:
    """Return whether this is certainly a verb, whatever else is in the title."""
    word = tokens[i].casefold()
    if word in _MODAL | _BE_HAVE:
        return i + 1 < len(tokens)
    if word == "to":
        return _is_future(tokens, i)
    verb = word_lists.load_verb_forms().get(word)
    third = verb is not None and word == verb.third and not verb.noun
    return third and not _follows_noun_opener(tokens, i) and not is_plural(tokens[i - 1])


def _is_likely_verb(tokens: list[str], i: int) -> bool:
    """Return whether a possible noun or participle reads as the verb here."""
    word = tokens[i].casefold()
    verb = word_lists.load_verb_forms().get(word)
    if verb is None or _follows_noun_opener(tokens, i):
        return False
    plural_before = is_plural(tokens[i - 1]) or bool(collect_numbers(tokens[0]))
    if word == verb.third:
        return not plural_before and not _has_preposition(tokens[:i]) and i + 1 < len(tokens)
    if word == verb.base and word != verb.past:
        opens = " ".join(tokens[i + 1 : i + 2]).casefold()
        return plural_before and (opens in word_lists.load_words("function") or not verb.noun)
    return True


def _follows_noun_opener(tokens: list[str], i: int) -> bool:
    before = tokens[i - 1].casefold()
    return (
        before in word_lists.load_words("before_noun")
        or before.endswith(("'s", "\u2019s", ","))
        or before.isdigit()
    )


def _has_preposition(tokens: list[str]) -> bool:
    return any(token.casefold() in word_lists.load_words("before_noun") for token in tokens[1:])


def _is_future(tokens: list[str], i: int) -> bool:
    """Return whether `to` at this position starts the predicate, as in `Spain to ban flights`."""
    closing = tokens[-1].casefold() in {"says", "suggests", "shows", "finds", "warns"}
    if i + 1 >= len(tokens) or i > 4 or closing:
        return False
    known = word_lists.load_verb_forms().get(tokens[i + 1].casefold())
    earlier = any(_is_likely_verb(tokens, j) for j in range(1, i))
    return bool(known and known.base == tokens[i + 1].casefold() and not earlier)


def _read_clause(tokens: list[str], i: int) -> HeadlineClause | None:
    subject, word = " ".join(tokens[:i]), tokens[i].casefold()
    rest = " ".join(tokens[i + 1 :])
    if word == "to":
        return _make_clause(
            subject, " ".join(tokens[i : i + 2]), " ".join(tokens[i + 2 :]), "future"
        )
    if word in _MODAL | _BE_HAVE:
        return _make_clause(subject, tokens[i], rest, "modal")
    if word == "set" and rest.casefold().startswith("for "):
        return _make_clause(subject, "is set", rest, "modal")
    if word == "set" and rest.casefold().startswith("to "):
        return _make_clause(
            subject, " ".join(tokens[i + 1 : i + 3]), " ".join(tokens[i + 3 :]), "future"
        )
    entry = word_lists.load_verb_forms()[word]
    if word in {entry.third, entry.base} and word != entry.past:
        return _make_clause(subject, tokens[i], rest, "present", entry)
    return _read_past_form(subject, tokens[i], rest, entry)


def _read_past_form(
    subject: str, verb: str, rest: str, entry: word_lists.HeadlineVerb
) -> HeadlineClause | None:
    """Return the clause of a past form, mostly a passive, because headlines use the present tense.

    A form that may be past or participle is only accepted if its object is missing: `made`
    before a noun phrase could be either, and a wrong guess would reverse a fact.
    """
    form = verb.casefold()
    if form == entry.base:
        return _make_clause(subject, verb, rest, "present", entry)
    if form == entry.past != entry.participle:
        return _make_clause(subject, verb, rest, "past", entry)
    first = rest.split(" ")[0].casefold()
    passive = entry.transitive and (not rest or first in word_lists.load_words("passive_next"))
    return _make_clause(subject, verb, rest, "passive", entry) if passive else None


def _make_clause(
    subject: str, verb: str, rest: str, tense: Tense, entry: word_lists.HeadlineVerb | None = None
) -> HeadlineClause | None:
    names = {word.casefold() for word in subject.split()}
    tokens = subject.split()
    two = "and" in tokens and any(_is_likely_verb(tokens, i) for i in range(1, len(tokens) - 1))
    long = len(tokens) > MOST_SUBJECT or "," in subject or subject.endswith(" and")
    unclear = two or long or names & word_lists.load_words("relative")
    if unclear or (not rest and tense not in {"passive", "present", "past"}):
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
    """Return head, relation and tail of a statement, split at its verb or else in the middle.

    All three are substrings of the statement, as the parts of a triple must be.
    """
    clause = parse_clause(text)
    if clause and clause.rest:
        return clause.subject, clause.verb, clause.rest
    tokens = text.split()
    places = [
        i for i in range(1, len(tokens) - 1) if tokens[i].casefold() in word_lists.load_verb_forms()
    ]
    middle = places[0] if places else len(tokens) // 2
    return " ".join(tokens[:middle]), tokens[middle], " ".join(tokens[middle + 1 :])
