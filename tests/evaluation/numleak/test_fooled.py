"""From recorded answers to a verdict: what made wrong ones before."""

from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from coreeval.evaluation.numleak.document import audits_document
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import Reply
from coreeval.evaluation.numleak.series import Series
from coreeval.evaluation.numleak.statistics import Settings
from coreeval.evaluation.numleak.study import Audit, audited
from tests.evaluation.numleak.audits import CUTOFF, MONTHS, SETTINGS, series

Floats = NDArray[np.float64]


def slow_series() -> Series:
    """Return a slow series with one decimal, as a rate of unemployment."""
    steps = np.random.default_rng(4).normal(0, 0.15, len(MONTHS))
    values = np.round(6 + np.cumsum(steps), 1).tolist()
    definition = series().definition.model_copy(update={"decimals": 1})
    return Series(definition=definition, values=dict(zip(MONTHS, values, strict=True)))


def audit(
    about: Series, said: Mapping[Period, float], decimals: int, *, cutoff: bool = False
) -> Audit:
    replies = [
        Reply(model="m", series="tides", date=str(month), response=f"{value:.{decimals}f}")
        for month, value in said.items()
    ]
    cutoffs = {"m": CUTOFF if cutoff else None}
    (found,) = audited(replies, {"tides": about}, SETTINGS, cutoffs)
    return found


def test_last_known_values_after_the_cutoff_do_not_unmake_memory() -> None:
    about = slow_series()
    before = [month for month in MONTHS if month.months_after(CUTOFF) < -7][::7][:30]
    after = [month for month in MONTHS if month.months_after(CUTOFF) > 7][:10]
    last = about.values[before[-1]]
    said = {month: about.values[month] for month in before} | dict.fromkeys(after, last)
    found = audit(about, said, 1, cutoff=True)
    assert len(before) == 30 and found.verdict == "memorized"
    assert found.basis.strata == ("pre",) and found.basis.dates == 30
    assert any("rests on the 30 dates until six months before" in each for each in found.reasons)
    assert found.measured.overall.n == 40, "numbers are over all that was asked"


@pytest.mark.parametrize("about", [series(), slow_series()], ids=["noise", "slow"])
def test_a_quarter_by_heart_is_partly_memorized(about: Series) -> None:
    rng, values = np.random.default_rng(2), list(about.values.values())
    guesses = rng.normal(np.mean(values), np.std(values), len(MONTHS))
    said = {
        month: about.values[month] if at % 4 == 0 else float(guesses[at])
        for at, month in enumerate(MONTHS)
        if at % 5 == 0
    }
    found = audit(about, said, about.definition.decimals)
    assert found.verdict == "partly_memorized"
    assert 0.25 <= found.judged.exactness.share.estimate < 0.32, "and a guess hits now and then"
    assert "are a published value to its last digit (p < 0.0001)" in found.reasons[0]


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("lag", [-1, 3])
def test_shifted_memory_is_named(lag: int, noisy: bool) -> None:
    about = series()
    rng, known = np.random.default_rng(6), list(about.values.values())
    said = {
        month: known[at + lag] + (float(rng.normal(0, 0.2)) if noisy else 0.0)
        for at, month in enumerate(MONTHS)
        if at % 5 == 0 and 0 <= at + lag < len(MONTHS)
    }
    found = audit(about, said, 2)
    assert found.verdict == "memorized" and found.basis.shift == lag
    side = "before" if lag < 0 else "after"
    assert any(f"{abs(lag)} period{'' if lag == -1 else 's'} {side}" in r for r in found.reasons)


@pytest.mark.parametrize(("factor", "decimals"), [(100.0, 0), (0.01, 4), (1000.0, 0)])
def test_rescaled_memory_is_named(factor: float, decimals: int) -> None:
    about = series()
    said = {month: factor * about.values[month] for month in MONTHS[::5]}
    found = audit(about, said, decimals)
    assert found.verdict == "memorized" and found.basis.factor == factor
    assert any(f"{factor:g} times the values" in reason for reason in found.reasons)
    (document,) = audits_document([found], Settings())["series"]
    assert document["basis"]["factor"] == factor and document["basis"]["shift"] == 0


def test_an_error_worse_than_the_means_is_not_fluent() -> None:
    about = series()
    rng, known = np.random.default_rng(1), np.array(list(about.values.values()))
    wild = 0.35 * known + rng.normal(0, 1.6 * np.std(known), len(known))
    said = {month: float(wild[at]) for at, month in enumerate(MONTHS)}
    found = audit(about, said, 2)
    r = found.measured.overall.pearson_r
    assert r.ci_low > 0 and found.measured.baselines["constant"].gain.estimate < 0
    assert found.verdict in ("no_recall", "inconclusive")
