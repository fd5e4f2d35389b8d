import numpy as np

from coreeval.evaluation.numleak.embedded import KINDS, synthetic_series


def lag(values: list[float], by: int) -> float:
    return float(np.corrcoef(values[:-by], values[by:])[0, 1])


def test_each_kind_is_of_its_own_nature() -> None:
    returns, level, seasonal = (
        list(synthetic_series(each, seed=4).values.values()) for each in KINDS
    )
    assert abs(np.mean(returns) - 0.5) < 0.6 and 4 < np.std(returns) < 5
    assert abs(lag(returns, 1)) < 0.12 and lag(level, 1) > 0.9 and lag(seasonal, 12) > 0.9
    assert min(level) > 0


def test_values_have_the_digits_of_their_definition_and_months_in_order() -> None:
    for kind in KINDS:
        series = synthetic_series(kind, seed=4, months=30)
        assert [str(series.first), str(series.last)] == ["1980-01", "1982-06"]
        digits = series.definition.decimals
        assert all(value == round(value, digits) for value in series.values.values())


def test_another_seed_makes_another_series() -> None:
    first, other = (synthetic_series("returns", seed=seed).values for seed in (1, 2))
    assert first != other and first == synthetic_series("returns", seed=1).values
