"""A monthly series that does not exist, as files: what questions are asked about in tests."""

import random
from collections.abc import Mapping
from pathlib import Path

import yaml

from coreeval.evaluation.numleak.series import Series, open_series

FIRST, LAST = 1970, 2025
"""Its first and its last year, both whole."""
TIDES: Mapping[str, object] = {
    "id": "tides",
    "name": "the Halcyon tide index",
    "quantity": "monthly change",
    "blind": "the height of the tide in a harbour town",
    "unit": "percent",
    "sign": "signed",
    "decimals": 2,
    "frequency": "monthly",
    "source": {"path": "tides.csv"},
    "release_lag_days": 30,
    "fictitious": ["the Ravensholm tide index", "the Port Quill tide index"],
    "notable": {"2008-10": "a storm", "1987-10": "a flood", "1999-01": "an eclipse"},
}


def write_series(folder: Path, **changes: object) -> Path:
    """Write the definition, with these keys in place of the usual ones, and its values."""
    turns = random.Random(1)
    rows = [f"{year}-{month:02d},{turns.gauss(0.5, 4):.2f}"
            for year in range(FIRST, LAST + 1) for month in range(1, 13)]  # fmt: skip
    (folder / "tides.csv").write_text("\n".join(["date,value", *rows]), encoding="utf-8")
    path = folder / f"{changes.get('id', 'tides')}.yaml"
    path.write_text(yaml.safe_dump({**TIDES, **changes}), encoding="utf-8")
    return path


def tides(folder: Path, **changes: object) -> Series:
    """Return the series."""
    return open_series(str(write_series(folder, **changes)), base=folder, cache=None)
