"""Other alphas, scales and thresholds: the same draws, and texts embedded once."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from coreeval.errors import UsageError
from coreeval.evaluation.pcr import Form, Pair, Settings, study
from coreeval.evaluation.pcr.ablation import ALPHAS, THRESHOLDS, Ablation, ablate
from coreeval.evaluation.pcr.study import resampled
from coreeval.tools.embeddings import Embedder, EmbeddingCache, Vectors
from coreeval.tools.json_cache import JsonCache
from tests.evaluation.pcr.kit import two_splits

ASKED = Settings(metric="exact_match", consistency="exact", draws=300)
PAIRS = two_splits((100, 80, 90), (100, 40, 70))


class Angles:
    """Embeddings of texts that are numbers of degrees; counts how often it is asked."""

    name = "angles"
    asked = 0

    def __call__(self, texts: Sequence[str]) -> Vectors:
        self.asked += 1
        turns = np.radians([float(text) for text in texts])
        return np.column_stack([np.cos(turns), np.sin(turns)]).astype(np.float32)


def ablated(settings: Settings, pairs: list[Pair], embeds: Embedder | None = None) -> Ablation:
    """Return the ablation of one file."""
    files = {"it": pairs}
    found = resampled(files, settings, embeds=embeds)
    return ablate(files, found, settings, embeds=embeds)


def test_every_scale_with_every_alpha_and_the_one_that_was_asked() -> None:
    settings = replace(ASKED, form=Form(alpha=0.05, margin=0.2))
    ablation = ablated(settings, PAIRS)
    assert [(form.scale, form.alpha) for form, _ in ablation.forms] == [
        (scale, alpha)
        for scale in ("tanh", "linear", "sigmoid")
        for alpha in sorted((*ALPHAS, 0.05))
    ]
    assert [form.near for form, _ in ablation.forms[::5]] == [0.2, 0.03, 0.0075]
    for form, found in ablation.forms:
        assert found == study({"it": PAIRS}, replace(settings, form=form))
    assert not ablation.thresholds


def test_consistency_falls_as_the_threshold_rises(tmp_path: Path) -> None:
    """CAP, Figure 7."""
    rng = np.random.default_rng(1)
    turned = [
        replace(each, original_output="0", modified_output=f"{rng.uniform(0, 40):.3f}")
        for each in PAIRS
    ]
    angles = Angles()
    settings = replace(ASKED, consistency="cosine", threshold=0.93)
    with JsonCache(tmp_path) as cache:
        ablation = ablated(settings, turned, EmbeddingCache(angles, cache))
    assert [threshold for threshold, _ in ablation.thresholds] == sorted((*THRESHOLDS, 0.93))
    for name in ("train", "test"):
        shares = [found["it"].splits[name].consistency for _, found in ablation.thresholds]
        assert shares == sorted(shares, reverse=True) and shares[0] > shares[-1]
    expected = np.mean([np.cos(np.radians(float(each.modified_output))) >= 0.9 for each in turned])
    at = dict(ablation.thresholds)[0.9]["it"].splits
    assert np.mean([each.consistency for each in at.values()]) == pytest.approx(expected)
    assert angles.asked == 2  # once for the originals, once for the modified


def test_cosine_needs_embeddings() -> None:
    with pytest.raises(UsageError, match="cosine"):
        study({"it": PAIRS}, replace(ASKED, consistency="cosine"))
