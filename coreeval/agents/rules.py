"""What a benchmark's owner decided about texts that mention real people (pilot §4)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from coreeval.agents.takedown import NOTHING, Takedown
from coreeval.schema import Flag, Policy

DEFAULT_POLICY: Mapping[Flag, Policy] = MappingProxyType(
    {
        "abuse": "neutral_only",
        "self_harm": "semantic_only",
        "protected_group": "semantic_only",
        "crime_or_accusation": "neutral_only",
        "death_or_illness": "neutral_only",
        "sexual_violence": "semantic_only",
        "minor": "neutral_only",
        "private_person": "neutral_only",
        "quotation": "allow",
    }
)
"""What each flag allows (pilot §4). A protected group counts only where the text is hostile."""
STRICTEST: tuple[Policy, ...] = ("skip", "semantic_only", "neutral_only", "allow")


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What holds for every sample of a run."""

    policy: Mapping[Flag, Policy] = field(default_factory=lambda: DEFAULT_POLICY)
    takedown: Takedown = NOTHING


def strictest(policies: set[Policy]) -> Policy:
    """Return the policy that forbids most; without any, all is allowed."""
    return min(policies, key=STRICTEST.index, default="allow")
