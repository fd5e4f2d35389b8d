"""Reads a run's report.json as it was written, without computing anything."""

from pathlib import Path
from typing import Any

from coreeval.config.user_files import MOST_DATA_BYTES, read_bytes
from coreeval.errors import RunCorrupt
from coreeval.evaluation.detectors import TARGET_DETECTORS
from coreeval.tools.files import parse_json
from coreeval.tools.workspace import RunFiles, command

_NO_DROPS: dict[str, list[Any]] = {"targets": []}
"""The default for reports written before drops were decomposed."""

_NOT_ASKED: dict[str, None] = {
    each.report_key: None for each in TARGET_DETECTORS if each.report_key
}
"""The default for reports written before a detector existed."""

_NO_ORDER: dict[str, Any] = {"ranking": None}
"""The default for reports written before targets were ranked."""


def read_report(files: RunFiles) -> dict[str, Any] | None:
    """Return a run's report, or None if it does not exist yet.

    Raises:
        RunCorrupt: the report is damaged.
    """
    return load_report(files.report_json, hint=f"write it again: {command('evaluate', files.root)}")


def load_report(path: Path, *, hint: str) -> dict[str, Any] | None:
    """Load the report in a file, which may be a copy; return None if there is no file.

    Raises:
        RunCorrupt: the file is damaged or not a report.
    """
    try:
        report: Any = parse_json(read_bytes(path, most_bytes=MOST_DATA_BYTES))
        drops = report.get("decomposition") or _NO_DROPS
        arms = {**_NO_ORDER, **report["arms"]}
        _ = arms["targets"], drops["targets"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise RunCorrupt(
            f"{path.name} is damaged, or is not the report of a run: {error}",
            where=str(path),
            hint=hint,
        ) from None
    return {
        **_NOT_ASKED,
        "comparability": None,
        **report,
        "arms": arms,
        "decomposition": drops,
    }
