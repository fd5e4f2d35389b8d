"""From a target's answers to what its drop is made of, and what that shows."""

from coreeval.evaluation.coded import Coded
from coreeval.evaluation.decomposition.terms import accuracy_parts, macro_f1_parts, replicate
from coreeval.evaluation.decomposition.values import Decomposition
from coreeval.evaluation.decomposition.verdicts import verdict_of
from coreeval.evaluation.scoring.classification import DRAWS


def decompose(
    coded: Coded, *, noise: float | None = None, seed: int = 7, draws: int = DRAWS
) -> Decomposition:
    """Take one target's drop from the original to the updated arm apart.

    `noise` is the share of new texts whose label may be wrong, at most: the one-sided bound of
    `coreeval.releases.quality.noise_bound`. Terms whose arms were not asked are left out.
    """
    found = replicate(coded, seed=seed, draws=draws)
    accuracy = accuracy_parts(coded, found, noise)
    verdict, reasons = verdict_of(accuracy)
    return Decomposition(
        target=coded.target,
        accuracy=accuracy,
        macro_f1=macro_f1_parts(coded, found, noise),
        noise=noise,
        verdict=verdict,
        reasons=reasons,
        draws=draws,
        seed=seed,
    )
