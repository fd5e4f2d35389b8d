"""A folder in the layout of the Hugging Face hub, which `datasets.load_dataset` reads."""

import shutil
from pathlib import Path

from coreeval.errors import RunStateError
from coreeval.releases.arms import shard_of
from coreeval.releases.dataset_info import dataset_info, with_dataset_info
from coreeval.releases.exports.material import Material
from coreeval.tools.files import write_text
from coreeval.tools.links import leads_through_link

CARD = "README.md"


def write_hf(material: Material, out: Path) -> dict[str, int]:
    """Copy the dataset with a card that describes its files; return the rows of each config.

    Raises:
        RunStateError: files of the run's dataset are gone, or links.
    """
    shard = shard_of(material.split)
    tables = sorted(material.folder.glob(f"*/{shard}"))
    card = material.folder / CARD
    if not tables or not card.exists():
        raise RunStateError("the dataset's files are gone", where=str(material.folder))
    files = tables if material.kind == "run" else _whole(material.folder)
    for file in (*files, card):
        _refuse_link(material.folder, file)
    for file in files:
        copy = out / file.relative_to(material.folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    write_text(out / CARD, with_dataset_info(card.read_text("utf-8"), out, material.split))
    info = dataset_info(out, material.split)
    return {one["config_name"]: one["splits"][0]["num_examples"] for one in info}


def _refuse_link(folder: Path, file: Path) -> None:
    if leads_through_link(folder, file.relative_to(folder).as_posix()):
        raise RunStateError(
            "a file of the dataset is a link, which is not followed",
            where=str(file),
            hint="put the file itself there",
        )


def _whole(folder: Path) -> list[Path]:
    """Return all files of a release, so that `verify` knows the copy for it."""
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]
