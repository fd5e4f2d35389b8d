"""One workspace with finished runs for all tests of pages, served once, and a browser."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from coreeval.graph.run import refresh
from coreeval.releases.create import make_release
from coreeval.viewer.app import create_app
from tests.graph.conftest import MakeLab, make_lab  # noqa: F401 - a fixture
from tests.graph.kit import Lab
from tests.viewer.kit import CHROMIUM, Finished, Reader, served

PRICE = {"input": 1.0, "output": 5.0}
SAMPLES = 14


@pytest.fixture(scope="session")
def finished(
    make_lab: MakeLab,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Finished:
    """Return two runs whose roles a server plays, with prices, each released; only to look at."""
    lab = make_lab(tmp_path_factory.mktemp("pages"))
    lab.forget()
    first = _run(lab, composer="openai:scripted")
    second = _run(lab, composer="openai:another")
    for version, run in (("1.0", first), ("1.1", second)):
        make_release(run, version=version)
    return Finished(lab.workspace, first, second)


def _run(lab: Lab, *, composer: str) -> Path:
    model = {"base_url": lab.server.url, "price": PRICE}
    lab.write(
        models={
            "default": {"model": "openai:scripted", **model},
            "composer": {"model": composer, **model},
            "targets": ["offline:classifier"],
        }
    )
    return refresh(lab.config, limit=SAMPLES).run_dir


@pytest.fixture(scope="session")
def pages(finished: Finished) -> Iterator[str]:
    """Serve all of the workspace, and return the address."""
    with served(create_app([], workspace=finished.workspace)) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start a headless Chromium for one file of tests, none of which may be asynchronous.

    Playwright's loop stays in the main thread as long as it runs, where no other may start.
    """
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        pytest.skip("there is no chromium here: apt-get install chromium")
    with sync_playwright() as playwright:
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=found, args=root)
        yield browser
        browser.close()


@pytest.fixture
def reader(browser: Browser, pages: str) -> Iterator[Reader]:
    """Return a page in the browser; it must have nothing to complain of when the test is over."""
    context = browser.new_context()
    made = Reader(context.new_page(), pages)
    yield made
    context.close()
    assert not made.complaints
