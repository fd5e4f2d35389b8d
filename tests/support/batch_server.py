"""A server on loopback that speaks OpenAI's files and batches and Anthropic's message batches.

It answers live requests, too, and a body in a batch as it would answer it live. Time is counted in
looks, or in seconds. What was processed is counted, since a provider would be paid for it. As a
process of its own, for tests that kill the client:

    python -m tests.support.batch_server --port 0 --looks 2 --faults '{"die_after_create": 1}'

It prints its URL (without /v1). GET /counts tells the counts, POST /faults changes `Faults`.
"""

import argparse
import asyncio
import hashlib
import importlib
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, fields
from typing import Any

from aiohttp import web

from tests.support.batch_records import (
    QUEUE_FULL,
    Batch,
    Faults,
    File,
    Item,
    Speech,
    anthropic_batch,
    error_response,
    find_errors,
    openai_batch,
    page_of,
    read_items,
    result_lines,
)
from tests.support.llm_server import Answers, LLMServer, Request, response_body

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def ignore_creation() -> None:
    """Do nothing when a batch is made."""


class BatchServer(LLMServer):
    """Speaks both batch APIs; `url` and `anthropic_url` go into a config's base_url.

    Args:
        answers: What is answered, live and in batches.
        looks: Looks, or in their place `seconds`, after which a batch has ended.
    """

    def __init__(self, answers: Answers, *, looks: int = 1, seconds: float | None = None) -> None:
        super().__init__(answers)
        self.looks, self.seconds = looks, seconds
        self.faults = Faults()
        self.files: dict[str, File] = {}
        self.batches: dict[str, Batch] = {}
        self.paid_ids: Counter[str] = Counter()
        """How often each custom id was processed."""
        self.paid_bodies: Counter[str] = Counter()
        """How often each body was answered, live or in a batch, by its digest."""
        self.seen_looks = 0
        self.seen_paths: list[str] = []
        self.clock = time.time
        self.on_created: Callable[[], None] = ignore_creation
        """Called when a batch is made, before the reply."""
        self._made = 0

    # -- the server ---------------------------------------------------------------------------

    def add_routes(self, app: web.Application) -> None:
        """Add files, batches and what tests ask for."""
        app.middlewares.append(self._guard)
        router = app.router
        router.add_post("/v1/files", self._upload)
        router.add_get("/v1/files", self._list_files)
        router.add_get("/v1/files/{id}/content", self._content)
        router.add_delete("/v1/files/{id}", self._delete)
        for speech, path in (("openai", "/v1/batches"), ("anthropic", "/v1/messages/batches")):
            made = _Speaker(self, speech)  # type: ignore[arg-type]
            router.add_post(path, made.create)
            router.add_get(path, made.list)
            router.add_get(f"{path}/{{id}}", made.look)
            router.add_post(f"{path}/{{id}}/cancel", made.cancel)
        router.add_get("/v1/messages/batches/{id}/results", self._results)
        router.add_post("/faults", self._set_faults)

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self.seen_paths.append(f"{request.method} {request.path}")
        batches = request.path.startswith(("/v1/files", "/v1/batches", "/v1/messages/batches"))
        if batches:
            self.keys.append(request.headers.get("authorization", ""))
            if self.faults.no_batches:
                return error_response(404, "Not Found")
            if self.faults.page:
                return web.Response(text=self.faults.page, content_type="text/html")
        return await handler(request)

    async def _set_faults(self, http: web.Request) -> web.Response:
        self.set_faults(await http.json())
        return web.json_response(asdict(self.faults))

    def forget(self) -> None:
        """Count anew, and do well again; batches and files are gone."""
        self.faults, self.on_created, self.seconds = Faults(), ignore_creation, None
        self.requests.clear()
        self.files.clear()
        self.batches.clear()
        self.paid_ids.clear()
        self.paid_bodies.clear()

    def set_faults(self, told: dict[str, object]) -> None:
        """Change what goes wrong."""
        known = {one.name for one in fields(Faults)}
        for name, value in told.items():
            if name not in known:
                raise ValueError(f"no fault is called {name}")
            setattr(self.faults, name, value)

    def counts(self) -> dict[str, object]:
        """Return what GET /counts tells."""
        return super().counts() | {
            "batches": len(self.batches),
            "files": len(self.files),
            "looks": self.seen_looks,
            "paid": sum(self.paid_bodies.values()),
            "most_paid": max(self.paid_bodies.values(), default=0),
            "paid_ids": dict(self.paid_ids),
            "most_paid_id": max(self.paid_ids.values(), default=0),
        }

    def record_paid(self, request: Request) -> None:
        """Count an answer by its body."""
        self.paid_bodies[digest_of(request)] += 1

    def new_id(self, kind: str) -> str:
        """Return an id that was not given before."""
        self._made += 1
        return f"{kind}{self._made:08d}"

    # -- files --------------------------------------------------------------------------------

    async def _upload(self, http: web.Request) -> web.StreamResponse:
        form = await http.post()
        sent = form["file"]
        if not isinstance(sent, web.FileField) or form.get("purpose") != "batch":
            return error_response(400, "a file of purpose batch is wanted")
        made = self.keep_file(sent.filename, sent.file.read(), "batch")
        if self.faults.die_after_upload:
            self.faults.die_after_upload -= 1
            return _die(http)
        return web.json_response(made.told())

    def keep_file(self, name: str, content: bytes, purpose: str) -> File:
        """Keep a file."""
        kept = File(
            id=self.new_id("file-"), name=name, content=content, purpose=purpose, made=self.clock()
        )
        self.files[kept.id] = kept
        return kept

    async def _list_files(self, http: web.Request) -> web.Response:
        if self.faults.no_file_list:
            return error_response(404, "Not Found")
        purpose = http.query.get("purpose")
        kept = [one for one in self.files.values() if purpose in (None, one.purpose)]
        return web.json_response(page_of(self.faults, http, [one.told() for one in kept]))

    async def _content(self, http: web.Request) -> web.StreamResponse:
        file = self.files.get(http.match_info["id"])
        if file is None:
            return error_response(404, "No such File object")
        return await self.send_results(http, file.content)

    async def _delete(self, http: web.Request) -> web.Response:
        if self.files.pop(http.match_info["id"], None) is None:
            return error_response(404, "No such File object")
        told = {"id": http.match_info["id"], "object": "file", "deleted": True}
        return web.json_response(told)

    async def send_results(self, http: web.Request, content: bytes) -> web.StreamResponse:
        """Send a file of results, or what is left of it."""
        if self.faults.results_status:
            return error_response(self.faults.results_status, "no results now")
        if self.faults.cut == "quiet":
            content = content[: len(content) // 2]
        if self.faults.cut != "connection":
            return web.Response(body=content, content_type="application/octet-stream")
        response = web.StreamResponse()
        response.content_length = len(content)
        await response.prepare(http)
        await response.write(content[: len(content) // 2])
        await asyncio.sleep(0.05)
        if http.transport is not None:
            http.transport.close()
        return response

    async def _results(self, http: web.Request) -> web.StreamResponse:
        batch = self.batches.get(http.match_info["id"])
        if batch is None or self.faults.lost:
            return error_response(404, "no such batch")
        if not batch.over:
            return error_response(400, "the batch has not ended")
        return await self.send_results(http, result_lines(self.faults, batch, batch.items))

    # -- how a batch goes on ------------------------------------------------------------------

    async def advance(self, batch: Batch) -> None:
        """Process a batch whose time has come."""
        if not self._is_due(batch):
            return
        if batch.speech == "openai":
            batch.errors = find_errors(batch, self.faults.bad_lines)
            if self.faults.queue_full == "validated":
                batch.errors = [dict(QUEUE_FULL)]
        if batch.errors:
            batch.state = "failed"
            return
        most, state = len(batch.items), "completed"
        if batch.state == "cancelling":
            most, state = self.faults.cancels_after, "cancelled"
        elif self.faults.expires_after is not None:
            most, state = self.faults.expires_after, "expired"
        for item in batch.items[:most]:
            await self._process(batch, item)
        self._close(batch, state)

    def _is_due(self, batch: Batch) -> bool:
        if batch.over or (self.faults.never_ends and batch.state != "cancelling"):
            return False
        if self.seconds is not None:
            return self.clock() >= batch.made + self.seconds
        return batch.looks >= self.looks

    async def _process(self, batch: Batch, item: Item) -> None:
        reply = await self.reply_to(item.body)
        said = response_body(item.body, reply, messages=batch.speech == "anthropic")
        item.status, item.said = reply.status, said.decode()
        with suppress(ValueError):
            item.said = json.loads(said)
        if not reply.is_failure:
            self.paid_ids[item.custom_id] += 1
            self.record_paid(item.body)

    def _close(self, batch: Batch, state: str) -> None:
        batch.state = state
        if batch.speech == "anthropic":
            return
        good = [one for one in batch.items if one.status == 200]
        bad = [one for one in batch.items if one.status != 200]
        if good:
            content = result_lines(self.faults, batch, good)
            batch.output_file = self.keep_file("out.jsonl", content, "batch_output").id
        if bad:
            content = result_lines(self.faults, batch, bad)
            batch.error_file = self.keep_file("errors.jsonl", content, "batch_output").id


class _Speaker:
    """The batches of one of the two APIs."""

    def __init__(self, server: BatchServer, speech: Speech) -> None:
        self._server, self._speech = server, speech

    async def create(self, http: web.Request) -> web.StreamResponse:
        faults = self._server.faults
        asked = await http.json()
        if faults.create_status:
            return error_response(faults.create_status.pop(0), "not now")
        if faults.queue_full == "created":
            return error_response(429, str(QUEUE_FULL["message"]), str(QUEUE_FULL["code"]))
        if faults.die_before_create:
            faults.die_before_create -= 1
            return _die(http)
        batch = self._make(asked)
        if isinstance(batch, web.Response):
            return batch
        self._server.batches[batch.id] = batch
        self._server.on_created()
        if faults.die_after_create:
            faults.die_after_create -= 1
            return _die(http)
        if faults.odd_reply:
            return web.Response(text="<html>gateway</html>", content_type="text/html")
        return self._tell(batch)

    def _make(self, asked: dict[str, Any]) -> "Batch | web.Response":
        if self._speech == "anthropic":
            return self._make_of_requests(asked)
        file = self._server.files.get(asked["input_file_id"])
        if file is None or asked["completion_window"] != "24h":
            return error_response(400, "no such file or window")
        return Batch(
            id=self._server.new_id("batch_"),
            speech="openai",
            items=read_items(file.content),
            made=self._server.clock(),
            input_file=file.id,
            metadata=None if self._server.faults.no_metadata else asked.get("metadata"),
        )

    def _make_of_requests(self, asked: dict[str, Any]) -> "Batch | web.Response":
        items = [Item(custom_id=one["custom_id"], body=one["params"]) for one in asked["requests"]]
        ids = [one.custom_id for one in items]
        if len(set(ids)) < len(ids) or not all(re.fullmatch(r"[\w-]{1,64}", one) for one in ids):
            return error_response(400, "requests: custom_id must be unique and fit its pattern")
        if self._server.faults.bad_lines:
            number = self._server.faults.bad_lines[0] - 1
            return error_response(400, f"requests.{number}.params.max_tokens: Field required")
        made = self._server.clock()
        return Batch(
            id=self._server.new_id("msgbatch_"), speech="anthropic", items=items, made=made
        )

    async def list(self, http: web.Request) -> web.Response:
        made = [] if self._server.faults.lost else self._server.batches.values()
        known = [batch for batch in made if batch.speech == self._speech]
        for batch in known:
            await self._server.advance(batch)
        listed = [self._told(one) for one in known]
        return web.json_response(page_of(self._server.faults, http, listed))

    async def look(self, http: web.Request) -> web.StreamResponse:
        self._server.seen_looks += 1
        faults = self._server.faults
        if faults.die_on_look:
            faults.die_on_look -= 1
            return _die(http)
        if faults.redirect:
            raise web.HTTPTemporaryRedirect(f"{faults.redirect}{http.path}")
        if faults.look_status:
            status = faults.look_status.pop(0)
            return error_response(status, "try again", **{"Retry-After": "3"})
        batch = self._server.batches.get(http.match_info["id"])
        if batch is None or faults.lost:
            return error_response(404, f"No batch found with id {http.match_info['id']!r}")
        batch.looks += 1
        await self._server.advance(batch)
        return self._tell(batch)

    async def cancel(self, http: web.Request) -> web.Response:
        batch = self._server.batches.get(http.match_info["id"])
        if batch is None or self._server.faults.lost:
            return error_response(404, "no such batch")
        if batch.over:
            return error_response(409, "the batch has ended")
        batch.state = "cancelling"
        return self._tell(batch)

    def _tell(self, batch: Batch) -> web.Response:
        return web.json_response(self._told(batch))

    def _told(self, batch: Batch) -> dict[str, object]:
        return openai_batch(batch) if self._speech == "openai" else anthropic_batch(batch)


# -- what is said ---------------------------------------------------------------------------------


def digest_of(request: Request) -> str:
    """Return the digest that a body is counted by."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


def _die(http: web.Request) -> web.Response:
    if http.transport is not None:
        http.transport.abort()
    return web.Response()


# -- a process of its own -------------------------------------------------------------------------


async def serve(server: BatchServer, port: int) -> None:
    """Serve until killed; the first line on stdout is the URL."""
    async with server.running(port):
        sys.stdout.write(f"{server.anthropic_url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    """Serve until killed; the first line on stdout is the URL, GET /counts tells the counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--answers", default="tests.support.llm_server:empty_objects")
    parser.add_argument("--looks", type=int, default=1)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--faults", default="{}")
    options = parser.parse_args()
    module, _, name = str(options.answers).partition(":")
    answers: Answers = getattr(importlib.import_module(module), name)
    server = BatchServer(answers, looks=options.looks, seconds=options.seconds)
    server.set_faults(json.loads(options.faults))
    asyncio.run(serve(server, options.port))


if __name__ == "__main__":
    main()
