"""How the samples of real runs ended, on which rung, after how many attempts and calls.

    python -m benchmarks.outcomes RUN [RUN …]

A call counts for each sample that needed it, paid or found in the store, and once for each draw.
"""

import argparse
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles


def main() -> None:
    """Print the figures of each run and of all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+")
    everything: list[tuple[str, Counter[str]]] = []
    for run in parser.parse_args().runs:
        counted = list(_counted(run))
        _print(run.name, counted)
        everything += counted
    _print("all", everything)


def _counted(run: Path) -> Iterable[tuple[str, Counter[str]]]:
    """Return each sample's outcome, with its rung, attempts and calls by node and role."""
    store = RunStore.open(RunFiles(run).require_store(), now=utc_now)
    for ended in store.sample_results():
        result = ended.result
        calls = {
            (call.key, call.draw): f"calls {step.node} {call.role}"
            for step in store.history.steps(ended.sample.id)
            for call in step.calls
        }
        own = Counter(calls.values())
        own[f"rung {result.rung}"] += 1
        own[f"D^s {result.semantic_status}"] += 1
        own[f"{result.outcome} after {result.attempts} attempts"] += 1
        if result.outcome != "accepted":
            own[f"{result.outcome}: {result.reason}"] += 1
        yield result.outcome, own
    store.close()


def _print(name: str, counted: Iterable[tuple[str, Counter[str]]]) -> None:
    rows = list(counted)
    outcomes = Counter(outcome for outcome, _ in rows)
    print(f"== {name}: {len(rows)} samples, {dict(outcomes.most_common())}")
    totals = sum((own for _, own in rows), Counter[str]())
    for what, number in sorted(totals.items()):
        per = f" ({number / len(rows):.2f} a sample)" if what.startswith("calls") else ""
        print(f"   {what}: {number}{per}")
    calls = [sum(n for what, n in own.items() if what.startswith("calls")) for _, own in rows]
    print(f"   calls in all: {sum(calls)} ({sum(calls) / max(1, len(rows)):.2f} a sample)\n")


if __name__ == "__main__":
    main()
