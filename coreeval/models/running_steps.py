"""The concurrent steps of a sample that wait for batches.

The first step that raises `CallQueued` would cancel the others before they have made their
requests. So each step waits until all are blocked, and their requests go into the same batch.
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
    """Whether it stopped because its answer will come in a batch."""


@dataclass
class _SampleSteps:
    steps: list[RunningStep] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        """Wake the waiting steps."""
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
    """Track the block as a step of the current sample, if one is tracked; yield the step."""
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
    """Wait until all steps of the sample are blocked, as the current one is."""
    sample, step = _SAMPLE.get(), _STEP.get()
    if sample is None or step is None:
        return
    step.is_blocked = True
    sample.wake()
    await sample.wait_until_blocked()


async def gather_both(one: Awaitable[One], other: Awaitable[Other]) -> tuple[One, Other]:
    """Return both results; if one raises, the other still makes its request.

    If both raise, the first error is raised.
    """
    first, second = await asyncio.gather(one, other, return_exceptions=True)
    for found in (first, second):
        if isinstance(found, BaseException):
            raise found
    return cast("One", first), cast("Other", second)
