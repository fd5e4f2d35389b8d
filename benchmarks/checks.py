"""How often each check and judge fired in real runs, and what became of the samples.

    python -m benchmarks.checks RUN [RUN …] [--show CHECK]

A defect of a plan or a text counts once for each attempt in which it was found. "mended" is the
share of those after which a later attempt was made and did not have it. `--show` prints every
message of one check with the text that it is about, to be read: only a reader can tell how often a
check fires wrongly.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from coreeval.schema import Defect
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import StepRecord
from coreeval.tools.workspace import RunFiles

STAGES = {"reword": "D^s", "replace": "plan", "check": "text", "reflect": "judges"}


@dataclass(frozen=True)
class Fired:
    """One defect that a check or a judge found."""

    stage: str
    sample_id: str
    attempt: int
    defect: Defect
    outcome: str
    text: str
    """What the defect is about, as far as the run kept it."""
    mended: bool | None
    """Whether a later attempt did without it; None if there was none."""


def main() -> None:
    """Print the table, or every message of one check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--show", metavar="CHECK")
    chosen = parser.parse_args()
    fired, samples = [], 0
    for run in chosen.runs:
        store = RunStore.open(RunFiles(run).require_store(), now=utc_now)
        samples += store.total()
        fired += list(_fired(store))
        store.close()
    if chosen.show:
        _show([one for one in fired if one.defect.check == chosen.show])
    else:
        _table(fired, samples)


def _fired(store: RunStore) -> Iterator[Fired]:
    for ended in store.sample_results():
        steps = store.history.steps(ended.sample.id)
        found = [(step, defect) for step in steps for defect in _defects(step)]
        last = max((step.attempt for step in steps), default=0)
        for step, defect in found:
            again = [d.check for s, d in found if s.attempt == step.attempt + 1]
            mended = None if step.attempt in (0, last) else defect.check not in again
            yield Fired(
                stage=STAGES[step.node],
                sample_id=ended.sample.id,
                attempt=step.attempt,
                defect=defect,
                outcome=ended.result.outcome,
                text=_text(steps, step),
                mended=mended,
            )


def _defects(step: StepRecord) -> list[Defect]:
    key = "semantic_feedback" if step.node == "reword" else "feedback"
    found = step.detail.get(key, []) if step.node in STAGES else []
    return [Defect.model_validate(one) for one in found]


def _text(steps: list[StepRecord], step: StepRecord) -> str:
    """Return the text or the plan that was judged in an attempt."""
    composed = [s.detail.get("composed") for s in steps if s.node == "compose"]
    at = [s.detail.get("composed") for s in steps
          if s.node == "compose" and s.attempt == step.attempt]  # fmt: skip
    if step.node == "replace":
        return str(step.detail.get("plan"))
    return str(at[-1] if at else composed[-1] if composed else "")


def _table(fired: list[Fired], samples: int) -> None:
    by_check: dict[tuple[str, str], list[Fired]] = defaultdict(list)
    for one in fired:
        by_check[one.stage, one.defect.check].append(one)
    print(f"{samples} samples")
    print(f"{'stage':8} {'check':22} {'fired':>5} {'samples':>7} {'mended':>7}  ended as")
    for (stage, check), rows in sorted(by_check.items(), key=lambda item: -len(item[1])):
        tried = [one for one in rows if one.mended is not None]
        mended = f"{sum(bool(one.mended) for one in tried)}/{len(tried)}"
        ends = Counter({one.sample_id: one.outcome for one in rows}.values())
        told = ", ".join(f"{count} {outcome}" for outcome, count in ends.most_common())
        print(f"{stage:8} {check:22} {len(rows):5} {sum(ends.values()):7} {mended:>7}  {told}")


def _show(fired: list[Fired]) -> None:
    for one in fired:
        print(f"{one.sample_id} attempt {one.attempt}, {one.stage}, ended as {one.outcome}")
        print(f"  {one.defect.message}\n  {one.text}\n")


if __name__ == "__main__":
    main()
