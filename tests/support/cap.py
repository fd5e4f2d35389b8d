"""The recorded predictions of the CAP paper's authors as pairs.

    python -m tests.support.cap DATA/cap/predictions fineval/baichuan > baichuan.jsonl

`dev` of FinEval is named train and `val` test, as the paper compares them; FinQA keeps its names.
"""

import gzip
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from coreeval.evaluation.benchmarks.item_records import find_bracketed_options

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "cap" / "predictions"
SPLITS: dict[str, dict[str, str]] = {
    "fineval": {"dev": "train", "val": "test"},
    "finqa": {"train": "train", "dev": "dev", "test": "test"},
    "ectsum": {f"{name}_samples": name for name in ("train", "val", "test")},
    "alphafin": {"research_train": "train", "research_eval": "test"},
}
"""Our name of each split that a benchmark's files have."""
Record = dict[str, object]


def records(predictions: Path, model: str) -> Iterator[Record]:
    """Yield the pairs of a model, named `<benchmark>/<model>`, as the command reads them."""
    folder = predictions / model
    for theirs, ours in SPLITS[model.partition("/")[0]].items():
        both = [_answers(folder, kind, theirs) for kind in ("ori", "mod")]
        for number, (original, modified) in enumerate(zip(*both, strict=True), start=1):
            yield {"split": ours, "id": str(number), **_pair(original, modified)}


def write(predictions: Path, model: str, path: Path) -> Path:
    """Write a model's pairs to a file."""
    lines = (json.dumps(record, ensure_ascii=False) for record in records(predictions, model))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def _answers(folder: Path, kind: str, split: str) -> list[dict[str, str]]:
    name = f"{split.replace('research_', f'research_{kind}_')}.json.gz"
    name = name if split.startswith("research_") else f"{kind}_{name}"
    (path,) = folder.glob(f"*{name}")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        found: list[dict[str, str]] = json.load(file)
    return found


def _pair(original: Mapping[str, str], modified: Mapping[str, str]) -> Record:
    sides = {"original": original, "modified": modified}
    pair: Record = {"reference": original["output"]}
    for side, answer in sides.items():
        pair[f"{side}_output"] = answer["pred_output"]
        if "pred_opt" in answer:
            pair[f"{side}_choice"] = answer["pred_opt"]
            pair[f"{side}_options"] = find_bracketed_options(answer["input"])
    return pair


if __name__ == "__main__":
    for each in records(Path(sys.argv[1]), sys.argv[2]):
        print(json.dumps(each, ensure_ascii=False))  # noqa: T201 - its output is a file
