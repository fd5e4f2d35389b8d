"""docs/scoring.md says what is so."""

import re
from pathlib import Path

from coreeval.evaluation.benchmarks.items import LAYOUTS
from coreeval.evaluation.modifications import BY_RULE
from coreeval.evaluation.modifications.paraphrase import FLOOR, PIECE
from coreeval.evaluation.modifications.year_shift import DECADE_SHIFTS, SHIFTS
from coreeval.evaluation.scoring import CONSISTENCY, PERFORMANCE, THRESHOLD
from coreeval.tools.embeddings import MINILM

DOCS = (Path(__file__).parents[3] / "docs" / "scoring.md").read_text(encoding="utf-8")


def test_every_name_is_described() -> None:
    described = set(re.findall(r"`(\w+)`", DOCS))
    assert {*PERFORMANCE, *CONSISTENCY, *LAYOUTS, *BY_RULE, MINILM} <= described


def test_the_numbers_are_those_of_the_code() -> None:
    assert f"threshold={THRESHOLD}" in DOCS
    assert f"floor of {FLOOR}" in DOCS
    assert f"pieces of {PIECE} words" in DOCS
    assert all(f"±{shift}" in DOCS for shift in {*map(abs, SHIFTS + DECADE_SHIFTS)})
