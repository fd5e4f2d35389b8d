"""What an extractor said, held against the text: spans that exist, and locks that code can see."""

from collections.abc import Collection, Iterator

from coreeval.agents.marks import (
    closed_quotations,
    emoji,
    marker_spellings,
    mentions,
    target_spellings,
    urls,
)
from coreeval.agents.words import holds, locate, mask
from coreeval.schema import Entity, Extraction, FieldTriple, Lock, Sample, Task


def clean_extraction(task: Task, sample: Sample, extraction: Extraction) -> Extraction:
    """Return an extraction whose spans are the text's own words, with the locks of code added.

    A span that does not occur in the field it names is dropped. Flags are kept whatever their span:
    a warning that is quoted badly is still a warning.
    """
    spans = _Spans(sample)
    locks = [lock for lock in map(spans.lock, extraction.locked) if lock]
    own = [lock for name, text in sample.fields.items() for lock in _locks(task, name, text)]
    locked = {(lock.field, lock.span): lock for lock in (*own, *locks)}.values()
    return extraction.model_copy(
        update={
            "entities": tuple(filter(None, map(spans.entity, extraction.entities))),
            "triples": tuple(filter(None, map(spans.triple, extraction.triples))),
            "locked": tuple(lock for lock in locked if not _inside_another(lock, locked, sample)),
        }
    )


def _inside_another(lock: Lock, locked: Collection[Lock], sample: Sample) -> bool:
    """Tell whether a span occurs only inside longer locked ones, which say it already."""
    longer = [
        other.span
        for other in locked
        if other.field == lock.field and len(other.span) > len(lock.span)
    ]
    return not holds(mask(sample.fields[lock.field], longer), lock.span)


class _Spans:
    """Finds spans in one sample's fields."""

    def __init__(self, sample: Sample) -> None:
        self._fields = sample.fields

    def find(self, field: str, span: str) -> str | None:
        return locate(self._fields.get(field, ""), span)

    def entity(self, entity: Entity) -> Entity | None:
        span = self.find(entity.field, entity.span)
        return entity.model_copy(update={"span": span}) if span else None

    def lock(self, lock: Lock) -> Lock | None:
        span = self.find(lock.field, lock.span)
        return lock.model_copy(update={"span": span}) if span else None

    def triple(self, triple: FieldTriple) -> FieldTriple | None:
        """Spell head and tail as the text does; a tail may sum up what the text says at length."""
        head = self.find(triple.field, triple.head)
        if head is None:
            return None
        tail = self.find(triple.field, triple.tail) or triple.tail
        return triple.model_copy(update={"head": head, "tail": tail})


def _locks(task: Task, field: str, text: str) -> Iterator[Lock]:
    """Find what must survive word for word in any text."""
    for marker in task.markers:
        yield from (Lock(span=s, field=field, why="marker") for s in marker_spellings(text, marker))
    for span in urls(text):
        yield Lock(span=span, field=field, why="marker")
    for span in mentions(text):
        yield Lock(span=span, field=field, why="mention")
    for span in emoji(text):
        yield Lock(span=span, field=field, why="emoji")
    for span in target_spellings(text, task.target_terms):
        yield Lock(span=span, field=field, why="target")
    for span in closed_quotations(text):
        yield Lock(span=span, field=field, why="quotation")
