"""What the owner's rules ask of one sample's texts."""

from dataclasses import dataclass

from coreeval.agents.takedown import NOTHING, Takedown


@dataclass(frozen=True, kw_only=True)
class Restraint:
    """How careful a text about real people must be."""

    neutral_only: bool = False
    """True where the sample is sensitive: nothing negative even about whom it names."""
    takedown: Takedown = NOTHING


UNRESTRAINED = Restraint()
