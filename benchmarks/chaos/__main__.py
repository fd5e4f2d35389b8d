"""Try every case of the campaign, and print how many held.

    python -m benchmarks.chaos [--group NAME] [--case WORDS] [--seed 7] [--publish]

`--publish` writes a row for each group that was run into docs/security.md. A case that this
machine cannot try, for want of root rights or a program, is printed with the reason and counts as
not tried.
"""

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Final

from benchmarks.chaos.cases import Case, Outcome

DOCS: Final = Path("docs/security.md")
GROUPS: Final[Mapping[str, str]] = {
    "kills": "kills at random moments, suspended runs, many requests and processes at once",
    "clocks": "clocks that jump by a year",
    "storage": "full disks, power cuts, read-only media, other users, moved runs",
    "files": "hostile archives, Parquet files, cassettes and exported texts",
    "network": "endless or slow answers, redirects by servers, mirrors and hubs",
    "secrets": "setups that fail with a secret in them: no file and no output shows it",
}
"""What each group tries, as a row of the table; its cases are in the module of that name."""
HEAD: Final = (
    "| What happens | What holds | Tried | Held | Measured |\n| --- | --- | ---: | ---: | --- |"
)


@dataclass(frozen=True)
class Row:
    """A case and what came of it; no outcome where the machine cannot try it."""

    case: Case
    outcome: Outcome | None
    seconds: float = 0.0

    def __str__(self) -> str:
        case, found = self.case, self.outcome
        if found is None:
            return f"| {case.name} | {case.promise} | 0 | 0 | not tried: {case.obstacle()} |"
        return f"| {case.name} | {case.promise} | {found.tried} | {found.held} | {found.measured} |"


def main() -> None:
    """Try the cases that were asked for; exit code 1 where a promise did not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--group", action="append", choices=list(GROUPS))
    parser.add_argument("--case", default="", help="only cases whose name contains these words")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--publish", action="store_true")
    chosen = parser.parse_args()
    rows = dict[str, list[Row]]()
    for group in chosen.group or GROUPS:
        print(f"\n{GROUPS[group]}\n\n{HEAD}", flush=True)
        cases: Sequence[Case] = import_module(f"benchmarks.chaos.{group}").CASES
        rows[group] = [attempt(case, chosen.seed) for case in cases if chosen.case in case.name]
        if chosen.publish and not chosen.case:
            publish(GROUPS[group], rows[group])
    every = [row.outcome for each in rows.values() for row in each if row.outcome]
    held, tried = sum(one.held for one in every), sum(one.tried for one in every)
    print(f"\n{len(every)} cases, {held} of {tried} attempts held")
    sys.exit(held < tried)


def attempt(case: Case, seed: int) -> Row:
    """Try a case in a folder of its own, and print what came of it."""
    if case.obstacle():
        row = Row(case, None)
    else:
        began = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True) as name:
            outcome = case.attempt(Path(name), Random(f"{seed} {case.name}"))
        row = Row(case, outcome, time.perf_counter() - began)
    print(f"{row}  ({row.seconds:.0f} s)", flush=True)
    for words in row.outcome.broken if row.outcome else ():
        print(f"    did not hold: {words}", flush=True)
    return row


def publish(title: str, rows: Sequence[Row]) -> None:
    """Write a group's row into docs/security.md, in place of the one that is there.

    Raises:
        ValueError: The page has no row for this group.
    """
    text = DOCS.read_text("utf-8")
    tried = sum(row.outcome.tried for row in rows if row.outcome)
    held = sum(row.outcome.held for row in rows if row.outcome)
    found = re.compile(rf"^\| {re.escape(title)} \| .*$", re.MULTILINE)
    row = f"| {title} | {sum(1 for row in rows if row.outcome)} | {tried} | {held} |"
    text, replaced = found.subn(row, text)
    if not replaced:
        raise ValueError(f"{DOCS} has no row for the group {title!r}")
    DOCS.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
