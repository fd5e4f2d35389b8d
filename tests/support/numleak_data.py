"""The public series that NumLeak's authors used, beside the checkout."""

from pathlib import Path
from typing import Final

import pytest

NUMLEAK: Final = Path(__file__).parents[2].parent / "shared" / "data" / "numleak"
SERIES: Final = NUMLEAK / "series"
FILES: Final = {
    "mkt_rf": SERIES / "F-F_Research_Data_Factors.csv",
    "smb": SERIES / "F-F_Research_Data_Factors.csv",
    "hml": SERIES / "F-F_Research_Data_Factors.csv",
    "unrate": SERIES / "UNRATE.csv",
    "cpi_yoy": SERIES / "CPIAUCSL.csv",
    "sp500": SERIES / "sp500_monthly_shiller.csv",
    "noaa_us_tavg": SERIES / "noaa_us_tavg.csv",
}
"""The file of each built-in series that is there, as `open_series(id, file=…)` takes it."""
beside_numleak = pytest.mark.skipif(
    not NUMLEAK.is_dir(), reason="NumLeak's series are not beside this checkout"
)
