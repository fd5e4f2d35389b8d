"""What a release says of targets and of its arms is about the samples that it contains."""

import json
from contextlib import closing
from pathlib import Path

from coreeval.releases.review import load_review
from coreeval.releases.review.decisions import Decision
from coreeval.releases.review.review import open_log
from coreeval.runs.comparison import ComparedRun, compare_arms, compare_with_originals
from coreeval.runs.manifest import read_manifest
from coreeval.schema import Prediction
from coreeval.tasks import load_task
from coreeval.tools.stores.run_store import RunStore
from tests.releases.kit import NOW, Made, make_run
from tests.releases.people import sample_id

TARGETS = {"openai:one": "target", "openai:two": "target", "openai:base": "reference"}
RIGHT = {"openai:one": (0, 1, 2), "openai:two": (1, 2), "openai:base": (0,)}
"""The accepted samples whose updated text a target labels right; it labels each original right."""


def evaluated(folder: Path) -> Made:
    """Return a run whose report compares three accepted samples, of which one names a person."""
    made = make_run(folder)
    with closing(RunStore.open(made.files.store, now=lambda: NOW)) as store:
        store.add_predictions(
            Prediction(
                target=target,
                source=arm,
                sample_id=key,
                template=1,
                answer=label if arm == "original" or number in right else "sadness",
                version="",
            )
            for target, right in RIGHT.items()
            for number, (key, label, outcome) in enumerate(store.labels())
            if outcome == "accepted"
            for arm in ("original", "updated")
        )
        run = ComparedRun(store=store, task=load_task("emotion"), targets=TARGETS, seed=7)
        alike = compare_with_originals(run)
        assert alike
        report = {
            "targets": [{"target": name, "role": role} for name, role in TARGETS.items()],
            "arms": compare_arms(run).model_dump(mode="json"),
            "comparability": alike.model_dump(mode="json"),
        }
    made.files.report_json.write_text(json.dumps(report))
    return made


def test_findings_are_about_the_samples_of_the_release(tmp_path: Path) -> None:
    made = evaluated(tmp_path)
    whole = made.release("1").manifest.findings
    assert whole and whole.ranking and whole.comparability
    assert (whole.comparability.samples, whole.comparability.compared) == (3, 3)
    assert [each.updated.n for each in whole.targets] == [3, 3]
    [named] = (each for each in load_review(made.files.root).samples if each.sample == sample_id(0))
    no = Decision(
        sample=named.sample, digest=named.digest, verdict="rejected", by="Jo", at=NOW.isoformat()
    )
    open_log(read_manifest(made.files.manifest)).append([no])
    part = made.release("2").manifest.findings
    assert part and part.ranking and part.comparability
    assert (part.comparability.samples, part.comparability.compared) == (2, 2)
    difficulty = part.comparability.find("difficulty")
    assert difficulty and (difficulty.original, difficulty.updated) == (1, 0)
    assert [each.target for each in part.targets] == ["openai:one", "openai:two"]
    assert [each.updated.n for each in part.targets] == [2, 2]
    one, two = part.targets
    assert one.updated == two.updated == one.original
