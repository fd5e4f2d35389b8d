"""A small definition, with what a test needs to differ, and series read from a text."""

from coreeval.evaluation.numleak.series import Series, SeriesDefinition, read_series

PLAIN: dict[str, object] = {
    "id": "toy",
    "name": "the toy factor",
    "quantity": "monthly return",
    "unit": "percent",
    "sign": "signed",
    "decimals": 2,
    "frequency": "monthly",
    "source": {"path": "toy.csv"},
    "release_lag_days": 30,
}


def defined(**changes: object) -> SeriesDefinition:
    """Return a definition of a monthly series in percent, with some values replaced."""
    return SeriesDefinition.model_validate(PLAIN | changes)


def read(text: str | bytes, **changes: object) -> Series:
    """Return the series that a file's text holds for such a definition."""
    data = text if isinstance(text, bytes) else text.encode()
    return read_series(defined(**changes), data, origin="toy.csv")


def written(series: Series) -> dict[str, float]:
    """Return the values by their dates as data has them, rounded to six digits."""
    return {str(at): round(value, 6) for at, value in series.values.items()}
