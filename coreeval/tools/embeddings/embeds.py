"""What anything that embeds texts is to the rest of the program."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class Embeds(Protocol):
    """Anything that turns texts into vectors."""

    @property
    def name(self) -> str:
        """The model, exactly enough that equal names give equal vectors."""
        ...

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return an array of shape (texts, dimensions)."""
        ...
