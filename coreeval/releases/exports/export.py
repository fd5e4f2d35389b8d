"""Exporting in any format, and in the layout of the Hugging Face hub, which `datasets` reads."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from coreeval.errors import RunStateError, UsageError
from coreeval.releases.exports.harness_tasks import write_inspect, write_lm_eval
from coreeval.releases.exports.material import Material, open_material
from coreeval.releases.exports.tables import write_csv, write_jsonl, write_junit, write_spreadsheet
from coreeval.releases.folders import create_export_folder
from coreeval.releases.release import DIGEST, MANIFEST, read_release
from coreeval.releases.sample_tables import add_dataset_info, iter_dataset_info
from coreeval.runs.arms import shard_name
from coreeval.tools.files import special_kind_on_way, write_text

CARD_FILE = "README.md"


def write_hf(material: Material, out: Path) -> dict[str, int]:
    """Copy the dataset with a card that describes its files; return the number of rows per config.

    Raises:
        RunStateError: files of the run's dataset are gone, or links.
    """
    shard = shard_name(material.split)
    tables = sorted(material.folder.glob(f"*/{shard}"))
    card = material.folder / CARD_FILE
    if not tables or not card.exists():
        raise RunStateError("the dataset's files are missing", where=str(material.folder))
    files = tables if material.kind == "run" else _release_files(material.folder)
    for file in (*files, card):
        _refuse_special_file(material.folder, file)
    for file in files:
        copy = out / file.relative_to(material.folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    write_text(out / CARD_FILE, add_dataset_info(card.read_text("utf-8"), out, material.split))
    info = iter_dataset_info(out, material.split)
    return {one["config_name"]: one["splits"][0]["num_examples"] for one in info}


def _refuse_special_file(folder: Path, file: Path) -> None:
    if kind := special_kind_on_way(folder, file.relative_to(folder).as_posix()):
        raise RunStateError(
            f"a file of the dataset is {kind}, which is not supported",
            where=str(file),
            hint="replace it by the file itself",
        )


def _release_files(folder: Path) -> list[Path]:
    """Return the files of a release and its digests, which `verify` needs to accept the copy."""
    return [folder / name for name in (*read_release(folder).manifest.files, MANIFEST, DIGEST)]


ExportWriter = Callable[[Material, Path], dict[str, int]]
"""Writes to an empty folder and returns the counts of what it wrote: rows, questions, cases."""
FORMATS: dict[str, ExportWriter] = {
    "hf": write_hf,
    "lm-eval": write_lm_eval,
    "inspect": write_inspect,
    "junit": write_junit,
    "csv": write_csv,
    "spreadsheet": write_spreadsheet,
    "jsonl": write_jsonl,
}


@dataclass(frozen=True, kw_only=True)
class ExportResult:
    """The content and the folder of an export."""

    material: Material
    to: str
    out: Path
    rows: dict[str, int]


def export(source: Path, *, to: str, out: Path) -> ExportResult:
    """Write a run or a release as files for another tool.

    Args:
        source: Directory of a run that has ended, or of a release.
        to: A name of `FORMATS`.
        out: A folder that is empty, or not there; it appears when it is whole.

    Raises:
        UsageError: no such format, something at `out`, or a package that the format needs.
        ReleaseError: the source is neither run nor release, or a release that is not what was made.
        RunStateError: the run has not come to its end.
        RunError: it cannot be written.
    """
    if to not in FORMATS:
        raise UsageError(f"{to!r} is not a format", hint=f"known: {', '.join(FORMATS)}")
    material = open_material(source)
    with create_export_folder(out) as draft:
        rows = FORMATS[to](material, draft)
    return ExportResult(material=material, to=to, out=out, rows=rows)
