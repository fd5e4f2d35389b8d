"""Write the reference pages; with `--check`, name those that are not up to date."""

import sys
from collections.abc import Mapping
from pathlib import Path

from scripts.reference import commands, config, documents, python

DOCS = Path(__file__).parents[2] / "docs"


def build_pages() -> Mapping[Path, str]:
    """Return the text that each generated page should have."""
    by_hand = DOCS / "config.md"
    return {
        DOCS / "commands.md": commands.build_page(),
        by_hand: config.fill_page(by_hand.read_text("utf-8")),
        DOCS / "json.md": documents.build_page(),
        DOCS / "reference_python.md": python.build_page(),
    }


def find_outdated() -> list[str]:
    """Return the names of the pages that are not what they should be."""
    return [
        path.name
        for path, text in build_pages().items()
        if not path.exists() or path.read_text("utf-8") != text
    ]


def main(arguments: list[str]) -> int:
    """Write the pages, or check them; return the exit code."""
    if "--check" in arguments:
        outdated = find_outdated()
        hint = ": run python -m scripts.reference\n"
        sys.stderr.write(f"not up to date: {', '.join(outdated)}{hint}" if outdated else "")
        return bool(outdated)
    for path, text in build_pages().items():
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
