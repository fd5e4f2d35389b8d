"""Saves notes: the only address of the viewer that changes anything.

A request must come from a page of this server: it contains the secret of the page's form, which
other sites cannot read.
"""

import hmac
import re
from typing import Final
from urllib.parse import parse_qs, unquote

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from coreeval.errors import UsageError
from coreeval.releases.review.notes import add_note
from coreeval.viewer.catalog import find_run_path
from coreeval.viewer.rendering import build_sample_url

MOST_BYTES: Final = 1 << 16
"""The most bytes of a form; a note of 2,000 characters takes at most 24 KB."""
_MOST_FIELDS: Final = 20
_NOTE_PATH: Final = re.compile(r"/run/[^/]+/note")
_SEPARATORS: Final = re.compile(r"[\s,;]+")


def is_note_path(path: str) -> bool:
    """Return whether a path is the address for notes."""
    return _NOTE_PATH.fullmatch(path) is not None


async def keep_note(request: Request) -> Response:
    """Save the note of a form, and redirect to its sample.

    Raises:
        HTTPException: 403, the form is not from a page of this server, or texts are hidden; 413, it
            is too large; 400, it has too many fields or the note cannot be saved, with the reason.
    """
    if request.app.state.hide_texts:
        raise HTTPException(403, "Texts are hidden here, so notes are neither shown nor saved.")
    given = _parse_form(await _read_body(request))
    if not hmac.compare_digest(given.get("form", "").encode(), request.app.state.form.encode()):
        raise HTTPException(403, "This form belongs to another page. Load the sample's page again.")
    run = find_run_path(request, request.path_params["key"])
    sample = unquote(given.get("sample", ""))
    try:
        await run_in_threadpool(
            add_note,
            run,
            sample,
            given.get("note", ""),
            _split_tags(given.get("tags", "")),
            by=given.get("by", ""),
            before=_split_tags(given.get("before", "")),
        )
    except UsageError as error:
        hint = f" To do: {error.hint}." if error.hint else ""
        raise HTTPException(400, f"The note was not saved: {error.message}.{hint}") from None
    there = build_sample_url(request.path_params["key"], sample, request.url.query)
    return RedirectResponse(f"{there}#notes", 303)


def _parse_form(body: bytes) -> dict[str, str]:
    """Return the first value of each field."""
    try:
        form = parse_qs(body.decode(errors="replace"), max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise HTTPException(
            400, f"The form has too many fields: at most {_MOST_FIELDS} are allowed."
        ) from None
    return {name: values[0] for name, values in form.items()}


def _split_tags(text: str) -> list[str]:
    return [tag for tag in _SEPARATORS.split(text) if tag]


async def _read_body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise HTTPException(
                413, f"The form is too large: at most {MOST_BYTES:,} bytes are allowed."
            )
    return body
