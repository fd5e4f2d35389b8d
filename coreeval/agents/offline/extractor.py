"""The extractor by rules and spaCy: names, topics, locks, sensitive words and queries."""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from coreeval.agents.offline import lexicon
from coreeval.agents.offline.care import sensitive_spans
from coreeval.agents.offline.carriers import label_spans
from coreeval.agents.offline.headline import sentence_parts
from coreeval.agents.offline.pipeline import Found, Recogniser
from coreeval.agents.offline.text import (
    EMOJI,
    content_words,
    segments,
    split_hashtag,
    stem,
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
        self._recogniser = Recogniser(names)
        self._carriers = {
            label: re.compile(lexicon.phrase_pattern(words), re.IGNORECASE)
            for label, words in lexicon.carriers(task.name, task.target, task.target_terms).items()
        }

    async def __call__(self, sample: Sample) -> Extraction:
        """Return what the sample mentions, what must stay, and what to ask the news."""
        entities = [entity for name in self._task.fields for entity in self._entities(sample, name)]
        topics = self._topics(sample)
        return Extraction(
            entities=tuple(_distinct([*entities, *topics])),
            triples=tuple(_triples(sample, [*entities, *topics])),
            locked=tuple(self._locks(sample)),
            sensitive=tuple(_sensitive(sample)),
            queries=tuple(_queries(topics)),
            need=f"news about {topics[0].query_name}" if topics else "",
            deixis_only=not entities and not topics,
        )

    def _entities(self, sample: Sample, field: str) -> Iterator[Entity]:
        text = sample.fields[field]
        known = self._recogniser.find(text)
        for found in [*known, *_runs(text, known)]:
            yield _entity(found, field)
        for tag in _HASHTAG.findall(text):
            words = split_hashtag(tag)
            feeling = any(pattern.search(tag[1:]) for pattern in self._carriers.values())
            if len(words) > 3 and not feeling and tag.casefold() not in self._markers():
                yield _concept(tag, field, words)
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
        """Return the topics whose words occur, those named most often first."""
        hits: dict[str, list[tuple[int, str, str]]] = {}
        for field in self._task.fields:
            for place, phrase, topic in _topic_words(sample.fields[field]):
                hits.setdefault(topic, []).append((place, phrase, field))
        by_name = {topic.name: topic for topic in lexicon.topics()}
        ranked = sorted(hits.items(), key=lambda pair: (-len(pair[1]), min(pair[1])[0]))
        return [_topic_entity(by_name[name], *min(found)[1:]) for name, found in ranked]

    # -- locks ----------------------------------------------------------------------------------

    def _locks(self, sample: Sample) -> Iterator[Lock]:
        for field in self._task.fields:
            text = sample.fields[field]
            for span in label_spans(text, sample.label_text, self._carriers.get(sample.label_text)):
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
def _topics_by_phrase() -> dict[str, list[str]]:
    """Return the names of the topics that each word or phrase stands for."""
    found: dict[str, list[str]] = {}
    for topic in lexicon.topics():
        for phrase in topic.words:
            found.setdefault(phrase.replace("-", " "), []).append(topic.name)
    return found


def _topic_words(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the topic words of a text: place, the words as written, and the topic's name."""
    tokens = list(re.finditer(r"[#@]?[A-Za-z][\w'\u2019]*", text))
    known = _topics_by_phrase()
    for i, token in enumerate(tokens):
        for size in range(1, 1 + min(3, len(tokens) - i)):
            written = text[token.start() : tokens[i + size - 1].end()]
            plain = written.lstrip("#").casefold().removesuffix("'s").replace("-", " ")
            for topic in known.get(plain, ()):
                yield token.start(), written, topic


def _topic_entity(topic: lexicon.Topic, span: str, field: str) -> Entity:
    """Return a topic as an entity, asked for by the text's own word where that is a search."""
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


def _queries(topics: Sequence[Entity]) -> list[str]:
    """Return searches from specific to general: two for the first topic, then round by round."""
    asked = [[topic.query_name, *topic.aliases] for topic in topics]
    first = [queries[:2] for queries in asked[:1]]
    rounds = [[queries[i] for queries in asked if i < len(queries)] for i in range(4)]
    return list(dict.fromkeys(query for part in [*first, *rounds] for query in part))[:4]


def _runs(text: str, known: Sequence[Found]) -> Iterator[Found]:
    """Yield runs of capitalised words inside sentences that the pipeline did not find."""
    starts = {segment.start for segment in segments(text)}
    for found in _RUN.finditer(text):
        taken = any(found.start() < other.end and other.start < found.end() for other in known)
        name = re.sub(r"['\u2019]s$|^(?:The|A|An|My|Our) | I$", "", found.group())
        shouted = name.isupper() and len(name) > 5
        dated = _DATE.fullmatch(name) is not None
        ordinary = name.casefold() in _NO_NAMES or len(name) < 3 or shouted or dated
        opens = found.start() in starts and " " not in name
        after_mark = text[max(0, found.start() - 1)] in "#@"
        if not (taken or ordinary or opens or after_mark):
            start = found.start() + found.group().index(name)
            yield Found(name, start, start + len(name), "other")


_NO_NAMES = (
    lexicon.words("function") | lexicon.words("months") | lexicon.words("weekdays")
    | lexicon.words("subjective") | lexicon.words("personal")
    | frozenset({"not", "again", "still", "yes", "no", "i'm", "i've", "i'll", "i'd", "it's"})
)  # fmt: skip


def _entity(found: Found, field: str) -> Entity:
    return Entity(
        span=found.text, field=field, kind="named", type=found.type, query_name=found.text
    )


def _concept(span: str, field: str, name: str) -> Entity:
    return Entity(span=span, field=field, kind="concept", type="topic", query_name=name.casefold())


def _distinct(entities: Sequence[Entity]) -> list[Entity]:
    seen: dict[tuple[str, str], Entity] = {}
    for entity in entities:
        seen.setdefault((entity.field, entity.span.casefold()), entity)
    return list(seen.values())


def _triples(sample: Sample, entities: Sequence[Entity]) -> Iterator[FieldTriple]:
    """Yield one triple for each clause that mentions an entity: who, what, whom."""
    for field, text in sample.fields.items():
        spans = [entity.span for entity in entities if entity.field == field]
        for segment in segments(text):
            if len(content_words(segment.text)) >= 3 and any(s in segment.text for s in spans):
                head, relation, tail = sentence_parts(segment.text)
                yield FieldTriple(head=head, relation=relation, tail=tail, field=field)


def _sensitive(sample: Sample) -> list[Sensitive]:
    return [found for text in sample.fields.values() for found in sensitive_spans(text)]
