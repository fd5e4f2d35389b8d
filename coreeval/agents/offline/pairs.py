"""Plans for pairs of sentences: which statements each side tells, so that the label holds."""

from collections.abc import Iterator, Sequence
from itertools import islice

from coreeval.agents.offline.news import News
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
MOST_PLANS = 24


def plan_pair(
    task: Task, sample: Sample, extraction: Extraction, news: Sequence[News]
) -> Iterator[Plan]:
    """Yield plans for a pair, those of the most telling news first."""
    plain = [one for one in news if one.modality != "question" and not one.persons]
    holds = sample.label_text in {"equivalent", "entailment"}
    lengths = [len(words_of(sample.fields[name])) for name in task.fields]
    directional = not task.symmetric
    for sides in islice(_sides(plain, lengths, holds=holds, directional=directional), MOST_PLANS):
        yield _plan(task, sample, extraction, sides)


def _sides(
    news: Sequence[News], lengths: Sequence[int], *, holds: bool, directional: bool
) -> Iterator[Sides]:
    """Yield which statements go where; both sides near the lengths of the original first."""
    make = {
        (True, False): _equivalent,
        (False, False): _different,
        (True, True): _entailed,
        (False, True): _beside,
    }[(holds, directional)]
    ordered = sorted(make(news), key=lambda sides: _misfit(sides, lengths))
    yield from ordered


def _misfit(sides: Sides, lengths: Sequence[int]) -> float:
    own = [sum(len(words_of(one.text)) for one in side) for side in sides]
    return sum(abs(have - want) / max(want, 1) for have, want in zip(own, lengths, strict=True))


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


def _old_triple(
    sample: Sample, extraction: Extraction, field: str, news: News
) -> Triple | None:
    """Return an old triple of the field whose head has no word in common with the news."""
    coming = set(content(news.text))
    for triple in extraction.triples:
        gone = triple.field == field and triple.head in sample.fields[field]
        if gone and not set(content(triple.head)) & coming:
            return Triple(head=triple.head, relation=triple.relation, tail=triple.tail)
    return None
