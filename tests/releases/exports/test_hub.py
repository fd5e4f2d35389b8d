"""A push brings the hub to what a release holds, whatever happens on the way."""

import hashlib
import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from aiohttp import web
from huggingface_hub import constants
from huggingface_hub.utils import _http as hub_http

from coreeval.errors import CredentialError, ReleaseError, RunError, UsageError
from coreeval.releases.exports import hub as exports
from coreeval.releases.exports.hub import push
from coreeval.releases.verify import verify
from tests.releases.exports.conftest import Sources
from tests.releases.kit import make_run
from tests.support.hub_server import TOKEN, HubServer, Repository

NAME = "owner/weekly"
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
"""Of huggingface_hub, about itself: how it hands large files to its HTTP client."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """Serve an empty hub that this process pushes to."""
    with HubServer().running() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        yield server


def _written(server: HubServer, folder: Path) -> Path:
    """Return a copy of what the hub has, as its client downloads it."""
    own = {".cache/huggingface/download/README.md.metadata": b"of the client"}
    for path, content in (server.repositories[NAME].files | own).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def test_what_arrives_is_the_release_and_a_second_push_changes_nothing(
    hub: HubServer, sources: Sources, tmp_path: Path
) -> None:
    planned = push(sources.free, to=NAME, dry_run=True)
    assert (planned.commit, hub.repositories) == (None, {})
    done = push(sources.free, to=f"hf:{NAME}")
    assert done.uploaded == planned.uploaded
    assert verify(_written(hub, tmp_path)).ok
    repository = hub.repositories[NAME]
    assert repository.tags == {"2026.47": repository.head} == {"2026.47": done.commit}
    assert hub.created[0]["visibility"] == "private"
    assert len(repository.commits) == 2
    again = push(sources.free, to=NAME)
    assert (again.uploaded, again.removed, again.commit) == ((), (), done.commit)
    assert again.kept == len(done.uploaded)
    assert len(repository.commits) == 2


def test_a_hub_that_refuses_half_way_has_nothing_and_the_rest_follows(
    hub: HubServer, sources: Sources
) -> None:
    uploads = itertools.count()
    hub.refuses = lambda http: 403 if http.method == "PUT" and next(uploads) >= 2 else None
    with pytest.raises(RunError, match=r"release: .*\.parquet.* refused by the test") as told:
        push(sources.free, to=NAME)
    assert "same command again" in told.value.hint
    repository = hub.repositories[NAME]
    assert set(repository.files) == {".gitattributes"}
    arrived = set(hub.stored)
    assert len(arrived) == 2
    hub.refuses = lambda _: None
    hub.asked.clear()
    push(sources.free, to=NAME)
    assert arrived.isdisjoint(hub.sent())
    assert set(hub.sent()) == set(hub.stored) - arrived
    assert "release.json" in repository.files


@pytest.mark.parametrize("step", ["/commit/", "/tag/"])
def test_what_the_last_steps_leave_is_taken_up(hub: HubServer, sources: Sources, step: str) -> None:
    hub.refuses = lambda http: 403 if step in http.path else None
    with pytest.raises(RunError, match="refused by the test"):
        push(sources.free, to=NAME)
    hub.refuses = lambda _: None
    hub.asked.clear()
    done = push(sources.free, to=NAME)
    assert hub.sent() == []
    assert hub.repositories[NAME].tags == {"2026.47": done.commit}
    assert len(hub.repositories[NAME].commits) == 2


def test_the_next_version_takes_the_place_and_the_first_stays_under_its_tag(
    hub: HubServer, tmp_path: Path
) -> None:
    made = make_run(tmp_path)
    first, second = made.release("1"), made.release("2", snippets=False)
    push(first.path, to=NAME)
    repository = hub.repositories[NAME]
    stale = {"updated/train-00000-of-00001.parquet": b"of a split that is gone", "LICENSE": b"mine"}
    repository.commit({**repository.files, **stale})
    done = push(second.path, to=NAME)
    assert done.removed == ("updated/train-00000-of-00001.parquet",)
    assert "LICENSE" in repository.files
    assert "updated/test-00000-of-00001.parquet" not in done.uploaded
    assert set(repository.tags) == {"1", "2"}
    head = repository.head
    assert push(first.path, to=NAME).uploaded == ()
    assert repository.head == head


def test_a_version_is_never_pushed_twice_with_other_content(
    hub: HubServer, sources: Sources, tmp_path: Path
) -> None:
    push(sources.free, to=NAME)
    with pytest.raises(ReleaseError, match=r"the hub has a different 2026\.47"):
        push(sources.closed, to=NAME)
    assert len(hub.repositories[NAME].commits) == 2


def test_somebody_elses_commit_meanwhile_is_not_overwritten(
    hub: HubServer, sources: Sources
) -> None:
    push(sources.free, to=NAME, dry_run=True)

    def meanwhile(http: web.Request) -> int | None:
        if http.path.endswith("/preupload/main"):
            hub.repositories[NAME].commit({"theirs": b"new"})
        return None

    hub.refuses = meanwhile
    with pytest.raises(RunError, match="someone changed the repository in the meantime"):
        push(sources.free, to=NAME)
    assert set(hub.repositories[NAME].files) == {"theirs"}


def test_who_may_not_write_is_told_so(
    hub: HubServer, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_another")
    with pytest.raises(
        CredentialError,
        match="the hub requires a token with write access",
    ) as told:
        push(sources.free, to=NAME)
    assert "HF_TOKEN" in told.value.hint
    with pytest.raises(UsageError, match="does not name a repository"):
        push(sources.free, to="weekly")


@pytest.mark.parametrize(
    ("limit", "least", "told"),
    [
        ("_MOST_REQUESTS", 20, "its listing did not end after 20 requests"),
        ("_LONGEST_READING_S", 0.0, "it did not list its files within 0 s"),
        ("_MOST_FILES", 9, "it has more than 9 files"),
    ],
)
def test_a_list_of_files_without_end_is_left(
    hub: HubServer,
    sources: Sources,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    least: float,
    told: str,
) -> None:
    hub.repositories[NAME] = Repository()
    hub.pages_without_end = True
    monkeypatch.setattr(exports, limit, least)
    with pytest.raises(RunError, match=f"rejected the release: {told}"):
        push(sources.free, to=NAME)
    assert len(hub.asked) <= 20


@pytest.mark.parametrize(
    "pause",
    [
        {"RateLimit": '"api";r=0;t=86400'},
        {"RateLimit": f'"api";r=0;t={"9" * 400}'},
        {"Retry-After": "86400"},
    ],
)
def test_a_pause_of_a_day_is_not_waited_for(
    hub: HubServer, sources: Sources, monkeypatch: pytest.MonkeyPatch, pause: dict[str, str]
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(hub_http, "time", SimpleNamespace(sleep=waited.append))
    hub.repositories[NAME] = Repository()
    hub.pause = pause
    hub.refuses = lambda http: 429 if "/tree/" in http.path else None
    with pytest.raises(RunError, match="it requests pauses longer than 600 s"):
        push(sources.free, to=NAME)
    assert waited == []


def test_short_pauses_are_waited_for_until_they_are_too_many(
    hub: HubServer, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(hub_http, "time", SimpleNamespace(sleep=waited.append))
    hub.repositories[NAME] = Repository()
    hub.pause = {"Retry-After": "299"}
    hub.refuses = lambda http: 429 if "/tree/" in http.path and len(waited) < 2 else None
    push(sources.free, to=NAME, dry_run=True)
    assert waited == [300, 300]
    hub.refuses = lambda http: 429 if "/tree/" in http.path else None
    with pytest.raises(RunError, match="it requests pauses longer than 600 s"):
        push(sources.free, to=NAME, dry_run=True)
    assert waited == [300, 300, 300, 300]


def test_an_answer_without_what_it_should_have(
    hub: HubServer, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    def empty(*_: object, **__: object) -> None:
        raise KeyError("id")  # as huggingface_hub does where the answer is {}

    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", empty)
    with pytest.raises(RunError, match="the hub rejected the release: 'id'"):
        push(sources.free, to=NAME)


def test_a_hub_that_repeats_a_token_does_not_show_it(
    hub: HubServer, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    def echo(*_: object, **__: object) -> None:
        raise KeyError("Qz7-secret-0123456789")

    monkeypatch.setenv("OTHER_TOKEN", "Qz7-secret-0123456789")
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", echo)
    with pytest.raises(RunError, match=r"the hub rejected the release: '\*\*\*'"):
        push(sources.free, to=NAME)


def test_the_hubs_own_store_that_refuses_is_told_too(
    hub: HubServer, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", False)
    hub.refuses = lambda http: 403 if "xet-write-token" in http.path else None
    with pytest.raises(RunError, match=r"rejected the release: .*403 Forbidden"):
        push(sources.free, to=NAME)
    assert set(hub.repositories[NAME].files) == {".gitattributes"}


def test_a_release_that_was_edited_is_not_pushed(
    hub: HubServer, sources: Sources, tmp_path: Path
) -> None:
    edited = Path(shutil.copytree(sources.free, tmp_path / "edited"))
    card = edited / "README.md"
    card.chmod(0o644)
    card.write_text(card.read_text() + "better than ever\n")
    with pytest.raises(ReleaseError, match=r"has changed since it was made: README\.md"):
        push(edited, to=NAME)
    assert hub.asked == []


def test_a_release_with_a_listed_name_is_not_pushed(hub: HubServer, tmp_path: Path) -> None:
    made = make_run(tmp_path)
    release = made.release().path
    (made.folder / ".coreeval" / "takedown.txt").write_text("Ada Roe\n")
    with pytest.raises(ReleaseError, match="names or news on the takedown list, in 2 samples"):
        push(release, to=NAME)
    assert hub.repositories == {}


def test_files_are_compared_as_git_does() -> None:
    assert hashlib.sha1(b"blob 0\0").hexdigest() == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
