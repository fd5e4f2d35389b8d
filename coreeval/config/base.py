"""The base of all config sections: numbers are finite and within bounds."""

import re
from typing import Annotated, Final

from pydantic import AfterValidator, ConfigDict, Field

from coreeval.schema import Value

MOST: Final = 10**9
"""The largest number allowed in a config; larger ones would only fail later."""
Count = Annotated[int, Field(ge=1, le=MOST)]
CountOrZero = Annotated[int, Field(ge=0, le=MOST)]
"""A count that may be 0."""


class Section(Value):
    """Base of the sections of a config; JSON cannot represent .nan and .inf."""

    model_config = ConfigDict(allow_inf_nan=False)


MOST_SPLIT_LETTERS: Final = 64
_SPLIT = re.compile(r"\w+(?:\.\w+)*")


def is_split_name(name: str) -> bool:
    """Return whether a name is valid for a split: words with dots between them, but not `all`.

    `datasets` accepts these names. Files and folders are named after splits, so a name is never a
    path.
    """
    return len(name) <= MOST_SPLIT_LETTERS and bool(_SPLIT.fullmatch(name)) and name != "all"


def _check_split(name: str) -> str:
    if not is_split_name(name):
        raise ValueError(
            f"a split's name can have at most {MOST_SPLIT_LETTERS} letters, digits and underscores "
            "and cannot be `all`, because release files are named after splits; rename the "
            "benchmark's file, or set dataset.path to the file itself"
        )
    return name


SplitName = Annotated[str, AfterValidator(_check_split)]
