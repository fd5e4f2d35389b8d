"""The batches of the test server: what is kept of them, and how each API tells it."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from aiohttp import web

from tests.support.llm_server import Reply, Request

Speech = Literal["openai", "anthropic"]
_ANTHROPIC_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


@dataclass
class Faults:
    """What goes wrong."""

    no_batches: bool = False
    """Files and batches are paths that are not there."""
    die_after_upload: int = 0
    """So many uploads are kept, and the connection dies before the reply."""
    die_after_create: int = 0
    """So many batches are made, and the connection dies before the reply."""
    die_before_create: int = 0
    """So many requests to make a batch die with their connection, and make none."""
    create_status: list[int] = field(default_factory=list)
    """Statuses of the next requests to make a batch, which make none."""
    odd_reply: bool = False
    """A batch is made, and the reply is a gateway's page."""
    queue_full: Literal["", "created", "validated"] = ""
    """When a batch is refused because the account has too much queued."""
    page: str = ""
    """What is said in place of everything about files and batches: a gateway's page."""
    bad_lines: list[int] = field(default_factory=list)
    """Lines, from 1, that the validation refuses."""
    never_ends: bool = False
    expires_after: int | None = None
    """The batch expires when so many of its requests are processed."""
    cancels_after: int = 0
    """A batch that is cancelled has processed so many of its requests."""
    unknown_ids: bool = False
    """Results hold an id that was not sent."""
    doubled_ids: bool = False
    """Results hold their first line twice."""
    missing_ids: int = 0
    """So many results are not there, though they are counted."""
    cut: Literal["", "connection", "quiet"] = ""
    """Half of the results comes: the connection breaks, or the response ends as if it were all."""
    results_status: int = 0
    """Status of the results, in place of them."""
    odd_lines: list[str] = field(default_factory=list)
    """Lines that come before the results."""
    lost: bool = False
    """No batch is known any more, nor listed."""
    look_status: list[int] = field(default_factory=list)
    """Statuses of the next looks."""
    die_on_look: int = 0
    """So many looks die with their connection."""
    redirect: str = ""
    """Looks are sent to this origin."""
    no_metadata: bool = False
    no_file_list: bool = False
    """The list of files is a path that is not there."""
    oldest_first: bool = False
    """Lists begin with the oldest entry."""
    most_listed: int = 1000
    """Entries of a page, whatever was asked for."""
    no_last_end: bool = False
    """The last line of the results has no end."""


@dataclass(kw_only=True)
class Item:
    custom_id: str
    body: Request
    status: int = 0
    """Status of the response; 0: not processed."""
    said: object = None


@dataclass(kw_only=True)
class File:
    id: str
    name: str
    content: bytes
    purpose: str
    made: float

    def told(self) -> dict[str, object]:
        return {
            "id": self.id,
            "object": "file",
            "bytes": len(self.content),
            "created_at": int(self.made),
            "filename": self.name,
            "purpose": self.purpose,
            "status": "processed",
        }


@dataclass(kw_only=True)
class Batch:
    id: str
    speech: Speech
    items: list[Item]
    made: float
    input_file: str = ""
    metadata: dict[str, str] | None = None
    errors: list[dict[str, object]] = field(default_factory=list)
    looks: int = 0
    state: str = "in_progress"
    """Or: failed, cancelling, and in the end completed, expired or cancelled."""
    output_file: str | None = None
    error_file: str | None = None

    @property
    def over(self) -> bool:
        return self.state not in ("in_progress", "cancelling")


# -- what is said ---------------------------------------------------------------------------------


def error_response(
    status: int, message: str, code: str | None = None, **headers: str
) -> web.Response:
    """Return an error that both SDKs can read."""
    kind = _ANTHROPIC_ERRORS.get(status, "api_error")
    error = {"type": kind, "message": message, "code": code, "param": None}
    told = {"type": "error", "error": error}
    return web.json_response(told, status=status, headers=headers)


def read_items(content: bytes) -> list[Item]:
    items = []
    for line in content.decode().splitlines():
        one = json.loads(line)
        right = (one["method"], one["url"]) == ("POST", "/v1/chat/completions")
        items.append(Item(custom_id=one["custom_id"] if right else "", body=one["body"]))
    return items


QUEUE_FULL = {
    "code": "token_limit_exceeded",
    "message": "Enqueued token limit reached for stub in organization org-1. Limit: 90,000 "
    "enqueued tokens. Please try again once some in_progress batches have been completed.",
    "line": None,
    "param": None,
}
"""What OpenAI says of a batch that is too much for its queue."""


def find_errors(batch: Batch, bad: list[int]) -> list[dict[str, object]]:
    """Return what the validation finds, as OpenAI tells it."""
    found: list[dict[str, object]] = []
    seen: set[str] = set()
    for number, item in enumerate(batch.items, 1):
        code = ""
        if number in bad:
            code = "invalid_request"
        elif not item.custom_id:
            code = "invalid_url"
        elif item.custom_id in seen:
            code = "duplicate_custom_id"
        elif item.body["model"] != batch.items[0].body["model"]:
            code = "mismatched_model"
        seen.add(item.custom_id)
        if code:
            said = f"the request is refused: {code}"
            found.append({"code": code, "message": said, "line": number, "param": None})
    return found


def openai_batch(batch: Batch) -> dict[str, object]:
    status = batch.state
    if status == "in_progress" and not batch.looks:
        status = "validating"
    done = [one for one in batch.items if one.status == 200]
    failed = len(batch.items) - len(done) if batch.over and status != "failed" else 0
    validated = batch.looks > 0 and status != "failed"
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": "/v1/chat/completions",
        "errors": {"object": "list", "data": batch.errors} if batch.errors else None,
        "input_file_id": batch.input_file,
        "completion_window": "24h",
        "status": status,
        "output_file_id": batch.output_file,
        "error_file_id": batch.error_file,
        "created_at": int(batch.made),
        "expires_at": int(batch.made) + 86_400,
        "request_counts": {
            "total": len(batch.items) if validated else 0,
            "completed": len(done),
            "failed": failed,
        },
        "metadata": batch.metadata,
    }


def anthropic_batch(batch: Batch) -> dict[str, object]:
    made = datetime.fromtimestamp(batch.made, UTC)
    counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
    for item in batch.items:
        counts[_anthropic_kind(batch, item) if batch.over else "processing"] += 1
    ended = "https://results.elsewhere.example" + f"/v1/messages/batches/{batch.id}/results"
    status = {"in_progress": "in_progress", "cancelling": "canceling"}.get(batch.state, "ended")
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": status,
        "request_counts": counts,
        "created_at": made.isoformat().replace("+00:00", "Z"),
        "expires_at": (made + timedelta(days=1)).isoformat().replace("+00:00", "Z"),
        "ended_at": made.isoformat() if batch.over else None,
        "archived_at": None,
        "cancel_initiated_at": None,
        "results_url": ended if batch.over else None,
    }


def _anthropic_kind(batch: Batch, item: Item) -> str:
    if not item.status:
        return "expired" if batch.state == "expired" else "canceled"
    return "succeeded" if item.status == 200 else "errored"


def result_lines(faults: Faults, batch: Batch, items: list[Item]) -> bytes:
    """Return results, in another order than the requests."""
    line = _openai_line if batch.speech == "openai" else _anthropic_line
    told = [json.dumps(line(batch, one)) for one in reversed(items)][faults.missing_ids :]
    if faults.doubled_ids and told:
        told.insert(0, told[-1])
    if faults.unknown_ids and items:
        stranger = Item(custom_id="f" * 64, body={}, status=items[0].status, said=items[0].said)
        told.insert(0, json.dumps(line(batch, stranger)))
    content = "".join(f"{one}\n" for one in faults.odd_lines + told)
    sent = content[:-1] if faults.no_last_end else content
    return sent.encode(errors="surrogateescape")


def _openai_line(batch: Batch, item: Item) -> dict[str, object]:
    told: dict[str, object] = {"id": f"batch_req_{item.custom_id[:8]}", "custom_id": item.custom_id}
    if item.status:
        response = {"status_code": item.status, "request_id": "req_1", "body": item.said}
        return {**told, "response": response, "error": None}
    code = f"batch_{batch.state}"
    return {**told, "response": None, "error": {"code": code, "message": "it was not executed"}}


def _anthropic_line(batch: Batch, item: Item) -> dict[str, object]:
    kind = _anthropic_kind(batch, item)
    result: dict[str, object] = {"type": kind}
    if kind == "succeeded":
        result["message"] = item.said
    if kind == "errored":
        said = item.said if isinstance(item.said, dict) else {}
        error = {"type": _ANTHROPIC_ERRORS.get(item.status, "api_error"), **said.get("error", {})}
        result["error"] = {"type": "error", "error": error}
    return {"custom_id": item.custom_id, "result": result}


def named_error(status: int, message: str = "no", **more: object) -> Reply:
    """Return a reply with an error status, with further fields of its error."""
    return Reply(status=status, error={"message": message, **more})


def page_of(
    faults: Faults, http: web.Request, entries: list[dict[str, object]]
) -> dict[str, object]:
    """Return a page of a list, in the words of both."""
    ordered = entries if faults.oldest_first else entries[::-1]
    after = http.query.get("after") or http.query.get("after_id")
    before = http.query.get("before_id")
    ids = [one["id"] for one in ordered]
    start = ids.index(after) + 1 if after in ids else 0
    end = ids.index(before) if before in ids else len(ordered)
    size = min(int(http.query.get("limit", 20)), faults.most_listed)
    page = ordered[start:end][-size:] if before else ordered[start : start + size]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": start + size < end if not before else end - size > 0,
    }
