"""How PCR is computed and read."""

from dataclasses import dataclass

from coreeval.evaluation.pcr.ratio import ALPHA, Scale
from coreeval.evaluation.pcr.verdicts import MARGINS
from coreeval.evaluation.statistics import Interval


@dataclass(frozen=True, kw_only=True)
class Form:
    """How PCR is computed and read."""

    alpha: float = ALPHA
    scale: Scale = "tanh"
    interval: Interval = "percentile"
    margin: float | None = None
    """None: the scale's own, see `MARGINS`."""

    @property
    def near(self) -> float:
        """How far from 0 a difference may be to count as none."""
        return MARGINS[self.scale] if self.margin is None else self.margin
