import runpy
from pathlib import Path

from coreeval.evaluation.numleak.series import open_series
from coreeval.graph.bundled import NUMBERS, demo_data

SCRIPT = Path(__file__).parents[2] / "examples" / "synthetic_numbers.py"


def test_the_script_writes_the_bundled_values(tmp_path: Path) -> None:
    runpy.run_path(str(SCRIPT))["main"](tmp_path)
    bundled = demo_data() / NUMBERS / "values.csv"
    assert (tmp_path / bundled.name).read_bytes() == bundled.read_bytes()


def test_the_definition_reads_them_whole() -> None:
    series = open_series(str(demo_data() / NUMBERS / "series.yaml"), base=Path.cwd())
    assert len(series.values) == 480 and not series.notes
