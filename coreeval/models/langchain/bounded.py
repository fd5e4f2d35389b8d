"""The HTTP client that packages built upon OpenAI's SDK are given: it reads no body without end."""

import httpx2
import openai

from coreeval.tools.bounded_http import read_bounded


class BoundedAioClient(openai.DefaultAioHttpClient):
    """The SDK's client over aiohttp; the model's `timeout_s` bounds its time."""

    async def _send_single_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return a response with its body, before redirects are followed."""
        return await read_bounded(await super()._send_single_request(request))
