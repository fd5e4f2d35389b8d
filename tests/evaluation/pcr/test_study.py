"""From pairs to verdicts: models that remember what they should or should not."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kstest  # type: ignore[import-untyped]

from coreeval.errors import DatasetError, UsageError
from coreeval.evaluation.pcr import Comparison, Pair, PcrOptions, PcrSettings, study
from coreeval.evaluation.pcr.comparison import compare
from coreeval.evaluation.pcr.study import ALPHAS, THRESHOLDS, Ablation, ablate, resample_files
from coreeval.tools.embeddings import Embedder, EmbeddingCache, Vectors
from coreeval.tools.json_cache import JsonCache
from tests.evaluation.pcr.kit import pair, two_splits

ASKED = PcrSettings(metric="exact_match", consistency="exact", draws=1000, exchangeable=True)
CLEAN = two_splits((300, 150, 240), (300, 150, 240))


def compared(pairs: list[Pair], settings: PcrSettings = ASKED) -> Comparison:
    """Compare one file."""
    return study({"it": pairs}, settings)["it"]


def test_what_is_known_of_the_training_split_shows() -> None:
    tuned = compared(two_splits((300, 270, 280), (300, 150, 240)))
    assert tuned.verdict == "fine_tuned"
    assert tuned.difference.pcr.ci_low > 0 and tuned.difference.p_value == 1 / 1001
    dirty = compared(two_splits((300, 150, 240), (300, 270, 280)))
    assert dirty.verdict == "contaminated"
    assert dirty.difference.pcr.estimate == pytest.approx(-tuned.difference.pcr.estimate)


def test_likeness_takes_enough_items() -> None:
    """The same shares: 300 items a split cannot tell, 60,000 can."""
    assert compared(CLEAN).verdict == "inconclusive"
    many = [replace(each, id=f"{each.id} {copy}") for each in CLEAN for copy in range(40)]
    large = compared(many, replace(ASKED, draws=200))
    assert large.verdict == "comparable" and large.difference.p_value > 0.05


def test_scores_and_baselines_of_a_split() -> None:
    found = compared(two_splits((100, 40, 80), (200, 100, 150)))
    train = found.splits["train"]
    assert (train.n, train.scored, train.performance, train.consistency) == (100, 100, 0.4, 0.8)
    assert train.pcr.estimate == pytest.approx(math.tanh(0.41 / 0.81))
    assert train.pcr.ci_low < train.pcr.estimate < train.pcr.ci_high
    lost = {name: each.decline.estimate / each.performance for name, each in found.splits.items()}
    assert found.difference.discrepancy.estimate == pytest.approx(lost["train"] - lost["test"])


def test_other_splits_are_reported_and_change_nothing() -> None:
    more = [*CLEAN, *(replace(each, split="dev") for each in CLEAN[:50])]
    alone, beside = compared(CLEAN), compared(more)
    assert set(beside.splits) == {"train", "test", "dev"}
    assert alone.difference == beside.difference
    assert compared(more, replace(ASKED, test="dev")).difference != alone.difference


def test_the_seed_decides_and_nothing_else() -> None:
    assert compared(CLEAN) == compared(CLEAN)
    other = compared(CLEAN, replace(ASKED, seed=1))
    assert other.difference != compared(CLEAN).difference
    assert other.difference.pcr.estimate == compared(CLEAN).difference.pcr.estimate


def test_empty_references_count_for_consistency_only() -> None:
    blank = [pair("train", 1000 + n, "", ("yes", "no")) for n in range(100)]
    found = compared([*two_splits((100, 40, 80), (100, 40, 80)), *blank])
    train = found.splits["train"]
    assert (train.n, train.scored, train.performance, train.consistency) == (200, 100, 0.4, 0.4)
    assert found.notes[0].startswith("100 of 300 items have no reference")


def test_a_split_without_references() -> None:
    blank = [replace(each, reference="") for each in CLEAN if each.split == "test"]
    found = compared([*CLEAN[:300], *blank])
    assert found.verdict == "inconclusive" and "test has 0 items with a reference" in found.reason
    assert math.isnan(found.difference.pcr.estimate)


def test_few_items_are_no_verdict() -> None:
    found = compared(two_splits((19, 19, 19), (300, 10, 200)))
    assert found.verdict == "inconclusive" and "train has 19 items" in found.reason


@pytest.mark.parametrize("said", ["", "I cannot help with that.", "我无法回答这个问题"])
@pytest.mark.parametrize("metric", ["exact_match", "rouge_l", "bleu", "macro_f1"])
def test_a_target_that_refuses_everything(metric: str, said: str) -> None:
    refused = [replace(each, original_output=said, modified_output=said) for each in CLEAN]
    found = compared(refused, replace(ASKED, metric=metric, draws=200))
    assert found.verdict == "insufficient_signal"
    assert found.splits["test"].consistency == 1


def test_consistency_and_alpha_of_nothing() -> None:
    never = [replace(each, modified_output=f"{each.id} {each.split}") for each in CLEAN]
    linear = PcrOptions(alpha=0, scale="linear")
    found = compared(never, replace(ASKED, form=linear))
    assert found.splits["train"].pcr.estimate == math.inf
    assert found.verdict == "inconclusive" and "undefined" in found.reason
    assert compared(never, replace(ASKED, form=replace(linear, alpha=0.01))).verdict


def test_answers_that_never_agree_are_not_called_comparable() -> None:
    """Without consistency tanh is 1 in both splits, however unlike they are (CAP, Table 11)."""
    never = [
        replace(each, modified_output=f"{each.id} {each.split}")
        for each in two_splits((300, 60, 0), (300, 40, 0))
    ]
    form = PcrOptions(alpha=0.001)
    found = compared(never, replace(ASKED, form=form))
    assert found.splits["train"].pcr.estimate == found.splits["test"].pcr.estimate == 1
    assert found.verdict == "inconclusive" and "limit of its scale" in found.reason
    linear = replace(ASKED, form=replace(form, scale="linear"))
    assert compared(never, linear).difference.pcr.estimate > 50


def test_p_values_are_adjusted_over_all_files() -> None:
    other = two_splits((300, 160, 240), (300, 140, 240))
    both = study({"a": CLEAN, "b": other}, ASKED)
    assert both["b"].difference.p_adjusted == pytest.approx(
        min(1, 2 * compared(other).difference.p_value)
    )
    assert both["a"].difference.p_adjusted == both["a"].difference.p_value


def test_one_score_has_the_same_classes_in_every_split() -> None:
    few = [pair("train", n, "yes", ("yes", "yes")) for n in range(30)]
    many = [pair("test", n, "yes" if n % 2 else "no", ("yes", "yes")) for n in range(30)]
    found = compared([*few, *many], replace(ASKED, metric="macro_f1"))
    assert found.splits["train"].performance == 0.5


@pytest.mark.parametrize("interval", ["percentile", "bca"])
def test_on_alike_splits_intervals_hold_and_p_is_uniform(interval: str) -> None:
    """200 made studies; benchmarks/pcr.py does it with more."""
    held, p_values, form = [], [], PcrOptions(interval="bca" if interval == "bca" else "percentile")
    for seed in range(200):
        rng = np.random.default_rng([seed, 9])
        sizes = [("train", 60), ("test", 90)]
        pairs = [
            pair(split, number, "yes", ("yes" if right else "no", "yes" if again else "no"))
            for split, n in sizes
            for number, (right, again) in enumerate(rng.random((n, 2)) < [0.4, 0.6])
        ]
        found = resample_files({"it": pairs}, replace(ASKED, draws=300, seed=seed))
        difference = compare(found, ("train", "test"), form)["it"].difference
        held.append(difference.pcr.ci_low <= 0 <= difference.pcr.ci_high)
        p_values.append(difference.p_value)
    assert 0.90 <= np.mean(held) <= 0.99
    assert kstest(p_values, "uniform").pvalue > 0.001


def test_what_cannot_be_compared() -> None:
    with pytest.raises(DatasetError, match="no pairs for the split 'dev'") as missing:
        compared(CLEAN, replace(ASKED, train="dev"))
    assert (missing.value.where, missing.value.hint) == ("it", "available splits: train, test")
    with pytest.raises(DatasetError) as empty:
        compared([])
    assert empty.value.hint == "no line of the file contains a pair"
    with pytest.raises(UsageError, match="no metric 'f1'"):
        compared(CLEAN, replace(ASKED, metric="f1"))
    with pytest.raises(UsageError, match="no consistency measure 'same'"):
        compared(CLEAN, replace(ASKED, consistency="same"))
    with pytest.raises(UsageError, match="PCR would compare the split 'test' with itself"):
        compared(CLEAN, replace(ASKED, train="test"))


ABLATION_SETTINGS = PcrSettings(metric="exact_match", consistency="exact", draws=300)
PAIRS = two_splits((100, 80, 90), (100, 40, 70))


class Angles:
    """Embeddings of texts that are numbers of degrees; counts how often it is asked."""

    name = "angles"
    asked = 0

    def __call__(self, texts: Sequence[str]) -> Vectors:
        self.asked += 1
        turns = np.radians([float(text) for text in texts])
        return np.column_stack([np.cos(turns), np.sin(turns)]).astype(np.float32)


def run_ablation(
    settings: PcrSettings, pairs: list[Pair], embeds: Embedder | None = None
) -> Ablation:
    """Return the ablation of one file."""
    files = {"it": pairs}
    found = resample_files(files, settings, embeds=embeds)
    return ablate(files, found, settings, embeds=embeds)


def test_every_scale_with_every_alpha_and_the_one_that_was_asked() -> None:
    settings = replace(ABLATION_SETTINGS, form=PcrOptions(alpha=0.05, margin=0.2))
    ablation = run_ablation(settings, PAIRS)
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
    settings = replace(ABLATION_SETTINGS, consistency="cosine", threshold=0.93)
    with JsonCache(tmp_path) as cache:
        ablation = run_ablation(settings, turned, EmbeddingCache(angles, cache))
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
        study({"it": PAIRS}, replace(ABLATION_SETTINGS, consistency="cosine"))
