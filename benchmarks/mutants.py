"""Do the tests notice a change? Small faults in modules, one at a time, and the tests beside them.

    python -m benchmarks.mutants coreeval/releases/verify.py --tests tests/releases/test_verify.py
    python -m benchmarks.mutants coreeval/models/*.py --tests tests/models --sample 50 --seed 3

Each mutant is one change: a comparison, a boolean or an arithmetic operator, a number, a string, a
condition, or a statement left out. The tests run on a copy of the checkout, so that nothing here is
changed. A mutant survives where no test fails; what survives is printed with its line.
"""

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final

ROOT = Path(__file__).parents[1]
PARTS = ("coreeval", "tests", "benchmarks", "examples", "docs")
FILES = ("pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "langgraph.json")
WAIT_S: Final = 300.0
"""Longest run of the tests; a mutant that never ends is killed by it."""
COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE,
    ast.GtE: ast.Gt, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    path: Path
    line: int
    change: str
    """What it does, for people."""
    text: str
    """The whole module with it."""


def list_mutants(path: Path) -> Iterator[Mutant]:
    """Yield the mutants of a module, in the order of its lines."""
    tree = ast.parse(path.read_text("utf-8"))
    for number, node in enumerate(ast.walk(tree)):
        for change in _list_changes(node):
            changed = copy.deepcopy(tree)
            target = next(each for n, each in enumerate(ast.walk(changed)) if n == number)
            if _apply(target, change):
                line = getattr(node, "lineno", 0)
                yield Mutant(path, line, change, ast.unparse(ast.fix_missing_locations(changed)))


def _list_changes(node: ast.AST) -> Sequence[str]:  # noqa: C901 - a case for each kind of node
    """Return the names of what can be changed at a node."""
    match node:
        case ast.Compare(ops=[only]) if type(only) in COMPARISONS:
            return ["comparison"]
        case ast.BoolOp():
            return ["and for or"]
        case ast.UnaryOp(op=ast.Not()):
            return ["not left out"]
        case ast.BinOp(op=operator) if type(operator) in OPERATORS:
            return ["operator"]
        case ast.Constant(value=bool()):
            return ["boolean"]
        case ast.Constant(value=int() | float()):
            return ["number plus one"]
        case ast.If() | ast.IfExp() | ast.While():
            return ["condition always true", "condition never true"]
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.For() | ast.With():
            return [f"statement {n} left out" for n, each in enumerate(node.body) if _can_go(each)]
        case _:
            return []


def _can_go(statement: ast.stmt) -> bool:
    """Tell whether a statement can be left out without an error of its own, and is no docstring."""
    text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return not text and isinstance(statement, ast.Expr | ast.AugAssign | ast.Raise | ast.Delete)


def _apply(node: ast.AST, change: str) -> bool:  # noqa: C901 - likewise
    """Make a change at a node."""
    match node:
        case ast.Compare(ops=[only]):
            node.ops = [COMPARISONS[type(only)]()]
        case ast.BoolOp(op=operator):
            node.op = ast.Or() if isinstance(operator, ast.And) else ast.And()
        case ast.UnaryOp():
            node.op = ast.UAdd()
            node.operand = ast.Call(ast.Name("bool", ast.Load()), [node.operand], [])
        case ast.BinOp(op=operator):
            node.op = OPERATORS[type(operator)]()
        case ast.Constant(value=bool() as value):
            node.value = not value
        case ast.Constant(value=int() | float() as value):
            node.value = value + 1
        case ast.If() | ast.IfExp() | ast.While():
            if isinstance(node, ast.While) and change.endswith("always true"):
                return False
            node.test = ast.Constant(change.endswith("always true"))
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.For() | ast.With():
            node.body[int(change.split()[1])] = ast.Pass()
    return True


class Checkouts:
    """Copies of the checkout, one for each that works at a time."""

    def __init__(self, folder: Path, number: int) -> None:
        self._free = SimpleQueue[Path]()
        for each in range(number):
            copy_to = folder / str(each)
            for part in PARTS:
                shutil.copytree(
                    ROOT / part, copy_to / part, ignore=shutil.ignore_patterns("__pycache__")
                )
            for name in FILES:
                shutil.copy(ROOT / name, copy_to / name)
            self._free.put(copy_to)

    def kills(self, mutant: Mutant | None, tests: Sequence[str]) -> bool:
        """Tell whether a test fails with a mutant; None for the code as it is."""
        checkout = self._free.get()
        target = checkout / mutant.path.relative_to(ROOT) if mutant else None
        before = target.read_bytes() if target else b""
        try:
            if target and mutant:
                target.write_text(mutant.text, "utf-8")
            return _fails(checkout, tests, mutated=mutant is not None)
        finally:
            if target:
                target.write_bytes(before)
            self._free.put(checkout)


def _fails(checkout: Path, tests: Sequence[str], *, mutated: bool) -> bool:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    command += ["--basetemp", str(checkout / "temporary")]
    environment = os.environ | {"PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=checkout, env=environment, capture_output=True, timeout=WAIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    if done.returncode > 1 and not mutated:
        sys.exit(done.stdout.decode() + done.stderr.decode())
    return done.returncode != 0  # above 1 where a module of tests cannot even be imported


def main() -> None:
    """Try mutants and print the survivors."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", type=Path, nargs="+")
    parser.add_argument("--tests", nargs="+", required=True, help="Files or folders of tests.")
    parser.add_argument("--sample", type=int, help="Try so many, drawn by chance; all by default.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args()
    mutants = [each for path in chosen.modules for each in list_mutants(path.resolve())]
    if chosen.sample is not None and chosen.sample < len(mutants):
        mutants = random.Random(chosen.seed).sample(mutants, chosen.sample)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        checkouts = Checkouts(Path(folder), chosen.workers)
        if checkouts.kills(None, chosen.tests):
            sys.exit("the tests fail without a mutant")
        with ThreadPoolExecutor(chosen.workers) as pool:
            killed = list(pool.map(lambda each: checkouts.kills(each, chosen.tests), mutants))
    for mutant, dead in zip(mutants, killed, strict=True):
        if not dead:
            print(f"survived  {mutant.path.relative_to(ROOT)}:{mutant.line}  {mutant.change}")
    share = sum(killed) / len(mutants) if mutants else 1.0
    print(f"{sum(killed)} of {len(mutants)} mutants killed ({share:.0%})")


if __name__ == "__main__":
    main()
