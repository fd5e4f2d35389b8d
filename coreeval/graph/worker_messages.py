"""The messages between a run's process and its workers, each a frame in a pipe."""

import pickle
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from coreeval.errors import CoreEvalError
from coreeval.graph.monitor import WorkerReport
from coreeval.graph.phases import Phase, PhaseResult
from coreeval.graph.setup import Setup
from coreeval.runs.manifest import Manifest
from coreeval.tools.catalogs import Prices

_HEADER: Final = struct.Struct(">I")
HEADER_SIZE: Final = _HEADER.size


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStart:
    """What a worker needs to start."""

    run_dir: Path
    setup: Setup
    """The setup of the run's process, because its files may have changed since."""
    manifest: Manifest
    prices: Prices
    stage: str
    """`refresh`, or `control` for the second pass."""
    number: int
    of: int
    """The number of workers, which share the pace of the run."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Samples for a phase, each with its rank."""

    phase: Phase
    samples: Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class StopRequest:
    """Start no more samples, and stop those in flight at their next step."""

    reason: str


@dataclass(frozen=True, slots=True)
class Finish:
    """There is nothing more to do."""


@dataclass(frozen=True, slots=True)
class Note:
    """A remark for the user."""

    text: str


@dataclass(frozen=True, slots=True)
class Failure:
    """The error that ended a worker's work."""

    error: CoreEvalError


ToWorker = WorkerStart | Assignment | StopRequest | Finish
FromWorker = WorkerReport | PhaseResult | Note | Failure


def pack(message: ToWorker | FromWorker) -> bytes:
    """Return a message as a frame."""
    body = pickle.dumps(message, protocol=5)
    return _HEADER.pack(len(body)) + body


def unpack_size(header: bytes) -> int:
    """Return the bytes of a message from the header of its frame."""
    return int(_HEADER.unpack(header)[0])


def unpack_message(body: bytes) -> Any:  # noqa: ANN401 - whoever reads knows its side
    """Return a message from the body of its frame.

    Both ends are processes of one run, so what arrives is as trusted as the program itself.
    """
    return pickle.loads(body)


def read_message(stream: BinaryIO) -> ToWorker | None:
    """Return the next message to a worker from a blocking stream; None at its end."""
    header = stream.read(HEADER_SIZE)
    if len(header) < HEADER_SIZE:
        return None
    message: ToWorker = unpack_message(stream.read(unpack_size(header)))
    return message
