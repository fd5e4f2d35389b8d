"""Finding the files of a format that is one file for each split."""

import re
from pathlib import Path

from coreeval.config import DatasetConfig
from coreeval.errors import DatasetError

_SHARD = re.compile(r"(.+)-(\d{5})-of-(\d{5})")


def located(config: DatasetConfig, suffix: str) -> dict[str, list[Path]]:
    """Return the files by split.

    A file is the split that `dataset.split` names. In a folder the names tell: `test.csv`, or
    `test-00000-of-00002.csv` and its sequels.

    Raises:
        DatasetError: nothing there, or a part is missing.
    """
    root, split = Path(config.path), config.split
    if root.is_file():
        return {config.split: [root]}
    if not root.is_dir():
        hint = f"looked for a *{suffix} file, or a folder with {split}{suffix}"
        raise DatasetError("there is no such file or folder", where=str(root), hint=hint)
    found: dict[str, list[Path]] = {}
    for path in sorted(root.glob(f"*{suffix}")):
        shard = _SHARD.fullmatch(path.name.removesuffix(suffix))
        found.setdefault(shard[1] if shard else path.name.removesuffix(suffix), []).append(path)
    if not found:
        hint = f"looked for {split}{suffix}, or for its parts {split}-00000-of-00001{suffix}"
        raise DatasetError(f"the folder has no *{suffix}", where=str(root), hint=hint)
    for split, paths in found.items():
        _check_parts(split, paths, suffix)
    return found


def _check_parts(split: str, paths: list[Path], suffix: str) -> None:
    shards = [_SHARD.fullmatch(path.name.removesuffix(suffix)) for path in paths]
    wanted = {int(shard[3]) for shard in shards if shard}
    numbers = [int(shard[2]) for shard in shards if shard]
    if wanted and (None in shards or len(wanted) > 1 or numbers != list(range(max(wanted)))):
        raise DatasetError(
            f"the parts of the split {split!r} do not make a whole: {len(paths)} of {max(wanted)}",
            where=str(paths[0].parent),
            hint="remove what does not belong there, or fetch what is missing",
        )
