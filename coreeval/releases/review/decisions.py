"""The samples shown to a reviewer, with reasons, and the append-only log of decisions.

The log has one line for each decision; later lines override earlier ones. All runs and releases of
a benchmark share one log. A decision applies to a sample with exactly this new text, in any run,
and not to other texts of the sample.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from pydantic import ValidationError

from coreeval.errors import RunCorrupt, RunLocked
from coreeval.releases.review.notes import NO_REMARKS, Remarks
from coreeval.schema import Precision, Text, Triple, Value
from coreeval.tools.files import append_lines, hold_lock
from coreeval.tools.stores.heartbeat import refuse_special_file

Verdict = Literal["approved", "rejected"]
DecisionKey = tuple[str, str]
"""Id of the sample and sha256 of its new text."""


class Decision(Value):
    """One line of the decision log."""

    sample: str
    digest: str
    """sha256 of the text that the decision is about."""
    verdict: Verdict
    by: Text
    """The name of the person who decided, as given."""
    at: str
    note: str = ""
    run: str = ""
    """The run that was reviewed."""

    @property
    def about(self) -> DecisionKey:
        """Return the key of the text that was decided about."""
        return self.sample, self.digest


@dataclass(frozen=True)
class DecisionLog:
    """The decision log of one benchmark; it may not exist yet."""

    path: Path

    def in_force(self) -> Mapping[DecisionKey, Decision]:
        """Return the last decision about each text.

        Raises:
            RunCorrupt: a line is not a decision.
        """
        return {decision.about: decision for decision in self.every()}

    def every(self) -> Sequence[Decision]:
        """Return all decisions, those that a later one overrides too.

        Raises:
            RunCorrupt: a line is not a decision.
        """
        try:
            lines = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return ()
        return [self._parse(n, line) for n, line in enumerate(lines, start=1) if line]

    def append(self, decisions: Sequence[Decision]) -> None:
        """Add all of the decisions or none; on return they survive a power failure.

        Raises:
            RunLocked: another process is adding decisions.
            RunCorrupt: the log is damaged, so the decisions in force are unknown, or its lock is a
                link, pipe or device.
        """
        lock = self.path.with_suffix(".lock")
        refuse_special_file(lock)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        busy = RunLocked(
            "another process is recording decisions", where=str(self.path), hint="try again"
        )
        lines = [json.dumps(decision.model_dump()) for decision in decisions]
        with hold_lock(lock, busy):
            self.in_force()
            append_lines(self.path, lines)

    def _parse(self, number: int, line: bytes) -> Decision:
        try:
            return Decision.model_validate_json(line)
        except ValidationError:
            raise RunCorrupt(
                f"line {number} is not a valid decision",
                where=str(self.path),
                hint="restore the file from a backup, or delete this line and decide again",
            ) from None


@dataclass(frozen=True)
class ReviewedReleases:
    """The releases of a benchmark that were made in this workspace after their review.

    A release's own statement is not enough, because anybody can publish a release that claims it.
    """

    path: Path

    def __contains__(self, digest: str) -> bool:
        """Return whether a release with this digest of release.json was recorded."""
        try:
            return digest.encode() in self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return False

    def add(self, digest: str) -> None:
        """Record the digest of a release.

        Raises:
            OSError: the file cannot be written.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        append_lines(self.path, [digest])


Reason = Literal[
    "negative", "unnamed", "person", "harm", "flag", "noted", "semantic_only", "instruction",
    "kept", "translated", "label", "attempts", "precision",
]  # fmt: skip
"""The reasons for listing a sample, most serious first."""
REASONS: tuple[Reason, ...] = get_args(Reason)
NameSource = Literal["plan", "original", "news", "mention"]
"""The source for a person's name: the replacer's plan, the extractor of the original, GDELT's list
of an article's persons, or the `@` before it."""


class PersonMention(Value):
    """A person named in a new text; the run does not know whether the person is alive."""

    name: str
    new: bool
    """Whether the original does not name the person."""
    known: NameSource


class ListingReason(Value):
    """One reason for listing a sample."""

    reason: Reason
    detail: str


class NewFact(Value):
    """A fact that is new in the text, with the evidence that supports it."""

    field: str
    before: Triple | None
    after: Triple
    quote: str
    """The quoted words of the evidence; empty if they were not kept."""
    evidence_id: str
    url: str
    domain: str
    title: str
    """Headline of the evidence; its excerpt if carried over from a release, which has no titles."""
    published_at: str
    published_precision: Precision | None
    """Precision of the publication time; None if the run does not have the evidence."""

    @property
    def told(self) -> str:
        """Return the new triple, with the triple that it replaces."""
        before = f" (before: {_format_triple(self.before)})" if self.before else ""
        return _format_triple(self.after) + before

    @property
    def source(self) -> str:
        """Return the evidence's headline, and the quoted words if they are not in it."""
        beside = self.quote if self.quote not in self.title else ""
        return " … ".join(filter(None, (self.title, beside)))


class ReviewEntry(Value):
    """A sample that needs a person's decision."""

    sample: str
    label: str
    outcome: str
    arm: Literal["updated", "semantic"]
    """The arm in which the new text is published."""
    original: dict[str, str]
    new: dict[str, str]
    digest: str
    """sha256 of the new text (`texts_sha256`): a decision applies to this text only."""
    names: tuple[PersonMention, ...] = ()
    beside: tuple[str, ...] = ()
    """Further persons named in the evidence but not in the text."""
    why: tuple[ListingReason, ...]
    facts: tuple[NewFact, ...] = ()
    remarks: Remarks = NO_REMARKS
    """The notes and tags of people."""
    decision: Decision | None = None

    @property
    def reasons(self) -> frozenset[Reason]:
        """Return the reasons for listing the sample, without details."""
        return frozenset(each.reason for each in self.why)


def _format_triple(triple: Triple) -> str:
    return f"{triple.head} | {triple.relation} | {triple.tail}"
