"""`schedule run`: a scheduler in the foreground, for containers, that stops cleanly.

Work is done in the main thread, because that is where a run hears signals; APScheduler's thread
only says whose time has come.
"""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from queue import SimpleQueue

from coreeval.errors import CoreEvalError
from coreeval.schedule.alarms import Alarms
from coreeval.schedule.done import Done, Hands
from coreeval.schedule.due import due, refuse_alike_configs
from coreeval.schedule.plan import planned

AGAIN_AFTER = timedelta(minutes=15)
"""When a config is looked at again whose last look settled nothing."""
SETTLED = frozenset({"released", "nothing"})
HEEDED = (signal.SIGINT, signal.SIGTERM)


class Bell:
    """Rings for a config whose time has come, and for a signal."""

    def __init__(self) -> None:
        self.stopped = False
        self._queue = SimpleQueue[Path | None]()  # a signal may come while it is being read

    def ring(self, config: Path) -> None:
        """Ask for a look at a config."""
        self._queue.put(config)

    def stop(self) -> None:
        """Ask for an end; a run that is at work hears the signal by itself."""
        self.stopped = True
        self._queue.put(None)

    def __iter__(self) -> Iterator[Path]:
        """Wait for configs until somebody stops it."""
        while not self.stopped and (config := self._queue.get()) and not self.stopped:
            yield config


def run_schedules(configs: Sequence[Path], hands: Hands) -> Iterator[Done]:
    """Do what falls due until a signal comes; what was missed is made up first.

    Raises:
        CoreEvalError: a config is wrong at the start; later on that is told and looked at again.
    """
    bell = Bell()
    refuse_alike_configs(configs)
    with _stopped_by_signals(bell), Alarms(bell.ring) as alarms:
        for config in configs:
            _set(alarms, config)
            bell.ring(config)
        for config in bell:
            for done in _looked_at(config, hands, alarms):
                yield done
                if done.ending == "interrupted":
                    return


def _looked_at(config: Path, hands: Hands, alarms: Alarms) -> Iterator[Done]:
    """Do what is due for a config, and set its alarm by what it says by now."""
    for done in due([config], hands):
        yield done
        if done.ending not in SETTLED:
            alarms.again(config, AGAIN_AFTER)
    try:
        _set(alarms, config)
    except CoreEvalError:
        alarms.again(config, AGAIN_AFTER)  # `due` has told of it


def _set(alarms: Alarms, config: Path) -> None:
    with planned(config) as plan:
        alarms.set(config, plan.times)


@contextmanager
def _stopped_by_signals(bell: Bell) -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in HEEDED}
    for number in HEEDED:
        signal.signal(number, lambda *_: bell.stop())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
