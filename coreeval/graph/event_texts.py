"""The texts of the articles that a run may use, as passages for each sample.

Bodies stay in the workspace's private cache. The run stores the passages that its samples are
shown, so that a resumed run does not depend on the cache.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from coreeval.agents.events import Similarity, choose_passages
from coreeval.graph.monitor import Progress, Watch
from coreeval.schema import Evidence
from coreeval.tools.articles.article_text import WHY_NO_TEXT, ArticleText, WhyNoText
from coreeval.tools.articles.sources import ArticleTexts
from coreeval.tools.stores.run_events import NewsSearch
from coreeval.tools.stores.run_store import RunStore

AT_A_TIME = 50
"""The number of samples whose articles are fetched together."""
STAGE = "articles"


@dataclass(frozen=True, kw_only=True)
class EventTexts:
    """Fetches the texts of offered events, and stores the passages that samples are shown."""

    store: RunStore
    texts: ArticleTexts
    offered: int
    """The number of events per sample whose texts are fetched, best first."""
    watch: Watch
    similarity: Similarity | None = None

    async def keep_passages(self) -> None:
        """Store the passages of all samples that have events and no passages yet.

        Raises:
            KnowledgeError: a file of articles cannot be read.
        """
        waiting = await asyncio.to_thread(self.store.events.list_without_passages)
        for start in range(0, len(waiting), AT_A_TIME):
            some = waiting[start : start + AT_A_TIME]
            await self._keep(some)
            self.watch(Progress(stage=STAGE, done=start + len(some), total=len(waiting)))

    async def _keep(self, samples: Sequence[str]) -> None:
        searches = {sample: await self._find(sample) for sample in samples}
        wanted = {key: self._choose(search) for key, search in searches.items()}
        ids = {one for events in wanted.values() for event in events for one in event}
        reports = await asyncio.to_thread(self.store.history.evidence, sorted(ids))
        found = await self.texts.fetch_texts(list(reports.values()))
        texts = {key: one for key, one in found.by_id.items() if isinstance(one, ArticleText)}
        await self.store.history.replace_evidence(
            deepen_evidence(reports[key], text) for key, text in texts.items()
        )
        for sample, search in searches.items():
            passages = await asyncio.to_thread(
                self._choose_passages, sample, search, wanted[sample], texts
            )
            await self.store.events.add_passages(sample, passages)
        self._tell([*found.notes, *_describe_reasons(found.count_reasons())])

    async def _find(self, sample: str) -> NewsSearch:
        search = await asyncio.to_thread(self.store.events.find, sample)
        assert search is not None, "only samples that searched are listed"
        return search

    def _choose(self, search: NewsSearch) -> list[Sequence[str]]:
        """Return the report ids of the events that a sample is offered first."""
        dealt = set(search.dealt or ())
        own = (event.reports for event in search.events if event.key in dealt)
        return list(islice(own, self.offered))

    def _choose_passages(
        self,
        sample_id: str,
        search: NewsSearch,
        events: Iterable[Sequence[str]],
        texts: Mapping[str, ArticleText],
    ) -> dict[str, str]:
        fields = self.store.sample(sample_id).fields
        about = "\n".join([*fields.values(), search.need])
        chosen = dict[str, str]()
        for event in events:
            own = {key: texts[key].text for key in event if key in texts}
            chosen |= choose_passages(own, about, similarity=self.similarity)
        return {key: text for key, text in chosen.items() if text}

    def _tell(self, notes: Iterable[str]) -> None:
        for note in notes:
            self.watch(Progress(stage=STAGE, note=note))


def _describe_reasons(reasons: Counter[WhyNoText]) -> list[str]:
    return [
        f"{number} article{'s' if number != 1 else ''} without a text: {WHY_NO_TEXT[reason]}"
        for reason, number in reasons.most_common()
    ]


def deepen_evidence(item: Evidence, text: ArticleText) -> Evidence:
    """Return a piece of evidence with the metadata of its article's text."""
    return item.model_copy(
        update={
            "depth": text.depth,
            "text_sha256": text.text_sha256,
            "source": text.source,
            "licence": text.licence,
            "published_at": text.published_at,
            "published_precision": text.published_precision,
            "instruction_like": item.instruction_like or text.instruction_like,
        }
    )
