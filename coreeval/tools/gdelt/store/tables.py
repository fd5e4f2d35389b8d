"""The columns of segments and signals, and rows gathered into them."""

from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from coreeval.tools.gdelt.store.mentions import ENTITY

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
    ]
)
"""Articles as the files tell them: not yet dated, joined or screened. Times are epoch seconds."""
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
"""How much Events and Mentions make of a page: salience, never facts."""


def articles_table(columns: dict[str, Any]) -> Any:  # noqa: ANN401 - Arrow has no types
    """Return a table of articles; columns that are not given are empty."""
    rows = len(columns["url"])
    empty: dict[str, Any] = {
        "snippet": [""] * rows,
        "entities": [[]] * rows,
        "themes": [[]] * rows,
        "words": [None] * rows,
        "file": [0] * rows,
    }
    filled = {**empty, **columns}
    return pa.table(
        [pa.array(filled[name], type) if isinstance(filled[name], list) else filled[name]
         for name, type in zip(ARTICLES.names, ARTICLES.types, strict=True)],
        schema=ARTICLES,
    )  # fmt: skip
