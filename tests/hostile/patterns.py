"""Every pattern of the package, run over texts that make patterns slow.

Patterns that modules hold are found by importing them; those that stand in a call, such as
`re.sub("…", …)`, are found in the source. A pattern is tried the way it is used: one that is only
matched at a beginning is not searched for.

As a program, lists those that take long over a megabyte:

    python -m tests.hostile.patterns
"""

import ast
import importlib
import inspect
import pkgutil
import re
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Literal

import coreeval

PIECES = (
    " ", "\n", "\t", "a", "A", "A ", "a ", "1", "1,", "1.", "1 ,", "-", "_", ".", ",", "/", "\\",
    "<", ">", "<a ", "</", "<!--", "@", "#", "@a ", "#a", "&", "'", '"', "(", ")", "[", "]", "{",
    "}", "`", "```\n", "```", "|", "A.", "Ab ", "<think>", "</think>", "http://", "www.", "*", "$",
    "1 . ", ". ", ", ", " - ", " | ", "e", "1e", "é", "\u200d", "!", "?", "said ", "not ", "and ",
    "~", "the ", "is ", "in ", "not a ", "|-", "| |", ":", ": ", "=", "%", "1%", "1 ", "-1 ",
    "2020-", "2020 ", "\\text{", "**", "[a](", "a\n", "\n\n-", "\u4e2d", "\u4e2d ", "x-", "1_", "https://a.",
)  # fmt: skip
"""Repeated; behind each text stands a sign that few patterns end with."""
ENDS = ("", "\x00")
Way = Literal["anywhere", "match", "fullmatch"]
_CALLS = frozenset(
    ("compile", "match", "fullmatch", "search", "sub", "subn", "finditer", "findall", "split")
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class _TooLong(Exception):
    """A search is given up."""


@dataclass(frozen=True)
class Tried:
    """A pattern of the package, and how it is used."""

    pattern: re.Pattern[str]
    way: Way

    def __call__(self, text: str) -> None:
        """Use it on a text."""
        if self.way == "anywhere":
            for _ in self.pattern.finditer(text):
                pass
        elif self.way == "match":
            self.pattern.match(text)
        else:
            self.pattern.fullmatch(text)


@cache
def patterns() -> Mapping[str, Tried]:
    """Return the patterns of text of all modules by their place, each pattern and way once."""
    found = dict[Tried, str]()
    for module in _modules():
        for name, value in vars(module).items():
            for at, one in _inside(name, value):
                way = _way(name, module) if at == name else "anywhere"
                found.setdefault(Tried(one, way), f"{module.__name__}.{at}")
        for line, tried in _in_calls(module):
            found.setdefault(tried, f"{module.__name__}:{line}")
    return {place: tried for tried, place in found.items()}


@cache
def _modules() -> tuple[ModuleType, ...]:
    walked = pkgutil.walk_packages(coreeval.__path__, "coreeval.")
    return tuple(
        importlib.import_module(one.name) for one in walked if not one.name.endswith("__main__")
    )


@cache
def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


def _inside(name: str, value: object) -> Iterator[tuple[str, re.Pattern[str]]]:
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield name, value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _inside(f"{name}[{key!r}]", one)
    elif isinstance(value, tuple | list | set | frozenset):
        for number, one in enumerate(value):
            yield from _inside(f"{name}[{number}]", one)


def _way(name: str, module: ModuleType) -> Way:
    """Return how the pattern of a name is used; a name with an underscore belongs to its module.

    A name that is used in several ways, or handed on, is searched. One that is matched at a place
    is tried at the beginning: the tests of its reader try it at many places.
    """
    among = (module,) if name.startswith("_") else _modules()
    ways = {way for one in among for way in _ways(one).get(name, ())}
    return ways.pop() if len(ways) == 1 else "anywhere"


@cache
def _ways(module: ModuleType) -> Mapping[str, set[Way]]:
    """Return how a module uses each name that it knows."""
    found, called = defaultdict[str, set[Way]](set), set[ast.AST]()
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            inner, method = node.func.value, node.func.attr
            called.add(inner)
            if isinstance(inner, ast.Name) and method in ("match", "fullmatch"):
                found[inner.id].add("match" if method == "match" else "fullmatch")
            elif isinstance(inner, ast.Name):
                found[inner.id].add("anywhere")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in called:
            found[node.id].add("anywhere")
    return found


def _in_calls(module: ModuleType) -> Iterator[tuple[int, Tried]]:
    """Yield the patterns that stand in calls of `re` inside functions, with their lines."""
    for node, method in _calls_of_re(module):
        text = _value(node.args[0], module)
        if isinstance(text, str):
            flags = [_value(one, module) for one in (*node.args[1:], *_keywords(node))]
            told = sum(one for one in flags if isinstance(one, re.RegexFlag))
            way: Way = "anywhere"
            if method in ("match", "fullmatch"):
                way = "match" if method == "match" else "fullmatch"
            yield node.lineno, Tried(re.compile(text, told), way)


def made_elsewhere() -> set[str]:
    """Return the calls of `re` whose pattern cannot be told from the source, by their places."""
    return {
        f"{module.__name__}: {ast.unparse(node.args[0])}"
        for module in _modules()
        for node, _ in _calls_of_re(module)
        if not isinstance(_value(node.args[0], module), str | bytes)
    }


def _calls_of_re(module: ModuleType) -> Iterator[tuple[ast.Call, str]]:
    """Yield the calls of `re` inside functions, and what each calls."""
    functions = (one for one in ast.walk(_tree(module)) if isinstance(one, _FUNCTIONS))
    inside = {node: None for function in functions for node in ast.walk(function)}
    for node in inside:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=attr)) if attr in _CALLS:
                yield node, attr


def _keywords(node: ast.Call) -> list[ast.expr]:
    return [one.value for one in node.keywords if one.arg == "flags"]


def _value(node: ast.expr, module: ModuleType) -> object:
    """Return the value of an expression of a module; "word" stands for what is local in it."""
    if isinstance(node, ast.JoinedStr):
        parts = [one.value if isinstance(one, ast.FormattedValue) else one for one in node.values]
        values = [_value(one, module) for one in parts]
        return "".join("word" if one is None else str(one) for one in values)
    try:
        return eval(compile(ast.Expression(node), "", "eval"), vars(module))
    except NameError:
        return None


@cache
def texts(size: int) -> tuple[tuple[str, str], ...]:
    """Return the texts, each of about so many characters, and what each is made of."""
    return tuple(
        (f"{piece!r} … {end!r}", piece * (size // len(piece)) + end)
        for piece in PIECES
        for end in ENDS
    )


def slowest(tried: Callable[[str], object], size: int, most_s: float) -> tuple[float, str]:
    """Return the CPU seconds of the slowest text, and what it is made of; stops at `most_s`."""
    worst = (0.0, "")
    for made_of, text in texts(size):
        took = seconds(tried, text, most_s)
        worst = max(worst, (took, made_of))
        if took >= most_s:
            break
    return worst


def seconds(
    tried: Callable[[str], object],
    text: str,
    most_s: float,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """Return the seconds that something takes with a text; gives up after `most_s` of the CPU.

    The clock of the CPU may tick every 4 ms only; another one goes on while other processes run.
    """
    began = clock()
    try:
        with _given_up_after(most_s):
            tried(text)
    except _TooLong:
        return most_s
    return clock() - began


@contextmanager
def _given_up_after(limit_s: float) -> Iterator[None]:
    """Stop a search by a signal, which Python's patterns heed."""

    def stop(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    for place, one in patterns().items():
        took_s, text = slowest(one, size, 1.0)
        if took_s >= 1.0:
            print(f"{place}: {text!r}", flush=True)  # noqa: T201
