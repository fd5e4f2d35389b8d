"""Whether a gate fails only because there are few samples, so that it cannot be judged.

Each rule is met only by numbers of samples at which no texts, or hardly any, could meet the limit.
"""

import random
from collections import Counter
from math import ceil, sqrt
from typing import Final

from coreeval.evaluation.scores import Score, score_proportion
from coreeval.releases.gates.limits import IntervalLimit, Limit
from coreeval.releases.release_manifest import ReleaseManifest
from coreeval.runs.quality import estimate_noise_bound, measure_balance_shift
from coreeval.tools.formatting import format_quantity

WIDEST = 0.5
"""The widest interval of a share that can be judged (own choice): wider ones allow both half of the
samples and nearly all, or both none and half."""
FEWEST_TEXTS = 10
"""The fewest updated texts whose balance of labels can always be judged (own choice)."""
CHANCE = 0.05
"""A shift that is less likely than this among random samples is not due to chance."""
_DRAWS = 2_000
_EXACT = 1e-9
_Z_SQUARED: Final = 1.96**2


def explain_few_samples(manifest: ReleaseManifest, gate: str, limit: Limit) -> str:
    """Return why samples are too few to judge a gate that is beyond its limit; "" if they are not.

    Args:
        manifest: The release.
        gate: The gate's name.
        limit: Its limit, which the release does not meet.
    """
    match gate:
        case "label_noise":
            return _explain_noise(manifest, limit)
        case "label_acceptance":
            return _explain_labels(manifest, limit)
        case "balance_shift":
            return _explain_shift(manifest, limit)
        case _:
            return ""


def _explain_noise(manifest: ReleaseManifest, limit: Limit) -> str:
    """Return the reason if no judgements of this number could meet the limit.

    They are not too few if even the lower ends of their shares are beyond it.
    """
    noise = manifest.quality.label_noise
    if not limit.max or manifest.kept or not (noise.original.n and noise.updated.n):
        return ""
    best = estimate_noise_bound(*(score_proportion(0, each.n) for each in _judged(manifest)))
    least = estimate_noise_bound(*map(_lower_end, _judged(manifest)))
    if best is None or best <= limit.max or least is None or least > limit.max:
        return ""
    needed = ceil(_Z_SQUARED / sqrt(limit.max))
    texts = format_quantity(noise.updated.n, "new text")
    return (
        f"{format_quantity(noise.original.n, 'judged original')} and {texts} are too few to judge: "
        f"the bound is at least {best:.4g} for so few, even if no judge disagrees; "
        f"it can be met with about {needed} of each"
    )


def _judged(manifest: ReleaseManifest) -> tuple[Score, Score]:
    noise = manifest.quality.label_noise
    return noise.original, noise.updated


def _lower_end(share: Score) -> Score:
    return share.model_copy(update={"ci_high": share.ci_low})


def _explain_labels(manifest: ReleaseManifest, limit: Limit) -> str:
    """Return the reason if each label beyond the limit has a wide interval that includes it."""
    if not isinstance(limit, IntervalLimit) or limit.by not in (None, "estimate"):
        return ""
    least, most = limit.min or 0.0, 1.0 if limit.max is None else limit.max
    few = list[str]()
    for each in manifest.quality.by_label:
        found = each.accepted
        if found.estimate is None or least <= found.estimate <= most:
            continue
        low, high = found.ci_low or 0.0, 1.0 if found.ci_high is None else found.ci_high
        if high - low <= WIDEST or high < least or low > most:
            return ""
        few.append(f"{each.label} has {format_quantity(found.n, 'sample')}")
    return f"too few samples to judge: {', '.join(few)}" if few else ""


def _explain_shift(manifest: ReleaseManifest, limit: Limit) -> str:
    """Return the reason if one text more or less of a label shifts the balance beyond the limit.

    They are not too few if so large a shift hardly ever happens by chance.
    """
    shift = manifest.quality.balance_shift
    before, after = Counter[str](), Counter[str]()
    for each in manifest.quality.by_label:
        before[each.label] = each.total
        after[each.label] = round((each.accepted.estimate or 0.0) * each.total)
    texts = after.total()
    if shift is None or limit.max is None or not 0 < texts < FEWEST_TEXTS:
        return ""
    if 1 / texts <= limit.max:
        return ""
    if _chance_of_shift(before, texts, shift) < CHANCE:
        return ""
    return (
        f"{format_quantity(texts, 'updated text is', 'updated texts are')} too few to judge: one "
        f"more or less of a label shifts the balance by {1 / texts:.2g}"
    )


def _chance_of_shift(before: Counter[str], texts: int, shift: float) -> float:
    """Return how often as many samples drawn at random have a shift of this size or more."""
    chance, names = random.Random(0), list(before)
    sizes = [before[name] for name in names]
    drawn = (Counter(chance.sample(names, texts, counts=sizes)) for _ in range(_DRAWS))
    shifts = (measure_balance_shift(before, each) or 0.0 for each in drawn)
    return sum(each >= shift - _EXACT for each in shifts) / _DRAWS
