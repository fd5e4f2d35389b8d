"""Whether the texts of the arms differ in what can make an arm harder."""

from collections.abc import Mapping
from typing import Final

from coreeval.evaluation.covariates import MOST, CovariateCheck, contrast_measured
from coreeval.evaluation.decomposition.values import MIN_SAMPLES, PATH, Kind
from coreeval.evaluation.text_measures import measure_texts
from coreeval.schema import Arm, Value

WEIGHTS: Final[Mapping[Kind, Mapping[str, int]]] = {
    "wording": {"original": 1, "semantic": -2, "control": 1},
    "facts": {"control": 1, "updated": -1},
}
"""The arms of `surface_unexplained` and of `unexplained`: what the first rewording changes in a
text less what the next rewriting does, and the new facts against older ones."""


class ArmTexts(Value):
    """How the texts of the arms differ, for each kind of memory."""

    n: int
    """Samples compared: at most 2,000 of those with a text in all four arms."""
    kinds: dict[Kind, CovariateCheck]
    """Empty with fewer than 20 samples."""


def compare_arm_texts(
    texts: Mapping[Arm, Mapping[str, str]], clusters: Mapping[str, str] | None = None
) -> ArmTexts:
    """Compare the texts of the four arms on the samples that all of them have.

    Args:
        texts: By arm, the text of each sample by id; no more of them are needed than
            `covariates.MOST` that all arms have.
        clusters: The cluster of each sample by id; None if each is its own.
    """
    own = [texts.get(arm, {}) for arm in PATH]
    keys = [key for key in own[0] if all(key in other for other in own)][:MOST]
    if len(keys) < MIN_SAMPLES:
        return ArmTexts(n=len(keys), kinds={})
    measured = measure_texts({arm: [texts[arm][key] for key in keys] for arm in PATH})
    units = None if clusters is None else [clusters[key] for key in keys]
    return ArmTexts(
        n=len(keys),
        kinds={
            kind: contrast_measured(measured, weights, clusters=units)
            for kind, weights in WEIGHTS.items()
        },
    )
