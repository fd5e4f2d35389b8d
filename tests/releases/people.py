"""A finished run whose texts name people: what is known of each sample, to the letter."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coreeval.schema import Verdict
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import StepRecord
from tests.releases.kit import NOW, Made, make_run
from tests.support.results import replace_result

PERSON = {
    "span": "Bo Li",
    "field": "text",
    "kind": "named",
    "type": "person",
    "query_name": "Bo Li",
    "aliases": [],
}
PLAN = {"decision": "use", "statements": [], "replacements": [], "delete": [], "reason": ""}


def make_people(folder: Path) -> Made:
    """Write a run: the first sample names Ada Roe, the second is sensitive, the third neither."""
    made = make_run(folder)
    store = RunStore.open(made.files.store, now=lambda: NOW)
    for step in _steps():
        store.history.record(step)
    store.close()
    return made


def copied(made: Made, folder: Path) -> Made:
    """Return a copy of a run and its config that thinks it was always there."""
    shutil.copytree(made.folder, folder, dirs_exist_ok=True)
    for file in (folder / "weekly.yaml", *(folder / "run").glob("*.[jy]*")):
        file.write_text(file.read_text().replace(str(made.folder), str(folder)))
    return Made(folder)


async def rewrite(made: Made, sample: int | str, **changes: object) -> None:
    """Change how a sample ended, given its number or id."""
    store = RunStore.open(made.files.store, now=lambda: NOW)
    result = store.result(sample if isinstance(sample, str) else sample_id(sample))
    assert result
    await replace_result(store, result.model_copy(update=changes))
    store.close()


def person(name: str, polarity: str = "neutral", role: str = "subject") -> dict[str, str]:
    """Return a person of a plan."""
    return {"name": name, "role": role, "polarity": polarity}


def extract(number: int, *, policy: str = "allow", **found: object) -> StepRecord:
    """Return what the extractor noted of a sample."""
    return _step(number, "extract", {"extraction": found, "policy": policy})


def replace(number: int, *persons: dict[str, str], attempt: int = 1, **plan: object) -> StepRecord:
    """Return what the replacer planned for a sample."""
    return _step(number, "replace", {"plan": {**PLAN, "persons": persons, **plan}}, attempt)


def judged(number: int, name: str, reason: str, *, passed: bool, attempt: int = 1) -> StepRecord:
    """Return a verdict about a sample."""
    said = Verdict(name=name, attempt=attempt, passed=passed, reason=reason)
    return _step(number, f"judge {name}", {}, attempt, said)


def sample_id(number: int) -> str:
    """Return the id of the run's n-th sample, from 0."""
    return f"emotion/test/{number + 1}"


def _step(
    number: int, node: str, detail: dict[str, Any], attempt: int = 1, *said: Verdict
) -> StepRecord:
    return StepRecord(
        sample_id=sample_id(number),
        attempt=0 if node == "extract" else attempt,
        node=node,
        started_at=NOW.isoformat(),
        seconds=0.0,
        detail=detail,
        verdicts=said,
    )


def _steps() -> Iterator[StepRecord]:
    flag = {"flag": "crime_or_accusation", "span": "theft"}
    yield extract(0)
    yield extract(1, policy="neutral_only", sensitive=[flag])
    yield extract(2)
    yield replace(0, person("Ada Roe"))
    yield replace(1)
    yield replace(2)
