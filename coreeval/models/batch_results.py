"""The results of a batch: the outcome of each request, one per line."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from typing import IO, Final

from langchain_core.messages import AIMessage

from coreeval.models.batches import BatchAnswer
from coreeval.models.chat import mask_answer
from coreeval.models.failures import CallFailure, clean_message
from coreeval.tools.http import MOST_BODY_BYTES, MOST_PARTS

Outcome = AIMessage | CallFailure | None
_CUSTOM_ID = re.compile(rb'"custom_id"\s*:\s*"([^"\\]{1,200})"')


def iter_answers(
    file: IO[bytes], read: Callable[[dict[str, object]], Outcome], secret: str
) -> Iterator[BatchAnswer]:
    """Yield the outcomes of a batch's requests from the JSON lines of its results.

    Args:
        file: The lines.
        read: Returns the outcome of a request from its line.
        secret: The key, which is masked in answers.

    Raises:
        CallFailure: the last line is truncated.
    """
    for number in count(1):
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
