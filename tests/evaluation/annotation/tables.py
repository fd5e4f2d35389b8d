"""Made ratings: raters of known reliability, and tables that are awkward to score."""

from collections.abc import Sequence

import numpy as np

from coreeval.evaluation.annotation.reliability import Ratings

Table = Sequence[Sequence[int | None]]
"""Items by raters; None is no rating."""
AWKWARD: dict[str, Table] = {
    "one item": [[1, 2, 1]],
    "two raters": [[1, 1], [2, 2], [1, 2], [2, 1]],
    "all against all": [[1, 2, 3], [2, 3, 1], [3, 1, 2]],
    "one is different": [[3, 3, 3]] * 20 + [[3, 3, 1]],
    "a value nobody gives": [[1, 1, 3], [3, 3, 3], [1, 3, 3]],
    "holes": [[1, None, 1], [None, 2, 3], [2, 2, None], [None, None, 3], [3, 3, 3]],
    "a rater who gives up": [[1, 1, 1], [2, 2, 2], [3, 2, None], [1, 2, None], [3, 3, None]],
    "seven raters": [[1, 1, 1, 2, 2, 3, 3], [3, 3, 3, 3, 3, 3, 2], [1, 2, 1, 2, 1, 2, 1]],
}


def ratings_of(table: Table) -> Ratings:
    """Return a table as ratings by item and rater."""
    return {
        f"i{n}": {f"r{m}": value for m, value in enumerate(row) if value is not None}
        for n, row in enumerate(table)
    }


def simulated(
    items: int, raters: int, values: tuple[int, ...], *, knows: float, holes: float, seed: int
) -> Table:
    """Return ratings by raters who see the truth with a chance, and guess otherwise.

    Guesses are as frequent as the truth: two of them agree beyond chance in `knows` squared.
    """
    rng = np.random.default_rng(seed)
    shares = np.arange(1, len(values) + 1) / np.arange(1, len(values) + 1).sum()
    truth = rng.choice(values, size=items, p=shares)
    guesses = rng.choice(values, size=(items, raters), p=shares)
    sees, given = rng.random((items, raters)) < knows, rng.random((items, raters)) >= holes
    said = np.where(sees, truth[:, None], guesses)
    return [
        [int(value) if there else None for value, there in zip(row, some, strict=True)]
        for row, some in zip(said, given, strict=True)
    ]
