"""What reading one file came to: rows, articles, and the rows that were none."""

import gzip
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from coreeval.tools.gdelt.rows import Reason

Refused = Reason | Literal["too_large"]
MOST_KEPT = 100
"""Rows of a file that are kept aside; the others are counted."""
LONGEST_KEPT = 2000
"""Characters of a row that are kept aside."""


@dataclass(slots=True)
class Tally:
    """Counts the rows of a file and keeps some of the bad ones aside."""

    rows: int = 0
    bad: Counter[Refused] = field(default_factory=Counter)
    aside: list[dict[str, object]] = field(default_factory=list)

    @property
    def articles(self) -> int:
        """Rows that were what they should be."""
        return self.rows - self.bad.total()

    def refuse(self, line: int, reason: Refused, row: bytes | str) -> None:
        """Count a row that is none, and keep it while there is room."""
        self.bad[reason] += 1
        if len(self.aside) < MOST_KEPT:
            start = row[: 4 * LONGEST_KEPT]
            text = start.decode("utf-8", "replace") if isinstance(start, bytes) else start
            self.aside.append({"line": line, "reason": reason, "row": text[:LONGEST_KEPT]})

    def end_early(self, reason: Refused, why: str) -> None:
        """Note that a file could not be read to its end; that counts as a row."""
        self.rows += 1
        self.refuse(self.rows, reason, why)

    def kept_aside(self) -> bytes:
        """Return the rows kept aside as gzipped JSON lines."""
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in self.aside)
        return gzip.compress("".join(lines).encode("utf-8", "replace"), mtime=0)
