"""The results of a batch: the outcome of each request, one per line."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress
from typing import IO, Final

from langchain_core.messages import AIMessage

from coreeval.models.batches import MOST_BATCH_REQUESTS, BatchAnswer
from coreeval.models.chat import mask_answer
from coreeval.models.failures import CallFailure, clean_message
from coreeval.tools.http import MOST_BODY_BYTES, MOST_PARTS

Outcome = AIMessage | CallFailure | None
MOST_LINES: Final = 2 * MOST_BATCH_REQUESTS
"""The most lines of a result file, blank ones included (own choice)."""
_PIECE_BYTES: Final = 1 << 16
_CUSTOM_ID = re.compile(rb'"custom_id"\s*:\s*"([^"\\]{1,200})"')


async def read_in_thread(
    file: IO[bytes], read: Callable[[dict[str, object]], Outcome], secret: str
) -> AsyncGenerator[BatchAnswer, None]:
    """Yield the outcomes of `iter_answers`; a thread parses the lines, some 64 KiB at a time."""
    answers = iter_answers(file, read, secret)
    while piece := await asyncio.to_thread(_take_piece, file, answers):
        for answer in piece:
            if isinstance(answer, CallFailure):
                raise answer
            yield answer


def _take_piece(file: IO[bytes], answers: Iterator[BatchAnswer]) -> list[BatchAnswer | CallFailure]:
    """Return the next answers, with the failure that ends them; nothing at the end of the file."""
    end, piece = file.tell() + _PIECE_BYTES, list[BatchAnswer | CallFailure]()
    try:
        for answer in answers:
            piece.append(answer)
            if file.tell() >= end:
                break
    except CallFailure as failure:
        piece.append(failure)
    return piece


def iter_answers(
    file: IO[bytes], read: Callable[[dict[str, object]], Outcome], secret: str
) -> Iterator[BatchAnswer]:
    """Yield the outcomes of a batch's requests from the JSON lines of its results.

    Args:
        file: The lines.
        read: Returns the outcome of a request from its line.
        secret: The key, which is masked in answers.

    Raises:
        CallFailure: the last line is truncated, or there are more than `MOST_LINES` lines.
    """
    for number in range(1, MOST_LINES + 1):
        line = file.readline(MOST_LINE_BYTES + 1)
        if not line:
            return
        if len(line) > MOST_LINE_BYTES or line.count(b",") > MOST_PARTS:
            _skip_line(file, line)
            yield _too_long(line)
        elif line.strip():
            fields = _parse_line(line, number)
            custom_id = fields.get("custom_id")
            outcome = read(fields)
            if isinstance(outcome, AIMessage):
                outcome = mask_answer(outcome, secret)
            yield BatchAnswer(
                custom_id=custom_id[:200] if isinstance(custom_id, str) else "", outcome=outcome
            )
    if file.read(1):
        raise CallFailure("unknown", f"the results file has more than {MOST_LINES:,} lines")


MOST_LINE_BYTES: Final = MOST_BODY_BYTES
"""The most bytes of one result, the same as of a live answer."""


def _parse_line(line: bytes, number: int) -> dict[str, object]:
    """Return the object in a line; invalid UTF-8 becomes surrogates, which answers may not have."""
    with suppress(ValueError, RecursionError):
        fields = json.loads(line.decode(errors="surrogateescape"))
        return fields if isinstance(fields, dict) else {}
    if line.endswith(b"\n"):
        return {}  # it answers no request; later lines may
    told = f"the results file ends in the middle of line {number}"
    raise CallFailure("transient", told)


def _skip_line(file: IO[bytes], line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = file.readline(MOST_LINE_BYTES)


def _too_long(line: bytes) -> BatchAnswer:
    found = _CUSTOM_ID.search(line[:2000])
    told = f"the result has more than {MOST_LINE_BYTES >> 20} MiB or {MOST_PARTS:,} parts"
    return BatchAnswer(
        custom_id=found.group(1).decode(errors="replace") if found else "",
        outcome=CallFailure("transient", told, billed=True),
    )


def unknown_result(told: object, secret: str) -> CallFailure:
    """Return the failure of a result of a kind that is not known."""
    start = clean_message(str(told), secret)[:80]
    return CallFailure("transient", f"the result is of an unknown kind: {start!r}", billed=True)
