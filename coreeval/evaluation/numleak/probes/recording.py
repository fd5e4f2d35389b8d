"""Replies as a file: JSON lines that `--responses` reads again."""

import json
from collections.abc import Iterable
from pathlib import Path

from coreeval.evaluation.numleak.replies import Reply
from coreeval.tools.files import write_text

_ALWAYS = ("model", "series", "date", "variant", "response")


def write_replies(path: Path, replies: Iterable[Reply]) -> None:
    """Write one line for each reply, whole or not at all; what is as usual is left out."""
    write_text(path, "".join(f"{_line(reply)}\n" for reply in replies))


def _line(reply: Reply) -> str:
    said = reply.model_dump(mode="json")
    unusual = reply.model_dump(mode="json", exclude_defaults=True)
    return json.dumps({key: said[key] for key in _ALWAYS} | unusual, ensure_ascii=False)
