"""The replacer by rules: which news fits a sample, and what becomes what.

A statement of the news replaces the occasion of a text; a name in the author's own opinion about it
is replaced by one of its type that the news names. A factual claim is never moved to a new name:
with the relation kept, that is how false conduct is made (pilot §3).
"""

import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from coreeval.agents.offline import word_lists
from coreeval.agents.offline.compose import LONGEST_OPENER
from coreeval.agents.offline.news import NewsStatement, list_searches, read_statements
from coreeval.agents.offline.pairs import make_pair_plans
from coreeval.agents.offline.tokens import (
    TextSegment,
    has_word,
    split_segments,
    split_tokens,
    strip_edges,
)
from coreeval.agents.text.words import measure_containment
from coreeval.schema import (
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
"""Share of a headline's word sequences in a wording; an opener brings it under the checks' 0.55."""
_WANTED_TONE = {"anger": -1, "sadness": -1, "joy": 1, "optimism": 1}
"""Which tone of news goes with a feeling; news of the opposite tone is not used for it."""
_ALLOWED_TONES = {"non_irony": (0, 1), "irony": (-1, 0)}
"""`non_irony` must not set good wishes beside bad news (pilot §6); praise of good news is none."""


@dataclass(frozen=True, kw_only=True)
class OfflineReplacer:
    """Chooses one statement for a tweet, a few for a pair, or says that nothing fits."""

    task: Task

    async def __call__(
        self,
        sample: Sample,
        extraction: Extraction,
        evidence: Sequence[Evidence],
        *,
        feedback: Sequence[Defect] = (),
        previous: Plan | None = None,
    ) -> Plan:
        """Return the best plan, or another one given feedback; equal inputs give equal plans."""
        if not evidence:
            return _none_fits("there is no news to choose from")
        news = read_statements(evidence)
        if not news:
            return _none_fits("no item of news can be read by the rules and may be published")
        makers = self._plan_makers(sample, extraction, news)
        if not makers:
            return _none_fits("no statement of the news fits the text by topic, tone and length")
        return makers[_choose_plan(feedback, len(makers))]()

    def _plan_makers(
        self, sample: Sample, extraction: Extraction, news: Sequence[NewsStatement]
    ) -> list[Callable[[], Plan]]:
        """Return makers of the plans, best first: only the chosen one is made."""
        if len(self.task.fields) > 1:
            return make_pair_plans(self.task, sample, extraction, news)
        if not _has_label_carrier(self.task, sample, extraction):
            return []
        room = _count_free_words(self.task, sample, extraction)
        slack = max(4, len(split_tokens(sample.fields[self.task.fields[0]])) // 4)
        fitting = [
            one
            for one in news
            if self._fits(sample, extraction, one) and has_room(one, room, slack)
        ]
        ranked = sorted(fitting, key=lambda one: self._rank(sample, extraction, one))
        return [partial(_make_tweet_plan, self.task, sample, extraction, one) for one in ranked]

    def _fits(self, sample: Sample, extraction: Extraction, news: NewsStatement) -> bool:
        """Return whether a statement is compatible with what the sample keeps."""
        wanted = _WANTED_TONE.get(sample.label_text, 0)
        allowed = _ALLOWED_TONES.get(sample.label_text, (-1, 0, 1))
        against_tone = wanted * news.tone < 0 or news.tone not in allowed
        terms = self.task.target_terms
        names_target = any(term in news.text.casefold() for term in terms)
        had_target = any(term in sample.fields[self.task.fields[0]].casefold() for term in terms)
        asked = list_searches(extraction)
        return (
            news.rank_search(asked) < len(asked)
            and not against_tone
            and (had_target or not names_target)
        )

    def _rank(
        self, sample: Sample, extraction: Extraction, news: NewsStatement
    ) -> tuple[object, ...]:
        """Return a sort key: about the sample's names, of its tone, plain and of fitting length."""
        tone = _WANTED_TONE.get(sample.label_text, news.tone)
        return (
            len(news.persons),
            news.modality == "question",
            news.rank_search(list_searches(extraction)),
            news.tone != tone,
            abs(len(split_tokens(news.text)) - _count_free_words(self.task, sample, extraction))
            // 4,
            zlib.crc32(f"{sample.id}{news.item.id}".encode()),
        )


def _count_free_words(task: Task, sample: Sample, extraction: Extraction) -> int:
    """Return the number of words of the original that may change."""
    text = sample.fields[task.fields[0]]
    locked = [lock.span for lock in extraction.locked]
    tags = [tag for tag in re.findall(r"#\w+", text) if not any(tag in span for span in locked)]
    return max(
        0, len(split_tokens(text)) - sum(len(split_tokens(span)) for span in [*locked, *tags])
    )


def has_room(news: NewsStatement, room: int, slack: int) -> bool:
    """Return whether some wording of a statement, with or without an opener, fills the free room.

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

    A single word cut out of its clause is not enough: next to news it would be a stray exclamation.
    """
    carriers = word_lists.find_label_words(task.name, task.target, task.target_terms)
    if not carriers.get(sample.label_text):
        return True
    held = [lock.span for lock in extraction.locked if lock.why in {"label_carrier", "pun"}]
    return any(len(split_tokens(span)) != 1 or span.startswith("#") for span in held)


def _choose_plan(feedback: Sequence[Defect], plans: int) -> int:
    """Return the index of the plan to use: the first, or another one after a complaint."""
    if not feedback or plans == 1:
        return 0
    said = "|".join(defect.message for defect in feedback)
    return 1 + zlib.crc32(said.encode()) % min(plans - 1, 4)


def _none_fits(reason: str) -> Plan:
    return Plan(decision="none_fits", reason=reason)


# -- one text ---------------------------------------------------------------------------------


def _make_tweet_plan(
    task: Task, sample: Sample, extraction: Extraction, news: NewsStatement
) -> Plan:
    field = task.fields[0]
    swapped = _swap_name(sample, extraction, news, field)
    kept = _find_kept_segments(sample, extraction, field)
    occasion = [part for part in split_segments(sample.fields[field]) if part not in kept]
    before = _find_occasion_triple(extraction, occasion, kept, news)
    told = Replacement(
        before=before,
        after=news.triple(),
        mode="replace" if before else "insert",
        field=field,
        statement_index=0,
        same_type=False,
    )
    return Plan(
        decision="use",
        statements=(news.statement(),),
        replacements=(told, *swapped),
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
    sample: Sample, extraction: Extraction, news: NewsStatement, field: str
) -> tuple[Replacement, ...]:
    """Return the swap of a name in the author's opinion for a name from the news."""
    for segment in _find_kept_segments(sample, extraction, field):
        old = _find_swappable(extraction, segment, news)
        new = _find_same_type(news, old) if old else None
        if old and new and new.casefold() != old.span.casefold():
            triple = news.triple()
            return (
                Replacement(
                    before=Triple(head=old.span, relation="is spoken of", tail=segment.text),
                    after=Triple(head=new, relation=triple.relation, tail=triple.tail),
                    mode="replace",
                    field=field,
                    statement_index=0,
                    same_type=True,
                ),
            )
    return ()


def _find_swappable(
    extraction: Extraction, segment: TextSegment, news: NewsStatement
) -> Entity | None:
    """Return the replaceable name in an opinion: not a person, not locked and not in the news."""
    opinion = has_word(
        segment.text, word_lists.load_words("subjective") | word_lists.load_words("personal")
    )
    locked = " ".join(lock.span for lock in extraction.locked)
    return next(
        (
            entity
            for entity in extraction.entities
            if opinion
            and entity.kind == "named"
            and entity.type in {"organisation", "place", "product", "event"}
            and entity.span in segment.text
            and entity.span not in locked
            and entity.span.casefold() not in news.text.casefold()
        ),
        None,
    )


def _find_same_type(news: NewsStatement, old: Entity) -> str | None:
    names = (e.name for e in news.item.entities if e.type == old.type and e.name in news.text)
    return next(names, None)


def _find_occasion_triple(
    extraction: Extraction,
    occasion: Sequence[TextSegment],
    kept: Sequence[TextSegment],
    news: NewsStatement,
) -> Triple | None:
    """Return the occasion's old triple whose head is not in the kept text or the news."""
    staying = " ".join([*(part.text for part in kept), news.text]).casefold()
    tags = " ".join(lock.span for lock in extraction.locked).casefold()
    for triple in extraction.triples:
        inside = any(triple.head in part.text and triple.tail in part.text for part in occasion)
        words = {word.casefold() for word in split_tokens(triple.head)}
        stays = words & {word.casefold() for word in split_tokens(f"{staying} {tags}")}
        if inside and not stays and not re.search(r"[#@]\w", triple.head):
            return Triple(head=triple.head, relation=triple.relation, tail=triple.tail)
    return None


def _list_deletions(occasion: Sequence[TextSegment], field: str) -> Iterator[Deletion]:
    for part in occasion:
        bare = strip_edges(part.text)
        if len(split_tokens(bare)) > 3 and not re.search(r"[#@]\w", bare):
            yield Deletion(span=bare, field=field, why="the occasion that the news replaces")
