"""Words a statement as plain prose, with changes of tense, articles, order and case.

A wording has the words of the statement, their listed synonyms and function words, so it adds no
facts.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache

from coreeval.agents.offline.headline import HeadlineClause, parse_clause
from coreeval.agents.offline.tokens import capitalise, split_tokens
from coreeval.agents.offline.word_lists import (
    compile_phrases,
    load_synonyms,
    load_verb_forms,
    load_words,
)
from coreeval.schema import Evidence, Statement

_CUT = re.compile(
    r",? (?:just |right |shortly |soon |even )?(?:as|after|amid|despite|while|following|ahead of|"
    r"because of|due to|thanks to|since|before) ",
    re.IGNORECASE,
)
_FRONTABLE = re.compile(
    r"(?:just |shortly )?(?:after|amid|despite|following|ahead of|during|because of|thanks to) ",
    re.I,
)
_ADDITION = re.compile(r", (?:which|who|with|for|and|where|while|its|a|an|because|as)\b| while ")
LEAST_CLAUSE = 5
"""The fewest words with which a cut sentence still says something."""
_AND = re.compile(r"\b(?:and|but|,) (\w+)")


def to_sentence_case(text: str, proper: frozenset[str]) -> str:
    """Return a headline in sentence case, with capitals only for names.

    In Title Case, a capital does not show a name, so a word keeps it only if it belongs to a known
    name; in other headlines, only the first word is uncertain.
    """
    tokens = text.split(" ")
    first = _fix_case(tokens[0], proper, "".join(tokens[1:2]))
    rest = tokens[1:]
    if _is_title_case(tokens):
        rest = [_fix_case(token, proper, "") for token in rest]
    return " ".join([first, *rest])


def _fix_case(token: str, proper: frozenset[str], after: str) -> str:
    """Return a token in lower case if word lists and the next text show a common word."""
    bare = token.strip(",.()").removesuffix("'s").removesuffix("\u2019s")
    if not token[:1].isupper() or bare[1:] != bare[1:].lower() or bare in proper:
        return token
    plain = bare.casefold()
    common = (
        any(plain in load_words(name) for name in ("plain", "function", "countable"))
        or _is_verb_form(plain)
        or after in {"of", "on", "in", "for"}
        or (after.islower() and plain.endswith("s") and not plain.endswith(("ss", "us", "is")))
    )
    return token[0].lower() + token[1:] if common else token


def _is_verb_form(word: str) -> bool:
    base = word.removesuffix("ing")
    known = load_verb_forms()
    return word in known or (base != word and (base in known or f"{base}e" in known))


def _is_title_case(tokens: list[str]) -> bool:
    function = load_words("function")
    telling = [t for t in tokens[1:] if t[:1].isalpha() and t.casefold() not in function]
    return bool(telling) and sum(t[0].isupper() for t in telling) / len(telling) > 0.7


@lru_cache(maxsize=8192)
def list_wordings(
    text: str, proper: frozenset[str] = frozenset(), *, headline: bool, whole: bool
) -> list[str]:
    """Return ways to word a statement, from longest to shortest, without an end mark.

    Args:
        text: The statement, verbatim.
        proper: Words that are known names.
        headline: Whether it is a headline to turn into a sentence, not yet a sentence.
        whole: Whether nothing may be cut, because an attribution or a hedge would be lost.
    """
    plain = to_sentence_case(text, proper)
    if text.endswith("?"):
        return [plain]
    shapes = list(
        _phrase_headline(plain, whole=whole) if headline else _shorten_sentence(plain, whole=whole)
    )
    return list(dict.fromkeys([*shapes, *map(swap_synonyms, shapes)]))


def phrase_statement(
    statement: Statement, evidence: Sequence[Evidence], proper: frozenset[str]
) -> list[str]:
    """Return the wordings of a plan's statement, from any replacer."""
    headline = any(statement.text in item.title for item in evidence)
    whole = statement.modality != "asserted"
    return list_wordings(statement.text, proper, headline=headline, whole=whole)


def _phrase_headline(text: str, *, whole: bool) -> Iterator[str]:
    """Yield the clause of a headline in each tense and order; nothing if it cannot be parsed."""
    clause = parse_clause(text)
    if clause is None:
        return
    for predicate in _list_predicates(clause):
        for shape in _order_clause(clause, predicate):
            yield add_articles(shape)
            if whole:
                break


def _shorten_sentence(text: str, *, whole: bool) -> Iterator[str]:
    """Yield a sentence, then its main clause without additions."""
    yield text
    if whole:
        return
    cuts = [text[: found.start()] for found in _ADDITION.finditer(text)]
    yield from (cut for cut in reversed(cuts) if len(split_tokens(cut)) >= LEAST_CLAUSE)


def _list_predicates(clause: HeadlineClause) -> Iterator[str]:
    """Yield the verb in the forms of plain prose."""
    have, be, past_be = ("have", "are", "were") if clause.plural else ("has", "is", "was")
    entry = clause.entry
    if clause.tense == "future":
        yield f"{be} {clause.verb.lower()}"
        yield f"{be} set {clause.verb.lower()}"
    elif entry and clause.tense == "passive":
        yield f"{past_be} {entry.participle}"
        yield f"{have} been {entry.participle}"
    elif entry is None or entry.state or _has_second_verb(clause.rest):
        yield clause.verb
    else:
        yield f"{have} {entry.participle}"
        yield entry.past


def _has_second_verb(rest: str) -> bool:
    """Return whether a second predicate follows, whose tense would have to change too."""
    following = (found.group(1).casefold() for found in _AND.finditer(rest))
    return any(word in load_verb_forms() for word in following)


def _order_clause(clause: HeadlineClause, predicate: str) -> Iterator[str]:
    """Yield the whole clause, then with its last part at the front, then without that part."""
    yield f"{clause.subject} {predicate} {clause.rest}".strip()
    cut = max((found.start() for found in _CUT.finditer(clause.rest)), default=0)
    if len(clause.rest[:cut].split()) < 2:
        return
    short = f"{clause.subject} {predicate} {clause.rest[:cut].rstrip(' ,')}"
    tail = clause.rest[cut:].lstrip(" ,")
    if _FRONTABLE.match(tail):
        yield f"{tail} , {short}".replace(" ,", ",")
    yield short


def add_articles(text: str) -> str:
    """Return a text with the articles that a headline omits, if the rules are certain."""
    tokens = text.split(" ")
    out: list[str] = []
    for i, token in enumerate(tokens):
        before = out[-1].casefold() if out else ""
        after = tokens[i + 1].casefold() if i + 1 < len(tokens) else ""
        out.extend([*_find_article(token, before, after), token])
    return " ".join(out)


def _find_article(token: str, before: str, after: str) -> list[str]:
    """Return the article that the noun at this position lacks, if any."""
    plain, countable = token.rstrip(","), load_words("countable")
    if not token.islower() or not _opens_noun_phrase(before):
        return []
    ends = token != plain or after in load_words("function") or not after[:1].isalpha()
    if plain == "world's" or (plain in load_words("definite") and ends):
        return ["the"]
    if plain in countable and ends:
        return ["an" if plain[0] in "aeio" else "a"]
    adjective = plain in {"new", "major", "record", "rare"}
    return ["a"] if before and adjective and after.rstrip(",") in countable else []


def _opens_noun_phrase(before: str) -> bool:
    """Return whether a noun after this word, or at the beginning, may lack its article."""
    opens = before in load_words("article_openers") or before in load_verb_forms()
    opens = opens or not before or before.endswith(",")
    return opens and before not in load_words("determiners")


def swap_synonyms(text: str, *, loose: bool = False) -> str:
    """Return a text with listed words replaced by synonyms; loose synonyms only if requested."""
    known = load_synonyms(loose=loose)
    return _build_swap_pattern(loose=loose).sub(lambda found: _swap_word(found, known), text)


@cache
def _build_swap_pattern(*, loose: bool) -> re.Pattern[str]:
    return compile_phrases(load_synonyms(loose=loose))


def _swap_word(found: re.Match[str], known: Mapping[str, str]) -> str:
    """Return the synonym in the case of the word; a capital inside a sentence marks a name."""
    word, before = found.group(), found.string[: found.start()].rstrip()
    if word[0].isupper() and before and before[-1] not in ".!?":
        return word
    other = known[re.sub(r"\s+", " ", word.casefold())]
    return capitalise(other) if word[0].isupper() else other
