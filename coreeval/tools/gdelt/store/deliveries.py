"""Files that arrive together, read a few deliveries ahead of their turn and no more."""

import os
from collections import deque
from collections.abc import Callable, Container, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

from coreeval.tools.gdelt.store.ledger import BatchRow
from coreeval.tools.gdelt.store.readers import Readers
from coreeval.tools.gdelt.store.reading import Content, Offer, Reading, read

AT_ONCE = min(os.cpu_count() or 1, 4)
"""Deliveries that are read at the same time."""
AHEAD = 2 * AT_ONCE
"""Deliveries that may be read before their turn: readers work while others are committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Files that belong together, and what is known of their batch once they are read."""

    offers: tuple[Offer, ...] = ()
    batches: tuple[BatchRow, ...] = ()
    done: Callable[[], None] = lambda: None
    """Called when the files are read."""


def read_all(
    deliveries: Iterable[Delivery], known: Container[str]
) -> Generator[tuple[Delivery, list[Reading]], None, None]:
    """Yield deliveries with their files read, in order, a few ahead and no more."""
    waiting: deque[tuple[Delivery, Future[list[Reading]]]] = deque()
    with ExitStack() as stack:
        pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="reader")
        stack.callback(pool.shutdown, cancel_futures=True)
        content = stack.enter_context(Readers()).read
        for delivery in deliveries:
            waiting.append((delivery, pool.submit(_read, delivery, known, content)))
            while len(waiting) > AHEAD:
                first, job = waiting.popleft()
                yield first, job.result()
        for first, job in waiting:
            yield first, job.result()


def _read(delivery: Delivery, known: Container[str], content: Content) -> list[Reading]:
    try:
        return [read(offer, known, content) for offer in delivery.offers]
    finally:
        delivery.done()
