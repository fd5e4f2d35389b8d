"""The steps of a sample that run at the same time, as far as they wait for batches.

The first step that gives up would end the others before they have asked what they want to know.
So each waits until all have come as far as they can: their questions then go into the same batch.
"""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar, cast

One = TypeVar("One")
Other = TypeVar("Other")


@dataclass(eq=False)
class RunningStep:
    """A step of a sample."""

    is_blocked: bool = False
    """Whether it gave up for now, since the answer to its question comes in a batch."""


@dataclass
class _SampleSteps:
    steps: list[RunningStep] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        """Let those who wait look again."""
        self.changed.set()
        self.changed = asyncio.Event()

    async def wait_until_blocked(self) -> None:
        """Wait until all steps are blocked."""
        while not all(step.is_blocked for step in self.steps):
            await self.changed.wait()


_SAMPLE: ContextVar[_SampleSteps | None] = ContextVar("sample_steps", default=None)
_STEP: ContextVar[RunningStep | None] = ContextVar("step", default=None)


@contextmanager
def track_steps() -> Iterator[None]:
    """Track the steps of the sample that is run inside the block."""
    token = _SAMPLE.set(_SampleSteps())
    try:
        yield
    finally:
        _SAMPLE.reset(token)


@contextmanager
def track_step() -> Iterator[RunningStep]:
    """Yield the step that the block is; it counts for the current sample if one is tracked."""
    sample, step = _SAMPLE.get(), RunningStep()
    if sample is None:
        yield step
        return
    sample.steps.append(step)
    token = _STEP.set(step)
    try:
        yield step
    finally:
        _STEP.reset(token)
        sample.steps.remove(step)
        sample.wake()


async def wait_for_other_steps() -> None:
    """Wait until no step of the sample can go on; the current one cannot."""
    sample, step = _SAMPLE.get(), _STEP.get()
    if sample is None or step is None:
        return
    step.is_blocked = True
    sample.wake()
    await sample.wait_until_blocked()


async def gather_both(one: Awaitable[One], other: Awaitable[Other]) -> tuple[One, Other]:
    """Return what both return; if one raises, the other still asks its question.

    Where both raise, the first error is raised.
    """
    first, second = await asyncio.gather(one, other, return_exceptions=True)
    for found in (first, second):
        if isinstance(found, BaseException):
            raise found
    return cast("One", first), cast("Other", second)
