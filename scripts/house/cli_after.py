"""What merge_modules.py and rename_symbols.py leave of the room cli; run after both.

`--help` imports every command, so the imports that output functions brought to the top of a command
move into the functions that need them, or under TYPE_CHECKING. Then: ruff check --fix . ; ruff format .
"""

import ast
import re
from pathlib import Path

LIGHT = ("calls", "estimate", "formatting", "models", "schedule")
HEAVY = ("coreeval.tools.stores", "coreeval.tools.cutoffs", "coreeval.tools.catalogs", "coreeval.graph",
         "coreeval.schema", "coreeval.config", "coreeval.models", "coreeval.schedule")
WORDS: dict[str, dict[str, str]] = {
    "coreeval/cli/app.py": {
        'HOMES = {"resume": "refresh", "retry": "refresh", "verify": "release"}':
        'HOMES = {\n    "init": "demo",\n    "push": "export",\n    "resume": "refresh",\n'
        '    "retry": "refresh",\n    "verify": "release",\n}',
    },
    "coreeval/cli/pcr_output.py": {
        """{_interval(found, '+')}, p {_number(found['p_value'])}; \"""": """{_interval(found, '+')}, "
        f"p {_number(found['p_value'])}; \"""",
    },
    "tests/cli/test_app.py": {
        'code = "import gc; from coreeval.cli.app import loading\\nwith loading():\\n"': 'code = f"import gc; {PAUSE}"',
        'code = "from coreeval.cli.app import loading\\nwith loading():\\n import duckdb"': 'code = f"{PAUSE} import duckdb"',
        '"test_start.py, line"': '"test_app.py, line"',
        "UNUSED = {": 'PAUSE = "from coreeval.cli.app import pause_garbage_collection as pause\\nwith pause():\\n"\nUNUSED = {',
    },
}
"""Texts that stand for others."""


def move_imports(text: str) -> str:
    """Return a module whose heavy imports are made where they are used."""
    tree, lines = ast.parse(text), text.splitlines(keepends=True)
    moved: dict[str, str] = {}
    gone = set[int]()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(HEAVY):
            assert node.end_lineno and node.module
            gone |= set(range(node.lineno - 1, node.end_lineno))
            moved |= {alias.name: node.module for alias in node.names}
    if not moved:
        return text
    notes = [node.annotation for node in ast.walk(tree) if isinstance(node, ast.arg | ast.AnnAssign)]
    notes += [node.returns for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    hinted = set[str]()
    inside = set[int]()
    edits: list[tuple[int, int, int, str]] = []
    for note in notes:
        if note is None:
            continue
        inside |= {id(each) for each in ast.walk(note)}
        names = {each.id for each in ast.walk(note) if isinstance(each, ast.Name)} & moved.keys()
        if names:
            assert note.lineno == note.end_lineno and note.end_col_offset
            hinted |= names
            said = lines[note.lineno - 1].encode()[note.col_offset : note.end_col_offset].decode()
            edits.append((note.lineno - 1, note.col_offset, note.end_col_offset, '"' + said.replace('"', "") + '"'))
    inserted: list[tuple[int, str]] = []
    for node in tree.body:
        used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and id(each) not in inside}
        if not used & moved.keys():
            continue
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef), f"{used & moved.keys()} at the top"
        has_doc = ast.get_docstring(node) is not None
        at = node.body[1 if has_doc else 0].lineno - 1
        for name in sorted(used & moved.keys()):
            inserted.append((at, f"    from {moved[name]} import {name}\n"))
    for line, start, end, new in sorted(edits, reverse=True):
        raw = lines[line].encode()
        lines[line] = (raw[:start] + new.encode() + raw[end:]).decode()
    for at, new in inserted:
        lines[at] = new + ("" if lines[at].lstrip().startswith("from ") else "\n" * (lines[at][:9] != "    from ")) + lines[at]
    out = "".join(line for number, line in enumerate(lines) if number not in gone)
    block = "".join(f"    from {moved[name]} import {name}\n" for name in sorted(hinted))
    if not block:
        return out
    if "if TYPE_CHECKING:\n" in out:
        return out.replace("if TYPE_CHECKING:\n", f"if TYPE_CHECKING:\n{block}", 1)
    out = re.sub(r"^from typing import (.*)$", r"from typing import TYPE_CHECKING, \1", out, count=1, flags=re.M)
    last = [n for n in ast.parse(out).body if isinstance(n, ast.Import | ast.ImportFrom)][-1].end_lineno
    rows = out.splitlines(keepends=True)
    return "".join([*rows[:last], f"\nif TYPE_CHECKING:\n{block}", *rows[last:]])


def main() -> None:
    for name in LIGHT:
        path = Path(f"coreeval/cli/{name}.py")
        path.write_text(move_imports(path.read_text()))
    for place, words in WORDS.items():
        path = Path(place)
        text = path.read_text()
        for old, new in words.items():
            text = text if new in text else text.replace(old, new)
        path.write_text(text)


if __name__ == "__main__":
    main()
