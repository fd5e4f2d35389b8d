"""Whether anybody is told of a run, and what is said of that at its beginning and its end."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from coreeval.config import Config
from coreeval.graph.job import Job
from coreeval.graph.progress import Progress
from coreeval.graph.telemetry.teller import Teller, Told
from coreeval.models.tracing import TRACING
from coreeval.tools.telemetry import find_destination, redact_url

if TYPE_CHECKING:
    from coreeval.tools.otlp import SpanDelivery

STAGE = "telemetry"


def check_telemetry(config: Config) -> str | None:
    """Return where the spans of a run go; None where they go nowhere.

    Raises:
        ConfigError: they are wanted and cannot be sent.
    """
    return find_destination(config.telemetry, os.environ)


@contextmanager
def listened_to(job: Job) -> Iterator[Job]:
    """Give the job with somebody who tells of it, where that is wanted, until the block ends.

    Raises:
        ConfigError: it is wanted and cannot be.
    """
    url = check_telemetry(job.config)
    if url is None:
        yield job
        return
    from coreeval.tools.otlp import OtlpSender  # OpenTelemetry's SDK, for few runs

    sender = OtlpSender(url, project=job.config.name)
    teller = Teller(
        Told(
            run=job.manifest.run,
            payer=job.payer,
            prompts=job.manifest.prompts,
            store=job.store,
            begun=job.store.open_start_times(),
            now=job.now,
            content=job.config.telemetry.content,
            sender=sender,
        )
    )
    said = _begins(url, content=job.config.telemetry.content)
    job.watch(Progress(stage=STAGE, note=said))
    try:
        yield replace(job, listener=teller)
    finally:
        began = time.monotonic()
        delivery = sender.close()
        TRACING.waited_s = time.monotonic() - began
        if note := _ends(url, delivery, teller):
            job.watch(Progress(stage=STAGE, note=note))


def _begins(url: str, *, content: bool) -> str:
    held = "texts, prompts and answers too" if content else "ids, names and numbers, no texts"
    return f"spans go to {redact_url(url)} ({held})"


def _ends(url: str, delivery: "SpanDelivery", teller: Teller) -> str:
    """Return what to tell of spans that did not arrive; empty where all did."""
    lost = delivery.lost + teller.untold
    if not lost:
        return ""
    why = teller.trouble or delivery.trouble or "it is down, or slower than the run"
    return f"{lost} of {delivery.sent + lost} spans did not arrive at {redact_url(url)} ({why})"
