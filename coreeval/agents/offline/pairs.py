"""Creates plans and candidates for pairs of sentences.

A plan assigns statements to each side so that the label holds; a candidate words each side
separately.
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
"""The most versions of a side that are combined with the other side's, and the most wordings of a
statement."""


def write_pairs(
    task: Task, request: CompositionRequest, proper: frozenset[str]
) -> Iterator[Fields]:
    """Yield candidate pairs, those with the fewest common word sequences first."""
    originals = [request.sample.fields[name] for name in task.fields]
    sides = [
        write_sides(_list_statements(request, name), request.evidence, original, proper)
        for name, original in zip(task.fields, originals, strict=True)
    ]
    for pair in sorted(product(*sides), key=lambda pair: _measure_cost(originals, pair)):
        if len(set(pair)) > 1:
            yield dict(zip(task.fields, pair, strict=True))


def _list_statements(request: CompositionRequest, field: str) -> list[Statement]:
    return [
        request.plan.statements[change.statement_index]
        for change in request.plan.replacements
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

    def copies(text: str, title: str) -> bool:
        share = measure_containment(text, title, fewest=limits.judged_trigrams)
        return share > limits.copied_title

    near = [text for text in _write_versions(told, evidence, proper) if away(text) <= slack]
    near.sort(key=away)
    fresh = (text for text in near if not any(copies(text, item.title) for item in evidence))
    return list(islice(fresh, PER_SIDE))


def _measure_cost(originals: Sequence[str], pair: Sequence[str]) -> float:
    """Return a pair's distance from the original lengths, plus the share of common word pairs."""
    off = 0.0
    for text, original in zip(pair, originals, strict=True):
        wanted = len(split_tokens(original))
        off += abs(len(split_tokens(text)) - wanted) / wanted
    one, other = (set(pairwise(list_content_stems(text))) for text in pair)
    return off + len(one & other) / (min(len(one), len(other)) or 1)


def _write_versions(
    told: Sequence[Statement], evidence: Sequence[Evidence], proper: frozenset[str]
) -> Iterator[str]:
    """Yield the first two statements of a side as one sentence or two, in all their wordings.

    A side without statements has no versions: a model's plan may change only the other side.
    """
    ways = [list(phrase_in_prose(one, evidence, proper))[:MOST_WAYS] for one in told]
    for first, *rest in product(*ways) if ways else ():
        if rest:
            yield f"{capitalise(first)}, while {rest[0]}."
            yield f"{capitalise(first)}. {capitalise(rest[0])}."
        else:
            yield f"{capitalise(first)}."


def phrase_in_prose(
    statement: Statement, evidence: Sequence[Evidence], proper: frozenset[str]
) -> Iterator[str]:
    """Yield ways to word a statement in prose, keeping its attribution."""
    moved = _move_attribution(to_sentence_case(statement.text, proper))
    found = list(dict.fromkeys([*moved, *phrase_statement(statement, evidence, proper)]))
    yield from found
    if statement.modality == "asserted":
        for plain in found[:2]:
            yield f"it was reported that {plain}"
            yield f"{plain}, according to news reports"


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
"""The share of content words, both ways, from which two statements count as the same fact."""
OTHER = 0.45
"""The share of content words up to which two statements count as different facts."""
DERIVED = 0.85
"""The share of a hypothesis that the premise must contain for it to follow."""
MOST_NEWS, MOST_TRIED, MOST_PLANS = 10, 12, 2
"""The most combined statements, tried combinations, and plans for retries."""
FAR_WEIGHT = 0.15
"""The weight of one place in the list of searches relative to a misfit of the whole length."""


def make_pair_plans(
    task: Task, sample: Sample, extraction: Extraction, news: Sequence[NewsStatement]
) -> list[Callable[[], Plan]]:
    """Return functions that make plans for a pair: those about its names first, then by length."""
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
    """Return whether both sides can be worded differently and in about the old length."""
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
    misfit = 0.0
    for side, wanted in zip(sides, lengths, strict=True):
        own = sum(len(split_tokens(one.text)) for one in side)
        misfit += max(0, abs(own - wanted) - 2) / max(wanted, 1)
    return misfit


def _equivalent_sides(news: Sequence[NewsStatement]) -> Iterator[Sides]:
    """Yield sides that state one fact twice: from two outlets that agree, or in two wordings."""
    for one in news:
        yield (one,), (one,)
        for other in news:
            if other is not one and _is_same_fact(one, other):
                yield (one,), (other,)
        for other in _find_others(one, news):
            yield (one, other), (other, one)


def _different_sides(news: Sequence[NewsStatement]) -> Iterator[Sides]:
    """Yield different sides about one subject.

    They state the same fact, with one more detail on one side, or two facts.
    """
    for one in news:
        for other in _find_others(one, news):
            yield (one, other), (one,)
            yield (one,), (one, other)
            yield (one,), (other,)


def _entailment_sides(news: Sequence[NewsStatement]) -> Iterator[Sides]:
    """Yield a premise of one or two statements; one of them or its headline is the hypothesis."""
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
"""The makers by whether the label claims a relation and whether the order of fields is free."""


def _is_same_fact(one: NewsStatement, other: NewsStatement) -> bool:
    """Return whether two statements are the same fact, judged by words and especially numbers."""
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
    """Return the plan that uses the statements of each side."""
    distinct = list({one.text: one for side in sides for one in side}.values())
    number = {one.text: i for i, one in enumerate(distinct)}
    replacements: list[Replacement] = []
    for field, side in zip(task.fields, sides, strict=True):
        before = _find_old_triple(extraction, field, side[0])
        replacements.append(make_replacement(before, side[0], field, number[side[0].text]))
        replacements += (make_replacement(None, one, field, number[one.text]) for one in side[1:])
    return Plan(
        decision="use",
        statements=tuple(one.statement() for one in distinct),
        replacements=tuple(replacements),
        reason="both sentences are told anew from the news",
    )


def make_replacement(
    before: Triple | None, news: NewsStatement, field: str, index: int = 0
) -> Replacement:
    """Return the replacement of a triple by a statement; an insertion if there is no old triple."""
    return Replacement(
        before=before,
        after=news.triple(),
        mode="replace" if before else "insert",
        field=field,
        statement_index=index,
        same_type=False,
    )


def _find_old_triple(extraction: Extraction, field: str, news: NewsStatement) -> Triple | None:
    """Return an old triple of the field whose head shares no word with the news."""
    for triple in extraction.triples:
        shared = set(list_content_stems(triple.head)) & set(news.stems)
        if triple.field == field and not shared:
            return Triple(head=triple.head, relation=triple.relation, tail=triple.tail)
    return None
