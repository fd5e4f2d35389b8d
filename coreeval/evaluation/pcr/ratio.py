"""The Performance Consistency Ratio of the CAP paper (section 3.3), as a pure function."""

from collections.abc import Callable
from typing import Final, Literal, get_args, overload

import numpy as np
from numpy.typing import ArrayLike

from coreeval.evaluation.statistics import Array

Scale = Literal["tanh", "linear", "sigmoid"]

ALPHA: Final = 0.01
"""The default alpha (CAP, section 5.4).

The paper advises 0.001 if consistency is small, as on ECTSum.
"""


def _sigmoid(ratio: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-ratio)))


SCALES: Final[dict[Scale, Callable[[Array], Array]]] = {
    "tanh": np.tanh,
    "linear": np.positive,
    "sigmoid": _sigmoid,
}
"""Functions applied to the ratio: equation 9, equation 8, and the third form of section 5.4."""

SLOPES: Final[dict[Scale, Callable[[Array], Array]]] = {
    "tanh": lambda found: 1 - found**2,
    "linear": np.ones_like,
    "sigmoid": lambda found: found * (1 - found),
}
"""Derivative of each scale, as a function of the scaled value."""


@overload
def performance_consistency_ratio(
    performance: float, consistency: float, *, alpha: float = ..., scale: Scale = ...
) -> float: ...
@overload
def performance_consistency_ratio(
    performance: ArrayLike, consistency: ArrayLike, *, alpha: float = ..., scale: Scale = ...
) -> Array: ...
def performance_consistency_ratio(
    performance: ArrayLike,
    consistency: ArrayLike,
    *,
    alpha: float = ALPHA,
    scale: Scale = "tanh",
) -> float | Array:
    """Return PCR = scale((M + alpha) / (C + alpha)) (CAP, equations 7 to 9); arrays elementwise.

    `linear` with alpha 0 is equation 7, `linear` equation 8, `tanh` equation 9; `sigmoid` is the
    logistic function of equation 8. If consistency and alpha are both 0, the ratio is infinite, or
    nan if performance is 0 too; nan stays nan.

    Raises:
        ValueError: a score or alpha is negative, or the scale does not exist.
    """
    if scale not in SCALES:
        known = ", ".join(get_args(Scale))
        raise ValueError(f"there is no scale {scale!r}; available scales: {known}")
    gained, same = np.asarray(performance, np.float64), np.asarray(consistency, np.float64)
    if not 0 <= alpha < np.inf or np.any(gained < 0) or np.any(same < 0):
        raise ValueError("performance, consistency and alpha must not be below 0")
    with np.errstate(divide="ignore", invalid="ignore"):
        found = SCALES[scale](np.asarray((gained + alpha) / (same + alpha)))
    return float(found) if found.ndim == 0 else found
