"""The refreshed benchmark of the examples: it is repeated, and its arms can be worked on."""

import json
from collections import Counter
from pathlib import Path

import pytest

from coreeval.errors import RunStateError
from coreeval.graph.cassettes.replay import replay
from coreeval.graph.evaluate import evaluate
from coreeval.graph.run import resume
from coreeval.runs.manifest import read_manifest

EXAMPLE = Path(__file__).parents[2] / "examples" / "refreshed"


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Repeat the cassette, and return the run's directory."""
    out = tmp_path_factory.mktemp("refreshed") / "run"
    done = replay(EXAMPLE / "emotion.cassette", out, dataset=EXAMPLE / "emotion")
    assert done.same, "its checks have changed: see the README there for what to do"
    return out


def test_the_example_is_repeated_to_the_byte(repeated: Path) -> None:
    manifest = read_manifest(repeated / "manifest.json")
    assert (manifest.counts["accepted"], manifest.arms["semantic"]) == (198, 240)
    assert (repeated / "report.html").exists()


def test_targets_are_asked_about_arms_that_a_cassette_repeats(repeated: Path) -> None:
    evaluate(repeated, targets=["offline:classifier"])
    report = json.loads((repeated / "report.json").read_text(encoding="utf-8"))
    (target,) = report["arms"]["targets"]
    scored = {arm["arm"]: arm["accuracy"]["n"] for arm in target["all_samples"]["arms"]}
    assert target["target"] == "offline:classifier"
    assert scored == {"original": 240, "semantic": 240, "updated": 198}


def test_the_run_itself_goes_no_further(repeated: Path) -> None:
    with pytest.raises(RunStateError, match="replays a cassette"):
        resume(repeated)


def test_the_benchmark_is_balanced_and_no_text_is_twice() -> None:
    every = list[str]()
    for split in ("train", "val", "test"):
        lines = (EXAMPLE / "emotion" / f"{split}_text.txt").read_text("utf-8").splitlines()
        labels = (EXAMPLE / "emotion" / f"{split}_labels.txt").read_text("utf-8").split()
        assert len(lines) == len(labels) and len(set(Counter(labels).values())) == 1
        every += [line.strip().casefold() for line in lines]
    assert len(set(every)) == len(every) == 520
