"""Servers that a user has named, and that lead elsewhere: to this machine, its network, its files.

Every client of CoreEval is pointed at a server that redirects each request, with each status that a
redirect may have, to a server on another port that nobody has named, by each of the ways to write
its address. Whether that one hears of it is what counts.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from aiohttp import web
from google.api_core.exceptions import GoogleAPICallError
from google.auth.credentials import AnonymousCredentials

from benchmarks.chaos.cases import Case, Outcome
from benchmarks.chaos.processes import Said, say
from coreeval.config import ModelConfig
from coreeval.config.knowledge import BigQueryConfig
from coreeval.config.schedule import HookConfig
from coreeval.errors import CoreEvalError
from coreeval.evaluation.numleak.series.catalogue import fetch
from coreeval.graph.bundled import write_configs
from coreeval.models import close_models, open_model
from coreeval.models.failures import CallFailure
from coreeval.models.listing import check_listed
from coreeval.models.model import RequestOptions
from coreeval.schedule.hooks import HookEvent, HookRunner
from coreeval.tools.gdelt.bigquery.client import open_client
from coreeval.tools.gdelt.doc.replies import NoReply, open_wire
from coreeval.tools.otlp import OtlpSender
from coreeval.tools.telemetry import Span, SpanIdentity
from tests.support.hub_server import TOKEN, HubServer, Repository
from tests.support.lures import Served, bystander, lure

STATUSES = (301, 302, 303, 307, 308)
KEY = "sk-only-for-the-campaign-0123456789"
Ask = Callable[[str, Path], object]


def places(aside: Served) -> list[str]:
    """Return ways to write the address of a server, and of a file."""
    port = aside.port
    hosts = ("127.0.0.1", "localhost", "2130706433", "0x7f.1", "127.1", "[::ffff:127.0.0.1]")
    return [*(f"http://{host}:{port}/latest/meta-data/" for host in hosts), "file:///etc/hostname"]


# -- clients --------------------------------------------------------------------------------------


def ask_webhook(url: str, folder: Path) -> None:
    """Tell a webhook how a period ended."""
    news = HookEvent(
        outcome="released",
        name="n",
        version="1",
        due_at="",
        run="",
        release="",
        counts={},
        trouble=None,
    )
    hook = HookConfig.model_validate({"webhook_env": "HOOK", "tries": 1})
    with mock.patch.dict(os.environ, {"HOOK": url}):
        HookRunner(sleep=lambda _: None)([hook], news, folder)


def ask_series(url: str, _folder: Path) -> None:
    """Fetch a series."""
    fetch(f"{url}/series.csv", hint="h")


def ask_doc(url: str, _folder: Path) -> None:
    """Ask DOC 2.0."""

    async def get() -> None:
        async with open_wire(url) as wire:
            await wire.get({"query": "x"}, 10)

    asyncio.run(get())


def ask_model(provider: str) -> Ask:
    """Return what asks a model of a provider."""

    async def get(url: str) -> None:
        config = ModelConfig(model=f"{provider}:m", base_url=f"{url}/v1", api_key_env="KEY")
        form = RequestOptions(schema={}, name="plain", method="text", max_tokens=9)
        try:
            await open_model(config, {"KEY": KEY}).chat.ask(
                [{"role": "user", "content": "?"}], form
            )
        finally:
            await close_models()

    return lambda url, _folder: asyncio.run(get(url))


def ask_list(url: str, _folder: Path) -> None:
    """Ask an endpoint for its models."""
    check_listed(ModelConfig(model="openai:m", base_url=url), url, KEY)


def ask_collector(url: str, _folder: Path) -> None:
    """Send a span."""
    sender = OtlpSender(f"{url}/v1/traces", project="p")
    now = datetime(2026, 11, 20, tzinfo=UTC)
    place = SpanIdentity.of("run", "sample", root="first")
    sender.send(
        Span(
            name="n",
            place=place,
            parent=None,
            started=now,
            ended=now,
            attributes={},
            events=[],
            error=None,
        )
    )
    sender.close()


def ask_bigquery(url: str, _folder: Path) -> None:
    """Ask BigQuery."""
    anybody = AnonymousCredentials()  # type: ignore[no-untyped-call]
    client = open_client(BigQueryConfig(project="p", endpoint=url), anybody)
    client.query("SELECT 1", job_retry=None, timeout=5)


CLIENTS: dict[str, Ask] = {
    "a webhook": ask_webhook,
    "a publisher of series": ask_series,
    "DOC 2.0": ask_doc,
    "an OpenAI-compatible model": ask_model("openai"),
    "an Anthropic model": ask_model("anthropic"),
    "a model's list": ask_list,
    "an OTLP collector": ask_collector,
    "BigQuery": ask_bigquery,
}


def redirected(folder: Path, _chance: Random) -> Outcome:
    """Redirect every client everywhere."""
    tried, broken = 0, list[str]()
    with bystander() as aside:
        for name, ask in CLIENTS.items():
            for number, place in enumerate(places(aside)):
                status = STATUSES[number % len(STATUSES)]
                with (
                    lure(place, status) as named,
                    suppress(
                        CoreEvalError, CallFailure, NoReply, OSError, ValueError, GoogleAPICallError
                    ),
                ):
                    ask(named.url, folder)
                tried += 1
                if not named.asked or aside.asked:
                    heard = f"heard {aside.asked}" if aside.asked else "was never asked"
                    broken.append(f"{name}, {status} to {place}: {heard}")
                    aside.asked.clear()
    return Outcome(
        tried=tried,
        held=tried - len(broken),
        measured=f"{len(CLIENTS)} clients; the server that nobody named heard of none",
        broken=tuple(broken),
    )


# -- commands -------------------------------------------------------------------------------------


def mirror(folder: Path, _chance: Random) -> Outcome:
    """Sync from mirrors that redirect, and from addresses that are none of a mirror."""
    found, tried = list[str](), 0
    with bystander() as aside:
        for place in places(aside):
            with lure(place, 302) as named:
                said = sync(folder / f"store{tried}", named.url)
            tried += 1
            found += [f"{place}: {said.defect(0, 1)}"] if said.defect(0, 1) else []
            found += [f"{place} was asked"] if aside.asked else []
            found += ["the mirror was never asked"] if not named.asked else []
        for url in (
            "file:///etc",
            "ftp://127.0.0.1",
            "http://169.254.169.254",
            "//x",
            "http://[::",
        ):
            said = sync(folder / f"store{tried}", url)
            tried += 1
            found += [said.defect(2)] if said.defect(2) else []
    return Outcome(tried=tried, held=tried - len(found), broken=tuple(found))


def sync(store: Path, url: str) -> Said:
    """Fetch a day from a mirror."""
    store.mkdir()
    feeds = ["--feeds", "gal", "--days", "1"]
    return say("gdelt", "sync", *feeds, "--mirror", url, "--store", store, folder=store)


class LeadingHub(HubServer):
    """A hub that sends part of a push elsewhere: the next page of a list, or a large file."""

    def __init__(self, elsewhere: str, part: str) -> None:
        super().__init__()
        self._elsewhere, self._part = elsewhere, part

    async def _tree(self, http: web.Request) -> web.Response:
        answer = await super()._tree(http)
        if self._part == "page":
            answer.headers["Link"] = f'<{self._elsewhere}/next>; rel="next"'
        return answer

    def _object(self, asked: dict[str, Any]) -> dict[str, Any]:
        where = super()._object(asked)
        if self._part == "store" and "actions" in where:
            where["actions"]["upload"]["href"] = f"{self._elsewhere}/large/{asked['oid']}"
        return where

    def _refused(self, http: web.Request) -> web.StreamResponse | None:
        if self._part == "redirect":
            self.asked.append(http.path)
            return web.Response(status=307, headers={"location": self._elsewhere})
        return super()._refused(http)


def hub(folder: Path, _chance: Random) -> Outcome:
    """Push a release to a hub that leads elsewhere."""
    config = next(path for path in write_configs(folder) if path.stem == "emotion")
    run = folder / "run"
    for given in (
        ["refresh", config, "--limit", "4", "--run-dir", run],
        ["release", run, "--version", "1"],
    ):
        said = say(*given, folder=folder)
        assert not said.defect(0), said.defect(0)
    release = folder / ".coreeval" / "releases" / "demo-emotion" / "1"
    found, tried = list[str](), 0
    with bystander() as aside:
        elsewhere = (aside.url, f"http://localhost:{aside.port}", f"http://127.1:{aside.port}")
        for part in ("page", "store", "redirect"):
            for place in elsewhere:
                with LeadingHub(place, part).running() as running:
                    if part == "page":  # only of what is there can a page be asked
                        running.repositories["o/n"] = Repository()
                    env = {"HF_ENDPOINT": running.url, "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_XET": "1"}
                    said = say("push", release, "--to", "o/n", folder=folder, env=env)
                tried += 1
                wrong = said.defect(1) or (f"{aside.asked}" if aside.asked else "")
                found += [f"{part} at {place}: {wrong}"] if wrong or not running.asked else []
                aside.asked.clear()
    return Outcome(tried=tried, held=tried - len(found), broken=tuple(found))


CASES: tuple[Case, ...] = (
    Case(
        name="servers that redirect to this machine, its network or its files",
        promise="no request leaves for an address that the user has not named",
        attempt=redirected,
    ),
    Case(
        name="a mirror that redirects, or is no mirror",
        promise="the same; an address that is none of a mirror is refused",
        attempt=mirror,
    ),
    Case(
        name="a hub that sends pages, large files or all requests elsewhere",
        promise="the same; the hub's token goes nowhere else",
        attempt=hub,
    ),
)
