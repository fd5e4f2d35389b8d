"""A dataset format: blocks of lines, each a label and a text, with a blank line between them.

joy
The train came on time.

anger
And then it did not.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from coreeval.plugins import DatasetConfig, FormatRow


class Blocks:
    """Reads `<split>.blocks` in a folder; for tasks with one text and labels."""

    plugin_api: int = 1
    kind: str = "labels"

    def files(self, dataset: DatasetConfig) -> Mapping[str, Sequence[Path]]:
        """Return the file of each split."""
        return {path.stem: [path] for path in sorted(Path(dataset.path).glob("*.blocks"))}

    def rows(self, file: Path, dataset: DatasetConfig) -> Iterator[FormatRow]:
        """Yield a row for each block."""
        for line, block in _cut_blocks(file.read_text("utf-8")):
            label, *rest = block
            defect = "" if rest else "the block has a label, but no text"
            yield FormatRow(line, {"label": label, "text": " ".join(rest)}, defect=defect)


def _cut_blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of each block, and the number of its first line."""
    block = list[str]()
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        if line.strip():
            block.append(line.strip())
        elif block:
            yield number - len(block), block
            block = []
