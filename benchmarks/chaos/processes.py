"""CoreEval's command line as a process of its own, for cases of the campaign."""

import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PATIENCE_S = 600.0
"""Longest wait for a command; it is only reached where something hangs."""
_OWN = ("COREEVAL_HOME", "PYTHONDONTWRITEBYTECODE")
_FAULT = "this is a fault of CoreEval"
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a command said."""

    command: str
    code: int
    out: str
    err: str

    @property
    def error(self) -> Mapping[str, str]:
        """The error of its JSON document; empty where it has none."""
        found = re.search(r'^\{\n  "error".*', self.out, re.MULTILINE | re.DOTALL)
        return dict(json.loads(found.group())["error"]) if found else {}

    def defect(self, *codes: int, hinted: bool = True) -> str:
        """Return what is wrong with how it ended; empty where it ended as a command may.

        Args:
            codes: The exit codes that it may end with.
            hinted: Whether an error must also say where, and what to do.
        """
        if self.code not in codes:
            return f"{self.command}: exit code {self.code}: {(self.out + self.err)[-300:]!r}"
        if "Traceback" in self.out + self.err or _FAULT in self.out + self.err:
            return f"{self.command}: a traceback: {(self.out + self.err)[-500:]!r}"
        lacking = [name for name in ("message", "where", "hint") if not self.error.get(name)]
        if self.code and hinted and lacking:
            return f"{self.command}: the error has no {', '.join(lacking)}: {dict(self.error)}"
        return ""


def say(
    *arguments: object,
    folder: Path,
    env: Mapping[str, str] | None = None,
    user: Sequence[str] = (),
    memory: int = 0,
    seconds: int = 0,
) -> Said:
    """Run a command with `--json` and return what it said.

    Args:
        arguments: The command line.
        folder: Where it runs.
        env: What its environment has besides this process's.
        user: A command that runs it as somebody else, such as setpriv with its options.
        memory: Bytes of address space that it may have; 0 for all.
        seconds: Seconds of processor time that it may take; 0 for all.
    """
    words = [str(argument) for argument in arguments]
    done = subprocess.run(
        [*user, sys.executable, "-m", "coreeval", *words, "--json"],
        cwd=folder,
        env=environment(env or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=PATIENCE_S,
        check=False,
        preexec_fn=bound(memory, seconds),
    )
    return Said(command=" ".join(words), code=done.returncode, out=done.stdout, err=done.stderr)


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment without what concerns a workspace, and with more."""
    kept = {name: value for name, value in os.environ.items() if name not in _OWN}
    return {**kept, "PYTHONPATH": str(ROOT), **more}


def bound(memory: int, seconds: int) -> Callable[[], None] | None:
    """Return what bounds a process before it begins; None where nothing is to be bounded."""

    def set_limits() -> None:
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        if seconds:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    return set_limits if memory or seconds else None


def defects(*found: str) -> tuple[str, ...]:
    """Return the defects among what checks found."""
    return tuple(one for one in found if one)
