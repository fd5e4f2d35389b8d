"""The HTTP client that huggingface_hub is lent while a release is pushed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import httpx2
from huggingface_hub import set_client_factory
from huggingface_hub.utils import _http as hub_http

from coreeval.tools.bounded_http import BoundedClient

_LONGEST_S: Final = 120.0


@contextmanager
def bounded_sessions() -> Iterator[None]:
    """Have huggingface_hub read no response without end inside the block.

    Its own client comes back afterwards: who uses it beside us may fetch files of any size.
    """
    before = hub_http._GLOBAL_CLIENT_FACTORY
    set_client_factory(_client)
    try:
        yield
    finally:
        set_client_factory(before)


def _client() -> httpx2.Client:
    """Return a client as huggingface_hub makes it, but bounded."""
    return BoundedClient(
        most_s=_LONGEST_S,
        event_hooks={"request": [hub_http.hf_request_event_hook]},
        follow_redirects=True,
        timeout=None,
    )
