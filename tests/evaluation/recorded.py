"""The answers that the CAP paper's authors recorded, beside the checkout."""

import gzip
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from coreeval.evaluation.benchmarks.item_records import find_bracketed_options

CAP = Path(__file__).parents[2].parent / "shared" / "data" / "cap"
beside = pytest.mark.skipif(
    not CAP.is_dir(), reason="the recorded answers of CAP are not beside this checkout"
)


@dataclass(frozen=True)
class Recorded:
    """One item's answers, as `coreeval.evaluation.metrics.Answered` has them."""

    reference: str
    original_output: str
    modified_output: str
    original_choice: str | None
    modified_choice: str | None
    original_options: dict[str, str] | None
    modified_options: dict[str, str] | None


def recorded(folder: str, name: str) -> list[Recorded]:
    """Return the answers of `predictions/FOLDER`; the name has `{}` for `ori` and `mod`."""
    files = [CAP / "predictions" / folder / name.format(arm) for arm in ("ori", "mod")]
    rows = [json.loads(gzip.decompress(file.read_bytes())) for file in files]
    return [
        Recorded(
            reference=first["output"],
            original_output=first["pred_output"],
            modified_output=second["pred_output"],
            original_choice=first.get("pred_opt"),
            modified_choice=second.get("pred_opt"),
            original_options=find_bracketed_options(first["input"]) or None,
            modified_options=find_bracketed_options(second["input"]) or None,
        )
        for first, second in zip(*rows, strict=True)
    ]
