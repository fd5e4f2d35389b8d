"""Copies CoreEval functions and their dependencies into a package that works without CoreEval.

Exports thus grade answers with CoreEval's own code. From each module, only the definitions that the
functions need are copied, unchanged; each module becomes a file of the package.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path

from coreeval.tools.files import write_text

_ROOT = "coreeval"
Roots = Mapping[str, Sequence[str]]
"""Names of functions and classes by the module that defines them."""


def write_package(folder: Path, roots: Roots) -> None:
    """Write a package whose `__init__.py` has some functions under their names.

    Raises:
        ValueError: a function imports from CoreEval inside its body.
    """
    wanted = _collect(roots)
    for module, names in wanted.items():
        write_text(folder / f"{_file_name(module)}.py", _write_module(module, names))
    imports = (
        f"from .{_file_name(module)} import {', '.join(sorted(names))}"
        for module, names in roots.items()
    )
    about = '"""Functions of CoreEval that grade answers, copied by `coreeval export`."""'
    write_text(folder / "__init__.py", "\n\n".join((about, "\n".join(imports))) + "\n")


def _collect(roots: Roots) -> dict[str, set[str]]:
    """Return the needed names of each module."""
    found = dict[str, set[str]]()
    waiting = [(module, name) for module, names in roots.items() for name in names]
    while waiting:
        module, name = waiting.pop()
        known = found.setdefault(module, set())
        if name in known:
            continue
        known.add(name)
        parsed = _parse(module)
        for used in parsed.names_used(name):
            waiting.append(parsed.inner.get(used, (module, used)))
    return found


def _file_name(module: str) -> str:
    return module.removeprefix(f"{_ROOT}.").replace(".", "_")


@dataclass(frozen=True)
class _Module:
    """A module: the definitions of its names, and the origins of imported names."""

    source: str
    body: Sequence[ast.stmt]
    defined: Mapping[str, Sequence[ast.stmt]] = field(default_factory=dict)
    inner: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The CoreEval module and name of each import, by its name in this module."""
    outer: Mapping[str, str] = field(default_factory=dict)
    """The line that imports each other name."""

    def names_used(self, name: str) -> Iterator[str]:
        """Yield the names of the module and of CoreEval that a definition uses."""
        for statement in self.defined[name]:
            for node in ast.walk(statement):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_ROOT):
                    raise ValueError(f"{name} imports {node.module} while it runs")
                if isinstance(node, ast.Name) and (
                    node.id in self.defined or node.id in self.inner
                ):
                    yield node.id


@cache
def _parse(module: str) -> _Module:
    package, _, name = module.rpartition(".")
    source = resources.files(package).joinpath(f"{name}.py").read_text(encoding="utf-8")
    body = ast.parse(source).body
    defined = dict[str, list[ast.stmt]]()
    inner, outer = dict[str, tuple[str, str]](), dict[str, str]()
    for statement in body:
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith(_ROOT):
            inner |= {
                each.asname or each.name: (str(statement.module), each.name)
                for each in statement.names
            }
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            outer |= {one: line for one, line in _iter_import_lines(statement)}
        else:
            for bound in _names_bound(statement):
                defined.setdefault(bound, []).append(statement)
    return _Module(source, body, defined, inner, outer)


def _iter_import_lines(statement: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """Yield each imported name with a line that imports it alone."""
    for each in statement.names:
        told = f"{each.name} as {each.asname}" if each.asname else each.name
        start = f"from {statement.module} " if isinstance(statement, ast.ImportFrom) else ""
        yield each.asname or each.name.partition(".")[0], f"{start}import {told}"


def _names_bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a module defines."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for node in (node for target in targets for node in ast.walk(target)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def _write_module(module: str, names: set[str]) -> str:
    """Return the source of a module with only some of its names, and their imports."""
    parsed = _parse(module)
    kept = [each for each in parsed.body if names & {*_names_bound(each)}]
    used = {node.id for each in kept for node in ast.walk(each) if isinstance(node, ast.Name)}
    lines = sorted({line for name, line in parsed.outer.items() if name in used})
    for name in sorted(used & parsed.inner.keys()):
        origin, there = parsed.inner[name]
        told = there if there == name else f"{there} as {name}"
        lines.append(f"from .{_file_name(origin)} import {told}")
    parts = [f'"""Copied from `{module}` of CoreEval."""', "\n".join(lines)]
    parts += [_cut_statement(parsed, each) for each in kept]
    return "\n\n\n".join(part for part in parts if part) + "\n"


def _cut_statement(parsed: _Module, statement: ast.stmt) -> str:
    """Return the lines of a statement, with its decorators and its docstring."""
    decorators = getattr(statement, "decorator_list", [])
    first = min((statement.lineno, *(each.lineno for each in decorators)))
    last, place = statement.end_lineno or first, parsed.body.index(statement)
    following = parsed.body[place + 1] if place + 1 < len(parsed.body) else None
    if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
        last = following.end_lineno or last
    return "\n".join(parsed.source.splitlines()[first - 1 : last])
