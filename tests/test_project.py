"""The project's address: shown everywhere once there is one, and nowhere while it is empty."""

import asyncio
import re
from contextlib import suppress
from pathlib import Path

import pytest

from coreeval import project
from coreeval.config import load_config
from coreeval.errors import DatasetError, to_coreeval_error
from coreeval.evaluation.numleak.series.catalogue import fetch
from coreeval.evaluation.report.report_document import write_report
from coreeval.releases.release import Release
from coreeval.releases.release_card import release_card
from coreeval.runs.card import write_card
from coreeval.runs.manifest import read_manifest
from coreeval.tools.gdelt.doc.replies import open_wire
from coreeval.tools.gdelt.sync.downloads import new_session
from coreeval.tools.workspace import RunFiles
from tests.evaluation.report.kit import found_in
from tests.releases.kit import Made, make_run
from tests.support.doc_server import DocServer

ADDRESS = "https://example.org/coreeval"
_EMPTY = re.compile(r'href=""|\]\(\s*\)|\+\)|; \)|\bat[ ,]*(/issues|,)')
"""What an empty address would leave behind in HTML, Markdown, a header or a message."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def released(made: Made) -> Release:
    return made.release("1")


async def send_requests() -> dict[str, str]:
    """Return the User-Agent headers of those who do not send a contact of the user."""
    with DocServer([]).in_thread() as server:
        async with open_wire(server.url) as wire:
            await wire.get({}, timeout_s=5)
        async with new_session() as session, session.get(server.url):
            pass
        with suppress(DatasetError):
            fetch(server.url, hint="")
    return dict(zip(("doc", "files", "series"), server.agents, strict=True))


def show_everywhere(made: Made, released: Release, folder: Path) -> dict[str, str]:
    """Return all texts that name the project: cards, report, error message, headers."""
    manifest = read_manifest(made.files.manifest)
    rows = {"updated": 3, "semantic": 3, "provenance": 3}
    write_card(folder, released.task, load_config(made.files.config), manifest, rows)
    files = RunFiles(folder)
    write_report(found_in(folder), files)
    try:
        raise ValueError("odd")
    except ValueError as error:
        message = to_coreeval_error(error).hint
    return {
        "card of a run": (folder / "README.md").read_text("utf-8"),
        "card of a release": release_card(released.task, released.manifest),
        "report": files.report_html.read_text("utf-8"),
        "message": message,
        **asyncio.run(send_requests()),
    }


def test_without_an_address_nothing_shows_one(
    made: Made, released: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project, "HOMEPAGE", "")
    for name, text in show_everywhere(made, released, tmp_path).items():
        assert "CoreEval" in text or "coreeval" in text or name == "message", name
        assert not _EMPTY.search(text), (name, text[-300:])


def test_with_an_address_all_show_it(
    made: Made, released: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project, "HOMEPAGE", ADDRESS)
    shown = show_everywhere(made, released, tmp_path)
    assert [name for name, text in shown.items() if ADDRESS not in text] == []
    assert f"[CoreEval]({ADDRESS})" in shown["card of a release"]
    assert f'<a href="{ADDRESS}">CoreEval</a>' in shown["report"]
    assert shown["doc"] == f"coreeval (dated news for benchmarks; +{ADDRESS})"
    assert f"report it at {ADDRESS}/issues, and include" in shown["message"]


def test_the_address_fits_where_it_is_used() -> None:
    assert re.fullmatch(r"|https://[^\s/]+/[^\s]*[^\s/]", project.HOMEPAGE)
