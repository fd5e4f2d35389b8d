"""Estimates, before anything is spent, how much news there is for a run's samples.

Rules read a few samples, like the offline extractor without spaCy, and look up in the local news
what the samples mention. A model extracts more, and not all news that is found fits its sample, so
the share is a hint, not a forecast.
"""

import math
import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import time, timedelta
from itertools import islice

from coreeval.agents.queries import has_most_words, plan_queries
from coreeval.config import Config
from coreeval.evaluation.benchmarks import iter_benchmark
from coreeval.graph.inputs import NewsSources, open_news
from coreeval.graph.setup import Setup
from coreeval.languages import ENGLISH
from coreeval.schema import Coverage, Precision, Sample, Window
from coreeval.tools.formatting import format_percent, format_quantity, plural
from coreeval.tools.gdelt.local import LocalKnowledge, describe_window_line
from coreeval.tools.loops import run_coroutine
from coreeval.tools.workspace import Workspace

MOST_READ = 2_000
"""The first samples of a benchmark, from which some are drawn."""
LOOKED_UP = 50
"""The number of samples drawn (own choice: their look-up takes half a second)."""
MOST_CHARACTERS = 2_000
"""The number of characters of a text that are read."""
PER_QUERY = 8
FEW = 0.5
"""The share of samples with news, and of days with news, below which a warning is given (own
choice)."""
WARNING = "warning: "
"""The start of a line that is a warning."""


@dataclass(frozen=True, kw_only=True)
class NewsOutlook:
    """The local news for a benchmark."""

    window: Window
    coverage: Coverage
    samples: int
    """The number of samples read, from which some are drawn."""
    looked_up: int
    """The number of samples drawn; 0 if they are not in English, the only language of the rules."""
    found: int
    """The number of drawn samples that mention something in the window's news."""
    reuse: int | None
    """The most samples that one event may serve; None for no limit."""
    less_certain: dict[Precision, int]
    """The number of additional articles with lower values of `knowledge.min_precision`."""
    better: Window | None
    """A window up to the last article of the store with twice the articles; None if none has."""

    @property
    def days(self) -> int:
        """Return the days of the window."""
        return math.ceil((self.window.end - self.window.start) / timedelta(days=1))

    @property
    def capacity(self) -> int | None:
        """Return the most samples for which there is news; None for no limit."""
        return None if self.reuse is None else self.reuse * (self.coverage.articles or 0)


def measure_outlook(setup: Setup, local: LocalKnowledge, limit: int | None = None) -> NewsOutlook:
    """Return the local news for the first samples of the benchmark.

    Args:
        setup: The setup of the run.
        local: Its local news.
        limit: The most samples that the run takes.

    Raises:
        DatasetError: the benchmark cannot be read.
    """
    rows = iter_benchmark(setup.config.dataset, setup.task)
    good = (row for row in rows if isinstance(row, Sample))
    samples = list(islice(good, min(limit or MOST_READ, MOST_READ)))
    english = setup.task.language == ENGLISH
    few = min(LOOKED_UP, len(samples)) if english else 0
    drawn = random.Random(setup.config.run.seed).sample(samples, few)
    return NewsOutlook(
        window=setup.window,
        coverage=local.coverage(setup.window),
        samples=len(samples),
        looked_up=len(drawn),
        found=run_coroutine(_count_found(setup, local, drawn)) if drawn else 0,
        reuse=setup.config.knowledge.reuse,
        less_certain=local.count_less_certain(setup.window),
        better=local.suggest_window(setup.window),
    )


async def _count_found(setup: Setup, local: LocalKnowledge, drawn: list[Sample]) -> int:
    """Return the number of samples with a name, or most words of a topic, in the news."""
    from coreeval.agents.offline.extract import SpacyExtractor  # not for a run without remarks

    extractor = SpacyExtractor(setup.task, spacy=False)
    asked = [
        query.model_copy(update={"id": f"{place}/{query.id}"})
        for place, sample in enumerate(drawn)
        for query in plan_queries(extractor.read(_cut(sample)), setup.task)
    ]
    answer = await local.fetch(asked, setup.window, PER_QUERY)
    return len(
        {
            query.id.partition("/")[0]
            for query in asked
            if any(has_most_words(query, item) for item in answer.by_query.get(query.id, ()))
        }
    )


def _cut(sample: Sample) -> Sample:
    """Return a sample with truncated texts, because contexts may be long."""
    fields = {name: text[:MOST_CHARACTERS] for name, text in sample.fields.items()}
    return sample.model_copy(update={"fields": fields})


def outlook_lines(outlook: NewsOutlook) -> Iterator[str]:
    """Yield what the look-up found, and warnings of thin news; they start with `WARNING`."""
    found, looked_up, coverage = outlook.found, outlook.looked_up, outlook.coverage
    articles, capacity = coverage.articles or 0, outlook.capacity
    few = found < FEW * looked_up
    thin = capacity is not None and capacity < outlook.samples
    if looked_up:
        mention = plural(found, "mentions", "mention")
        yield (
            f"{WARNING * few}{found} of {format_quantity(looked_up, 'sample')} {mention} something "
            f"that this news is about ({format_percent(found / looked_up)}, looked up by rules; "
            "not all news found is usable)"
        )
    if thin:
        yield (
            f"{WARNING}{format_quantity(articles, 'article')} can serve at most "
            f"{format_quantity(capacity or 0, 'sample')} "
            f"(knowledge.reuse: {outlook.reuse}), but there are {_describe_samples(outlook)}"
        )
    if (few or thin) and coverage.days < FEW * outlook.days:
        days = format_quantity(outlook.days, "day")
        yield f"{WARNING}there is news on {coverage.days} of the window's {days}"
    if few or thin:
        yield f"to do: {'; or '.join(_ways_to_more(outlook))}"
    else:
        yield from (f"for more news, {way}" for way in _less_certain(outlook))


def _describe_samples(outlook: NewsOutlook) -> str:
    more = " or more" * (outlook.samples == MOST_READ)
    return f"{outlook.samples:,}{more}"


def _less_certain(outlook: NewsOutlook) -> Iterator[str]:
    """Yield each setting that offers more articles than the window has now, with their number."""
    for precision, articles in outlook.less_certain.items():
        if articles > (outlook.coverage.articles or 0):
            yield (
                f"set knowledge.min_precision: {precision} ({articles:,} more articles, with less "
                "certain publication times)"
            )


def _ways_to_more(outlook: NewsOutlook) -> Iterator[str]:
    yield from _less_certain(outlook)
    start, end = outlook.window.start, outlook.window.end
    until = f" --until {end:%Y-%m-%d}" * (end.time() == time())  # a day, not the present moment
    yield f"download more: coreeval gdelt sync --since {start:%Y-%m-%d}{until} --feeds gal"
    if outlook.better:
        yield describe_window_line(outlook.better)
    yield "choose a knowledge.window with news: coreeval gdelt coverage"


OFFLINE_REMARK = (
    "the offline roles are a demonstration: they rewrote 7 of 300 real tweets "
    "(coreeval docs offline); for your own benchmark, set a model in models.default"
)


def is_demonstration(config: Config) -> bool:
    """Return whether rules choose the news and write the texts."""
    return bool({"replacer", "composer"} & set(config.models.rule_based_roles))


def list_remarks(setup: Setup, workspace: Workspace, limit: int | None = None) -> list[str]:
    """Return remarks on the news and on offline roles before a run starts.

    Raises:
        KnowledgeError: there is no news.
        DatasetError: the benchmark cannot be read.
    """
    remarks = [OFFLINE_REMARK] if is_demonstration(setup.config) else []
    with closing(open_news(setup, workspace)) as news:
        return [*remarks, *find_outlook_lines(setup, news, limit)]


def find_outlook_lines(setup: Setup, news: NewsSources, limit: int | None = None) -> list[str]:
    """Return the lines on local news; none if the run also has remote news."""
    if news.local is None or news.remote:
        return []
    return list(outlook_lines(measure_outlook(setup, news.local, limit)))
