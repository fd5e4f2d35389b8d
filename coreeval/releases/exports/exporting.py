"""Exporting: one call for all formats."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from coreeval.errors import UsageError
from coreeval.releases.exports.hf import write_hf
from coreeval.releases.exports.inspect import write_inspect
from coreeval.releases.exports.junit import write_junit
from coreeval.releases.exports.lm_eval import write_lm_eval
from coreeval.releases.exports.material import Material, open_material
from coreeval.releases.exports.place import appearing
from coreeval.releases.exports.tables import write_csv, write_jsonl, write_spreadsheet

Writer = Callable[[Material, Path], dict[str, int]]
"""Writes into an empty folder and returns what it wrote: rows, questions, test cases."""
FORMATS: dict[str, Writer] = {
    "hf": write_hf,
    "lm-eval": write_lm_eval,
    "inspect": write_inspect,
    "junit": write_junit,
    "csv": write_csv,
    "spreadsheet": write_spreadsheet,
    "jsonl": write_jsonl,
}


@dataclass(frozen=True, kw_only=True)
class Exported:
    """What was exported, and where to."""

    material: Material
    to: str
    out: Path
    rows: dict[str, int]


def export(source: Path, *, to: str, out: Path) -> Exported:
    """Write a run or a release in the files that another tool reads.

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
        raise UsageError(f"there is no format {to!r}", hint=f"known: {', '.join(FORMATS)}")
    material = open_material(source)
    with appearing(out) as draft:
        rows = FORMATS[to](material, draft)
    return Exported(material=material, to=to, out=out, rows=rows)
