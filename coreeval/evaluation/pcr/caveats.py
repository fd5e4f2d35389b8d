"""What a verdict of PCR takes for granted, said wherever the verdict is shown."""

from collections.abc import Mapping
from typing import Final, Literal

Basis = Literal["references", "exchangeable_splits", "none"]
"""What speaks against a gap in difficulty."""
ABOUT_MEMORY: Final = frozenset({"fine_tuned", "contaminated", "difficulty_or_memory"})
"""Verdicts that a caveat stands beside."""
CAVEATS: Final[Mapping[Basis, str]] = {
    "references": "this holds if the references have not seen either split",
    "exchangeable_splits": "this holds if the splits are random parts of one pool, as you vouch",
    "none": "what was seen in training explains it, and a gap in difficulty between the splits "
    "explains it as well; references tell the two apart",
}
"""What stands beside each verdict on memory."""
