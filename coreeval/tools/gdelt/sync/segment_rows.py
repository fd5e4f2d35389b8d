"""The rows of segments: their columns, cleaned and bounded texts, and counts of invalid rows.

Most texts need no cleaning: detecting this takes a tenth of the time of cleaning.
"""

import gzip
import json
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import pyarrow as pa  # type: ignore[import-untyped]

from coreeval.config.credentials import hide_credentials
from coreeval.tools.gdelt import page_text
from coreeval.tools.gdelt.rows import Reason, host_of, parse_stamp
from coreeval.tools.gdelt.sync.gkg_names import ENTITY

ARTICLES = pa.schema(
    [
        ("url", pa.string()),
        ("title", pa.string()),
        ("snippet", pa.string()),
        ("crawled_at", pa.int64()),
        ("stated_at", pa.int64()),
        ("language", pa.string()),
        ("feed", pa.string()),
        ("file", pa.int32()),
        ("line", pa.int32()),
        ("entities", pa.list_(ENTITY)),
        ("themes", pa.list_(pa.string())),
        ("words", pa.int32()),
        ("cites", pa.list_(pa.string())),
        ("licence", pa.string()),
    ]
)
"""The columns of articles as in the files: not yet dated, merged or screened. Times are epoch
seconds. `cites` has the addresses of the news that a fact cites; segments from before facts were
read lack it. `licence` is stated only by news of the user's own; older segments lack it."""
SIGNALS = pa.schema(
    [
        ("url", pa.string()),
        ("num_mentions", pa.int32()),
        ("num_sources", pa.int32()),
        ("num_articles", pa.int32()),
        ("mentions", pa.int32()),
        ("confidence", pa.int16()),
        ("is_root", pa.bool_()),
        ("sqldate", pa.int32()),
    ]
)
"""The prominence of a page in Events and Mentions: only salience, not facts."""


def build_articles_table(columns: dict[str, Any]) -> Any:  # noqa: ANN401 - Arrow has no types
    """Return a table of articles; columns that are not given are left empty."""
    rows = len(columns["url"])
    empty: dict[str, Any] = {
        "snippet": [""] * rows,
        "entities": [[]] * rows,
        "themes": [[]] * rows,
        "words": [None] * rows,
        "file": [0] * rows,
        "cites": [[]] * rows,
        "licence": [""] * rows,
    }
    filled = {**empty, **columns}
    return pa.table(
        [pa.array(filled[name], type) if isinstance(filled[name], list) else filled[name]
         for name, type in zip(ARTICLES.names, ARTICLES.types, strict=True)],
        schema=ARTICLES,
    )  # fmt: skip


RowRefusal = Reason | Literal["too_large"]
CUT_REASONS: frozenset[RowRefusal] = frozenset({"columns", "invalid_json", "untitled"})
"""The reasons for refusing the last row of a truncated file; the title is in GKG's last column."""
MOST_KEPT = 100
"""The most invalid rows of a file that are kept; further ones are only counted."""
LONGEST_KEPT = 2000
"""The most characters kept of an invalid row."""


@dataclass(slots=True)
class RowTally:
    """A counter of a file's rows that keeps some of the invalid ones."""

    rows: int = 0
    bad: Counter[RowRefusal] = field(default_factory=Counter)
    aside: list[dict[str, object]] = field(default_factory=list)

    @property
    def articles(self) -> int:
        """The number of valid rows."""
        return self.rows - self.bad.total()

    def refuse(self, line: int, reason: RowRefusal, row: bytes | str) -> None:
        """Count an invalid row, and keep it without credentials if the limit allows."""
        self.bad[reason] += 1
        if len(self.aside) < MOST_KEPT:
            start = row[: 4 * LONGEST_KEPT]
            text = start.decode("utf-8", "replace") if isinstance(start, bytes) else start
            row = hide_credentials(text)[:LONGEST_KEPT]
            self.aside.append({"line": line, "reason": reason, "row": row})

    def mark_last_as_cut(self, reason: RowRefusal) -> None:
        """Record that a file was truncated in its last row, which was refused for this reason."""
        if self.bad.total() == len(self.aside):
            self.aside[-1]["reason"] = "damaged"
        self.bad[reason] -= 1
        self.bad["damaged"] += 1

    def end_early(self, reason: RowRefusal, why: str) -> None:
        """Record that a file could not be read to its end, which counts as a row."""
        self.rows += 1
        self.refuse(self.rows, reason, why)

    def pack_bad_rows(self) -> bytes:
        """Return the stored invalid rows as gzipped JSON lines."""
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in self.aside)
        return gzip.compress("".join(lines).encode("utf-8", "replace"), mtime=0)


LONGEST_URL = 8000
"""The most characters of a URL; no common server accepts a longer one."""


def clean_page_text(raw: str, most: int) -> str:
    """Return a title or description without entities, hidden characters and double spaces."""
    if len(raw) <= most and _is_clean(raw):
        return raw
    return page_text.clean_text(raw.replace('""', '"'), most)


def _is_clean(text: str) -> bool:
    """Return whether cleaning would leave a text unchanged."""
    return (
        text.isprintable()
        and "&" not in text
        and "<" not in text
        and '""' not in text
        and "  " not in text
        and text == text.strip(" ")
    )


def is_address(url: str) -> bool:
    """Return whether a URL has a host and a plausible length."""
    if len(url) > LONGEST_URL or not url.isprintable():
        return False
    return _has_host("/".join(url.split("/", 3)[:3]))


@lru_cache(maxsize=1 << 16)
def _has_host(start: str) -> bool:
    return bool(host_of(start))


@lru_cache(maxsize=1 << 14)
def parse_seconds(stamp: str) -> int | None:
    """Return a stamp as seconds since 1970; None if it is invalid; a file has few of them."""
    moment = parse_stamp(stamp)
    return int(moment.timestamp()) if moment else None
