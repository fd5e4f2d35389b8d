"""The six roles as typed signatures, for all players.

A role is built for one task and then called for many samples. Models and the offline rules
implement the same protocols, so the graph treats them alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from coreeval.schema import (
    Certainty,
    Composition,
    Defect,
    Evidence,
    Extraction,
    FactVerdict,
    LabelVerdict,
    OptionVerdict,
    Plan,
    Rewrite,
    Sample,
)

Fields = dict[str, str]
"""Text by field name."""


class ExtractionWithRewrite(Extraction):
    """An extraction and D^s from one call (pipeline `lean`)."""

    rewrite: Rewrite


class PlanWithText(Plan):
    """A plan that uses news and D-hat from one call (pipeline `lean`)."""

    text: Composition


class Extractor(Protocol):
    """A role that finds entities, triples, locks, sensitive spans and queries (paper eq. 1).

    It may return D^s too.
    """

    async def __call__(self, sample: Sample) -> Extraction:
        """Return the extraction of one sample."""
        ...


class Replacer(Protocol):
    """A role that chooses one event's news and the new triples based on it (paper eq. 2 and 3).

    It may return D-hat too.
    """

    async def __call__(
        self,
        sample: Sample,
        extraction: Extraction,
        evidence: Sequence[Evidence],
        *,
        read_by: str = "",
        certainty: Certainty = "high",
        feedback: Sequence[Defect] = (),
        previous: Plan | None = None,
        previous_fields: Fields | None = None,
    ) -> Plan:
        """Plan the replacements, or report that nothing fits.

        Args:
            sample: The original.
            extraction: The extraction of it.
            evidence: The news on offer.
            read_by: The words by which the blind judge recognised the original's label.
            certainty: How certain that judge was of the original's label.
            feedback: The defects of the last attempt.
            previous: The plan of the last attempt.
            previous_fields: The text of the last attempt.
        """
        ...


class Rewriter(Protocol):
    """A role that rewords a sample without seeing news (paper eq. 4)."""

    async def __call__(
        self,
        sample: Sample,
        extraction: Extraction,
        *,
        feedback: Sequence[Defect] = (),
        previous: Fields | None = None,
    ) -> Rewrite:
        """Reword one sample; `previous` is the text that the feedback refers to."""
        ...


@dataclass(frozen=True, kw_only=True)
class CompositionRequest:
    """Everything that the composer may use (the arguments of paper eq. 5)."""

    sample: Sample
    extraction: Extraction
    plan: Plan
    evidence: tuple[Evidence, ...]
    """The items that support the plan's statements."""
    substituted: Fields
    """d^u: the original after code replaced the planned spans."""
    reworded: Fields | None
    """D^s as inspiration; None if the original could not be reworded."""
    read_by: str = ""
    """The words by which the blind judge recognised the original's label; empty if it did not."""
    certainty: Certainty = "high"
    """How certain that judge was of the original's label."""
    feedback: tuple[Defect, ...] = ()
    previous: Fields | None = None
    """The text that the feedback refers to; None for a first attempt."""


class Composer(Protocol):
    """A role that writes D-hat (paper eq. 5)."""

    async def __call__(self, request: CompositionRequest) -> Composition:
        """Rewrite the sample, with the plan's facts in the original's voice."""
        ...


class FactJudge(Protocol):
    """A role that judges facts statement by statement, without seeing the label or the original."""

    async def __call__(self, fields: Fields, evidence: Sequence[Evidence]) -> FactVerdict:
        """Judge the facts of one text against the evidence."""
        ...


class LabelJudge(Protocol):
    """A role that finds the gold of a text without knowing the gold or the text's origin."""

    async def __call__(self, fields: Fields, evidence: Sequence[Evidence] = ()) -> LabelVerdict:
        """Label one text, or answer its question with the help of the evidence."""
        ...


class OptionJudge(Protocol):
    """The label judge for the single options of a choice."""

    async def __call__(self, fields: Fields, evidence: Sequence[Evidence]) -> list[OptionVerdict]:
        """Judge each option by the evidence, without knowing which should be right."""
        ...


class BatchLabelJudge(Protocol):
    """The label judge for several originals in one call, each labelled as if it were alone."""

    async def __call__(self, texts: Sequence[Fields]) -> list[LabelVerdict]:
        """Label several texts; the verdicts have their order."""
        ...


@dataclass(frozen=True, kw_only=True)
class Team:
    """The players of the six roles."""

    extractor: Extractor
    replacer: Replacer
    rewriter: Rewriter
    composer: Composer
    fact_judge: FactJudge
    label_judge: LabelJudge
    batch_label_judge: BatchLabelJudge | None = None
    """None if each original is labelled in its own call."""
    option_judge: OptionJudge | None = None
    """None if the task has no options."""
