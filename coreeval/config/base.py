"""What all sections of a config have in common: their numbers are finite and within bounds."""

from typing import Annotated, Final

from pydantic import ConfigDict, Field

from coreeval.schema import Value

MOST: Final = 10**9
"""The largest number of anything that a config may ask for; more would only fail later."""
Count = Annotated[int, Field(ge=1, le=MOST)]
CountOrZero = Annotated[int, Field(ge=0, le=MOST)]
"""A count that may be 0."""


class Section(Value):
    """Base of the sections of a config; JSON has no word for .nan and .inf."""

    model_config = ConfigDict(allow_inf_nan=False)
