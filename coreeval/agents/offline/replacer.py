"""The replacer by rules: which news fits a sample, and what becomes what.

The occasion of a text gives way to a statement of the news; a name in the author's own opinion
about it gives way to one of its type that the news names. A factual claim is never moved to a new
name: with the relation kept, that is how false conduct is made (pilot §3).
"""

import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from coreeval.agents.offline import lexicon
from coreeval.agents.offline.compose_tweet import LONGEST_OPENER
from coreeval.agents.offline.news import News, asked_of, statements_of
from coreeval.agents.offline.pairs import pair_plans
from coreeval.agents.offline.text import Segment, has_any, segments, without_edges, words_of
from coreeval.agents.words import containment
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

COPIED = 0.6
"""Share of a headline's word sequences in a wording; an opener brings it under the checks' 0.55."""
_WANTED_TONE = {"anger": -1, "sadness": -1, "joy": 1, "optimism": 1}
"""Which tone of news goes with a feeling; news of the opposite tone is not used for it."""
_TONES = {"non_irony": (0, 1), "irony": (-1, 0)}
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
        """Return the best plan, or with feedback another, the same for the same input."""
        if not evidence:
            return _none("there is no news to choose from")
        news = statements_of(evidence)
        if not news:
            return _none("no item of news can be read by the rules and may be published")
        makers = self._plans(sample, extraction, news)
        if not makers:
            return _none("no statement of the news fits the text by topic, tone and length")
        return makers[_turn(feedback, len(makers))]()

    def _plans(
        self, sample: Sample, extraction: Extraction, news: Sequence[News]
    ) -> list[Callable[[], Plan]]:
        """Return what makes the plans, best first: only the chosen one is made."""
        if len(self.task.fields) > 1:
            return pair_plans(self.task, sample, extraction, news)
        if not _carried(self.task, sample, extraction):
            return []
        room = _room(self.task, sample, extraction)
        slack = max(4, len(words_of(sample.fields[self.task.fields[0]])) // 4)
        fitting = [
            one
            for one in news
            if self._fits(sample, extraction, one) and has_room(one, room, slack)
        ]
        ranked = sorted(fitting, key=lambda one: self._rank(sample, extraction, one))
        return [partial(_tweet_plan, self.task, sample, extraction, one) for one in ranked]

    def _fits(self, sample: Sample, extraction: Extraction, news: News) -> bool:
        """Tell whether a statement may stand beside what the sample keeps."""
        wanted = _WANTED_TONE.get(sample.label_text, 0)
        allowed = _TONES.get(sample.label_text, (-1, 0, 1))
        against_tone = wanted * news.tone < 0 or news.tone not in allowed
        terms = self.task.target_terms
        names_target = any(term in news.text.casefold() for term in terms)
        had_target = any(term in sample.fields[self.task.fields[0]].casefold() for term in terms)
        asked = asked_of(extraction)
        return (
            news.about(asked) < len(asked) and not against_tone and (had_target or not names_target)
        )

    def _rank(self, sample: Sample, extraction: Extraction, news: News) -> tuple[object, ...]:
        """Order statements: about the sample's names, of its tone, plain, of a length that fits."""
        tone = _WANTED_TONE.get(sample.label_text, news.tone)
        return (
            len(news.persons),
            news.modality == "question",
            news.about(asked_of(extraction)),
            news.tone != tone,
            abs(len(words_of(news.text)) - _room(self.task, sample, extraction)) // 4,
            zlib.crc32(f"{sample.id}{news.item.id}".encode()),
        )


def _room(task: Task, sample: Sample, extraction: Extraction) -> int:
    """Return how many words of the original are free."""
    text = sample.fields[task.fields[0]]
    locked = [lock.span for lock in extraction.locked]
    tags = [tag for tag in re.findall(r"#\w+", text) if not any(tag in span for span in locked)]
    return max(0, len(words_of(text)) - sum(len(words_of(span)) for span in [*locked, *tags]))


def has_room(news: News, room: int, slack: int) -> bool:
    """Tell whether a wording of a statement, with an opener or without, can fill the free room.

    Wordings that repeat their headline would not pass the checks and are not counted.
    """
    lengths = [
        len(words_of(way)) for way in news.wordings() if containment(way, news.item.title) <= COPIED
    ]
    return bool(lengths) and min(lengths) - slack <= room <= max(lengths) + LONGEST_OPENER + slack


def _carried(task: Task, sample: Sample, extraction: Extraction) -> bool:
    """Tell whether something in the text is known to carry the label, where a label needs that.

    A single word cut out of its clause is not enough: beside news it would be a stray exclamation.
    """
    carriers = lexicon.carriers(task.name, task.target, task.target_terms)
    if not carriers.get(sample.label_text):
        return True
    held = [lock.span for lock in extraction.locked if lock.why in {"label_carrier", "pun"}]
    return any(len(words_of(span)) != 1 or span.startswith("#") for span in held)


def _turn(feedback: Sequence[Defect], plans: int) -> int:
    """Return which plan to take: the first, and after a complaint another one."""
    if not feedback or plans == 1:
        return 0
    said = "|".join(defect.message for defect in feedback)
    return 1 + zlib.crc32(said.encode()) % min(plans - 1, 4)


def _none(reason: str) -> Plan:
    return Plan(decision="none_fits", reason=reason)


# -- one text ---------------------------------------------------------------------------------


def _tweet_plan(task: Task, sample: Sample, extraction: Extraction, news: News) -> Plan:
    field = task.fields[0]
    swapped = _substitution(sample, extraction, news, field)
    kept = _kept(sample, extraction, field)
    occasion = [part for part in segments(sample.fields[field]) if part not in kept]
    before = _occasion_triple(extraction, occasion, kept, news)
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
        delete=tuple(_deletions(occasion, field)),
        persons=news.persons,
        reason="the occasion of the text gives way to the news",
    )


def _kept(sample: Sample, extraction: Extraction, field: str) -> list[Segment]:
    """Return the segments that hold what must stay."""
    spans = [
        lock.span
        for lock in extraction.locked
        if lock.field == field and lock.why not in {"mention", "emoji", "marker"}
    ]
    return [part for part in segments(sample.fields[field]) if any(s in part.text for s in spans)]


def _substitution(
    sample: Sample, extraction: Extraction, news: News, field: str
) -> tuple[Replacement, ...]:
    """Return the swap of a name in the author's own opinion for one that the news is about."""
    for segment in _kept(sample, extraction, field):
        old = _swappable(extraction, segment, news)
        new = _same_type(news, old) if old else None
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


def _swappable(extraction: Extraction, segment: Segment, news: News) -> Entity | None:
    """Return the name in an opinion that may give way: no person, no lock, not in the news."""
    opinion = has_any(segment.text, lexicon.words("subjective") | lexicon.words("personal"))
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


def _same_type(news: News, old: Entity) -> str | None:
    names = (e.name for e in news.item.entities if e.type == old.type and e.name in news.text)
    return next(names, None)


def _occasion_triple(
    extraction: Extraction, occasion: Sequence[Segment], kept: Sequence[Segment], news: News
) -> Triple | None:
    """Return the old triple of the occasion whose head stands nowhere in what stays or comes."""
    staying = " ".join([*(part.text for part in kept), news.text]).casefold()
    tags = " ".join(lock.span for lock in extraction.locked).casefold()
    for triple in extraction.triples:
        inside = any(triple.head in part.text and triple.tail in part.text for part in occasion)
        words = {word.casefold() for word in words_of(triple.head)}
        stays = words & {word.casefold() for word in words_of(f"{staying} {tags}")}
        if inside and not stays and not re.search(r"[#@]\w", triple.head):
            return Triple(head=triple.head, relation=triple.relation, tail=triple.tail)
    return None


def _deletions(occasion: Sequence[Segment], field: str) -> Iterator[Deletion]:
    for part in occasion:
        bare = without_edges(part.text)
        if len(words_of(bare)) > 3 and not re.search(r"[#@]\w", bare):
            yield Deletion(span=bare, field=field, why="the occasion that the news replaces")
