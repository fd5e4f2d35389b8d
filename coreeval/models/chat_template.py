"""Renders a model's chat template in a separate process, because it is untrusted code.

A template cannot end the command, exhaust its memory, or keep running after the command has stopped
waiting.
"""

import json
import signal
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from subprocess import Popen
from typing import IO, Final

from coreeval.tools.processes import limit_memory, start_serving

MOST_SECONDS: Final = 5.0
"""The most seconds to render the messages of one request (own choice; real templates take
milliseconds)."""
_START_SECONDS: Final = 120.0
"""The most seconds until the process is ready: it imports transformers."""
MOST_MEMORY: Final = 3 << 30
"""The most bytes of memory of the process (own choice)."""
MOST_ADDED: Final = 1 << 18
"""The most characters that a template may add to the messages."""


class TemplateError(Exception):
    """The template cannot be used; the message says why."""


class ChatTemplate:
    """A jinja2 template, rendered as transformers renders it.

    Args:
        source: The template.
        tokens: The special tokens that it may use, by name.
    """

    def __init__(self, source: str, tokens: Mapping[str, str]) -> None:
        self._start = {"source": source, "tokens": dict(tokens)}
        self._process: Popen[bytes] | None = None
        self._turn = threading.Lock()
        self._failed = ""
        """Why the template failed; it is not tried again."""

    def fill(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Return the prompt text of messages, up to the start of the answer.

        Raises:
            TemplateError: the template rejects the messages, is invalid, takes too long, or
                produces too much text.
        """
        with self._turn:
            if self._failed:
                raise TemplateError(self._failed)
            process = self._process
            if process is None or process.poll() is not None:
                process = self._begin()
            answer = _ask(process, [dict(one) for one in messages], MOST_SECONDS)
            if answer is None:
                self._process = None
                self._failed = (
                    f"it took longer than {MOST_SECONDS:g} s or used more than "
                    f"{MOST_MEMORY >> 30} GiB of memory"
                )
                raise TemplateError(self._failed)
        text = str(answer.get("text", ""))
        if error := answer.get("error"):
            raise TemplateError(str(error)[:500])
        return text

    def _begin(self) -> Popen[bytes]:
        process = start_serving("coreeval.models.chat_template")
        weakref.finalize(self, _end, process)
        if _ask(process, self._start, _START_SECONDS) is None:
            raise TemplateError("the process that fills it in did not start")
        self._process = process
        return process


@lru_cache(maxsize=4)
def open_template(source: str, tokens: tuple[tuple[str, str], ...]) -> ChatTemplate:
    """Return the template with this source; one process renders it for all callers."""
    return ChatTemplate(source, dict(tokens))


def _ask(process: Popen[bytes], question: object, seconds: float) -> Mapping[str, object] | None:
    """Return the process's answer; None if it died or had to be killed."""
    assert process.stdin and process.stdout
    watch, line = threading.Timer(seconds, process.kill), b""
    watch.start()
    try:
        with suppress(BrokenPipeError):
            _write(process.stdin, question)
            line = process.stdout.readline()
    finally:
        watch.cancel()
        if not line.endswith(b"\n"):  # also if interrupted: no answer may stay
            _end(process)
    if not line.endswith(b"\n"):
        return None
    answer: Mapping[str, object] = json.loads(line)
    return answer


def _end(process: Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):
            if pipe:
                pipe.close()


def _write(file: IO[bytes], value: object) -> None:
    file.write(json.dumps(value).encode() + b"\n")
    file.flush()


# -- in the process -------------------------------------------------------------------------------


def serve() -> None:
    """Render a template for the parent process until its requests end."""
    from transformers.utils.chat_template_utils import render_jinja_template

    given, taken = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    start = json.loads(given.readline())
    limit_memory(MOST_MEMORY)
    _write(taken, {})
    for line in given:
        signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS + 1)  # it ends this process
        try:
            (text,), _ = render_jinja_template(
                conversations=[json.loads(line)],
                chat_template=start["source"],
                add_generation_prompt=True,
                **start["tokens"],
            )
            if len(text) > len(line) + MOST_ADDED:
                raise ValueError(f"it expands the messages to {len(text):,} characters")
            answer = {"text": text}
        except Exception as error:  # noqa: BLE001 - whatever it is, the template cannot be used
            answer = {"error": str(error) or type(error).__name__}
        signal.setitimer(signal.ITIMER_REAL, 0)
        _write(taken, answer)
