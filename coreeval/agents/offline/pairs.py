"""Plans and candidates for pairs of sentences.

A plan says which statements each side tells, so that the label holds; a candidate tells them, each
side in words of its own.
"""

import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, pairwise, product

from coreeval.agents.offline.news import NewsStatement, list_searches
from coreeval.agents.offline.tokens import (
    capitalise,
    list_content_stems,
    measure_overlap,
    split_tokens,
)
from coreeval.agents.offline.wording import phrase_statement, to_sentence_case
from coreeval.agents.roles import CompositionRequest, Fields
from coreeval.agents.text.words import measure_containment
from coreeval.agents.thresholds import THRESHOLDS
from coreeval.schema import Evidence, Extraction, Plan, Replacement, Sample, Statement, Task, Triple

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


def write_pairs(task: Task, brief: CompositionRequest, proper: frozenset[str]) -> Iterator[Fields]:
    """Yield candidate pairs, those whose sides share the fewest word sequences first."""
    first, second = task.fields
    sides = [
        write_sides(
            _list_statements(brief, name), brief.evidence, brief.sample.fields[name], proper
        )
        for name in (first, second)
    ]
    ranked = sorted(product(*sides), key=lambda pair: _measure_cost(brief, task, pair))
    for one, other in ranked:
        if one != other:
            yield {first: one, second: other}


def _list_statements(brief: CompositionRequest, field: str) -> list[Statement]:
    return [
        brief.plan.statements[change.statement_index]
        for change in brief.plan.replacements
        if change.field == field and not change.same_type
    ]


def write_sides(
    told: Sequence[Statement],
    evidence: Sequence[Evidence],
    original: str,
    proper: frozenset[str] = frozenset(),
) -> list[str]:
    """Return versions of a side that copy no headline, closest to the old length first."""
    limits = THRESHOLDS["sentence"]
    wanted = len(split_tokens(original))
    slack = max(limits.length_words, limits.length_share * wanted)

    def away(text: str) -> int:
        return abs(len(split_tokens(text)) - wanted)

    near = [text for text in _write_versions(told, evidence, proper) if away(text) <= slack]
    fresh = (
        text
        for text in sorted(near, key=away)
        if all(
            measure_containment(text, item.title, fewest=limits.judged_trigrams)
            <= limits.copied_title
            for item in evidence
        )
    )
    return list(islice(fresh, PER_SIDE))


def _measure_cost(brief: CompositionRequest, task: Task, pair: Sequence[str]) -> float:
    """Return a cost: how far a pair is from the original's lengths, and how much its sides copy."""
    lengths = [len(split_tokens(brief.sample.fields[name])) for name in task.fields]
    off = sum(abs(len(split_tokens(t)) - n) / n for t, n in zip(pair, lengths, strict=True))
    return off + _measure_copied(*pair)


def _measure_copied(one: str, other: str) -> float:
    """Return the share of the shorter text's word pairs that also occur in the longer."""
    grams = [set(pairwise(ws)) for ws in map(list_content_stems, (one, other))]
    least = min(map(len, grams))
    return len(grams[0] & grams[1]) / least if least else 0.0


def _write_versions(
    told: Sequence[Statement], evidence: Sequence[Evidence], proper: frozenset[str]
) -> Iterator[str]:
    ways = [list(phrase_in_prose(statement, evidence, proper))[:MOST_WAYS] for statement in told]
    for chosen in product(*ways):
        for joined in _join_parts(chosen):
            yield capitalise(joined) + "."


def _join_parts(parts: Sequence[str]) -> Iterator[str]:
    if len(parts) == 1:
        yield parts[0]
        return
    yield f"{parts[0]}, while {parts[1]}"
    yield f"{parts[0]}. {capitalise(parts[1])}"


def phrase_in_prose(
    statement: Statement, evidence: Sequence[Evidence], proper: frozenset[str]
) -> Iterator[str]:
    """Yield ways to word a statement in prose, keeping its attribution."""
    text = to_sentence_case(statement.text, proper)
    found = dict.fromkeys(
        [*_move_attribution(text), *phrase_statement(statement, evidence, proper)]
    )
    if statement.modality == "asserted":
        for plain in list(found)[:2]:
            found[f"it was reported that {plain}"] = None
            found[f"{plain}, according to news reports"] = None
    yield from found


def _move_attribution(text: str) -> Iterator[str]:
    """Yield a reported statement with its source moved to the other end."""
    if found := _SAYS_AFTER.match(text):
        who, what = found["who"], found["what"]
        yield f"according to {who}, {what}"
        yield f"{who} {found['says']} that {what}"
    elif found := _ACCORDING.match(text):
        yield f"according to {found['who']}, {found['what']}"
    elif found := _SAYS_FIRST.match(text):
        yield f"{found['what']}, {found['who']} {found['says']}"
        yield f"{found['what']}, according to {found['who']}"


Sides = tuple[tuple[NewsStatement, ...], tuple[NewsStatement, ...]]
"""The statements of the first and of the second field."""
SAME = 0.62
"""Share of content words, both ways, from which two statements are taken to say the same."""
OTHER = 0.45
"""Share up to which one statement is taken to say something else than another."""
DERIVED = 0.85
"""Share of a hypothesis that must stand in the premise to be derivable from it."""
MOST_NEWS, MOST_TRIED, MOST_PLANS = 10, 12, 2
"""Statements combined with each other, combinations tried, and plans kept for retries."""
FAR_WEIGHT = 0.15
"""How much one place further down the list of searches weighs against a share of the length."""


def make_pair_plans(
    task: Task, sample: Sample, extraction: Extraction, news: Sequence[NewsStatement]
) -> list[Callable[[], Plan]]:
    """Return makers of plans for a pair: those about its names first, then by fitting length."""
    asked = list_searches(extraction)
    far = {id(one): one.rank_search(asked) for one in news}
    plain = [one for one in news if one.modality != "question" and not one.persons]
    about = sorted((n for n in plain if far[id(n)] < len(asked)), key=lambda one: far[id(one)])
    lengths = [len(split_tokens(sample.fields[name])) for name in task.fields]

    def misfit(sides: Sides) -> tuple[float, int]:
        told = [one for side in sides for one in side]
        away = sum(far[id(one)] for one in told) / len(told)
        chance = zlib.crc32("|".join([sample.id, *(one.text for one in told)]).encode())
        return round(_measure_misfit(sides, lengths) + FAR_WEIGHT * away, 1), chance

    make = _MAKERS[sample.label_text in {"equivalent", "entailment"}, task.symmetric]
    ranked = sorted(make(about[:MOST_NEWS]), key=misfit)[:MOST_TRIED]
    tellable = (sides for sides in ranked if _can_be_told(task, sample, sides))
    return [
        partial(_make_plan, task, sample, extraction, sides)
        for sides in islice(tellable, MOST_PLANS)
    ]


def _can_be_told(task: Task, sample: Sample, sides: Sides) -> bool:
    """Return whether both sides can be told in about the old length and in different words."""
    items = tuple({one.item.id: one.item for side in sides for one in side}.values())
    versions = [
        write_sides([one.statement() for one in side], items, sample.fields[name])
        for name, side in zip(task.fields, sides, strict=True)
    ]
    return all(versions) and len({text for side in versions for text in side}) > 1


def _measure_misfit(sides: Sides, lengths: Sequence[int]) -> float:
    """Return how far the sides are from the original's lengths, as a share of these lengths.

    A statement can be shortened or given an attribution, so small differences do not matter.
    """
    own = [sum(len(split_tokens(one.text)) for one in side) for side in sides]
    return sum(
        max(0, abs(have - want) - 2) / max(want, 1) for have, want in zip(own, lengths, strict=True)
    )


def _equivalent_sides(news: Sequence[NewsStatement]) -> Iterator[Sides]:
    """Yield sides that tell one fact twice: from two outlets that agree, or in two wordings."""
    for one in news:
        yield (one,), (one,)
        for other in news:
            if other is not one and _is_same_fact(one, other):
                yield (one,), (other,)
        for other in _find_others(one, news):
            yield (one, other), (other, one)


def _different_sides(news: Sequence[NewsStatement]) -> Iterator[Sides]:
    """Yield sides about one thing that differ.

    They tell the same fact, with one more detail on one side, or two facts.
    """
    for one in news:
        for other in _find_others(one, news):
            yield (one, other), (one,)
            yield (one,), (one, other)
            yield (one,), (other,)


def _entailment_sides(news: Sequence[NewsStatement]) -> Iterator[Sides]:
    """Yield a premise of one or two statements, and one of them, or its headline, as hypothesis."""
    for one in news:
        yield (one,), (one,)
        for other in _find_others(one, news):
            yield (one, other), (one,)
        for title in news:
            inside = measure_overlap(title.stems, one.stems) >= DERIVED
            if title is not one and title.item.id == one.item.id and inside:
                yield (one,), (title,)


def _neutral_sides(news: Sequence[NewsStatement]) -> Iterator[Sides]:
    """Yield a premise, and a statement on the same topic that it does not entail."""
    for one in news:
        for hypothesis in _find_others(one, news):
            yield (one,), (hypothesis,)
            for other in _find_others(one, news):
                apart = measure_overlap(hypothesis.stems, [*one.stems, *other.stems]) <= OTHER
                if other.item.id != hypothesis.item.id and apart:
                    yield (one, other), (hypothesis,)


_MAKERS: Mapping[tuple[bool, bool], Callable[[Sequence[NewsStatement]], Iterator[Sides]]] = {
    (True, True): _equivalent_sides,
    (False, True): _different_sides,
    (True, False): _entailment_sides,
    (False, False): _neutral_sides,
}
"""By whether the label says that the pair holds together, and whether its order is free."""


def _is_same_fact(one: NewsStatement, other: NewsStatement) -> bool:
    """Return whether two statements are the same fact, judged by words and above all numbers."""
    both = min(measure_overlap(one.stems, other.stems), measure_overlap(other.stems, one.stems))
    figures = {s for s in one.stems if s[0].isdigit()} == {s for s in other.stems if s[0].isdigit()}
    return both >= SAME and figures


def _find_others(one: NewsStatement, news: Sequence[NewsStatement]) -> Iterator[NewsStatement]:
    """Yield statements about other events that share a word with this one."""
    for other in news:
        share = max(
            measure_overlap(other.stems, one.stems), measure_overlap(one.stems, other.stems)
        )
        apart = other.item.cluster != one.item.cluster or not one.item.cluster
        if other.item.id != one.item.id and apart and 0 < share <= OTHER:
            yield other


def _make_plan(task: Task, sample: Sample, extraction: Extraction, sides: Sides) -> Plan:
    distinct = list({one.text: one for side in sides for one in side}.values())
    number = {one.text: i for i, one in enumerate(distinct)}
    replacements = [
        _make_replacement(sample, extraction, name, one, number[one.text], place)
        for name, side in zip(task.fields, sides, strict=True)
        for place, one in enumerate(side)
    ]
    return Plan(
        decision="use",
        statements=tuple(one.statement() for one in distinct),
        replacements=tuple(replacements),
        reason="both sentences are told anew from the news",
    )


def _make_replacement(
    sample: Sample, extraction: Extraction, field: str, news: NewsStatement, index: int, place: int
) -> Replacement:
    before = _find_old_triple(sample, extraction, field, news) if place == 0 else None
    return Replacement(
        before=before,
        after=news.triple(),
        mode="replace" if before else "insert",
        field=field,
        statement_index=index,
        same_type=False,
    )


def _find_old_triple(
    sample: Sample, extraction: Extraction, field: str, news: NewsStatement
) -> Triple | None:
    """Return an old triple of the field whose head shares no word with the news."""
    coming = set(list_content_stems(news.text))
    for triple in extraction.triples:
        gone = triple.field == field and triple.head in sample.fields[field]
        if gone and not set(list_content_stems(triple.head)) & coming:
            return Triple(head=triple.head, relation=triple.relation, tail=triple.tail)
    return None
