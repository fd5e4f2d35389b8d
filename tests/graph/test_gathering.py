"""A remote news source is asked once for all samples."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from coreeval.errors import CredentialError
from coreeval.graph import inputs
from coreeval.graph.cassettes.recording import record
from coreeval.graph.cassettes.replaying import replay
from coreeval.graph.news import News, open_news
from coreeval.graph.setup import Setup
from coreeval.schema import Coverage, EntityQuery, NamedEntity, Retrieval, Window
from coreeval.tools.gdelt.sources import SourceCache
from coreeval.tools.json_cache import JsonCache
from coreeval.tools.knowledge import KnowledgeSource
from coreeval.tools.workspace import Workspace
from tests.graph.kit import SAMPLES, Lab, Undisturbed, assert_whole
from tests.support.llm_server import Reply


class Far:
    """The local news as if they were far away."""

    name, remote = "doc", True

    def __init__(self, local: KnowledgeSource, requests: list[int], down: bool) -> None:
        self._local, self._requests, self._down = local, requests, down

    async def fetch(self, queries: Sequence[EntityQuery], window: Window, k: int) -> Retrieval:
        self._requests.append(len(queries))
        if self._down:
            nothing = {query.id: () for query in queries}
            return Retrieval(by_query=nothing, reasons=dict.fromkeys(nothing, "throttled"))
        return await self._local.fetch(queries, window, k)

    def coverage(self, window: Window) -> Coverage:
        return self._local.coverage(window)

    def names(self, window: Window) -> list[NamedEntity]:
        return self._local.names(window)

    def close(self) -> None:
        self._local.close()


Remote = Callable[..., list[int]]


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Remote:
    """Put the news far away, and return the sizes of the requests as they come."""
    requests: list[int] = []

    def put(*, down: bool = False) -> list[int]:
        def opened(setup: Setup, workspace: Workspace, *_: object) -> News:
            far = Far(open_news(setup, workspace), requests, down)
            return News([SourceCache(far, JsonCache(tmp_path / "cache"))], None)

        monkeypatch.setattr(inputs, "open_news", opened)
        return requests

    return put


def test_one_request_carries_what_all_samples_ask(
    lab: Lab, undisturbed: Undisturbed, remote: Remote
) -> None:
    requests = remote()
    lab.refresh()
    assert_whole(lab, undisturbed)
    assert len(requests) == 1 and requests[0] >= SAMPLES


def test_a_run_that_is_stopped_goes_on_from_where_it_gathered(
    lab: Lab, undisturbed: Undisturbed, remote: Remote
) -> None:
    requests = remote()
    lab.trap("plan", 3, lambda: Reply(status=401, error={"message": "no"}))
    with pytest.raises(CredentialError):
        lab.refresh()
    assert len(requests) == 1
    answered = lab.answered()
    lab.forget()
    lab.resume()
    assert answered.isdisjoint(lab.asked())
    assert len(requests) == 1, "what was gathered is kept on disk"
    assert_whole(lab, undisturbed)


def test_a_source_that_is_down_ends_no_run_and_is_not_asked_by_each_sample(
    lab: Lab, undisturbed: Undisturbed, remote: Remote
) -> None:
    requests = remote(down=True)
    counts = lab.refresh().manifest.counts
    assert len(requests) == 1
    assert counts["no_knowledge"] > 0 == counts["accepted"]
    reasons = [
        result.reason for result in lab.results().values() if result.outcome == "no_knowledge"
    ]
    assert all("throttled" in reason for reason in reasons)


def test_a_run_whose_news_was_gathered_is_repeated_from_a_cassette(
    lab: Lab, remote: Remote
) -> None:
    requests = remote()
    lab.refresh(limit=4)
    record(lab.files.root, lab.folder / "a", texts=True)
    asked = len(requests)
    assert replay(lab.folder / "a", lab.folder / "again").equal
    assert len(requests) == asked == 1
