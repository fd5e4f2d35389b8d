"""Runs spaCy for the extractor: a trained English model if installed, otherwise a blank one.

Only this module imports spaCy, when a pipeline is first used. Models are not on PyPI, so none can
be a dependency; a run's manifest records the `pipeline_name`.
"""

import re
import threading
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from coreeval.schema import EntityType, NamedEntity
from coreeval.tools.extras import require_extra

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.matcher import PhraseMatcher
    from spacy.tokens import Span


MODEL = "en_core_web_sm"
CHUNK = 2000
"""The names added to the matcher at once: a single list of all takes a gigabyte (libraries.md
§7)."""
MOST: Final = 200_000
"""The most characters of a text that spaCy reads (own choice): they take a few seconds at worst."""
WIDEST: Final = 200
"""The most characters without a blank, since the tokenizer's time grows with their square."""
_WIDE: Final = re.compile(rf"(\S{{{WIDEST}}})\S")
"""A run without a blank; its next character is read as a blank, so that all positions stay."""
_MARK: Final = 32
"""The last characters of a word that are searched for marks: more than any unit or ellipsis."""
_SPACY_LOCK: Final = threading.Lock()
"""A lock for spaCy, since the threads that read samples share its vocabulary."""
_TYPES: dict[str, EntityType] = {
    "PERSON": "person", "ORG": "organisation", "GPE": "place", "LOC": "place", "FAC": "place",
    "NORP": "group", "EVENT": "event", "WORK_OF_ART": "work", "PRODUCT": "product",
    "LAW": "work", "DATE": "date", "TIME": "date", "MONEY": "quantity", "PERCENT": "quantity",
    "QUANTITY": "quantity", "CARDINAL": "quantity", "ORDINAL": "quantity",
}  # fmt: skip


@dataclass(frozen=True)
class EntitySpan:
    """A span of a text that is an entity."""

    text: str
    start: int
    end: int
    type: EntityType


@cache
def _load_pipeline() -> "Language":
    with require_extra("demo", "finding entities without a model"):
        import spacy

    if spacy.util.is_package(MODEL):
        return _limit_suffix_search(spacy.load(MODEL, disable=["lemmatizer", "parser"]))
    return _limit_suffix_search(spacy.blank("en"))


def _limit_suffix_search(nlp: "Language") -> "Language":
    """Make a pipeline search suffixes only at a word's end, not in the whole word.

    The tokenizer searches once per mark, and calling a Python function lets other threads run.
    """
    tokenizer: Any = nlp.tokenizer
    search = tokenizer.suffix_search.__self__.search
    tokenizer.suffix_search = lambda word: search(word, max(0, len(word) - _MARK))
    return nlp


@cache
def pipeline_name() -> str:
    """Return the pipeline that finds entities: `en_core_web_sm-<version>` or `blank:en`."""
    meta = _load_pipeline().meta
    return f"{MODEL}-{meta['version']}" if meta.get("name") == "core_web_sm" else "blank:en"


class EntityRecogniser:
    """Finds the names of the evidence store in a text, and the entities of a trained model."""

    def __init__(self, names: Sequence[NamedEntity]) -> None:
        self._types = {name.name.casefold(): name.type for name in names}
        self._matcher: PhraseMatcher | None = None
        self._names = names

    def find(self, text: str) -> list[EntitySpan]:
        """Return the entities in reading order; of overlapping ones, the longest."""
        with _SPACY_LOCK:
            doc = _load_pipeline()(_WIDE.sub(r"\1 ", text[:MOST]))
            matched = [doc[start:end] for _, start, end in self._phrases()(doc)]
        known = [self._make_span(span, text) for span in matched]
        learned = [_to_span(span, text, _TYPES.get(span.label_)) for span in doc.ents]
        return _drop_overlaps(one for one in [*known, *learned] if one)

    def _make_span(self, span: "Span", text: str) -> EntitySpan | None:
        """Return the span of a name; None if it is another name with its tokens (`Coca - Cola`)."""
        written = text[span.start_char : span.end_char]
        return _to_span(span, text, self._types.get(written.casefold()))

    def _phrases(self) -> "PhraseMatcher":
        if self._matcher is None:
            from spacy.matcher import PhraseMatcher

            nlp = _load_pipeline()
            self._matcher = PhraseMatcher(nlp.vocab, attr="ORTH")
            names = [name.name for name in self._names if _is_searchable(name.name)]
            for start in range(0, len(names), CHUNK):
                chunk = names[start : start + CHUNK]
                self._matcher.add("name", [nlp.make_doc(name) for name in chunk])
        return self._matcher


def has_overlap(found: Sequence[EntitySpan], start: int, end: int) -> bool:
    """Return whether a span overlaps one of the given spans, which are sorted and disjoint."""
    place = bisect_left(found, end, key=lambda each: each.start)
    return place > 0 and found[place - 1].end > start


def _to_span(span: "Span", text: str, kind: EntityType | None) -> EntitySpan | None:
    start, end = span.start_char, span.end_char
    return EntitySpan(text[start:end], start, end, kind) if kind else None


def _is_searchable(name: str) -> bool:
    """Return whether a name is searched for: it starts with a capital and has a usable length."""
    return name[:1].isupper() and 3 < len(name) <= WIDEST


def _drop_overlaps(found: Iterable[EntitySpan]) -> list[EntitySpan]:
    """Return the longest of overlapping spans, in reading order."""
    kept: list[EntitySpan] = []
    for one in sorted(found, key=lambda each: (each.start - each.end, each.start)):
        if not has_overlap(kept, one.start, one.end):
            insort(kept, one, key=lambda each: each.start)
    return kept
