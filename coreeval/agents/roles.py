"""The six roles as signatures: typed in, typed out, whoever plays them.

A role is built for one task and then called for many samples. LLMs and the offline rules implement
the same protocols; the graph cannot tell them apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from coreeval.schema import (
    Composition,
    Defect,
    Evidence,
    Extraction,
    FactVerdict,
    LabelVerdict,
    Plan,
    Rewrite,
    Sample,
)

Fields = dict[str, str]
"""Text by field name."""


class Extractor(Protocol):
    """Finds entities, triples, locks, sensitive spans and queries (paper eq. 1)."""

    async def __call__(self, sample: Sample) -> Extraction:
        """Return the extraction of one sample."""
        ...


class Replacer(Protocol):
    """Chooses the news of one event and the new triples that rest on it (paper eq. 2 and 3)."""

    async def __call__(
        self,
        sample: Sample,
        extraction: Extraction,
        evidence: Sequence[Evidence],
        *,
        feedback: Sequence[Defect] = (),
        previous: Plan | None = None,
    ) -> Plan:
        """Plan the replacements, or report that nothing fits."""
        ...


class Rewriter(Protocol):
    """Says the same in other words, seeing no news (paper eq. 4)."""

    async def __call__(
        self,
        sample: Sample,
        extraction: Extraction,
        *,
        feedback: Sequence[Defect] = (),
        previous: Fields | None = None,
    ) -> Rewrite:
        """Reword one sample; `previous` is the text that the feedback is about."""
        ...


@dataclass(frozen=True, kw_only=True)
class CompositionRequest:
    """All that the composer may use (the arguments of paper eq. 5)."""

    sample: Sample
    extraction: Extraction
    plan: Plan
    evidence: tuple[Evidence, ...]
    """The items that the plan's statements rest on."""
    substituted: Fields
    """d^u: the original with the planned spans replaced by code."""
    reworded: Fields | None
    """D^s as inspiration; None where it could not be reworded."""
    read_by: str = ""
    """The words by which the blind judge knew the original's label; empty where it did not."""
    feedback: tuple[Defect, ...] = ()
    previous: Fields | None = None
    """The text that the feedback is about."""


class Composer(Protocol):
    """Writes D-hat (paper eq. 5)."""

    async def __call__(self, brief: CompositionRequest) -> Composition:
        """Write the sample anew, with the plan's facts in the original's voice."""
        ...


class FactJudge(Protocol):
    """Judges facts statement by statement, seeing neither label nor original."""

    async def __call__(self, fields: Fields, evidence: Sequence[Evidence]) -> FactVerdict:
        """Judge the facts of one text against the evidence."""
        ...


class LabelJudge(Protocol):
    """Labels a text without being told its label, that it is new, or whose it is."""

    async def __call__(self, fields: Fields) -> LabelVerdict:
        """Label one text."""
        ...


@dataclass(frozen=True, kw_only=True)
class Team:
    """Who plays the six roles."""

    extractor: Extractor
    replacer: Replacer
    rewriter: Rewriter
    composer: Composer
    fact_judge: FactJudge
    label_judge: LabelJudge
