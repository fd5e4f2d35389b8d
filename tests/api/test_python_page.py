"""docs/python.md: its blocks run in order, and it describes the names that there are."""

import ast
import asyncio
import inspect
import re
from pathlib import Path

import pytest

import coreeval
from tests.cli.kit import Shell, config_text

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "python.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def run_blocks() -> None:
    """Run the blocks as the cells of one notebook, in which `await` may stand outside functions."""
    session: dict[str, object] = {}
    for number, block in enumerate(BLOCKS):
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code = compile(block, f"python.md, block {number}", "exec", flags=flags)
        done = eval(code, session)
        if inspect.iscoroutine(done):
            asyncio.run(done)


def test_its_blocks_run(shell: Shell) -> None:
    pytest.importorskip("pandas")
    shell.write("coreeval.yaml", config_text({"name": "emotion"}))
    assert len(BLOCKS) == 9
    run_blocks()
    assert Path("exported").is_dir()
    said = shell.capture.readouterr().out
    assert " of 8\n" in said and "macro" in said


def test_it_names_every_function_that_no_page_beside_it_describes() -> None:
    table = PAGE.partition("## Functions and commands")[2].partition("\n\nA config is")[0]
    first = "\n".join(row.split("|")[1] for row in table.splitlines() if row.startswith("|"))
    named = set(re.findall(r"`(\w+)\(", first))
    functions = {name for name in coreeval.__all__ if name[0].islower()}
    others = "".join(page.read_text("utf-8") for page in DOCS.glob("python_*.md"))
    beside = set(re.findall(r"\b(\w+)\(", others))
    assert functions - named - beside == {"read_release"}
    assert named <= functions


def test_it_is_short() -> None:
    assert len(PAGE.split()) <= 1200
