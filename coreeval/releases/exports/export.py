"""Exports in all formats, including the layout of the Hugging Face hub, which `datasets` reads."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from coreeval.config.plugins import SPELLING, PluginUse, parse_plugin
from coreeval.config.user_files import MOST_DATA_BYTES, read_text
from coreeval.errors import RunStateError, UsageError
from coreeval.releases.exports.harness_tasks import write_inspect, write_lm_eval
from coreeval.releases.exports.material import Material, open_material
from coreeval.releases.exports.tables import write_csv, write_jsonl, write_junit, write_spreadsheet
from coreeval.releases.folders import create_export_folder
from coreeval.releases.release import DIGEST, MANIFEST, read_release
from coreeval.releases.sample_tables import add_dataset_info, iter_dataset_info
from coreeval.releases.withheld import refuse_listed_samples
from coreeval.runs.arms import shard_name
from coreeval.runs.copying import refuse_takedown
from coreeval.tools.files import special_kind_on_way, write_text
from coreeval.tools.plugins import load_plugin

CARD_FILE = "README.md"


def write_hf(material: Material, out: Path) -> dict[str, int]:
    """Copy the dataset with a card that describes its files; return the rows per config.

    Raises:
        RunStateError: files of the run's dataset are missing, or are links.
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
    text = read_text(card, most_bytes=MOST_DATA_BYTES)
    write_text(out / CARD_FILE, add_dataset_info(text, out, material.split))
    info = iter_dataset_info(out, material.split)
    return {one["config_name"]: one["splits"][0]["num_examples"] for one in info}


def _refuse_special_file(folder: Path, file: Path) -> None:
    if kind := special_kind_on_way(folder, file.relative_to(folder).as_posix()):
        raise RunStateError(
            f"a file of the dataset is {kind}, which is not supported",
            where=str(file),
            hint="replace it with the file itself",
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


class ExportPlugin(Protocol):
    """A format of exports; a plugin of the group `exports`."""

    plugin_api: int

    def write(self, material: Material, out: Path) -> Mapping[str, int]:
        """Write files for another tool, and return counts of their contents.

        Args:
            material: The run or the release: its task, samples, texts by arm and replaced facts.
            out: An empty folder, which gets its final name when everything is written.
        """
        ...


def find_writer(to: str) -> ExportWriter:
    """Return the writer of a format: a built-in one, or a plugin's.

    Raises:
        UsageError: there is no such format.
        PluginError: there is no such plugin, or it does not fit its protocol.
        UnallowedPlugin: the user has not allowed its code to run.
    """
    if to in FORMATS:
        return FORMATS[to]
    name = parse_plugin(to)
    if name is None:
        raise UsageError(
            f"{to!r} is not a format", hint=f"known: {', '.join(FORMATS)}; or {SPELLING}"
        )
    plugin = load_plugin(PluginUse("exports", name, "--to"), ExportPlugin)

    def write(material: Material, out: Path) -> dict[str, int]:
        with plugin.guard("write"):
            counts = cast(ExportPlugin, plugin.loaded).write(material, out)
            found = {str(what): int(count) for what, count in counts.items()}
        if any(out.iterdir()):
            return found
        raise plugin.fail("wrote no file")

    return write


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
        source: The directory of a finished run, or of a release.
        to: A name of `FORMATS`, or a plugin: `plugin:NAME` or `module:Class`.
        out: An empty or new folder; it appears once it is complete.

    Raises:
        UsageError: there is no such format, `out` is not empty, or a required package is missing.
        PluginFailed: the plugin failed, or wrote nothing.
        ReleaseError: the source is neither a run nor a release, or is a release that was altered
            or has names on the takedown list.
        RunStateError: the run has not ended, or a takedown has changed it meanwhile.
        RunError: the export cannot be written.
    """
    write = find_writer(to)
    with create_export_folder(out) as draft, refuse_takedown(source):
        material = open_material(source)
        if material.kind == "release":
            refuse_listed_samples(read_release(source))
        rows = write(material, draft)
    return ExportResult(material=material, to=to, out=out, rows=rows)
