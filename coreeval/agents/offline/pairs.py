"""Plans for pairs of sentences: which statements each side tells, so that the label holds."""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from coreeval.agents.offline.compose_pair import side_versions
from coreeval.agents.offline.news import News, asked_of
from coreeval.agents.offline.text import content, overlap, words_of
from coreeval.schema import Extraction, Plan, Replacement, Sample, Task, Triple

Sides = tuple[tuple[News, ...], tuple[News, ...]]
"""The statements of the first and of the second field."""
SAME = 0.62
"""Share of content words, both ways, from which two statements are taken to say the same."""
OTHER = 0.45
"""Share up to which one statement is taken to say something else than another."""
DERIVED = 0.85
"""Share of a hypothesis that must stand in the premise to be derivable from it."""
MOST_NEWS, MOST_TRIED, MOST_PLANS = 10, 12, 2
"""Statements combined with each other, combinations tried, and plans kept for retries."""
FAR = 0.15
"""How much one place further down the list of searches weighs against a share of the length."""


def pair_plans(
    task: Task, sample: Sample, extraction: Extraction, news: Sequence[News]
) -> list[Callable[[], Plan]]:
    """Return what makes the plans for a pair: about its names first, then near its lengths."""
    asked = asked_of(extraction)
    far = {id(one): one.about(asked) for one in news}
    plain = [one for one in news if one.modality != "question" and not one.persons]
    about = sorted((n for n in plain if far[id(n)] < len(asked)), key=lambda one: far[id(one)])
    lengths = [len(words_of(sample.fields[name])) for name in task.fields]

    def misfit(sides: Sides) -> tuple[float, int]:
        told = [one for side in sides for one in side]
        away = sum(far[id(one)] for one in told) / len(told)
        chance = zlib.crc32("|".join([sample.id, *(one.text for one in told)]).encode())
        return round(_off(sides, lengths) + FAR * away, 1), chance

    make = _MAKERS[sample.label_text in {"equivalent", "entailment"}, task.symmetric]
    ranked = sorted(make(about[:MOST_NEWS]), key=misfit)[:MOST_TRIED]
    tellable = (sides for sides in ranked if _tellable(task, sample, sides))
    return [
        partial(_plan, task, sample, extraction, sides) for sides in islice(tellable, MOST_PLANS)
    ]


def _tellable(task: Task, sample: Sample, sides: Sides) -> bool:
    """Tell whether both sides can be told in about the old length, and not in the same words."""
    items = tuple({one.item.id: one.item for side in sides for one in side}.values())
    versions = [
        side_versions([one.statement() for one in side], items, sample.fields[name])
        for name, side in zip(task.fields, sides, strict=True)
    ]
    return all(versions) and len({text for side in versions for text in side}) > 1


def _off(sides: Sides, lengths: Sequence[int]) -> float:
    """Return how far the sides are from the original's lengths, as shares of these.

    A statement can be told in fewer words or with an attribution, so a little is no matter.
    """
    own = [sum(len(words_of(one.text)) for one in side) for side in sides]
    return sum(
        max(0, abs(have - want) - 2) / max(want, 1) for have, want in zip(own, lengths, strict=True)
    )


def _equivalent(news: Sequence[News]) -> Iterator[Sides]:
    """One fact told twice: by two outlets where they agree, else in two wordings."""
    for one in news:
        yield (one,), (one,)
        for other in news:
            if other is not one and _agree(one, other):
                yield (one,), (other,)
        for other in _others(one, news):
            yield (one, other), (other, one)


def _different(news: Sequence[News]) -> Iterator[Sides]:
    """The same fact with one more detail on a side, or two facts about one thing."""
    for one in news:
        for other in _others(one, news):
            yield (one, other), (one,)
            yield (one,), (one, other)
            yield (one,), (other,)


def _entailed(news: Sequence[News]) -> Iterator[Sides]:
    """A premise of one or two statements, and one of them, or its headline, again."""
    for one in news:
        yield (one,), (one,)
        for other in _others(one, news):
            yield (one, other), (one,)
        for title in news:
            inside = overlap(title.stems, one.stems) >= DERIVED
            if title is not one and title.item.id == one.item.id and inside:
                yield (one,), (title,)


def _beside(news: Sequence[News]) -> Iterator[Sides]:
    """A premise, and a statement on the same topic that it does not carry."""
    for one in news:
        for hypothesis in _others(one, news):
            yield (one,), (hypothesis,)
            for other in _others(one, news):
                apart = overlap(hypothesis.stems, [*one.stems, *other.stems]) <= OTHER
                if other.item.id != hypothesis.item.id and apart:
                    yield (one, other), (hypothesis,)


_MAKERS: Mapping[tuple[bool, bool], Callable[[Sequence[News]], Iterator[Sides]]] = {
    (True, True): _equivalent,
    (False, True): _different,
    (True, False): _entailed,
    (False, False): _beside,
}
"""By whether the label says that the pair holds together, and whether its order is free."""


def _agree(one: News, other: News) -> bool:
    """Tell whether two statements are one fact: their words, and above all their numbers."""
    both = min(overlap(one.stems, other.stems), overlap(other.stems, one.stems))
    figures = {s for s in one.stems if s[0].isdigit()} == {s for s in other.stems if s[0].isdigit()}
    return both >= SAME and figures


def _others(one: News, news: Sequence[News]) -> Iterator[News]:
    """Yield statements of other events that share a word with this one."""
    for other in news:
        share = max(overlap(other.stems, one.stems), overlap(one.stems, other.stems))
        apart = other.item.cluster != one.item.cluster or not one.item.cluster
        if other.item.id != one.item.id and apart and 0 < share <= OTHER:
            yield other


def _plan(task: Task, sample: Sample, extraction: Extraction, sides: Sides) -> Plan:
    distinct = list({one.text: one for side in sides for one in side}.values())
    number = {one.text: i for i, one in enumerate(distinct)}
    replacements = [
        _replacement(sample, extraction, name, one, number[one.text], place)
        for name, side in zip(task.fields, sides, strict=True)
        for place, one in enumerate(side)
    ]
    return Plan(
        decision="use",
        statements=tuple(one.statement() for one in distinct),
        replacements=tuple(replacements),
        reason="both sentences are told anew from the news",
    )


def _replacement(
    sample: Sample, extraction: Extraction, field: str, news: News, index: int, place: int
) -> Replacement:
    before = _old_triple(sample, extraction, field, news) if place == 0 else None
    return Replacement(
        before=before,
        after=news.triple(),
        mode="replace" if before else "insert",
        field=field,
        statement_index=index,
        same_type=False,
    )


def _old_triple(sample: Sample, extraction: Extraction, field: str, news: News) -> Triple | None:
    """Return an old triple of the field whose head has no word in common with the news."""
    coming = set(content(news.text))
    for triple in extraction.triples:
        gone = triple.field == field and triple.head in sample.fields[field]
        if gone and not set(content(triple.head)) & coming:
            return Triple(head=triple.head, relation=triple.relation, tail=triple.tail)
    return None
