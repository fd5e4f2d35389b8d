"""What two benchmarks, or the items of one, have in common: six kinds of hit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from coreeval.evaluation.overlap.paraphrases import PARAPHRASE
from coreeval.evaluation.overlap.texts import Entry, Texts
from coreeval.tools.embeddings import Embedder

Kind = Literal["exact", "normalised", "near", "contained", "paraphrase", "template"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
SAME: Final[tuple[Kind, ...]] = KINDS[:-1]
"""Kinds whose texts are one item; those of a template are not."""
THRESHOLD = 0.4
"""Resemblance of a near hit: between what chance gives and what edits leave, docs/overlap.md."""


@dataclass(frozen=True)
class Span:
    """Where the text of one side of a hit stands inside that of the other."""

    side: Literal["a", "b"]
    """The side with the longer text."""
    start: int
    """In characters of that text."""
    end: int


@dataclass(frozen=True)
class Hit:
    """Two texts that are alike, and the items that have them."""

    kind: Kind
    similarity: float
    """Jaccard index of their shingles; 1 if the texts are the same but for case and signs. Of a
    contained text and the passage; the cosine of paraphrases; of a template, of two of its items
    whose numbers and names are masked."""
    a: tuple[Entry, ...]
    """Items with the first text, which may differ in case, signs and blanks; all of a template."""
    b: tuple[Entry, ...]
    within: Span | None = None
    """Of a contained text: where it stands."""

    @property
    def same_answer(self) -> bool | None:
        """Whether all its items have one answer; None if one of them has none."""
        answers = {entry.answer for entry in (*self.a, *self.b)}
        return None if None in answers else len(answers) == 1

    @property
    def texts(self) -> tuple[str, str]:
        """The two texts; of one that contains the other, the passage."""
        one, other = self.a[0].text, self.b[0].text
        if self.within is None:
            return one, other
        part = slice(self.within.start, self.within.end)
        return (one[part], other) if self.within.side == "a" else (one, other[part])


@dataclass(frozen=True, kw_only=True)
class Search:
    """How alike two texts are to be."""

    threshold: float = THRESHOLD
    """The least resemblance of near and contained texts, above 0 and below 1."""
    embeds: Embedder | None = None
    """What embeds; without it no paraphrases are looked for."""
    paraphrase: float = PARAPHRASE
    """The least cosine of paraphrases."""


@dataclass(frozen=True)
class Overlap:
    """The hits between two benchmarks, or within one, the surest first."""

    a: Texts
    b: Texts | None
    search: Search
    hits: tuple[Hit, ...]
    short: tuple[int, ...]
    """Different texts of each benchmark that are too short to be compared but as a whole."""
    crowded: int
    """Buckets in which not each text was compared with each."""

    def items(self, kinds: Sequence[Kind] = SAME) -> tuple[int, ...]:
        """Return how many items of each benchmark are in a hit of some kinds."""
        found = [hit for hit in self.hits if hit.kind in kinds]
        left, right = ({each.id for hit in found for each in side(hit)} for side in (_a, _b))
        return (len(left | right),) if self.b is None else (len(left), len(right))


def _a(hit: Hit) -> tuple[Entry, ...]:
    return hit.a


def _b(hit: Hit) -> tuple[Entry, ...]:
    return hit.b
