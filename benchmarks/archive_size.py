"""How much news a benchmark needs: the best rung on which each sample finds news, by archive size.

    python -m benchmarks.archive_size [--seed 7]

The 240 tweets of examples/refreshed search with the queries that a model extracted from them. The
archives are random parts of the articles and the dated facts in ../shared/data. The tweets were
written for this project and are about the same months, so older benchmarks find less.
"""

import argparse
import asyncio
import gzip
import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from coreeval.agents.queries import LADDER, find_best_rung, merge_results, plan_queries
from coreeval.schema import EntityQuery, Extraction, Window
from coreeval.tasks import load_task
from coreeval.tools.gdelt.local import open_local

CASSETTE = Path("examples/refreshed/emotion.cassette")
SHARED = Path("../shared/data")
ARTICLES = SHARED / "gdelt/doc_api/articles_2025_climate_companies.jsonl.gz"
FACTS = SHARED / "articles/current_events_202509_202605.jsonl.gz"
WINDOW = Window(start=datetime(2025, 1, 1, tzinfo=UTC), end=datetime(2026, 10, 31, tzinfo=UTC))
PARTS = ((1 / 16, 0), (1 / 4, 0), (1, 0), (0, 1 / 4), (0, 1 / 2), (0, 1), (1, 1))
"""The shares of articles and of facts in each archive."""
MOST_FOUND = 60
PER_QUERY = 20


def read_queries() -> list[list[EntityQuery]]:
    """Return the queries of each tweet, from the recorded answers of the extractor."""
    task = load_task("emotion")
    return [plan_queries(extraction, task) for extraction in _read_extractions()]


def _read_extractions() -> Iterator[Extraction]:
    with gzip.open(CASSETTE, "rt", encoding="utf-8") as lines:
        for line in lines:
            row: dict[str, Any] = json.loads(line)
            if row.get("kind") == "answer" and row["role"] == "extractor":
                said = json.loads(row["answer"]["content"])
                own = {name: said[name] for name in Extraction.model_fields if name in said}
                yield Extraction.model_validate(own)


async def count_rungs(
    queries: Sequence[Sequence[EntityQuery]], articles: Sequence[bytes], facts: Sequence[bytes]
) -> Counter[str]:
    """Return how many samples find news on which rung at best, in an archive of these rows."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "news"
        folder.mkdir()
        for name, rows in (("articles", articles), ("current_events", facts)):
            if rows:
                with gzip.open(folder / f"{name}.jsonl.gz", "wb") as file:
                    file.writelines(rows)
        news = open_local(folder, Path(temporary) / "store", min_precision="crawl")
        rungs = Counter[str]()
        for asked in queries:
            found = await news.fetch(asked, WINDOW, PER_QUERY)
            items = merge_results(found, asked, limit=MOST_FOUND, exclude=())
            rungs[find_best_rung(items.values())] += 1
        news.close()
    return rungs


def _shuffle(file: Path, seed: int) -> list[bytes]:
    with gzip.open(file) as rows:
        lines = list(rows)
    random.Random(seed).shuffle(lines)
    return lines


def main() -> None:
    """Print the shares for each archive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=7)
    chosen = parser.parse_args()
    queries = read_queries()
    articles, facts = _shuffle(ARTICLES, chosen.seed), _shuffle(FACTS, chosen.seed)
    for share, share_of_facts in PARTS:
        some = articles[: int(share * len(articles))]
        dated = facts[: int(share_of_facts * len(facts))]
        rungs = asyncio.run(count_rungs(queries, some, dated))
        said = "  ".join(f"{rung} {rungs[rung] / len(queries):.2f}" for rung in (*LADDER, "none"))
        print(f"{len(some):6} articles {len(dated):5} facts   {said}", flush=True)


if __name__ == "__main__":
    main()
