"""Recognises a batch without our id, whose creation was not confirmed, by its results."""

from collections.abc import Collection, Iterable
from datetime import datetime

from coreeval.models.batch_http import CLOCK_SLACK
from coreeval.models.batches import BatchEndpoint, BatchState
from coreeval.models.failures import CallFailure


async def find_by_results(
    endpoint: BatchEndpoint,
    listed: Iterable[BatchState],
    requests: Collection[str],
    *,
    since: datetime,
    total: int | None,
    known: Collection[str],
) -> BatchState | None:
    """Return the batch whose results are of our requests; None if it is certain that there is none.

    A batch that is still running has no results, and other batches may have its size. An earlier
    batch may have some of our requests: those that failed there.

    Args:
        endpoint: Reads the results.
        listed: The batches that may be it.
        requests: Our custom ids.
        since: See `BatchEndpoint.find`.
        total: See `BatchEndpoint.find`.
        known: See `BatchEndpoint.find`.

    Raises:
        CallFailure: the request failed; or a batch that may be ours has not ended yet, and no other
            one is ours (`transient`).
    """
    ours, open_one = set(requests), ""
    size = len(ours) if total is None else total
    for batch in listed:
        is_older = batch.created_at and batch.created_at < since - CLOCK_SLACK
        if batch.provider_id in known or is_older or batch.total not in (0, size):
            continue
        if batch.phase == "running":
            open_one = batch.provider_id
        elif batch.phase == "ended" and _are_of(await _read_ids(endpoint, batch), ours, size):
            return batch
    if open_one:
        told = f"it may be batch {open_one}, whose results will show this once it has ended"
        raise CallFailure("transient", told)
    return None


async def _read_ids(endpoint: BatchEndpoint, batch: BatchState) -> set[str]:
    return {answer.custom_id async for answer in endpoint.read_answers(batch)}


def _are_of(found: set[str], ours: set[str], size: int) -> bool:
    """Return whether results are of our requests, of which some may be no longer known.

    They may also have an id that was not sent, or lack some requests, but not both.
    """
    forgotten = size - len(ours)
    return bool(found & ours) and (ours <= found or len(found - ours) <= forgotten)
