"""What became of the requests and the terms of one fetch."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from coreeval.schema import NoEvidence


@dataclass
class Tally:
    """Counts that the reasons and the notes are made from."""

    requests: int = 0
    throttled: int = 0
    failed: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    """Terms refused, by what the service said."""
    last_failure: str = ""
    trouble: NoEvidence = "throttled"
    """What kept the service from answering last; asking slowly is trouble of the first kind."""
    fates: dict[str, NoEvidence] = field(default_factory=dict)
    """Terms that were not answered for the whole window, and why."""
    unasked: set[str] = field(default_factory=set)
    """Terms that were left for want of time."""
    cut: set[str] = field(default_factory=set)
    """Terms with more articles than could be listed."""

    def lost(self, terms: Iterable[str], fate: NoEvidence) -> None:
        """Note terms without an answer."""
        self.fates.update(dict.fromkeys(terms, fate))

    def left(self, terms: Iterable[str]) -> None:
        """Note terms that there was no time for."""
        left = set(terms)
        self.unasked |= left
        self.lost(left, self.trouble)
