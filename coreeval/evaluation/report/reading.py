"""Reading a run's report.json again: as it was written, nothing is computed."""

import json
from typing import Any

from coreeval.errors import RunCorrupt
from coreeval.tools.workspace import RunFiles, command

_NO_DROPS: dict[str, list[Any]] = {"targets": []}
"""What a report from before drops were taken apart says of them."""


def read_report(files: RunFiles) -> dict[str, Any] | None:
    """Return a run's report; None before there is one.

    Raises:
        RunCorrupt: it is damaged.
    """
    try:
        report = json.loads(files.report_json.read_bytes())
        drops = report.get("decomposition") or _NO_DROPS
        _ = report["arms"]["targets"], drops["targets"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise RunCorrupt(
            f"report.json is damaged: {error}",
            where=str(files.report_json),
            hint=f"write it anew: {command('evaluate', files.root)}",
        ) from None
    return {"pcr": None, "numleak": None, **report, "decomposition": drops}
