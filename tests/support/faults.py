"""Ways in which real servers and models misbehave, by name, and a mixture of them."""

import hashlib
import inspect
import json
from collections import Counter
from collections.abc import Callable, Mapping

from tests.support.llm_server import Answers, Reply, Request, refused

Fault = Callable[[str], Reply]
"""Makes a reply out of what would have been the good answer."""
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
DRIP_S = 30.0


def always(reply: Reply) -> Fault:
    """Return a fault that does not depend on the answer."""
    return lambda _good: reply


WIRE: dict[str, Fault] = {
    "throttled": always(refused(429, "slow down", Retry_After="1")),
    "timed out": always(refused(408, "too slow")),
    "in conflict": always(refused(409, "not now")),
    "broken": always(refused(500, "it broke")),
    "gateway": always(Reply(status=502, body="<html>bad gateway</html>", content_type="text/html")),
    "overloaded": always(refused(529, "overloaded")),
    "hung": always(Reply(hang=True)),
    "dripping": lambda good: Reply(content=good, drip_s=DRIP_S),
    "dropped": always(Reply(drop=True)),
    "cut inside": lambda good: Reply(content=good, cut=True),
    "bad chunk": always(Reply(raw=CHUNKED + b'5\r\n{"cho\r\nzz\r\n')),
    "last chunk missing": always(Reply(raw=CHUNKED + b'5\r\n{"cho\r\n')),
    "no HTTP": always(Reply(raw=b"SSH-2.0-OpenSSH_9.6\r\n")),
    "bad header": always(Reply(raw=b"HTTP/1.1 200 OK\r\nno header\r\n\r\n")),
    "bad reason": always(Reply(raw=b"HTTP/1.1 200 \xff\r\ncontent-length: 0\r\n\r\n")),
    "bad gzip": always(Reply(raw=HEAD + b"content-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}")),
    "HTML": always(Reply(body="<html>log in</html>", content_type="text/html")),
    "empty body": always(Reply(body="")),
    "other JSON": always(Reply(body='["no", "completion"]')),
    "no choice": always(Reply(body='{"choices": []}')),
    "error with status 200": always(Reply(error={"message": "upstream broke"})),
    "error in words": always(Reply(error="upstream broke")),
    "half a completion": always(Reply(body='{"choices": [{"message": {"content": "{')),
}
"""No answer came: the same may be asked again."""
ANSWER: dict[str, Fault] = {
    "prose": always(Reply(content="I would say that this is joy.")),
    "JSON in prose": lambda good: Reply(content=f"Sure! {good} Anything else?"),
    "two fences": lambda good: Reply(content=f"```json\n{good}\n```\nor\n```json\n{good}\n```"),
    "cut JSON": lambda good: Reply(content=good[: len(good) // 2]),
    "wrong schema": always(Reply(content='{"verdict": "yes"}')),
    "wrong types": lambda good: Reply(content=json.dumps(dict.fromkeys(json.loads(good), 3))),
    "a list": lambda good: Reply(content=f"[{good}]"),
    "a key twice": lambda good: Reply(content=f"{good[:-1]}, {good[1:]}"),
    "NaN": lambda good: Reply(content=json.dumps(dict.fromkeys(json.loads(good), float("nan")))),
    "half a surrogate": lambda good: Reply(content=good[:-2] + '\\ud83d"}'),
    "empty": always(Reply(content="")),
    "null": always(Reply(content=None)),
    "no parts": always(Reply(content=[])),
    "too long": lambda good: Reply(content=good, finish_reason="length"),
    "refused": always(Reply(content=None, refusal="I cannot help with that.")),
    "filtered": lambda good: Reply(content=good, finish_reason="content_filter"),
    "huge": always(Reply(content="x" * 1_000_000)),
    "only a thought": lambda good: Reply(content=f"<think>It says {good}.</think>"),
    "an endless thought": lambda good: Reply(content=f"<think>{good}"),
    "another tool": always(Reply(content='{"query": "news"}', tool="search")),
}
"""The model answered, and it is no answer: it is asked again with the reason."""
HARMLESS: dict[str, Fault] = {
    "a thought before": lambda good: Reply(content=f'<think>{{"label": "?"}}</think>\n{good}'),
    "a thought without its start": lambda good: Reply(content=f"Let me see.</think>{good}"),
    "in a fence": lambda good: Reply(content=f"```json\n{good}\n```"),
    "a tool call": lambda good: Reply(content=good, tool="answer", finish_reason="tool_calls"),
    "in parts": lambda good: Reply(content=parts(good)),
    "another content type": lambda good: Reply(content=good, content_type="text/html"),
    "connection closed after it": lambda good: Reply(content=good, close=True),
    "in no hurry": lambda good: Reply(content=good, drip_s=0.01),
}
"""The answer is there, if not as it should be."""


def parts(good: str) -> list[dict[str, object]]:
    """Return an answer as a list of parts with a thought before it."""
    half = len(good) // 2
    said: list[dict[str, object]] = [
        {"type": "text", "text": text} for text in (good[:half], good[half:])
    ]
    return [{"type": "thinking", "thinking": "hm"}, *said]


class Faulty:
    """Answers well but for some shares, in which it misbehaves.

    What becomes of a request follows from the seed, its body and how often that came before, not
    from the order in which requests arrive.

    Args:
        good: Gives the good answers.
        seed: Another one makes other mistakes.
        shares: How many of all replies have each fault, by its name.
    """

    def __init__(self, good: Answers, seed: int, shares: Mapping[str, float]) -> None:
        self.counts = Counter[str]()
        """How often each fault was made."""
        self._good, self._seed, self._shares = good, seed, shares
        self._came = Counter[str]()

    async def __call__(self, request: Request) -> str | Reply:
        """Answer a request, well or badly."""
        name = self._chosen(json.dumps(request, sort_keys=True))
        answer = self._good(request)
        if inspect.isawaitable(answer):
            answer = await answer
        if not name or not isinstance(answer, str):
            return answer
        self.counts[name] += 1
        return (WIRE | ANSWER | HARMLESS)[name](answer)

    def _chosen(self, body: str) -> str:
        """Return the name of the fault to make, or nothing."""
        self._came[body] += 1
        digest = hashlib.sha256(f"{self._seed} {self._came[body]} {body}".encode()).digest()
        left = int.from_bytes(digest[:7]) / 256**7
        for name, share in self._shares.items():
            left -= share
            if left < 0:
                return name
        return ""


def faulty(good: Answers, seed: int, shares: Mapping[str, float]) -> Answers:
    """Return answers of which the given shares are faults; see `Faulty`."""
    return Faulty(good, seed, shares)
