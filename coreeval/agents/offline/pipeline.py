"""The spaCy pipeline of the extractor: a trained English model if there is one, else a blank one.

spaCy is imported here and nowhere else, when a pipeline is first used. Models are not on PyPI, so
none can be a dependency; `pipeline_name` tells a run's manifest which one was used.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from coreeval.schema import EntityType, NamedEntity

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.matcher import PhraseMatcher


MODEL = "en_core_web_sm"
CHUNK = 2000
"""Names handed to the matcher at once: all in one list takes a gigabyte (libraries.md §7)."""
_TYPES: dict[str, EntityType] = {
    "PERSON": "person", "ORG": "organisation", "GPE": "place", "LOC": "place", "FAC": "place",
    "NORP": "group", "EVENT": "event", "WORK_OF_ART": "work", "PRODUCT": "product",
    "LAW": "work", "DATE": "date", "TIME": "date", "MONEY": "quantity", "PERCENT": "quantity",
    "QUANTITY": "quantity", "CARDINAL": "quantity", "ORDINAL": "quantity",
}  # fmt: skip


@dataclass(frozen=True)
class EntitySpan:
    """A span that the pipeline takes for an entity."""

    text: str
    start: int
    end: int
    type: EntityType


@cache
def _load_pipeline() -> "Language":
    import spacy

    if spacy.util.is_package(MODEL):
        return spacy.load(MODEL, disable=["lemmatizer", "parser"])
    return spacy.blank("en")


@cache
def pipeline_name() -> str:
    """Return the pipeline that finds entities: `en_core_web_sm-<version>` or `blank:en`."""
    meta = _load_pipeline().meta
    return f"{MODEL}-{meta['version']}" if meta.get("name") == "core_web_sm" else "blank:en"


class EntityRecogniser:
    """Finds the names of the evidence store, and what a trained model knows, in a text."""

    def __init__(self, names: Sequence[NamedEntity]) -> None:
        self._types = {name.name.casefold(): name.type for name in names}
        self._matcher: PhraseMatcher | None = None
        self._names = names

    def find(self, text: str) -> list[EntitySpan]:
        """Return the entities in reading order, longest first where they overlap."""
        doc = _load_pipeline()(text)
        matched = [
            EntitySpan(span.text, span.start_char, span.end_char, self._types[span.text.casefold()])
            for span in (doc[start:end] for _, start, end in self._phrases()(doc))
        ]
        learned = [
            EntitySpan(span.text, span.start_char, span.end_char, _TYPES[span.label_])
            for span in doc.ents
            if span.label_ in _TYPES
        ]
        return _drop_overlaps([*matched, *learned])

    def _phrases(self) -> "PhraseMatcher":
        if self._matcher is None:
            from spacy.matcher import PhraseMatcher

            nlp = _load_pipeline()
            self._matcher = PhraseMatcher(nlp.vocab, attr="ORTH")
            for chunk in _split_chunks(
                [name.name for name in self._names if _is_searchable(name.name)]
            ):
                self._matcher.add("name", [nlp.make_doc(name) for name in chunk])
        return self._matcher


def _is_searchable(name: str) -> bool:
    """Tell whether a name may be looked for: a capital, and no single short word."""
    return name[:1].isupper() and len(name) > 3


def _split_chunks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[start : start + CHUNK] for start in range(0, len(names), CHUNK))


def _drop_overlaps(found: Iterable[EntitySpan]) -> list[EntitySpan]:
    kept: list[EntitySpan] = []
    for one in sorted(found, key=lambda each: (each.start - each.end, each.start)):
        if all(one.end <= other.start or one.start >= other.end for other in kept):
            kept.append(one)
    return sorted(kept, key=lambda each: each.start)
