"""The HTTP client that huggingface_hub is lent while a release is pushed."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

import httpx2
from huggingface_hub import set_client_factory
from huggingface_hub.utils import _http as hub_http

from coreeval.tools.http import BoundedClient
from coreeval.tools.redirects import to_public_stores

_LONGEST_S: Final = 120.0


@contextmanager
def bounded_sessions(hub: str) -> Iterator[None]:
    """Have huggingface_hub read no response without end inside the block, nor be led astray.

    Its own client comes back afterwards: who uses it beside us may fetch files of any size.
    """
    before = hub_http._GLOBAL_CLIENT_FACTORY
    set_client_factory(partial(_client, hub))
    try:
        yield
    finally:
        set_client_factory(before)


def _client(hub: str) -> httpx2.Client:
    """Return a client as huggingface_hub makes it, but bounded, and for one hub."""
    return BoundedClient(
        most_s=_LONGEST_S,
        event_hooks={"request": [to_public_stores(hub), hub_http.hf_request_event_hook]},
        follow_redirects=True,
        timeout=None,
    )
