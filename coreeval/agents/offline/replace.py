"""Plays the replacer by rules: chooses the news for a sample and plans the replacements.

A statement from the news replaces the occasion of a text. A name in the author's own opinion may be
replaced by a name of its type from the news. A factual claim never gets a new name, since with the
old relation it would invent conduct (pilot §3).
"""

import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from coreeval.agents.offline.compose import LONGEST_OPENER
from coreeval.agents.offline.news import NewsStatement, list_searches, read_statements
from coreeval.agents.offline.pairs import make_pair_plans, make_replacement
from coreeval.agents.offline.tokens import (
    TextSegment,
    has_word,
    split_segments,
    split_tokens,
    strip_edges,
)
from coreeval.agents.offline.word_lists import load_label_patterns
from coreeval.agents.roles import Fields
from coreeval.agents.text.words import measure_containment
from coreeval.schema import (
    Certainty,
    Defect,
    Deletion,
    Entity,
    Evidence,
    Extraction,
    Plan,
    Replacement,
    Sample,
    Task,
    Triple,
)

MOST_COPIED = 0.6
"""The largest share of a wording's trigrams that may be in its headline; an opener brings it below
the checks' 0.55."""
_WANTED_TONE = {"anger": -1, "sadness": -1, "joy": 1, "optimism": 1}
"""The tone of news that suits a feeling; news of the opposite tone is not used for it."""
_ALLOWED_TONES = {"non_irony": (0, 1), "irony": (-1, 0)}
"""`non_irony` must not combine good wishes with bad news (pilot §6); praise of good news is not
irony."""


_MARK = re.compile(r"[#@]\w")


@dataclass(frozen=True, kw_only=True)
class OfflineReplacer:
    """Chooses one statement for a tweet, a few for a pair, or reports that nothing fits."""

    task: Task

    async def __call__(
        self,
        sample: Sample,
        extraction: Extraction,
        evidence: Sequence[Evidence],
        *,
        read_by: str = "",
        certainty: Certainty = "high",
        feedback: Sequence[Defect] = (),
        previous: Plan | None = None,
        previous_fields: Fields | None = None,
    ) -> Plan:
        """Return the best plan, or another one given feedback; the result is deterministic."""
        if not evidence:
            return _none_fits("there is no news to choose from")
        news = read_statements(evidence)
        if not news:
            return _none_fits("the offline roles can read no item of news that may be published")
        makers = self._plan_makers(sample, extraction, news)
        if not makers:
            return _none_fits("no statement of the news fits the text by topic, tone and length")
        return makers[_choose_plan(feedback, len(makers))]()

    def _plan_makers(
        self, sample: Sample, extraction: Extraction, news: Sequence[NewsStatement]
    ) -> list[Callable[[], Plan]]:
        """Return functions that make the plans, best first, so that only the chosen one is made."""
        if len(self.task.fields) > 1:
            return make_pair_plans(self.task, sample, extraction, news)
        if not _has_label_carrier(self.task, sample, extraction):
            return []
        text, asked = sample.fields[self.task.fields[0]], list_searches(extraction)
        room, slack = _count_free_words(text, extraction), max(4, len(split_tokens(text)) // 4)
        fitting = [
            one
            for one in news
            if one.rank_search(asked) < len(asked)
            and self._suits_label(sample.label_text, text, one)
            and has_room(one, room, slack)
        ]
        ranked = sorted(fitting, key=lambda one: _rank_statement(sample, one, asked, room))
        return [partial(_make_tweet_plan, self.task, sample, extraction, one) for one in ranked]

    def _suits_label(self, label: str, text: str, news: NewsStatement) -> bool:
        """Return whether a statement has a fitting tone and no target of a stance."""
        allowed = _ALLOWED_TONES.get(label, (-1, 0, 1))
        against = _WANTED_TONE.get(label, 0) * news.tone < 0 or news.tone not in allowed
        had, has = (
            any(term in words.casefold() for term in self.task.target_terms)
            for words in (text, news.text)
        )
        return not against and (had or not has)


def _rank_statement(
    sample: Sample, news: NewsStatement, asked: Sequence[str], room: int
) -> tuple[object, ...]:
    """Return a sort key: no persons, plain, about the sample, and of its tone and length."""
    return (
        len(news.persons),
        news.modality == "question",
        news.rank_search(asked),
        news.tone != _WANTED_TONE.get(sample.label_text, news.tone),
        abs(len(split_tokens(news.text)) - room) // 4,
        zlib.crc32(f"{sample.id}{news.item.id}".encode()),
    )


def _count_free_words(text: str, extraction: Extraction) -> int:
    """Return the number of words of the original that may change."""
    locked = [lock.span for lock in extraction.locked]
    tags = [tag for tag in re.findall(r"#\w+", text) if not any(tag in span for span in locked)]
    held = sum(len(split_tokens(span)) for span in [*locked, *tags])
    return max(0, len(split_tokens(text)) - held)


def has_room(news: NewsStatement, room: int, slack: int) -> bool:
    """Return whether a wording of a statement, with or without an opener, fits the free words.

    Wordings that repeat their headline would not pass the checks and do not count.
    """
    lengths = [
        len(split_tokens(way))
        for way in news.list_wordings()
        if measure_containment(way, news.item.title) <= MOST_COPIED
    ]
    return bool(lengths) and min(lengths) - slack <= room <= max(lengths) + LONGEST_OPENER + slack


def _has_label_carrier(task: Task, sample: Sample, extraction: Extraction) -> bool:
    """Return whether a known span carries the label, if the label needs a carrier.

    A single word does not suffice: without its clause, it would be an isolated exclamation.
    """
    if sample.label_text not in load_label_patterns(task):
        return True
    held = [lock.span for lock in extraction.locked if lock.why in {"label_carrier", "pun"}]
    return any(len(split_tokens(span)) != 1 or span.startswith("#") for span in held)


def _choose_plan(feedback: Sequence[Defect], plans: int) -> int:
    """Return the index of the plan to use: the first, or another one if there is feedback."""
    if not feedback or plans == 1:
        return 0
    said = "|".join(defect.message for defect in feedback)
    return 1 + zlib.crc32(said.encode()) % min(plans - 1, 4)


def _none_fits(reason: str) -> Plan:
    return Plan(decision="none_fits", reason=reason)


def _make_tweet_plan(
    task: Task, sample: Sample, extraction: Extraction, news: NewsStatement
) -> Plan:
    """Return the plan that replaces the occasion of a text by one statement."""
    field = task.fields[0]
    kept = _find_kept_segments(sample, extraction, field)
    occasion = [part.text for part in split_segments(sample.fields[field]) if part not in kept]
    told = make_replacement(_find_occasion_triple(extraction, occasion, kept, news), news, field)
    return Plan(
        decision="use",
        statements=(news.statement(),),
        replacements=(told, *_swap_name(extraction, kept, news, field)),
        delete=tuple(_list_deletions(occasion, field)),
        persons=news.persons,
        reason="the occasion of the text gives way to the news",
    )


def _find_kept_segments(sample: Sample, extraction: Extraction, field: str) -> list[TextSegment]:
    """Return the segments that contain locked text."""
    spans = [
        lock.span
        for lock in extraction.locked
        if lock.field == field and lock.why not in {"mention", "emoji", "marker"}
    ]
    return [
        part for part in split_segments(sample.fields[field]) if any(s in part.text for s in spans)
    ]


def _swap_name(
    extraction: Extraction, kept: Sequence[TextSegment], news: NewsStatement, field: str
) -> Iterator[Replacement]:
    """Yield the replacement of one name in the author's opinion by a name from the news."""
    swaps = (
        (segment, old, new)
        for segment in kept
        if (old := _find_swappable(extraction, segment.text, news))
        and (new := _find_same_type(news, old))
    )
    for segment, old, new in islice(swaps, 1):
        before = Triple(head=old.span, relation="is spoken of", tail=segment.text)
        change = make_replacement(before, news, field)
        after = change.after.model_copy(update={"head": new})
        yield change.model_copy(update={"after": after, "same_type": True})


def _find_swappable(extraction: Extraction, segment: str, news: NewsStatement) -> Entity | None:
    """Return the replaceable name in an opinion: not a person, not locked and not in the news."""
    if not has_word(segment, "subjective", "personal"):
        return None
    locked = " ".join(lock.span for lock in extraction.locked)
    names = (
        entity
        for entity in extraction.entities
        if entity.kind == "named"
        and entity.type in {"organisation", "place", "product", "event"}
        and entity.span in segment
        and entity.span not in locked
        and entity.span.casefold() not in news.text.casefold()
    )
    return next(names, None)


def _find_same_type(news: NewsStatement, old: Entity) -> str | None:
    names = (e.name for e in news.item.entities if e.type == old.type and e.name in news.text)
    return next(names, None)


def _find_occasion_triple(
    extraction: Extraction,
    occasion: Sequence[str],
    kept: Sequence[TextSegment],
    news: NewsStatement,
) -> Triple | None:
    """Return the occasion's old triple whose head is not in the kept text or the news."""
    locked = (lock.span for lock in extraction.locked)
    staying = " ".join([*(part.text for part in kept), news.text, *locked]).casefold()
    for triple in extraction.triples:
        inside = any(triple.head in part and triple.tail in part for part in occasion)
        stays = set(split_tokens(triple.head.casefold())) & set(split_tokens(staying))
        if inside and not stays and not _MARK.search(triple.head):
            return Triple(head=triple.head, relation=triple.relation, tail=triple.tail)
    return None


def _list_deletions(occasion: Sequence[str], field: str) -> Iterator[Deletion]:
    """Yield the deletion of each long part of the occasion; tags and mentions stay."""
    for bare in map(strip_edges, occasion):
        if len(split_tokens(bare)) > 3 and not _MARK.search(bare):
            yield Deletion(span=bare, field=field, why="the occasion that the news replaces")
