"""The server: jobs that are really executed, limits that are kept, and faults on demand.

As a process of its own, over GDELT files in a folder:

    python -m tests.support.bigquery.server --port 9050 FOLDER
"""

import argparse
import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tests.support.bigquery.engine import BadQuery, Engine
from tests.support.bigquery.files import fill
from tests.support.bigquery.wire import Job, Json, refusal, values

Step = Literal["dry_run", "insert", "get", "results", "cancel"]
LEAST_BILLED = 10 << 20
BASE = "/bigquery/v2/projects/{project}"


@dataclass
class Fault:
    """A step that fails, and how often."""

    step: Step
    reason: str
    message: str = "on demand"
    times: int = 1
    after: bool = False
    """Do the step, then lose its answer: the connection is cut."""
    hang: bool = False
    """Say nothing until the server ends."""


class BigQueryServer:
    """Counts what it is asked; `url` goes into a config's `endpoint`."""

    def __init__(self, engine: Engine | None = None) -> None:
        self.engine = engine or Engine()
        self.jobs: dict[str, Job] = {}
        self.asked: list[tuple[Step, Json]] = []
        """Each request's step and body."""
        self.faults: list[Fault] = []
        self.job_error: tuple[str, str] | None = None
        """Reason and message with which a job ends, in place of its rows."""
        self.held = False
        """Whether jobs go on running for ever."""
        self.page_rows = 10_000
        """Rows of a page, at most."""
        self.cancelled: list[str] = []
        self.alter: Callable[[Step, Json], object] = lambda _, answer: answer
        """What becomes of each answer."""
        self.redirect: tuple[int, str] | None = None
        """Status and server with which each request is sent elsewhere."""
        self.headers: list[dict[str, str]] = []
        """Those of each request."""
        self.port = 0
        self._ending = threading.Event()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def billed(self) -> int:
        """Bytes billed for all jobs."""
        return sum(job.billed for job in self.jobs.values())

    def steps(self, step: Step) -> list[Json]:
        """Return the bodies of the requests for one step."""
        return [body for asked, body in self.asked if asked == step]

    def fail(self, step: Step, reason: str, message: str = "on demand", times: int = 1) -> None:
        """Answer a step with an error, so many times."""
        self.faults.append(Fault(step, reason, message, times))

    def lose(self, step: Step) -> None:
        """Do a step and cut the connection before its answer."""
        self.faults.append(Fault(step, "", after=True))

    def hang(self, step: Step) -> None:
        """Never answer a step."""
        self.faults.append(Fault(step, "backendError", hang=True))

    def release(self) -> None:
        """Let the jobs that are held come to their end."""
        self.held = False
        for job in self.jobs.values():
            if job.state != "DONE":
                self._finish(job)

    # -- the API --------------------------------------------------------------------------------

    @property
    def app(self) -> Starlette:
        """The web application."""
        return Starlette(
            routes=[
                Route(f"{BASE}/jobs", self._insert, methods=["POST"]),
                Route(f"{BASE}/jobs/{{job}}", self._get),
                Route(f"{BASE}/jobs/{{job}}/cancel", self._cancel, methods=["POST"]),
                Route(f"{BASE}/queries/{{job}}", self._results),
            ]
        )

    async def _insert(self, request: Request) -> Response:
        body = await request.json()
        dry = bool(body["configuration"].get("dryRun"))
        work = self._priced if dry else self._started
        return await self._step(
            request, "dry_run" if dry else "insert", body, lambda: work(request, body)
        )

    async def _get(self, request: Request) -> Response:
        job = self.jobs.get(request.path_params["job"])
        return await self._step(request, "get", {}, lambda: _shown(job))

    async def _results(self, request: Request) -> Response:
        job, asked = self.jobs[request.path_params["job"]], request.query_params
        size = min(int(asked.get("maxResults") or self.page_rows), self.page_rows)
        start = int(asked.get("pageToken") or 0)
        return await self._step(request, "results", dict(asked), lambda: job.page(start, size))

    async def _cancel(self, request: Request) -> Response:
        job = self.jobs.get(request.path_params["job"])
        return await self._step(request, "cancel", {}, lambda: self._stop(job))

    async def _step(
        self, request: Request, step: Step, body: Json, work: Callable[[], Json]
    ) -> Response:
        """Answer one request, unless it is to fail."""
        self.asked.append((step, body))
        self.headers.append(dict(request.headers))
        if self.redirect:
            status, elsewhere = self.redirect
            return Response(status_code=status, headers={"Location": elsewhere + request.url.path})
        fault = next((each for each in self.faults if each.step == step and each.times), None)
        if fault:
            fault.times -= 1
            if fault.hang:
                while not self._ending.is_set():
                    await asyncio.sleep(0.02)
            if not fault.after:
                return _error(fault.reason, fault.message)
        try:
            answer = work()
        except BadQuery as error:
            return _error(error.reason, str(error))
        return _Cut() if fault else JSONResponse(self.alter(step, answer))

    # -- what the steps do ----------------------------------------------------------------------

    def _priced(self, request: Request, body: Json) -> Json:
        query = body["configuration"]["query"]
        scanned = self.engine.scanned(query["query"], values(query.get("queryParameters", [])))
        project = request.path_params["project"]
        return Job("dry", project, body["configuration"], "DONE", scanned=scanned).resource

    def _started(self, request: Request, body: Json) -> Json:
        job_id, query = body["jobReference"]["jobId"], body["configuration"]["query"]
        if job_id in self.jobs:
            raise BadQuery(f"Already Exists: Job {job_id}", "duplicate")
        scanned = self.engine.scanned(query["query"], values(query.get("queryParameters", [])))
        job = Job(job_id, request.path_params["project"], body["configuration"], scanned=scanned)
        self.jobs[job_id] = job
        if not self.held:
            self._finish(job)
        return job.resource

    def _finish(self, job: Job) -> None:
        """End a job: with its rows, or with an error."""
        query = job.config["query"]
        most = int(query.get("maximumBytesBilled", 1 << 62))
        needed = max(job.scanned, LEAST_BILLED)
        if needed > most:
            message = f"Query exceeded limit for bytes billed: {most}. {needed} or higher required."
            job.error = {"reason": "bytesBilledLimitExceeded", "message": message}
        elif self.job_error:
            job.error = dict(zip(("reason", "message"), self.job_error, strict=True))
        else:
            asked = values(query.get("queryParameters", []))
            answer = self.engine.run(query["query"], asked)
            job.fields, job.rows, job.billed = answer.fields, answer.rows, needed
        job.state = "DONE"

    def _stop(self, job: Job | None) -> Json:
        if job is None:
            raise BadQuery("Not found: Job", "notFound")
        self.cancelled.append(job.id)
        job.state = "DONE"
        job.error = {"reason": "stopped", "message": "Job execution was cancelled"}
        return {"kind": "bigquery#jobCancelResponse", "job": job.resource}

    # -- running --------------------------------------------------------------------------------

    @contextmanager
    def running(self, port: int = 0) -> Iterator["BigQueryServer"]:
        """Serve on loopback while the context is open."""
        config = uvicorn.Config(self.app, port=port, log_level="critical", lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        self.port = server.servers[0].sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            self._ending.set()
            server.should_exit = True
            thread.join()
            self.engine.close()


class _Cut(Response):
    """No answer: the connection ends in the middle of one."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        length = [(b"content-length", b"9")]
        await send({"type": "http.response.start", "status": 200, "headers": length})
        await send({"type": "http.response.body", "body": b"{", "more_body": True})


def _shown(job: Job | None) -> Json:
    if job is None:
        raise BadQuery("Not found: Job", "notFound")
    return job.resource


def _error(reason: str, message: str) -> Response:
    body = refusal(reason, message)
    return JSONResponse(body, status_code=body["error"]["code"])


def main() -> None:
    """Serve the GDELT files of a folder until somebody stops it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=9050)
    options = parser.parse_args()
    server = BigQueryServer()
    fill(server.engine, options.folder)
    with server.running(options.port):
        print(server.url, flush=True)  # noqa: T201
        threading.Event().wait()


if __name__ == "__main__":
    main()
