"""How many rows the published benchmarks have, to notice a download that was cut off.

TweetEval's and MRPC's numbers are those of the files themselves; stance adds up to the 2,620 and
1,249 of the CoreEval paper's Table 1. RTE's are GLUE's, and so are those of MRPC's GLUE form.
"""

from pathlib import Path

from coreeval.config import DatasetConfig
from coreeval.evaluation.benchmarks.tweeteval import LABELS, TEXT, folders

Counts = dict[str, int]

TWEETEVAL: dict[str, Counts] = {
    "emotion": {"train": 3257, "val": 374, "test": 1421},
    "irony": {"train": 2862, "val": 955, "test": 784},
}
STANCE: dict[str, Counts] = {
    "abortion": {"train": 587, "val": 66, "test": 280},
    "atheism": {"train": 461, "val": 52, "test": 220},
    "climate": {"train": 355, "val": 40, "test": 169},
    "feminism": {"train": 597, "val": 67, "test": 285},
    "hillary": {"train": 620, "val": 69, "test": 295},
}
MRPC: Counts = {"train": 4076, "dev": 408, "test": 1725}
GLUE_MRPC: Counts = {"train": 3668, "dev": 408, "test": 1725}
RTE: Counts = {"train": 2490, "dev": 277, "test": 277}


def expected_count(config: DatasetConfig, split: str) -> int | None:
    """Return the number of rows that a split should have; None where that is not known.

    Known are only folders that bear the official name and hold all of its files, so that an excerpt
    of a benchmark is not taken for a damaged copy.
    """
    if config.format == "tweeteval":
        return _tweeteval(config, split)
    root = Path(config.path)
    if config.format not in ("mrpc", "rte") or root.name.lower() != config.format:
        return None
    return _glue(root, config.format, split)


def _tweeteval(config: DatasetConfig, split: str) -> int | None:
    counts = [_of_folder(folder, target).get(split) for target, folder in folders(config).items()]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _of_folder(folder: Path, target: str) -> Counts:
    files = [f"{split}{kind}" for split in ("train", "val", "test") for kind in (TEXT, LABELS)]
    if not _has_all(folder, files):
        return {}
    if target and folder.parent.name == "stance":
        return STANCE.get(target, {})
    return {} if target else TWEETEVAL.get(folder.name, {})


def _glue(root: Path, name: str, split: str) -> int | None:
    if name == "rte":
        return RTE.get(split) if _has_all(root, ["train.tsv", "dev.tsv"]) else None
    if _has_all(root, ["msr_paraphrase_train.txt", "msr_paraphrase_test.txt"]):
        return MRPC.get(split)
    return GLUE_MRPC.get(split) if _has_all(root, ["train.tsv", "dev.tsv"]) else None


def _has_all(folder: Path, names: list[str]) -> bool:
    return all((folder / name).is_file() for name in names)
