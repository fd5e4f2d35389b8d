"""What became of the requests and the terms of one fetch."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from coreeval.schema import NoEvidence

MOST_REFUSED = 10
"""Requests that are refused for the same reason, and none answered, before asking ends (our choice:
80 s at the usual spacing; a service that is well has answered one of ten by then)."""


@dataclass
class Tally:
    """Counts that the reasons and the notes are made from."""

    requests: int = 0
    throttled: int = 0
    failed: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    """Terms refused, by what the service said."""
    refusals: int = 0
    """Requests refused for what they ask, with one term or with several."""
    answered: int = 0
    """Requests answered with a list, empty ones included."""
    refused_as: set[str] = field(default_factory=set)
    """What the service said of refused requests."""
    gave_up: bool = False
    """Whether asking ended because the service refuses whatever it is asked."""
    together: Counter[str] = field(default_factory=Counter)
    """Terms refused beside others and not asked for alone in time, by what the service said."""
    last_failure: str = ""
    trouble: NoEvidence = "throttled"
    """What kept the service from answering last; asking slowly is trouble of the first kind."""
    fates: dict[str, NoEvidence] = field(default_factory=dict)
    """Terms that were not answered for the whole window, and why."""
    unasked: set[str] = field(default_factory=set)
    """Terms that were left for want of time."""
    cut: set[str] = field(default_factory=set)
    """Terms with more articles than could be listed."""

    @property
    def only_rejected(self) -> bool:
        """True if every request so far was refused for what it asks."""
        return self.requests > 0 and self.refusals == self.requests

    @property
    def rejects_all(self) -> bool:
        """True if so many requests were refused for one reason, and none answered, that all are."""
        return not self.answered and self.refusals >= MOST_REFUSED and len(self.refused_as) == 1

    def is_rejected(self, term: str) -> bool:
        """Tell whether a term was refused when it was asked for alone: asking again is no use."""
        return self.fates.get(term) == "rejected"

    def rejected_together(self, terms: Iterable[str], message: str) -> None:
        """Note terms whose only request was refused: they are rejected, not short of time."""
        refused = set(terms)
        self.together[message] += len(refused)
        self.unasked -= refused
        self.lost(refused, "rejected")

    def lost(self, terms: Iterable[str], fate: NoEvidence) -> None:
        """Note terms without an answer."""
        self.fates.update(dict.fromkeys(terms, fate))

    def left(self, terms: Iterable[str]) -> None:
        """Note terms that there was no time for; one that was rejected stays so."""
        left = {term for term in terms if not self.is_rejected(term)}
        self.unasked |= left
        self.lost(left, self.trouble)
