from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from coreeval.evaluation.scores import NO_SCORE, score_proportion
from coreeval.releases.quality import balance_shift, bound_of_both, noise_bound, quality_of
from coreeval.tasks import load_task
from coreeval.tools.stores.run_store import RunStore
from tests.releases.kit import NOW, make_run


def test_what_an_owner_signs_off(tmp_path: Path) -> None:
    made = make_run(tmp_path)
    with closing(RunStore.open(made.files.store, now=lambda: NOW)) as store:
        found = quality_of(store, load_task("emotion"), withheld={"emotion/test/3"})
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
    assert noise.bound == noise_bound(score_proportion(1, 6), score_proportion(1, 4))


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
    assert balance_shift(Counter(before), Counter(after)) == shift


def test_the_noise_bound_is_that_of_a_judge_who_errs_as_on_the_originals() -> None:
    """With m = 0.1 and r = 0.2: 0.2 / 0.9 lost their label, a tenth passed, of 0.8 that passed."""
    m = score_proportion(0, 1).model_copy(update={"ci_high": 0.1})
    r = score_proportion(0, 1).model_copy(update={"ci_high": 0.2})
    assert noise_bound(m, r) == pytest.approx(0.2 / 0.9 * 0.1 / 0.8)


def test_the_noise_bound_at_its_ends() -> None:
    assert noise_bound(NO_SCORE, score_proportion(1, 4)) is None
    assert noise_bound(score_proportion(4, 4), score_proportion(1, 4)) == 1.0
    few, many = (
        noise_bound(score_proportion(0, n), score_proportion(n // 10, n)) for n in (20, 2000)
    )
    assert few is not None and many is not None
    assert many < few


def test_kept_texts_count_with_the_bound_of_the_release_that_judged_them() -> None:
    assert bound_of_both(0.9, 1, 0.1, 8) == pytest.approx((0.9 + 0.8) / 9)
    assert bound_of_both(0.9, 2, None, 0) == 0.9
    assert bound_of_both(None, 0, 0.1, 8) == pytest.approx(0.1)
    assert bound_of_both(0.9, 2, None, 8) is None
    assert bound_of_both(None, 0, None, 0) is None
