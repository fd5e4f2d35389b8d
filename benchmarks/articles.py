"""How well and how fast texts and dates are read from real pages, and WARC files scanned.

    python -m benchmarks.articles [--articles DIR] [--rounds 3]

The folder holds `pages/known_texts.jsonl.gz`, whose rows name a page, its text and its date, and
WARC files. Token F1 is of the words of a page's text, the mean over its English pages; a date is
exact if it is the same day in UTC or in the zone that the known date has. Times are of one
process's processor time, the best of several rounds; a MB is one of a packed file.
"""

import argparse
import gzip
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from coreeval.tools.articles.ccnews import scan_records
from coreeval.tools.articles.file_index import FileTally
from coreeval.tools.articles.page import PageReading, read_page

ARTICLES = Path("../shared/data/articles")
AIM: Final = 0.94
Row = dict[str, str]


def token_f1(found: str, known: str) -> float:
    """Return the F1 of the words of two texts, with repetitions."""
    mine, theirs = (Counter(re.findall(r"\w+", text.lower())) for text in (found, known))
    return 2 * (mine & theirs).total() / max(1, mine.total() + theirs.total())


def is_exact(reading: PageReading, known: str) -> bool:
    """Return whether a page's date is the known day."""
    found, date = reading.stated_at or reading.estimated_at, datetime.fromisoformat(known)
    return found is not None and found.date() in (date.date(), date.astimezone(UTC).date())


def fastest(rounds: int, work: Callable[[], object]) -> float:
    """Return the least processor time of some rounds, in seconds."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def load(folder: Path) -> list[tuple[Row, bytes]]:
    """Return the rows with their pages."""
    lines = gzip.decompress((folder / "pages" / "known_texts.jsonl.gz").read_bytes()).splitlines()
    rows: list[Row] = [json.loads(line) for line in lines]
    return [(row, gzip.decompress((folder / row["file"]).read_bytes())) for row in rows]


def report_pages(pages: Sequence[tuple[Row, bytes]], rounds: int) -> None:
    """Print how good the texts and dates are, and how fast they are read."""
    readings = [(row, read_page(body, row["url"])) for row, body in pages]
    scores = [token_f1(reading.text, row["text"]) for row, reading in readings if row["english"]]
    dated = [(row, reading) for row, reading in readings if row.get("published_at")]
    exact = sum(is_exact(reading, row["published_at"]) for row, reading in dated)
    size = sum(len(body) for _, body in pages)
    seconds = fastest(rounds, lambda: [read_page(body, row["url"]) for row, body in pages])
    mean = sum(scores) / len(scores)
    print(f"token F1 on {len(scores)} English pages   {mean:.4f} (aim {AIM})")
    print(f"dates exact                    {exact} of {len(dated)}")
    rate, kilobytes = len(pages) / seconds, size / len(pages) / 1e3
    print(f"pages a second and core        {rate:.1f} ({kilobytes:.0f} kB each)")


def report_archives(files: Sequence[Path], rounds: int) -> None:
    """Print how fast the index of WARC files is made."""
    for file in files:
        records = len(list(scan_records(file, FileTally())))
        seconds = fastest(rounds, lambda file=file: list(scan_records(file, FileTally())))  # type: ignore[misc]
        megabytes = file.stat().st_size / 1e6
        print(
            f"{file.name}: {records / seconds:,.0f} records a second, {megabytes / seconds:.0f} MB"
        )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--articles", type=Path, default=ARTICLES)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    report_pages(load(asked.articles), asked.rounds)
    report_archives(sorted(asked.articles.glob("*.warc.gz")), asked.rounds)


if __name__ == "__main__":
    main()
