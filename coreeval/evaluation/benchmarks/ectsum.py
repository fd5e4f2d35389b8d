"""ECTSum, as its authors publish it: a folder of transcripts and one of summaries a split."""

from collections.abc import Iterator
from pathlib import Path

from coreeval.evaluation.benchmarks.item_files import Record

CALLS, SUMMARIES = "ects", "gt_summaries"
PROMPT = "Sum up this earnings call in a few bullet points, one line each.\nCall: {call}\nSummary:"
"""Around a transcript, which has no prompt of its own."""


def has_texts(path: Path, split: str) -> bool:
    """Tell whether a folder has the transcripts of a split."""
    return (path / split / CALLS).is_dir()


def texts(path: Path, split: str) -> Iterator[Record]:
    """Yield a record for each transcript, in the order of names; the name is the id."""
    for place, call in enumerate(sorted((path / split / CALLS).glob("*.txt")), start=1):
        summary = path / split / SUMMARIES / call.name
        try:
            said, due = (one.read_text(encoding="utf-8") for one in (call, summary))
        except (OSError, UnicodeDecodeError) as error:
            yield Record(place, {"idx": call.stem}, f"{call.name} cannot be read: {error}")
            continue
        if not said.strip():
            yield Record(place, {"idx": call.stem}, f"{call.name} is empty")
            continue
        text = PROMPT.format(call=" ".join(said.split()))
        yield Record(place, {"idx": call.stem, "input": text, "output": due.strip()})
