"""LangSmith tracing, controlled by its own variables, with a time limit when the process ends.

LangChain sends traces through one client per process. It is opened here before LangChain opens it,
so that its threads end with the process and LANGSMITH_HIDE_INPUTS and LANGSMITH_HIDE_OUTPUTS also
cover errors, which may repeat the text of a request. Configs may have different accounts, so a
client is replaced if LangSmith's variables have changed since it was opened.
"""

import atexit
import os
import re
import sys
from collections.abc import Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any

from coreeval.tools.env_file import asks_to_hide
from coreeval.tools.formatting import format_quantity

if TYPE_CHECKING:
    from langsmith import Client


PATIENCE_S = 2.0
"""The longest wait for unsent traces when the process ends; in all, the process then ends within 5
s, even on a busy machine (our choice)."""
_LEAST_S = 0.5
_SWITCHES = ("TRACING", "TRACING_V2")
_PREFIXES = ("LANGSMITH", "LANGCHAIN")
_KIND = re.compile(r"\w{1,100}")


class Tracing:
    """The client of this process, and the traces that it could not send."""

    def __init__(self) -> None:
        self.client: Client | None = None
        self.failures: list[str] = []
        """The types of errors that ended the sending of a batch."""
        self.waited_s = 0.0
        """Seconds that this process has waited for another collector before it ends."""
        self._opened_with: Mapping[str, str] = {}
        """LangSmith's variables when the client was opened."""
        self._lock = RLock()

    def open(self) -> None:
        """Open the client of LangSmith's variables if tracing is on; close one of other values."""
        with self._lock:
            if self.client is not None and _list_variables(os.environ) == self._opened_with:
                return
            self.report_unsent()
            if _is_on(os.environ):
                self._open()

    def _open(self) -> None:
        for name in ("USE_DAEMON", "DISABLE_RUN_COMPRESSION"):  # whose threads no exit waits for
            os.environ.setdefault(f"LANGSMITH_{name}", "true")
        from langsmith.run_trees import get_cached_client

        self._opened_with = _list_variables(os.environ)
        hidden = {part: _is_hidden(part, os.environ) for part in ("inputs", "outputs", "metadata")}
        errors = hidden["inputs"] or hidden["outputs"]
        self.client = get_cached_client(
            tracing_error_callback=self._record_failure,
            anonymizer=_hide_error if errors else None,
            hide_inputs=hidden["inputs"],
            hide_outputs=hidden["outputs"],
            hide_metadata=hidden["metadata"],
        )
        atexit.register(self.report_unsent)

    def close(self, patience_s: float = PATIENCE_S) -> str:
        """Send what is left within the time limit; return what was not sent, or "" if all was.

        Args:
            patience_s: Longest time to wait, in seconds, for this and other collectors together.
        """
        client, self.client = self.client, None
        waited_s, self.waited_s = self.waited_s, 0.0
        _forget_environment()
        if client is None:
            return ""
        import langsmith

        client.flush(timeout=max(_LEAST_S, patience_s - waited_s))
        left = client.tracing_queue.unfinished_tasks if client.tracing_queue else 0
        client.cleanup(timeout=0)
        langsmith.configure(client=None)
        atexit.unregister(self.report_unsent)
        failures, self.failures = self.failures, []
        return _describe_unsent(left, failures, client.api_url)

    def report_unsent(self) -> None:
        """Close the client and report on stderr what was not sent."""
        if note := self.close():
            sys.stderr.write(f"{note}\n")

    def _record_failure(self, error: Exception) -> None:
        self.failures.append(type(error).__name__)


TRACING = Tracing()
"""The instance of this process."""


def _forget_environment() -> None:
    """Make LangSmith read the environment again: it caches variables."""
    if "langsmith" not in sys.modules:
        return
    from langsmith import utils
    from langsmith.env import get_langchain_env_var_metadata

    for read in (utils.get_env_var, utils.get_tracer_project, get_langchain_env_var_metadata):
        if clear := getattr(read, "cache_clear", None):  # which have one is LangSmith's own choice
            clear()


def _describe_unsent(left: int, failures: list[str], url: str) -> str:
    """Return a description of what was not sent."""
    host = url.partition("://")[2].rpartition("@")[2].partition("/")[0]
    said = []
    if failures:
        batches = format_quantity(len(failures), "batch", "batches")
        said.append(f"{batches} failed, the last with {failures[-1]}")
    if left:
        said.append(f"{left} {'event was' if left == 1 else 'events were'} not sent in time")
    return f"LangSmith at {host}: {'; '.join(said)}" if said else ""


def _hide_error(data: dict[str, Any]) -> dict[str, Any]:
    """Return an error as its kind alone; leave other data unchanged, for LangSmith's variables."""
    error = data.get("error")
    if set(data) != {"error"} or not isinstance(error, str):
        return data
    kind = _KIND.match(error)
    return {"error": f"{kind.group() if kind else 'an error'} (hidden)"}


def _list_variables(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_PREFIXES)}


def _is_on(env: Mapping[str, str]) -> bool:
    return any(_is_set(name, env) for name in _SWITCHES)


def _is_set(name: str, env: Mapping[str, str]) -> bool:
    return any(env.get(f"{prefix}_{name}", "").lower() == "true" for prefix in _PREFIXES)


def _is_hidden(part: str, env: Mapping[str, str]) -> bool:
    return any(asks_to_hide(env.get(f"{prefix}_HIDE_{part.upper()}", "")) for prefix in _PREFIXES)
