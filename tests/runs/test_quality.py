"""How much of the new texts stands in the old ones, on texts that can be counted."""

from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from coreeval.evaluation.scores import NO_SCORE, score_proportion
from coreeval.runs.quality import (
    Findings,
    estimate_noise_bound,
    measure_balance_shift,
    measure_overlap,
    measure_quality,
    merge_noise_bounds,
    share_ngrams,
)
from coreeval.tasks import load_task
from coreeval.tools.stores.run_store import RunStore
from tests.releases.gates.kit import COMPARABILITY
from tests.releases.kit import NOW, make_run


def test_what_an_owner_signs_off(tmp_path: Path) -> None:
    made = make_run(tmp_path)
    with closing(RunStore.open(made.files.store, now=lambda: NOW)) as store:
        found = measure_quality(store, load_task("emotion"), withheld={"emotion/test/3"})
    assert (found.acceptance.estimate, found.acceptance.n) == (2 / 6, 6)
    assert found.evidence.estimate == 4 / 6
    labels = {one.label: one for one in found.by_label}
    assert labels["joy"].accepted.estimate == 1 / 3
    assert (labels["joy"].original_share, labels["joy"].updated_share) == (3 / 6, 1 / 2)
    assert labels["optimism"].accepted.n == 1
    assert found.balance_shift == pytest.approx(1 / 3)
    assert {one.rung: (one.samples, one.accepted) for one in found.rungs} == {
        "named": (3, 2),
        "concept": (1, 0),
        "none": (2, 0),
    }
    noise = found.label_noise
    assert (noise.original.estimate, noise.original.n) == (1 / 6, 6)
    assert (noise.updated.estimate, noise.updated.n) == (1 / 4, 4)
    assert noise.bound == estimate_noise_bound(score_proportion(1, 6), score_proportion(1, 4))


def test_findings_without_a_comparison_have_no_key_for_it() -> None:
    assert set(Findings().model_dump()) == {"ranking", "targets"}
    measured = Findings(comparability=COMPARABILITY)
    assert Findings.model_validate(measured.model_dump(mode="json")) == measured


@pytest.mark.parametrize(
    ("before", "after", "shift"),
    [
        ({"a": 5, "b": 5}, {"a": 1, "b": 1}, 0.0),
        ({"a": 5, "b": 5}, {"a": 4}, 0.5),
        ({"a": 9}, {"b": 1}, 1.0),
        ({"a": 9}, {}, None),
    ],
)
def test_the_shift_of_the_balance(
    before: dict[str, int], after: dict[str, int], shift: float | None
) -> None:
    assert measure_balance_shift(Counter(before), Counter(after)) == shift


def test_the_noise_bound_is_that_of_a_judge_who_errs_as_on_the_originals() -> None:
    """With m = 0.1 and r = 0.2: 0.2 / 0.9 lost their label, a tenth passed, of 0.8 that passed."""
    m = score_proportion(0, 1).model_copy(update={"ci_high": 0.1})
    r = score_proportion(0, 1).model_copy(update={"ci_high": 0.2})
    assert estimate_noise_bound(m, r) == pytest.approx(0.2 / 0.9 * 0.1 / 0.8)


def test_the_noise_bound_at_its_ends() -> None:
    assert estimate_noise_bound(NO_SCORE, score_proportion(1, 4)) is None
    assert estimate_noise_bound(score_proportion(4, 4), score_proportion(1, 4)) == 1.0
    few, many = (
        estimate_noise_bound(score_proportion(0, n), score_proportion(n // 10, n))
        for n in (20, 2000)
    )
    assert few is not None and many is not None
    assert many < few


def test_kept_texts_count_with_the_bound_of_the_release_that_judged_them() -> None:
    assert merge_noise_bounds(0.9, 1, 0.1, 8) == pytest.approx((0.9 + 0.8) / 9)
    assert merge_noise_bounds(0.9, 2, None, 0) == 0.9
    assert merge_noise_bounds(None, 0, 0.1, 8) == pytest.approx(0.1)
    assert merge_noise_bounds(0.9, 2, None, 8) is None
    assert merge_noise_bounds(None, 0, None, 0) is None
    assert merge_noise_bounds(0.9, 0, 0.1, 0) is None, "of no texts"


SIX = "one two three four five six"


@pytest.mark.parametrize(
    ("new", "old", "share", "grams"),
    [
        (SIX, SIX, 1.0, 2),
        (SIX, "ONE, two: three four five!", 0.5, 2),
        (SIX, "two three four five six seven", 0.5, 2),
        (SIX, "six five four three two one", 0.0, 2),
        (SIX + " " + SIX, SIX, 2 / 6, 6),
        ("one two three four", SIX, None, 0),
        ("", "", None, 0),
        ("我今天很开心", "我今天很难过", 0.0, 2),
        ("我今天很开心", "我今天很开了", 0.5, 2),
    ],
)
def test_the_share_of_five_words_in_a_row(
    new: str, old: str, share: float | None, grams: int
) -> None:
    found = share_ngrams([({"text": new}, {"text": old})])
    assert (found.share, found.grams, found.texts) == (share, grams, 1)


def test_all_fields_and_samples_count_together() -> None:
    pair = ({"a": SIX, "b": "x"}, {"a": "x", "b": SIX})
    other = ({"a": "p q r s t u v", "b": ""}, {"a": "", "b": ""})
    found = share_ngrams([pair, other])
    assert (found.size, found.share, found.grams, found.texts) == (5, 2 / 5, 5, 2)


def test_only_published_texts_count(tmp_path: Path) -> None:
    made = make_run(tmp_path)
    with closing(RunStore.open(made.files.store, now=lambda: NOW)) as store:
        every = measure_overlap(store, withheld=())
        fewer = measure_overlap(store, withheld={"emotion/test/1"})
    assert (every.texts, fewer.texts) == (3, 2)
