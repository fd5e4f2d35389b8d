"""What persons decided: an append-only log of one line for each decision, of which later ones win.

One log serves all runs and releases of a benchmark. A decision is about a text: it holds wherever
the same sample has the same new text, and is none about any other text of that sample.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from coreeval.errors import RunCorrupt, RunLocked
from coreeval.schema import Text, Value
from coreeval.tools.files import hold_lock

Verdict = Literal["approved", "rejected"]
About = tuple[str, str]
"""Id of a sample, sha256 of its new text."""


class Decision(Value):
    """One line of the log."""

    sample: str
    digest: str
    """sha256 of the text that was decided about."""
    verdict: Verdict
    by: Text
    """Who decided, as they gave it."""
    at: str
    note: str = ""
    run: str = ""
    """The run that was looked at."""

    @property
    def about(self) -> About:
        """What was decided about."""
        return self.sample, self.digest


@dataclass(frozen=True)
class DecisionLog:
    """The log of one benchmark; it need not be there yet."""

    path: Path

    def in_force(self) -> Mapping[About, Decision]:
        """Return the last decision about each text.

        Raises:
            RunCorrupt: a line is none.
        """
        try:
            lines = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return {}
        decisions = (self._parsed(n, line) for n, line in enumerate(lines, start=1) if line)
        return {decision.about: decision for decision in decisions}

    def append(self, decisions: Sequence[Decision]) -> None:
        """Add decisions, all or none; when this returns, they outlast a power cut.

        Raises:
            RunLocked: another process adds some at this moment.
            RunCorrupt: the log is damaged, so that nobody knows what is in force.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        busy = RunLocked(
            "another process records decisions", where=str(self.path), hint="try again"
        )
        lines = [json.dumps(decision.model_dump()) for decision in decisions]
        with hold_lock(self.path.with_suffix(".lock"), busy):
            self.in_force()
            with self.path.open("ab") as log:
                log.write("".join(f"{line}\n" for line in lines).encode())
                log.flush()
                os.fsync(log.fileno())

    def _parsed(self, number: int, line: bytes) -> Decision:
        try:
            return Decision.model_validate_json(line)
        except ValidationError:
            raise RunCorrupt(
                f"line {number} is no decision of a person",
                where=str(self.path),
                hint="restore the file from a copy, or take this line out and decide again",
            ) from None
