"""Controls of what a model's own signal is attributed to: an early era, scrambled dates."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from coreeval.schema import Value

LEAST = 5
"""With fewer dates no interval is given (`statistics/intervals.py`)."""


class LeakConfig(Value):
    """What is asked besides the sentiment of each date (research: numleak, appendices M and Q)."""

    until: Annotated[int, Field(ge=1, le=9999)] | None = None
    """Last year of the early era; None: it is the first 15 % of the series."""
    early: Annotated[int, Field(ge=0)] = 30
    """Dates of it that are asked for value and sentiment, as many as in the paper; 0: none."""
    scrambled: Annotated[int, Field(ge=0)] = 30
    """Dates whose figures are stated under their own date and under another; 0: none."""

    @model_validator(mode="after")
    def _enough(self) -> Self:
        for name in ("early", "scrambled"):
            if 0 < getattr(self, name) < LEAST:
                raise ValueError(f"{name} is 0 or at least {LEAST}: no interval comes of fewer")
        return self
