"""Every pattern of the package, run over texts that make patterns slow.

As a program, lists those that take long over a megabyte:

    python -m tests.hostile.patterns
"""

import importlib
import pkgutil
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import coreeval

PIECES = (
    " ", "\n", "\t", "a", "A", "A ", "a ", "1", "1,", "1.", "1 ,", "-", "_", ".", ",", "/", "\\",
    "<", ">", "<a ", "</", "<!--", "@", "#", "@a ", "#a", "&", "'", '"', "(", ")", "[", "]", "{",
    "}", "`", "```\n", "```", "|", "A.", "Ab ", "<think>", "</think>", "http://", "www.", "*", "$",
    "1 . ", ", ", " - ", " | ", "e", "1e", "é", "\u200d", "!", "?", "said ", "not ", "and ",
)  # fmt: skip
"""Repeated; behind each text stands a sign that few patterns end with."""
ENDS = ("", "\x00")


class _TooLong(Exception):
    """A search is given up."""


def patterns(*, besides: tuple[str, ...] = ()) -> dict[str, re.Pattern[str]]:
    """Return the patterns of text of all modules by their place.

    Args:
        besides: Prefixes of modules that are left out.
    """
    found: dict[str, re.Pattern[str]] = {}
    for module in pkgutil.walk_packages(coreeval.__path__, "coreeval."):
        if module.name.startswith(besides) or module.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            found |= {f"{module.name}.{at}": one for at, one in _inside(name, value)}
    return found


def _inside(name: str, value: object) -> Iterator[tuple[str, re.Pattern[str]]]:
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield name, value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _inside(f"{name}[{key!r}]", one)
    elif isinstance(value, tuple | list):
        for number, one in enumerate(value):
            yield from _inside(f"{name}[{number}]", one)


@cache
def texts(size: int) -> tuple[str, ...]:
    """Return the texts, each of about so many characters."""
    return tuple(piece * (size // len(piece)) + end for piece in PIECES for end in ENDS)


def slowest(pattern: re.Pattern[str], size: int, most_s: float) -> tuple[float, str]:
    """Return the CPU seconds of the slowest text and its beginning; gives up at `most_s`."""
    worst = (0.0, "")
    for text in texts(size):
        took = _seconds(pattern, text, most_s)
        worst = max(worst, (took, text[:12]))
        if took >= most_s:
            break
    return worst


def _seconds(pattern: re.Pattern[str], text: str, most_s: float) -> float:
    began = time.process_time()
    try:
        with _given_up_after(most_s):
            sum(1 for _ in pattern.finditer(text))
    except _TooLong:
        return most_s
    return time.process_time() - began


@contextmanager
def _given_up_after(seconds: float) -> Iterator[None]:
    """Stop a search by a signal, which Python's patterns heed."""

    def stop(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    for place, one in patterns().items():
        seconds, text = slowest(one, size, 0.5)
        if seconds >= 0.5:
            print(f"{place}: {text!r}", flush=True)  # noqa: T201
