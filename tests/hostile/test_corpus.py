"""The corpus of hostile inputs, each given to its parser: it reads it or says what is wrong.

A new one is a file in `corpus/<parser>/`, named after what it tries; the parsers are those of
`parsers.py`. Keep it below 10 kB.
"""

from pathlib import Path
from typing import Final

import pytest

from tests.hostile.parsers import PARSERS
from tests.hostile.patterns import seconds

CORPUS: Final = Path(__file__).parent / "corpus"
FILES: Final = sorted(file for file in CORPUS.rglob("*") if file.is_file())
LONGEST_S: Final = 10.0


@pytest.mark.filterwarnings("ignore::UserWarning")  # openpyxl's, of odd workbooks
@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_every_hostile_input_is_read_or_refused(file: Path, tmp_path: Path) -> None:
    parse, content = PARSERS[file.parent.name], file.read_bytes()
    assert seconds(lambda _: parse(content, tmp_path), "", LONGEST_S) < LONGEST_S


def test_every_parser_has_hostile_inputs() -> None:
    assert {file.parent.name for file in FILES} == PARSERS.keys()
    assert sum(file.stat().st_size for file in FILES) < 250_000
