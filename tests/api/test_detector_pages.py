"""The examples of docs/python_detectors.md run as they stand, in an empty folder."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "python_detectors.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
SAID = {
    "pcr": "difficulty_or_memory",
    "numleak": "memorized",
    "overlap": "'near': 1",
    "sample_graph": "accepted",
}
"""What each example prints, by its function."""


def test_there_is_an_example_of_each_function() -> None:
    assert len(BLOCKS) == len(SAID)


@pytest.mark.parametrize(("block", "name"), list(zip(BLOCKS, SAID, strict=False)), ids=list(SAID))
def test_the_examples_run(
    block: str,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert f"coreeval.{name}(" in block
    exec(compile(block, str(PAGE), "exec"), {"__name__": "__main__"})
    assert SAID[name] in capsys.readouterr().out
