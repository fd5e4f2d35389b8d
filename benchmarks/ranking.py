"""Whether the search ranks better than a match of titles, on labelled pairs of query and article.

    python -m benchmarks.ranking [--news DIR] [--depth 5] [--facts FILE] [--labels FILE]

The labels are in `ranking.yaml`; the articles they speak of are read from a folder of GDELT files.
With `--facts`, a file of dated facts, the searches are made again in a store that has both, and the
labels of facts count for all rankings. `ranking_facts.yaml` has labels of facts alone.
nDCG is scikit-learn's, its mean's interval a bootstrap over queries. An article that nobody
labelled counts as irrelevant; how many there were is printed. The title match is helped by what the
store does for all: one article a page, English, screened, two at most of a story.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Literal

import numpy as np
import yaml
from scipy.stats import bootstrap  # type: ignore[import-untyped]
from sklearn.metrics import ndcg_score  # type: ignore[import-untyped]

from coreeval.schema import EntityQuery, Evidence, Value, Window
from coreeval.tools.gdelt.index.build import compact
from coreeval.tools.gdelt.local import LocalKnowledge, open_local
from coreeval.tools.gdelt.sync.sync import Around, sync_folder
from coreeval.tools.gdelt.words import search_keys

LABELS = Path(__file__).with_suffix(".yaml")
NEWS = Path("../shared/data/gdelt")


class Labelled(Value):
    """One query and its labelled articles."""

    text: str
    rung: Literal["named", "concept"]
    context: tuple[str, ...] = ()
    window: Window
    grades: dict[str, int]
    """Evidence id -> 2 about it, 1 touches it, 0 something else."""
    facts: dict[str, int] = {}
    """The same of dated facts; used only if the store of one ranking has them."""

    def query(self, *, with_context: bool) -> EntityQuery:
        """Return the query as a sample would ask it."""
        context = self.context if with_context else ()
        return EntityQuery(id="q", text=self.text, rung=self.rung, context=context)


def labelled(file: Path = LABELS, *, with_facts: bool = False) -> list[Labelled]:
    """Return the labelled queries; the labels of facts are left out, or count as the others do."""
    queries = [Labelled.model_validate(row) for row in yaml.safe_load(file.read_text("utf-8"))]
    if not with_facts:
        return queries
    return [each.model_copy(update={"grades": each.grades | each.facts}) for each in queries]


def title_match(asked: Labelled, articles: Sequence[Evidence]) -> list[str]:
    """Rank by the share of the query's words in the title (a name needs all), the newest first."""
    wanted = set(search_keys(asked.text))
    least = 1.0 if asked.rung == "named" else 0.01

    def share(article: Evidence) -> float:
        return len(wanted & set(search_keys(article.title))) / len(wanted)

    def place(article: Evidence) -> tuple[float, datetime]:
        return share(article), article.published_at

    found = [article for article in articles if share(article) >= least]
    return [article.id for article in sorted(found, key=place, reverse=True)]


def ndcg(ranking: Sequence[str], grades: dict[str, int], depth: int) -> float:
    """Return nDCG at a depth; what is not ranked comes after all that is."""
    ids = [*ranking, *(known for known in grades if known not in ranking)]
    truth = [[grades.get(known, 0) for known in ids]]
    scores = [[len(ids) - place for place in range(len(ranking))] + [0] * (len(ids) - len(ranking))]
    return float(ndcg_score(truth, scores, k=depth))


async def search(
    source: LocalKnowledge, asked: Labelled, *, with_context: bool, k: int
) -> list[str]:
    """Rank as a run would."""
    query = asked.query(with_context=with_context)
    answer = await source.fetch([query], asked.window, k)
    return [article.id for article in answer.by_query[query.id]]


async def everything(source: LocalKnowledge, asked: Labelled) -> list[Evidence]:
    """Return all articles that have a word of the query."""
    query = EntityQuery(id="q", text=asked.text, rung="named")
    words = [
        EntityQuery(id=word, text=word, rung="named") for word in dict.fromkeys(asked.text.split())
    ]
    answer = await source.fetch([query, *words], asked.window, 10_000)
    found = (article for evidence in answer.by_query.values() for article in evidence)
    return list({article.id: article for article in found}.values())


async def compare(
    source: LocalKnowledge, both: LocalKnowledge | None, queries: Sequence[Labelled], depth: int
) -> None:
    """Print the figures of each ranking; `both` is a store that also has facts."""
    pairs = sum(len(asked.grades) for asked in queries)
    print(f"{len(queries)} queries, {pairs} labelled pairs, nDCG@{depth}, mean and 95 % interval")
    rankings = {
        "title match": [title_match(each, await everything(source, each)) for each in queries],
        "search": [await search(source, each, with_context=False, k=depth) for each in queries],
        "search + context": [
            await search(source, each, with_context=True, k=depth) for each in queries
        ],
    }
    if both is not None:
        for name, context in (("with facts", False), ("with facts + context", True)):
            rankings[name] = [
                await search(both, each, with_context=context, k=depth) for each in queries
            ]
    base = None
    for name, ranked in rankings.items():
        scores = np.array(
            [
                ndcg(found[:depth], each.grades, depth)
                for found, each in zip(ranked, queries, strict=True)
            ]
        )
        unknown = sum(
            known not in each.grades
            for found, each in zip(ranked, queries, strict=True)
            for known in found[:depth]
        )
        base = scores if base is None else base
        print(f"{name:20s} {_said(scores)}   against title match {_said(scores - base)}"
              f"   unlabelled {unknown}")  # fmt: skip
        for each, score in zip(queries, scores, strict=True):
            print(f"    {score:.2f} {each.text} {list(each.context)}")


def _said(scores: np.ndarray) -> str:
    if not np.ptp(scores):
        return f"{scores.mean():+.3f}"
    sure = bootstrap((scores,), np.mean, rng=np.random.default_rng(7)).confidence_interval
    return f"{scores.mean():+.3f} ({sure.low:+.3f} to {sure.high:+.3f})"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--news", type=Path, default=NEWS)
    parser.add_argument("--depth", type=int, default=5)
    parser.add_argument("--facts", type=Path)
    parser.add_argument("--labels", type=Path, default=LABELS)
    given = parser.parse_args()
    queries = labelled(given.labels, with_facts=given.facts is not None)
    with (
        tempfile.TemporaryDirectory() as cache,
        open_local(given.news, Path(cache) / "news", min_precision="crawl") as source,
        ExitStack() as stack,
    ):
        both = None
        if given.facts:
            store = Path(cache) / "both"
            for files in (given.news, given.facts):
                sync_folder(store, files, around=Around(finish=compact))
            both = stack.enter_context(LocalKnowledge(store, news=store, min_precision="crawl"))
        asyncio.run(compare(source, both, queries, given.depth))


if __name__ == "__main__":
    main()
