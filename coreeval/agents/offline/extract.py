"""The extractor by rules and spaCy: names, topics, locks, sensitive words and queries.

Words that carry the label are locked: whole clauses if enough else stays free for news.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from functools import cache

from coreeval.agents.offline import word_lists
from coreeval.agents.offline.headline import split_clause
from coreeval.agents.offline.news import find_sensitive_spans
from coreeval.agents.offline.pipeline import EntityRecogniser, EntitySpan, has_overlap
from coreeval.agents.offline.tokens import (
    EMOJI,
    TextSegment,
    has_word,
    list_content_words,
    split_hashtag,
    split_segments,
    split_tokens,
    stem,
    strip_edges,
)
from coreeval.schema import (
    Entity,
    Extraction,
    FieldTriple,
    Lock,
    NamedEntity,
    Sample,
    Sensitive,
    Task,
)

_CLAUSE_WORDS = (10, 6, 0)
"""Words up to which the clause around a label carrier is locked whole, tried in this order."""
MOST_LOCKED = 0.6
"""Share of a text's words that may be locked for its label: the rest must have room for news."""
_CLAUSE_CUT = re.compile(r",\s*|:\s+|;\s*|(?<!\s)\s+(?:and|but|so|because|when|while|that)\s+|\\n")
_DANGLING = re.compile(r"\b(?:when|like|how|says|than|because|who|of|to)$", re.IGNORECASE)


def find_label_spans(text: str, label: str, pattern: re.Pattern[str] | None) -> list[str]:
    """Return the spans that carry a label, found by the pattern of its words."""
    if pattern is None:
        return []
    total = len(split_tokens(text))
    spans: list[str] = []
    for longest in _CLAUSE_WORDS:
        spans = _find_carriers(text, pattern, longest)
        if _count_tokens(spans) <= MOST_LOCKED * total:
            break
    else:
        spans = [found.group() for found in pattern.finditer(text)]
    parts = split_segments(text)
    return spans or (_find_punchline(parts[-1]) if label == "irony" and len(parts) > 1 else [])


def _count_tokens(spans: Sequence[str]) -> int:
    return sum(len(split_tokens(span)) for span in spans)


def _find_carriers(text: str, pattern: re.Pattern[str], longest: int) -> list[str]:
    """Return one carrier for each segment that has one; fragments only if there are no others."""
    found = (_carrier_span(segment, pattern, longest) for segment in split_segments(text))
    spans = [span for span in found if span]
    return [span for span in spans if len(split_tokens(span)) > 2] or spans


def _carrier_span(segment: TextSegment, pattern: re.Pattern[str], longest: int) -> str | None:
    """Return a segment's clause that carries the label, or the core of a long clause."""
    found = [match for match in pattern.finditer(segment.text) if not match.group().startswith("#")]
    if not found:
        tags = [match.group() for match in pattern.finditer(segment.text)]
        return tags[0] if tags else None
    first = found[0]
    for whole in (strip_edges(segment.text), _find_clause(segment.text, first)):
        if len(split_tokens(whole)) <= longest and first.group() in whole:
            return None if _lacks_subject(whole) else whole
    return _find_core(segment.text, first)


def _lacks_subject(clause: str) -> bool:
    """Return whether a clause begins with its verb and so would lack a subject if cut out."""
    first = clause.split()[0].casefold() if clause.split() else ""
    verb = word_lists.load_verb_forms().get(first)
    return verb is not None and first == verb.third and not verb.noun


def _find_punchline(last: TextSegment) -> list[str]:
    """Return a short last clause in the author's voice, where irony without a cue mostly occurs."""
    bare = strip_edges(last.text)
    voice = has_word(bare, word_lists.load_words("subjective") | word_lists.load_words("personal"))
    return [bare] if voice and len(split_tokens(bare)) <= _CLAUSE_WORDS[0] else []


def _find_clause(text: str, found: re.Match[str]) -> str:
    """Return the clause, between commas and conjunctions, that contains a match."""
    cuts = [(cut.start(), cut.end()) for cut in _CLAUSE_CUT.finditer(text)]
    start = max((end for _, end in cuts if end <= found.start()), default=0)
    end = min((begin for begin, _ in cuts if begin >= found.end()), default=len(text))
    return strip_edges(text[start:end])


def _fold_word(word: re.Match[str]) -> str:
    return word.group().casefold().replace("\u2019", "'")


def _find_core(text: str, found: re.Match[str]) -> str | None:
    """Return a carrier with the words that lead to it, if they can start a clause."""
    start = found.start()
    for word in reversed(list(re.finditer(r"[\w'\u2019]+", text[:start]))[-4:]):
        if _fold_word(word) not in word_lists.load_words("modifiers"):
            break
        start = word.start()
    led = list(re.finditer(r"[\w'\u2019]+", text[start : found.start()]))
    opening = next(
        (w.start() for w in led if _fold_word(w) in word_lists.load_words("openings")), None
    )
    core = text[start + opening if opening is not None else found.start() : found.end()]
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
    """Reads one sample without any call to a model over the network."""

    def __init__(self, task: Task, names: Sequence[NamedEntity] = ()) -> None:
        self._task = task
        self._recogniser = EntityRecogniser(names)
        self._carriers = {
            label: re.compile(word_lists.build_phrase_pattern(words), re.IGNORECASE)
            for label, words in word_lists.find_label_words(
                task.name, task.target, task.target_terms
            ).items()
        }

    async def __call__(self, sample: Sample) -> Extraction:
        """Return the sample's entities, locked spans and news queries."""
        return await asyncio.to_thread(self._read, sample)

    def _read(self, sample: Sample) -> Extraction:
        entities = [entity for name in self._task.fields for entity in self._entities(sample, name)]
        topics = self._topics(sample)
        return Extraction(
            entities=tuple(_drop_repeats([*entities, *topics])),
            triples=tuple(_make_triples(sample, [*entities, *topics])),
            locked=tuple(self._locks(sample)),
            sensitive=tuple(_find_sensitive(sample)),
            queries=tuple(_make_queries(topics)),
            need=f"news about {topics[0].query_name}" if topics else "",
            deixis_only=not entities and not topics,
        )

    def _entities(self, sample: Sample, field: str) -> Iterator[Entity]:
        text = sample.fields[field]
        known = self._recogniser.find(text)
        for found in [*known, *_find_capitalised_runs(text, known)]:
            yield _make_entity(found, field)
        for tag in _HASHTAG.findall(text):
            words = split_hashtag(tag)
            feeling = any(pattern.search(tag[1:]) for pattern in self._carriers.values())
            if len(words) > 3 and not feeling and tag.casefold() not in self._markers():
                yield _make_concept(tag, field, words)
        for pattern, kind in ((_QUANTITY, "quantity"), (_DATE, "date")):
            for match in pattern.finditer(text):
                yield Entity.model_validate(
                    {
                        "span": match.group(),
                        "field": field,
                        "kind": "concept",
                        "type": kind,
                        "query_name": match.group(),
                    }
                )

    def _markers(self) -> set[str]:
        return {marker.casefold() for marker in self._task.markers}

    def _topics(self, sample: Sample) -> list[Entity]:
        """Return the topics whose words occur, the most frequent first."""
        hits: dict[str, list[tuple[int, str, str]]] = {}
        for field in self._task.fields:
            for place, phrase, topic in _find_topic_words(sample.fields[field]):
                hits.setdefault(topic, []).append((place, phrase, field))
        by_name = {topic.name: topic for topic in word_lists.load_topics()}
        ranked = sorted(hits.items(), key=lambda pair: (-len(pair[1]), min(pair[1])[0]))
        return [_make_topic(by_name[name], *min(found)[1:]) for name, found in ranked]

    # -- locks ----------------------------------------------------------------------------------

    def _locks(self, sample: Sample) -> Iterator[Lock]:
        for field in self._task.fields:
            text = sample.fields[field]
            for span in find_label_spans(
                text, sample.label_text, self._carriers.get(sample.label_text)
            ):
                yield Lock(span=span, field=field, why="label_carrier")
            for found in _MENTION.finditer(text):
                yield Lock(span=found.group(), field=field, why="mention")
            if self._task.text_kind == "tweet":
                for found in EMOJI.finditer(text):
                    yield Lock(span=found.group().strip("\u200d"), field=field, why="emoji")
            for marker in self._task.markers:
                for found in re.finditer(rf"(?i){re.escape(marker)}(?!\w)", text):
                    yield Lock(span=found.group(), field=field, why="marker")


@cache
def _map_topic_phrases() -> dict[str, list[str]]:
    """Return the names of the topics for each word or phrase."""
    found: dict[str, list[str]] = {}
    for topic in word_lists.load_topics():
        for phrase in topic.words:
            found.setdefault(phrase.replace("-", " "), []).append(topic.name)
    return found


def _find_topic_words(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the topic words of a text: position, the words as written, and the topic's name."""
    tokens = list(re.finditer(r"[#@]?[A-Za-z][\w'\u2019]*", text))
    known = _map_topic_phrases()
    for i, token in enumerate(tokens):
        for size in range(1, 1 + min(3, len(tokens) - i)):
            written = text[token.start() : tokens[i + size - 1].end()]
            plain = written.lstrip("#").casefold().removesuffix("'s").replace("-", " ")
            for topic in known.get(plain, ()):
                yield token.start(), written, topic


def _make_topic(topic: word_lists.TopicWords, span: str, field: str) -> Entity:
    """Return a topic as an entity; the text's own word is the query if the topic lists it."""
    own = [query for query in topic.queries if stem(query) == stem(span)]
    queries = list(dict.fromkeys([*own, *topic.queries]))
    return Entity(
        span=span,
        field=field,
        kind="concept",
        type=topic.type,
        query_name=queries[0],
        aliases=tuple(queries[1:]),
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
        taken = has_overlap(known, found.start(), found.end())
        name = re.sub(r"['\u2019]s$|^(?:The|A|An|My|Our) | I$", "", found.group())
        shouted = name.isupper() and len(name) > 5
        dated = _DATE.fullmatch(name) is not None
        ordinary = name.casefold() in _NO_NAMES or len(name) < 3 or shouted or dated
        opens = found.start() in starts and " " not in name
        after_mark = text[max(0, found.start() - 1)] in "#@"
        if not (taken or ordinary or opens or after_mark):
            start = found.start() + found.group().index(name)
            yield EntitySpan(name, start, start + len(name), "other")


_NO_NAMES = (
    word_lists.load_words("function")
    | word_lists.load_words("months")
    | word_lists.load_words("weekdays")
    | word_lists.load_words("subjective")
    | word_lists.load_words("personal")
    | frozenset({"not", "again", "still", "yes", "no", "i'm", "i've", "i'll", "i'd", "it's"})
)


def _make_entity(found: EntitySpan, field: str) -> Entity:
    return Entity(
        span=found.text, field=field, kind="named", type=found.type, query_name=found.text
    )


def _make_concept(span: str, field: str, name: str) -> Entity:
    return Entity(span=span, field=field, kind="concept", type="topic", query_name=name.casefold())


def _drop_repeats(entities: Sequence[Entity]) -> list[Entity]:
    seen: dict[tuple[str, str], Entity] = {}
    for entity in entities:
        seen.setdefault((entity.field, entity.span.casefold()), entity)
    return list(seen.values())


def _make_triples(sample: Sample, entities: Sequence[Entity]) -> Iterator[FieldTriple]:
    """Yield a (subject, relation, object) triple for each clause that mentions an entity."""
    for field, text in sample.fields.items():
        spans = [entity.span for entity in entities if entity.field == field]
        for segment in split_segments(text):
            if len(list_content_words(segment.text)) >= 3 and any(s in segment.text for s in spans):
                head, relation, tail = split_clause(segment.text)
                yield FieldTriple(head=head, relation=relation, tail=tail, field=field)


def _find_sensitive(sample: Sample) -> list[Sensitive]:
    return [found for text in sample.fields.values() for found in find_sensitive_spans(text)]
