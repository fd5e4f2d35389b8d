"""Where a CI job shows what gates found: its summary, and annotations beside the job."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from coreeval.cli.output import note, one_line

if TYPE_CHECKING:
    from coreeval.releases.gates.gating import Gated

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""Names the file to which a step of GitHub Actions adds its summary."""
_ESCAPES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_TITLES = {**_ESCAPES, ":": "%3A", ",": "%2C"}
"""How GitHub's workflow commands write what would end them or one of their properties."""


def write_summaries(found: "Gated", path: Path | None) -> list[Path]:
    """Write the summary where it is asked for, and add it to that of GitHub's step."""
    from coreeval.releases.gates.words import summary
    from coreeval.tools.files import write_text

    text, written = summary(found), list[Path]()
    if path:
        write_text(path, text)
        written.append(path)
    if step := os.environ.get(STEP_SUMMARY):
        with Path(step).open("a", encoding="utf-8") as file:
            file.write(text)
        written.append(Path(step))
    return written


def annotate(found: "Gated") -> None:
    """Tell GitHub of each gate that is not met, in a job of its own; stdout is left alone."""
    from coreeval.releases.gates.words import found_words

    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    for each in found.stopped:
        title = _escaped(f"{found.name} {found.version}: {each.gate}", _IN_TITLES)
        message = one_line(f"{found_words(each)}; wanted {each.limit}")
        note(f"::error title={title}::{_escaped(message, _ESCAPES)}")


def _escaped(text: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(each, each) for each in text)
