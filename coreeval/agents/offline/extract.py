"""Plays the extractor by rules and spaCy: finds names, topics, locks, sensitive words, queries.

Words that carry the label are locked: complete clauses if enough other text stays free for news.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from functools import cache

from coreeval.agents.offline.headline import split_clause
from coreeval.agents.offline.news import find_sensitive_spans
from coreeval.agents.offline.pipeline import EntityRecogniser, EntitySpan, has_overlap
from coreeval.agents.offline.tokens import (
    EMOJI,
    fold_word,
    has_word,
    list_content_words,
    split_hashtag,
    split_segments,
    split_tokens,
    stem,
    strip_edges,
)
from coreeval.agents.offline.word_lists import (
    TopicWords,
    load_label_patterns,
    load_topics,
    load_verb_forms,
    load_words,
)
from coreeval.schema import (
    Entity,
    EntityType,
    Extraction,
    FieldTriple,
    Lock,
    NamedEntity,
    Sample,
    Task,
)

_CLAUSE_WORDS = (10, 6, 0)
"""The most words of a clause that is completely locked around a label carrier, tried in this
order."""
MOST_LOCKED = 0.6
"""The share of a text's words that may be locked for its label, since the rest must have room for
news."""
_CLAUSE_CUT = re.compile(r",\s*|:\s+|;\s*|(?<!\s)\s+(?:and|but|so|because|when|while|that)\s+|\\n")
_DANGLING = re.compile(r"\b(?:when|like|how|says|than|because|who|of|to)$", re.IGNORECASE)
_PLAIN_WORD = re.compile(r"[\w'\u2019]+")


def find_label_spans(text: str, label: str, pattern: re.Pattern[str] | None) -> list[str]:
    """Return the spans that carry a label, matched by the pattern of its words."""
    if pattern is None:
        return []
    most = MOST_LOCKED * len(split_tokens(text))
    tried = (_find_carriers(text, pattern, longest) for longest in _CLAUSE_WORDS)
    fitting = (spans for spans in tried if sum(len(split_tokens(span)) for span in spans) <= most)
    spans = next(fitting, None)
    if spans is None:
        spans = [found.group() for found in pattern.finditer(text)]
    return spans or (_find_punchline(text) if label == "irony" else [])


def _find_carriers(text: str, pattern: re.Pattern[str], longest: int) -> list[str]:
    """Return one carrier for each segment that has one; fragments only if there are no others."""
    found = (_carrier_span(part.text, pattern, longest) for part in split_segments(text))
    spans = [span for span in found if span]
    return [span for span in spans if len(split_tokens(span)) > 2] or spans


def _carrier_span(segment: str, pattern: re.Pattern[str], longest: int) -> str | None:
    """Return a segment's clause that carries the label, or the core of a long clause."""
    matches = list(pattern.finditer(segment))
    first = next((match for match in matches if not match.group().startswith("#")), None)
    if first is None:
        return matches[0].group() if matches else None
    for whole in (strip_edges(segment), _find_clause(segment, first)):
        if len(split_tokens(whole)) <= longest and first.group() in whole:
            return None if _lacks_subject(whole) else whole
    return _find_core(segment, first)


def _lacks_subject(clause: str) -> bool:
    """Return whether a clause begins with its verb, so that it would lack a subject if cut out."""
    first = clause.split()[0].casefold() if clause else ""
    verb = load_verb_forms().get(first)
    return verb is not None and first == verb.third and not verb.noun


def _find_punchline(text: str) -> list[str]:
    """Return a short last clause in the author's voice, the usual place of irony without a cue."""
    parts = split_segments(text)
    bare = strip_edges(parts[-1].text) if len(parts) > 1 else ""
    short = len(split_tokens(bare)) <= _CLAUSE_WORDS[0]
    return [bare] if short and has_word(bare, "subjective", "personal") else []


def _find_clause(text: str, found: re.Match[str]) -> str:
    """Return the clause, between commas and conjunctions, that contains a match."""
    cuts = list(_CLAUSE_CUT.finditer(text))
    start = max((cut.end() for cut in cuts if cut.end() <= found.start()), default=0)
    end = min((cut.start() for cut in cuts if cut.start() >= found.end()), default=len(text))
    return strip_edges(text[start:end])


def _find_core(text: str, found: re.Match[str]) -> str | None:
    """Return a carrier with the words that lead to it, if they can start a clause."""
    start = found.start()
    leading: list[re.Match[str]] = []
    for word in reversed(list(_PLAIN_WORD.finditer(text[:start]))[-4:]):
        if fold_word(word.group()) not in load_words("modifiers"):
            break
        leading.insert(0, word)
    openings = (w.start() for w in leading if fold_word(w.group()) in load_words("openings"))
    core = text[next(openings, start) : found.end()]
    return None if _DANGLING.search(core) else core


_RUN = re.compile(r"[A-Z][\w&'\u2019\-]*(?:\s+(?:of\s+|the\s+|de\s+)?[A-Z0-9][\w&'\u2019\-]*)*")
_HASHTAG = re.compile(r"#\w*[A-Za-z]\w*")
_MENTION = re.compile(r"@\w+")
_QUANTITY = re.compile(
    r"[$£€]\s?\d[\d,.]*(?:\s?(?:million|billion|trillion|bn|m|k)\b)?|"
    r"\d[\d,.]{0,29}\s?(?:%|percent\b|per cent\b|million\b|billion\b|degrees\b|acres\b|miles\b"
    r"|km\b)",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"\b(?:January|February|March|April|June|July|August|September|October|November|December)"
    r"(?:\s+\d{1,2}\b)?(?:\s*,?\s+\d{4})?\b|\bMay\s+\d{1,4}\b|\b(?:19|20)\d\d\b"
)


class SpacyExtractor:
    """Extracts from one sample without calling a model over the network."""

    def __init__(
        self, task: Task, names: Sequence[NamedEntity] = (), *, spacy: bool = True
    ) -> None:
        self._task = task
        self._recogniser = EntityRecogniser(names) if spacy else None
        self._carriers = load_label_patterns(task)

    async def __call__(self, sample: Sample) -> Extraction:
        """Return the sample's entities, locked spans and news queries; see `read`."""
        return await asyncio.to_thread(self.read, sample)

    def read(self, sample: Sample) -> Extraction:
        """Return the sample's entities, locked spans and news queries."""
        fields = {name: sample.fields[name] for name in self._task.fields}
        entities = [one for name, text in fields.items() for one in self._entities(text, name)]
        topics = _find_topics(fields)
        return Extraction(
            entities=tuple(_drop_repeats([*entities, *topics])),
            triples=tuple(_make_triples(sample, [*entities, *topics])),
            locked=tuple(lock for name in fields for lock in self._locks(sample, name)),
            sensitive=tuple(
                found for text in sample.fields.values() for found in find_sensitive_spans(text)
            ),
            queries=tuple(_make_queries(topics)),
            need=f"news about {topics[0].query_name}" if topics else "",
            deixis_only=not entities and not topics,
        )

    def _entities(self, text: str, field: str) -> Iterator[Entity]:
        """Yield the names, the hashtags with a topic, the amounts and the dates of a field."""
        known = self._recogniser.find(text) if self._recogniser else []
        for found in [*known, *_find_capitalised_runs(text, known)]:
            yield Entity(
                span=found.text, field=field, kind="named", type=found.type, query_name=found.text
            )
        for tag in _HASHTAG.findall(text):
            words = split_hashtag(tag)
            if len(words) > 3 and not self._carries_label(tag):
                yield _make_concept(tag, field, "topic", words.casefold())
        for match in _QUANTITY.finditer(text):
            yield _make_concept(match.group(), field, "quantity")
        for match in _DATE.finditer(text):
            yield _make_concept(match.group(), field, "date")

    def _carries_label(self, tag: str) -> bool:
        """Return whether a hashtag is a marker of the task or has a word that carries a label."""
        markers = {marker.casefold() for marker in self._task.markers}
        feeling = any(pattern.search(tag[1:]) for pattern in self._carriers.values())
        return feeling or tag.casefold() in markers

    def _locks(self, sample: Sample, field: str) -> Iterator[Lock]:
        """Yield the locks of a field: the label's carriers, mentions, emoji and markers."""
        text, label = sample.fields[field], sample.label_text
        for span in find_label_spans(text, label, self._carriers.get(label)):
            yield Lock(span=span, field=field, why="label_carrier")
        for found in _MENTION.finditer(text):
            yield Lock(span=found.group(), field=field, why="mention")
        if self._task.text_kind == "tweet":
            for found in EMOJI.finditer(text):
                yield Lock(span=found.group().strip("\u200d"), field=field, why="emoji")
        for marker in self._task.markers:
            for found in re.finditer(rf"(?i){re.escape(marker)}(?!\w)", text):
                yield Lock(span=found.group(), field=field, why="marker")


def _find_topics(fields: dict[str, str]) -> list[Entity]:
    """Return the topics whose words occur, the most frequent first."""
    hits: dict[str, list[tuple[int, str, str]]] = {}
    for field, text in fields.items():
        for place, phrase, topic in _find_topic_words(text):
            hits.setdefault(topic, []).append((place, phrase, field))
    ranked = sorted(hits.items(), key=lambda pair: (-len(pair[1]), min(pair[1])[0]))
    return [_make_topic(load_topics()[name], *min(found)[1:]) for name, found in ranked]


@cache
def _map_topic_phrases() -> dict[str, list[str]]:
    """Return the names of the topics for each word or phrase."""
    found: dict[str, list[str]] = {}
    for topic in load_topics().values():
        for phrase in topic.words:
            found.setdefault(phrase.replace("-", " "), []).append(topic.name)
    return found


def _find_topic_words(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the topic words of a text: their position, the words as written, the topic's name."""
    tokens = list(re.finditer(r"[#@]?[A-Za-z][\w'\u2019]*", text))
    for i, token in enumerate(tokens):
        for last in tokens[i : i + 3]:
            written = text[token.start() : last.end()]
            plain = written.lstrip("#").casefold().removesuffix("'s").replace("-", " ")
            for topic in _map_topic_phrases().get(plain, ()):
                yield token.start(), written, topic


def _make_topic(topic: TopicWords, span: str, field: str) -> Entity:
    """Return a topic as an entity; the text's own word is the query if the topic lists it."""
    own = [query for query in topic.queries if stem(query) == stem(span)]
    first, *others = dict.fromkeys([*own, *topic.queries])
    return _make_concept(span, field, topic.type, first, *others)


def _make_concept(
    span: str, field: str, kind: EntityType, query: str | None = None, *aliases: str
) -> Entity:
    """Return an entity that is not a name; without a query, its span is searched in the news."""
    return Entity(
        span=span,
        field=field,
        kind="concept",
        type=kind,
        query_name=query or span,
        aliases=aliases,
    )


def _make_queries(topics: Sequence[Entity]) -> list[str]:
    """Return queries from specific to general: two for the first topic, then in rounds."""
    asked = [[topic.query_name, *topic.aliases] for topic in topics]
    first = [queries[:2] for queries in asked[:1]]
    rounds = [[queries[i] for queries in asked if i < len(queries)] for i in range(4)]
    return list(dict.fromkeys(query for part in [*first, *rounds] for query in part))[:4]


def _find_capitalised_runs(text: str, known: Sequence[EntitySpan]) -> Iterator[EntitySpan]:
    """Yield runs of capitalised words inside sentences that the pipeline missed."""
    starts = {segment.start for segment in split_segments(text)}
    for found in _RUN.finditer(text):
        name = re.sub(r"['\u2019]s$|^(?:The|A|An|My|Our) | I$", "", found.group())
        opens = found.start() in starts and " " not in name
        after_mark = text[max(0, found.start() - 1)] in "#@"
        taken = has_overlap(known, found.start(), found.end())
        if not (opens or after_mark or taken) and _is_name(name):
            start = found.start() + found.group().index(name)
            yield EntitySpan(name, start, start + len(name), "other")


def _is_name(run: str) -> bool:
    """Return whether capitalised words may be a name, not a date, list word or shouting."""
    lists = ("function", "months", "weekdays", "subjective", "personal", "no_names")
    ordinary = any(run.casefold() in load_words(name) for name in lists)
    shouted = run.isupper() and len(run) > 5
    return not (ordinary or shouted or len(run) < 3 or _DATE.fullmatch(run))


def _drop_repeats(entities: Sequence[Entity]) -> list[Entity]:
    """Return the first entity for each span of a field."""
    distinct: dict[tuple[str, str], Entity] = {}
    for entity in entities:
        distinct.setdefault((entity.field, entity.span.casefold()), entity)
    return list(distinct.values())


def _make_triples(sample: Sample, entities: Sequence[Entity]) -> Iterator[FieldTriple]:
    """Yield a (subject, relation, object) triple for each clause that mentions an entity."""
    for field, text in sample.fields.items():
        spans = [entity.span for entity in entities if entity.field == field]
        for segment in split_segments(text):
            if len(list_content_words(segment.text)) >= 3 and any(s in segment.text for s in spans):
                head, relation, tail = split_clause(segment.text)
                yield FieldTriple(head=head, relation=relation, tail=tail, field=field)
