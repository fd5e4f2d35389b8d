"""`--signal [NAME=]FILE` of `coreeval detect numleak`: the user's own signals."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from coreeval.errors import UsageError
from coreeval.evaluation.numleak.leak.signals import Signal, read_signal
from coreeval.evaluation.numleak.periods import Frequency, Period
from coreeval.evaluation.numleak.replies import Reply
from coreeval.evaluation.numleak.series import Series


def opened_signals(given: Sequence[str]) -> list[Signal]:
    """Read the files of `NAME=FILE` or `FILE`.

    Raises:
        UsageError: one cannot be read, or has no row that can be used.
    """
    return [_opened(text) for text in given]


def _opened(text: str) -> Signal:
    name, equals, file = text.partition("=")
    if not equals or Path(text).exists():
        return read_signal(Path(text))
    if not name or not file:
        raise UsageError(f"{text!r} is no NAME=FILE", where="--signal")
    return read_signal(Path(file), name)


def asked_of(
    replies: Iterable[Reply], series: Mapping[str, Series]
) -> dict[str, tuple[Frequency, list[Period]]]:
    """Return the frequency of each series, and the dates whose value was asked for."""
    found = {name: (one.definition.frequency, list[Period]()) for name, one in series.items()}
    for reply in replies:
        frequency, dates = found[reply.series]
        if reply.variant == "value":
            with suppress(ValueError):
                dates.append(Period.parse(reply.date, frequency))
    return found
