"""The second pass: the same samples, with news that every target may have seen (docs/run.md).

It has a store and checkpoints of its own under `RUN/control`, and shares the run's calls, payer and
budget: what both passes ask alike, such as extraction and rewording, is paid once.
"""

import asyncio
from dataclasses import replace

from coreeval.errors import KnowledgeError
from coreeval.graph.control_window import KEY
from coreeval.graph.job import Job
from coreeval.graph.news import News, news_used
from coreeval.graph.refreshing import refresh_samples
from coreeval.graph.setup import Setup
from coreeval.releases.manifest import Control
from coreeval.tools.stores.run_store import RunStore


def control_setup(setup: Setup) -> Setup:
    """Return what a config amounts to in the second pass.

    Raises:
        ValueError: it wants none.
    """
    if setup.control is None:
        raise ValueError("the config has no control window")
    return replace(setup, window=setup.control, window_start=None, control=None)


def control_used(setup: Setup, news: News) -> Control | None:
    """Return what the manifest says of the second pass when a run starts; None without one.

    Raises:
        KnowledgeError: there is no news in its window.
    """
    if setup.control is None:
        return None
    found = news_used(control_setup(setup), news)
    if found.coverage.articles == 0:
        raise KnowledgeError(
            f"there is no news from {setup.control.start:%Y-%m-%d} to {setup.control.end:%Y-%m-%d}",
            where=KEY,
            hint="bring it in: coreeval gdelt sync --since DAY --until DAY; or move the window",
        )
    return Control(window=setup.control, knowledge=found)


def with_control(job: Job, store: RunStore) -> Job:
    """Return a job with its second pass, which is stopped and watched together with it."""
    second = replace(
        job,
        setup=control_setup(job.setup),
        files=job.files.control,
        store=store,
        before=job.store,
        stage="control",
    )
    return replace(job, control=second)


async def refresh_control(job: Job) -> int:
    """Bring every sample to an outcome once more; return how many have none, 0 without a control.

    Raises:
        CoreEvalError: something that no sample could survive, such as a refused key.
    """
    if job.control is None:
        return 0
    second = replace(job.control, listener=job.listener)
    if await asyncio.to_thread(_open, second, job.store):
        await asyncio.to_thread(job.store.reopen_stages)
        await refresh_samples(second)
    return len(await asyncio.to_thread(second.store.pending))


def _open(second: Job, first: RunStore) -> int:
    """Take the samples of the first pass up, once; return how many have no outcome."""
    if second.store.total() == 0:
        second.store.add_samples(ended.sample for ended in first.sample_results())
    return len(second.store.pending())
