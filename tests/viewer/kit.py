"""What tests of pages share: a server on loopback, and a reader who notices what goes wrong."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ConsoleMessage, Page, Request, Response
from starlette.types import ASGIApp

from coreeval.tools.workspace import Workspace
from coreeval.viewer.app import PageServer, create_app, open_server_socket
from coreeval.viewer.bundle import plan_bundle, write_bundle
from coreeval.viewer.catalog import RunCatalog

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_S = 30
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
GRAVE = ("serious", "critical")


@dataclass(frozen=True)
class Finished:
    """A workspace with two runs of one benchmark that differ in the model that composes."""

    workspace: Workspace
    first: Path
    second: Path

    def key(self, run: Path) -> str:
        """Return the name of a run in addresses."""
        return next(key for key, path in self.catalog.find_runs().items() if path == run)

    @property
    def catalog(self) -> RunCatalog:
        """What a server shows of it."""
        return RunCatalog(workspace=self.workspace)


@contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    """Serve an app on loopback for the block, and give its address without a slash at the end."""
    ready = threading.Event()
    server_socket = open_server_socket("127.0.0.1", 0)
    with server_socket.listener:
        server = PageServer(app, ready.set)
        thread = threading.Thread(target=server.run, args=([server_socket.listener],))
        thread.start()
        assert ready.wait(PATIENCE_S)
        yield server_socket.address.rstrip("/")
        server.should_exit = True
        thread.join(PATIENCE_S)


def write_bundle_of(place: Path, folder: Path, *, hide_texts: bool = False) -> Path:
    """Write the bundle of a run or release, and return its folder."""
    plan = plan_bundle(place, hide_texts=hide_texts)
    write_bundle(create_app([plan.run], hide_texts=hide_texts, bundle=plan), folder)
    return folder


@dataclass
class Reader:
    """A page in a browser, and all that it complained of: errors, refusals of its policy."""

    page: Page
    base: str
    complaints: list[str] = field(default_factory=list)
    expected: set[int] = field(default_factory=set)
    """Statuses beyond success that a test asks for."""

    def __post_init__(self) -> None:
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfailed", self._failed)
        self.page.on("response", self._response)
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))

    def open(self, path: str) -> Page:
        """Open an address of the pages."""
        self.page.goto(self.base + path)
        return self.page

    def assert_readable(self) -> None:
        """Assert that assistive tools find their way, and that nothing is wider than the screen."""
        found = Axe().run(self.page).response["violations"]
        grave = {
            one["id"]: [node["html"][:200] for node in one["nodes"]]
            for one in found
            if one["impact"] in GRAVE
        }
        assert not grave
        wide = self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0, f"the page is {wide} pixels wider than the screen"

    def assert_cells_seen(self) -> None:
        """Assert that a narrow screen shows each cell of the tables whose rows become cards."""
        outside = """() => [...document.querySelectorAll('table.cards :is(th, td)')]
            .filter(cell => cell.getBoundingClientRect().right > window.innerWidth)
            .map(cell => cell.textContent)"""
        assert self.page.locator("table.cards td").count()
        assert self.page.evaluate(outside) == []

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)

    def _failed(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # the reader went elsewhere
            self.complaints.append(f"{request.url}: {request.failure}")

    def _response(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self.expected:
            self.complaints.append(f"{response.status} {urlsplit(response.url).path}")
