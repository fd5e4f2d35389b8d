"""What a person is shown of a sample, and the reasons for showing it."""

from typing import Literal, get_args

from coreeval.releases.review.decisions import Decision
from coreeval.schema import Precision, Triple, Value

Reason = Literal[
    "negative", "unnamed", "person", "harm", "flag", "semantic_only", "instruction", "kept",
    "translated", "label", "attempts", "precision",
]  # fmt: skip
"""Why a sample is listed, the gravest first."""
REASONS: tuple[Reason, ...] = get_args(Reason)
Known = Literal["plan", "original", "news", "mention"]
"""Who told that a name is a person's: the replacer's plan, the extractor of the original, GDELT's
list of an article's persons, or the `@` before it."""


class Named(Value):
    """A person whom a new text names, living or not: nobody told the run."""

    name: str
    new: bool
    """Whether the original does not name them."""
    known: Known


class Why(Value):
    """One reason for listing a sample."""

    reason: Reason
    detail: str


class NewFact(Value):
    """A fact that is new in the text, and the piece of evidence that it rests on."""

    field: str
    before: Triple | None
    after: Triple
    quote: str
    """Verbatim words of the evidence; empty where they were not kept."""
    evidence_id: str
    url: str
    domain: str
    title: str
    """Its excerpt where a release gave it on, which has no titles."""
    published_at: str
    published_precision: Precision | None
    """None where the run does not have the evidence."""

    @property
    def told(self) -> str:
        """The triple, and the one that it takes the place of."""
        before = f" (before: {_triple(self.before)})" if self.before else ""
        return _triple(self.after) + before

    @property
    def source(self) -> str:
        """The evidence's headline, with the words that were quoted where they are not in it."""
        beside = self.quote if self.quote not in self.title else ""
        return " … ".join(filter(None, (self.title, beside)))


class Listed(Value):
    """A sample that asks for a person's decision."""

    sample: str
    label: str
    outcome: str
    arm: Literal["updated", "semantic"]
    """Where the new text is published."""
    original: dict[str, str]
    new: dict[str, str]
    digest: str
    """sha256 of the new text (`texts_sha256`): a decision holds for this text and no other."""
    names: tuple[Named, ...] = ()
    beside: tuple[str, ...] = ()
    """Further persons whom the evidence names and the text does not."""
    why: tuple[Why, ...]
    facts: tuple[NewFact, ...] = ()
    decision: Decision | None = None

    @property
    def reasons(self) -> frozenset[Reason]:
        """Why it is listed, without the details."""
        return frozenset(each.reason for each in self.why)


def _triple(triple: Triple) -> str:
    return f"{triple.head} | {triple.relation} | {triple.tail}"
