"""A planted trial of the control arm: what rewriting costs is explained, what was leaked is left.

A run of the whole pipeline, with rules for all roles and the bundled news, on a benchmark made for
it. Three targets answer as planted, right but for 40 % of the texts of some arms: one is thrown off
by whatever was rewritten with news, old or new; one knows the facts of its time and no newer ones;
one has seen the originals and guesses on every other text.

    python -m benchmarks.planted_control [--samples N] [--dir DIR]
"""

import argparse
import json
import shutil
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import mkdtemp
from unittest import mock

import yaml

from coreeval.evaluation import embedded_targets
from coreeval.evaluation.embedded_targets import OfflineTarget
from coreeval.graph import target_questions
from coreeval.graph.bundled import demo_data
from coreeval.graph.run import refresh
from coreeval.schema import Prediction, Sample

WRONG = 0.4
"""Share of texts that a target gets wrong on the arms that it is weak on."""
WEAK: Mapping[str, frozenset[str]] = {
    "offline:thrown-off": frozenset({"updated", "control"}),
    "offline:leaked-facts": frozenset({"updated"}),
    "offline:leaked-words": frozenset({"semantic", "updated", "control"}),
}
TEXT = (
    "{drove} an electric car for the first time &amp; I have not stopped smiling, it's like a "
    "{thing} \N{SMILING FACE WITH OPEN MOUTH AND SMILING EYES}"
)
DROVE = ("Drove", "Tried", "Rented", "Borrowed", "Tested", "Ordered", "Charged", "Hired")
THINGS = (
    "spaceship", "rocket", "dream", "carpet", "cloud", "boat", "bird", "comet", "glider", "train",
    "arrow", "breeze", "wave", "fish", "horse",
)  # fmt: skip


def planted(
    target: OfflineTarget, samples: Sequence[Sample], *, source: str
) -> tuple[Prediction, ...]:
    """Answer as planted, each text of each arm by a chance of its own."""
    return tuple(
        Prediction(
            target=target.name,
            source=source,
            sample_id=sample.id,
            template=0,
            answer=_answer(target.name, sample, source),
        )
        for sample in samples
    )


def _answer(target: str, sample: Sample, arm: str) -> str:
    wrong = zlib.crc32(f"{target} {arm} {sample.id}".encode()) % 1000 < 1000 * WRONG
    return "anger" if wrong and arm in WEAK[target] else sample.label_text


def make_benchmark(folder: Path, samples: int) -> Path:
    """Write a TweetEval folder whose test split is made for the bundled news."""
    shutil.copytree(demo_data() / "emotion", folder)
    texts = [TEXT.format(drove=drove, thing=thing) for drove in DROVE for thing in THINGS][:samples]
    names = (folder / "mapping.txt").read_text(encoding="utf-8").splitlines()
    joy = next(line.split()[0] for line in names if "joy" in line)
    (folder / "test_text.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    (folder / "test_labels.txt").write_text("\n".join([joy] * len(texts)) + "\n", encoding="utf-8")
    return folder


def main() -> None:
    """Run the trial and print what the report says of each target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--dir", type=Path, default=None)
    given = parser.parse_args()
    folder = given.dir or Path(mkdtemp(prefix="planted-"))
    config = folder / "planted.yaml"
    folder.mkdir(parents=True, exist_ok=True)
    config.write_text(yaml.safe_dump(config_of(make_benchmark(folder / "data", given.samples))))
    kinds = {name.partition(":")[2]: embedded_targets.EMBEDDED["clean"] for name in WEAK}
    with (
        mock.patch.dict(embedded_targets.EMBEDDED, kinds),
        mock.patch.object(target_questions, "predict", planted),
    ):
        done = refresh(config, run_dir=folder / "run")
    control = done.manifest.control
    print(f"arms: {done.manifest.arms}; control: {control and control.counts['accepted']} accepted")
    report = json.loads((done.run_dir / "report.json").read_text(encoding="utf-8"))
    for target in report["decomposition"]["targets"]:
        print(f"{target['target']}: {target['verdict']}")
        for name, term in target["accuracy"]["terms"].items():
            lost = term["lost"]
            span = f"{lost['ci_low']:+.3f} … {lost['ci_high']:+.3f}"
            print(f"  {name:<20} {lost['estimate']:+.3f}  {span}  n {lost['n']}")
        for reason in target["reasons"]:
            print(f"  {reason}")


def config_of(benchmark: Path) -> dict[str, object]:
    """Return the trial's config: rules in every role, news on both sides of 1 October 2025."""
    return {
        "name": "planted",
        "task": "emotion",
        "dataset": {"format": "tweeteval", "path": str(benchmark), "split": "test"},
        "knowledge": {
            "path": str(demo_data() / "news"),
            "window": {"start": "2025-10-01", "end": "2026-10-01"},
            "min_precision": "crawl",
        },
        "models": {"default": "offline", "targets": list(WEAK)},
        "run": {"control_window": {"start": "2025-08-01", "end": "2025-10-01"}},
    }


if __name__ == "__main__":
    main()
