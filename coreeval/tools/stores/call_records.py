"""A stored model call: its request, its response, and their conversion to a row."""

import hashlib
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from coreeval.tools.files import decompress_within
from coreeval.tools.stores.sqlite import Row

Json = Mapping[str, object]
Messages = Sequence[Mapping[str, str]]
SMALL = 1000
"""The number of bytes from which a text is compressed; below it, compression costs more than it
saves."""
_PLAIN = b"\0"
SHARED = 400
"""The number of characters from which instructions are stored once for all requests that contain
them."""
ERASED = "taken_down"
"""The error of a call whose texts a takedown has erased; it is no longer an answer."""
_LEVEL = 1
"""The zlib level: a third of the time of the default level for a tenth more bytes."""


@dataclass(frozen=True, kw_only=True)
class CallRecord:
    """A stored call: its request, its response, and whether the response is an answer."""

    key: str
    draw: int
    role: str
    request: str
    """The canonical JSON of the request; contains no key and no header."""
    response: str
    """The model's text, unchanged."""
    valid: bool
    error: str = ""
    """The reason that it is not an answer: `truncated`, `refusal`, `empty`, `taken_down` or
    `invalid: …`."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """The prompt tokens that were in the provider's own cache (part of `prompt_tokens`)."""
    completion_tokens: int = 0
    model_returned: str = ""
    finish_reason: str = ""
    started_at: str = ""
    seconds: float = 0.0
    paid_by: str = ""
    """The run that the call was sent for, as named when the store was opened; "" if none was
    named."""
    method: str = ""
    """The method by which the model was asked to follow the schema."""
    tries: str = ""
    """The reasons that earlier requests failed, one per line."""
    usd: float | None = None
    """The cost in US dollars; None if the price or the tokens are not known."""
    logprobs: str = ""
    """The JSON of the `content` of a chat completion's `logprobs`, for the answer's first tokens;
    "" if not requested or not returned."""

    @property
    def is_erased(self) -> bool:
        """Whether a takedown has erased its texts; only its cost and its model are left."""
        return self.error == ERASED


def canonical_json(value: Json) -> str:
    """Return JSON that is the same for equal values, in any order of their keys."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:  # lone surrogates, and numbers of more than 64 bits
        return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def call_request(
    *,
    provider: str,
    endpoint: str,
    model: str,
    parameters: Json,
    schema: Json,
    messages: Messages,
    draw: int,
) -> str:
    """Return the canonical JSON of a request: everything that determines its answer."""
    return canonical_json(
        {
            "provider": provider,
            "endpoint": endpoint,
            "model": model,
            "parameters": parameters,
            "schema": schema,
            "messages": list(messages),
            "draw": draw,
        }
    )


def call_key(request: str) -> str:
    """Return the key of a request made by `call_request`."""
    return hashlib.sha256(request.encode()).hexdigest()


def model_of(request: str) -> str:
    """Return the model of a request, as the config spells it: `provider:name`."""
    asked = json.loads(request)
    return f"{asked['provider']}:{asked['model']}"


def is_recorded(model: str) -> bool:
    """Return whether a model is a file of recorded answers (`replay:FILE`), which cost nothing."""
    return model.startswith("replay:")


def compress(text: str) -> bytes:
    """Return a text in the form stored in a row."""
    body = text.encode()
    return _PLAIN + body if len(body) < SMALL else zlib.compress(body, _LEVEL)


def decompress(body: bytes) -> str:
    """Return the text stored in a row.

    Raises:
        ValueError: the bytes are damaged, or longer than any call.
    """
    if body.startswith(_PLAIN):
        return body[1:].decode()
    return decompress_within(body).decode()


def encode_record(record: CallRecord) -> tuple[Row, dict[str, str]]:
    """Return a record as a row, and the shared texts that the row refers to, by hash."""
    request, texts = _extract_shared_texts(record.request)
    row: Row = {
        **vars(record),
        "request": compress(request),
        "response": compress(record.response),
        "logprobs": compress(record.logprobs) if record.logprobs else None,
    }
    return row | {"checksum": checksum(row)}, texts


def decode_record(row: Row, text_of: Callable[[str], str], request: str = "") -> CallRecord:
    """Return the record of a row.

    Args:
        row: The row as stored.
        text_of: Returns a shared text by its hash; raises ValueError if it is damaged or missing.
        request: The request, if it is known; its hash is the row's key.

    Raises:
        ValueError: the row does not match its checksum, or a text that it refers to is missing.
    """
    values = {name: value for name, value in row.items() if name != "checksum"}
    if checksum(values) != row["checksum"]:
        raise ValueError("the checksum does not match")
    texts = {
        "request": request or _restore_shared_texts(decompress(row["request"]), text_of),
        "response": decompress(row["response"]),
        "logprobs": decompress(row["logprobs"]) if row["logprobs"] else "",
    }
    return CallRecord(**values | texts | {"valid": bool(row["valid"])})


def text_hash(text: str) -> str:
    """Return the hash that identifies a shared text."""
    return hashlib.sha256(text.encode()).hexdigest()


def checksum(values: Mapping[str, Any]) -> str:
    """Return the checksum of a row, over every column except the checksum itself.

    A call without log-probabilities has the same checksum as before that column was added.
    """
    digest = hashlib.sha256()
    for name in sorted(values):
        value = values[name]
        if name == "logprobs" and value is None:
            continue
        if isinstance(value, bytes):
            said = value
        elif name in ("seconds", "usd") and value is not None:
            said = repr(float(value)).encode()
        else:
            said = (str(int(value)) if name == "valid" else str(value)).encode()
        digest.update(b"%b=%d:" % (name.encode(), len(said)))
        digest.update(said)
    return digest.hexdigest()


# -- what requests share ------------------------------------------------------------------------


def _extract_shared_texts(request: str) -> tuple[str, dict[str, str]]:
    """Return a request with its long instructions and schema replaced by references."""
    asked, texts = json.loads(request), dict[str, str]()

    def refer(text: str) -> dict[str, str]:
        sha = text_hash(text)
        texts[sha] = text
        return {"sha256": sha}

    for message in asked["messages"]:
        if message["role"] == "system" and len(message["content"]) >= SHARED:
            message["content"] = refer(message["content"])
    schema = canonical_json(asked["schema"])
    if len(schema) >= SHARED:
        asked["schema"] = refer(schema)
    return (canonical_json(asked), texts) if texts else (request, texts)


def _restore_shared_texts(request: str, text_of: Callable[[str], str]) -> str:
    """Return a request with its references filled in."""
    asked, found = json.loads(request), False
    for message in asked["messages"]:
        if isinstance(message["content"], dict):
            message["content"], found = text_of(message["content"]["sha256"]), True
    if set(asked["schema"]) == {"sha256"}:
        asked["schema"], found = json.loads(text_of(asked["schema"]["sha256"])), True
    return canonical_json(asked) if found else request
