"""Generate the synthetic series on which the demo shows NumLeak at work; no market made it.

    python examples/synthetic_numbers.py [DIR]

480 monthly values by chance, as in the NumLeak paper's own made-up series (appendix T): nothing in
the world gives them away, so whoever can tell the value of a month has been taught it.
"""

import sys
from pathlib import Path

from coreeval.evaluation.numleak.personas import synthetic_series

SEED = 1
FILE = "values.csv"


def main(folder: Path) -> None:
    """Write the values, a line for each month."""
    series = synthetic_series("returns", seed=SEED)
    lines = [f"{period},{value:.2f}\n" for period, value in series.values.items()]
    (folder / FILE).write_text("date,value\n" + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "examples/demo/synthetic_numbers"))
