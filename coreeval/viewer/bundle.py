"""Bundles: the pages of one run as files that open from disk or from any web host.

The application produces the pages, so a bundle has the same pages as the server. Links become
relative to the page; links to pages outside the bundle are removed.
"""

import asyncio
import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import parse_qs, parse_qsl, unquote, urlencode

import httpx2
from starlette.applications import Starlette
from starlette.types import ASGIApp

from coreeval.errors import CoreEvalError, UsageError
from coreeval.releases.published_samples import (
    PublishedSample,
    read_published_samples,
    refuse_changed_run,
)
from coreeval.releases.release import Release, read_release
from coreeval.releases.review.review import resolve_run
from coreeval.runs.copying import refuse_takedown
from coreeval.runs.history import SampleHistory, redact_row
from coreeval.runs.manifest import Manifest
from coreeval.runs.open import open_run_reader
from coreeval.tools.files import (
    delete_left_drafts,
    draft_folder,
    leads_through_link,
    parse_json,
    write_json,
)
from coreeval.tools.local_paths import FOLDER_START
from coreeval.tools.outputs import refuse_releases_around
from coreeval.tools.stores.run_queries import ALL_SAMPLES, ListRow, SampleFilter
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.text import unescape
from coreeval.viewer.catalog import RunCatalog
from coreeval.viewer.rendering import build_run_url
from coreeval.viewer.run_pages import REPORT_PAGE_POLICY
from coreeval.viewer.sample_list import PAGE_SIZE

MOST_SAMPLES: Final = 1000
"""The most samples with a page in a bundle (own choice: about 100 MB)."""
MOST_LIST_PAGES: Final = MOST_SAMPLES // PAGE_SIZE
MARKER: Final = "bundle.json"
"""The file that marks a folder as a bundle, and lists the bundle's files."""
_PAGE: Final = re.compile(
    r"index\.html|detection\.html|report\.html|report\.json|items\.csv"
    r"|(samples|targets)(-[0-9a-f]{16})?(-\d+)?\.html|sample/[0-9a-f]{16}\.(html|json)"
    r"|static/[\w.-]+"
)
"""The names that `BundlePlan.find_file` returns. A marker may come from a stranger, so only files
with such names are replaced or deleted."""
_MOST_MARKER_BYTES: Final = 1 << 20
_ADDRESS: Final = re.compile(rb' (href|src)="(/[^"]*)"')
"""A link within these pages; quotes in texts are escaped, so no text looks like one."""
_HTMX: Final = re.compile(rb'\s+hx-[a-z-]+="[^"]*"')
_FOLDER_VALUE: Final = re.compile(rb'"(?:[A-Za-z]:)?[/\\][^"\n]*[/\\]([^"/\\\n]+)"')
"""An absolute path in the settings of a run."""
_REPORT_HEAD: Final = (
    '<!doctype html>\n<meta charset="utf-8">\n'
    f'<meta http-equiv="Content-Security-Policy" content="{REPORT_PAGE_POLICY}">\n'
).encode()
"""The prefix of a report, with the policy that the server sends; the run may be from a stranger."""
_PLACE_PARAMETERS: Final = frozenset({"after", "before", "page"})


@dataclass(frozen=True, kw_only=True)
class BundlePlan:
    """The pages of a run in a bundle, and their files."""

    run: Path
    """The directory of the run."""
    key: str
    """Its name in addresses."""
    samples: Mapping[str, str]
    """The files of the samples with a page, without endings, by id."""
    total: int
    """The number of samples of the run."""
    report: bool
    """Whether the bundle contains the report of the run."""
    release: str = ""
    """The name and version of the release in the bundle; empty for a run."""
    published: Mapping[str, PublishedSample] = field(default_factory=dict)
    """The samples of the release with a page, by id; empty for a run."""
    folders: tuple[str, ...] = ()
    """Folders of this machine that no page may name."""

    def restrict_row(self, row: ListRow) -> ListRow:
        """Return a row of a list, for a release with only what the release contains."""
        if not self.release:
            return row
        known = self.published.get(row.sample)
        return row.model_copy(update={"reason": known.result.reason}) if known else redact_row(row)

    def restrict_history(self, history: SampleHistory) -> SampleHistory:
        """Return a sample's history, for a release with only what the release contains."""
        return self.published[history.sample.id].restrict(history) if self.release else history

    def find_file(self, address: str) -> str | None:
        """Return the file of a page, given its address on the server; None if there is none."""
        path, _, query = address.partition("#")[0].partition("?")
        if path.startswith("/static/"):
            return path[1:]
        page = path.removeprefix(build_run_url(self.key))
        if path == "/" or page == "":
            return "index.html"
        if page in ("/samples", "/targets"):
            return self._find_list(page[1:], query)
        if page.startswith(("/sample/", "/story/")):
            return self._find_sample(page, query)
        reports = {"/report", "/download/report.json", "/download/items.csv"}
        if page == "/detection" or (page in reports and self.report):
            name = page.rpartition("/")[2]
            return name if "." in name else f"{name}.html"
        return None

    def _find_sample(self, page: str, query: str) -> str | None:
        kind, _, quoted = page[1:].partition("/")
        sample = unquote(quoted) or parse_qs(query).get("id", [""])[0]
        file = self.samples.get(sample)
        return file and file + (".html" if kind == "sample" else ".json")

    def _find_list(self, name: str, query: str) -> str | None:
        """Return the file of a list; lists in another order have none."""
        given = parse_qsl(query)
        page = int(dict(given).get("page", "1"))
        chosen = sorted(pair for pair in given if pair[0] not in _PLACE_PARAMETERS)
        if "sort" in dict(chosen) or page > MOST_LIST_PAGES:
            return None
        of_filter = f"-{_shorten(urlencode(chosen))}" if chosen else ""
        return f"{name}{of_filter}{f'-{page}' if page > 1 else ''}.html"


def _shorten(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def plan_bundle(place: Path, *, hide_texts: bool = False) -> BundlePlan:
    """Return the pages in the bundle of a run or release.

    Pages of accepted samples come first. A release has only pages of the samples that it publishes,
    with only what its files contain, and no report, because the report quotes others.

    Args:
        place: The directory of a run, or of a release made from one.
        hide_texts: Whether the pages leave out texts.

    Raises:
        UsageError: it is neither, the pages would show texts that the release does not publish, or
            the run has changed since the release was made.
        ReleaseError: a file of the release is missing or damaged.
        RunStateError: the run's manifest cannot be read.
        RunCorrupt: the run's run.db is damaged or missing.
    """
    run = resolve_run(place)
    release = None if run == place else read_release(place)
    if release and not hide_texts:
        _refuse_private_texts(release)
    with open_run_reader(run) as (files, manifest, store):
        if release:
            refuse_changed_run(release, store)
        published = read_published_samples(release, MOST_SAMPLES) if release else {}
        chosen = published if release else islice(_choose_samples(store), MOST_SAMPLES)
        return BundlePlan(
            run=run,
            key=next(iter(RunCatalog(runs=[run]).find_runs())),
            samples={each: f"sample/{_shorten(each)}" for each in chosen},
            total=store.total(),
            report=release is None and not hide_texts and files.report_html.exists(),
            release=f"{release.manifest.name} {release.manifest.version}" if release else "",
            published=published,
            folders=tuple(_list_private_folders(files.root, manifest)),
        )


def _list_private_folders(run: Path, manifest: Manifest) -> list[str]:
    """Return the folders of a run, its config and its user, as pages might name them."""
    known = (run.resolve(), run.parent, Path(manifest.workspace), Path.home(), Path.cwd())
    source = manifest.source
    projects = (source.project, *(source.moved or ()), source.recorded.parent, source.file.parent)
    named = {str(each) for each in (*known, *projects)}
    return sorted((each for each in named if len(each) > 1), key=len, reverse=True)


def _refuse_private_texts(release: Release) -> None:
    """Refuse pages with originals or news excerpts that a release leaves out."""
    manifest = release.manifest
    if not (manifest.licence.redistribute and manifest.snippets):
        left_out = "excerpts of news" if manifest.licence.redistribute else "the original texts"
        raise UsageError(
            f"the release omits {left_out}, but the pages would show them",
            where=str(release.path),
            hint="add --hide-texts",
        )


def _choose_samples(store: RunStore) -> Iterator[str]:
    accepted = store.listing.ids(SampleFilter(outcomes=("accepted",)))
    return iter(dict.fromkeys(chain(accepted, store.listing.ids(ALL_SAMPLES))))


@dataclass(kw_only=True)
class BundleWriter:
    """Writes the pages of an application to a folder, starting with the run's page."""

    app: ASGIApp
    plan: BundlePlan
    folder: Path
    files: list[str] = field(default_factory=list)
    """The files written so far."""

    async def write(self) -> None:
        """Write all pages.

        Raises:
            CoreEvalError: a page could not be rendered.
            OSError: the folder cannot be written.
        """
        transport = httpx2.ASGITransport(app=self.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            waiting = deque([build_run_url(self.plan.key)])
            seen = {"index.html"}
            while waiting:
                address = waiting.popleft()
                for linked in self._keep(address, await _fetch(client, address)):
                    file = self.plan.find_file(linked)
                    if file and file not in seen:
                        seen.add(file)
                        waiting.append(self._clean(linked))

    def _clean(self, address: str) -> str:
        """Return the address of a page without the query of a sample's list."""
        path, _, query = address.partition("#")[0].partition("?")
        lists = tuple(build_run_url(self.plan.key) + name for name in ("/samples", "/targets"))
        if not path.startswith(lists):
            pairs = [pair for pair in parse_qsl(query) if pair[0] == "id"]
            return path + (f"?{urlencode(pairs)}" if pairs else "")
        return path + (f"?{query}" if query else "")

    def _keep(self, address: str, content: bytes) -> list[str]:
        """Write a page and return the addresses that it links to."""
        name = self.plan.find_file(address)
        assert name is not None
        linked: list[str] = []
        if name.endswith(".html") and name != "report.html":
            content = self._relink(content, name, linked)
        if not name.startswith("static/"):
            for folder in self.plan.folders:
                named = FOLDER_START + re.escape(f"{escape(folder)}/")
                content = re.sub(named.encode(), b"\xe2\x80\xa6/", content)
        if name == "report.html":
            content = _REPORT_HEAD + content
        if name == "report.json":
            content = _FOLDER_VALUE.sub(b'"\xe2\x80\xa6/\\1"', content)
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        self.files.append(name)
        return linked

    def _relink(self, content: bytes, name: str, linked: list[str]) -> bytes:
        up = "../" * (len(PurePosixPath(name).parts) - 1)

        def relink(found: re.Match[bytes]) -> bytes:
            address = unescape(found[2].decode())
            file = self.plan.find_file(address)
            if file is None:
                return b""
            linked.append(address)
            fragment = "".join(address.partition("#")[1:])
            return f' {found[1].decode()}="{escape(up + file + fragment)}"'.encode()

        return _ADDRESS.sub(relink, _HTMX.sub(b"", content))


async def _fetch(client: httpx2.AsyncClient, address: str) -> bytes:
    answer = await client.get(address)
    if answer.status_code != 200:
        raise CoreEvalError(
            f"could not create a page: HTTP status {answer.status_code}",
            where=address,
            hint="`coreeval view` shows why",
        )
    return answer.content


def write_bundle(app: Starlette, folder: Path) -> Sequence[str]:
    """Write a bundle and return its files; an existing bundle is replaced.

    The folder may be a volume or a link. Other files stay in it; if one has the name of a page, the
    bundle is refused.

    Args:
        app: The application that serves the pages of a plan.
        folder: The folder, which is new, empty or a bundle.

    Raises:
        UsageError: there is something else in the folder.
        ReleaseError: the folder is inside a release.
        RunStateError: a takedown has changed the run meanwhile; the folder is unchanged.
        CoreEvalError: a page could not be rendered; the folder is unchanged.
        OSError: the folder cannot be written.
    """
    refuse_releases_around(folder)
    for each in (folder, folder.parent):
        delete_left_drafts(each)
    old = find_own_files(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    place = folder.absolute()
    with draft_folder(place / "pages" if place.is_dir() else place) as draft:
        writer = BundleWriter(app=app, plan=app.state.bundle, folder=draft)
        with refuse_takedown(writer.plan.run):
            asyncio.run(writer.write())
        _move(draft, folder, writer.files, old)
    return writer.files


def _move(draft: Path, folder: Path, files: Sequence[str], old: Sequence[str]) -> None:
    """Move a finished bundle to its place; the marker lists all files until the end."""
    _refuse_links(folder, {*files, *old, MARKER})
    _refuse_other_files(folder, {*files} - {*old})
    folder.mkdir(exist_ok=True)
    write_json(folder / MARKER, {"coreeval_bundle": 1, "files": sorted({*files, *old})})
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (draft / name).replace(folder / name)
    for name in {*old} - {*files}:
        (folder / name).unlink(missing_ok=True)
    write_json(folder / MARKER, {"coreeval_bundle": 1, "files": sorted(files)})


def find_own_files(folder: Path) -> Sequence[str]:
    """Return the files of the bundle in a folder; none if it is new or empty.

    Raises:
        UsageError: the folder contains something else, or the path is a file.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return ()
    names = _read_marker(folder)
    if names is None or not all(map(_PAGE.fullmatch, names)):
        raise UsageError(
            "this folder contains something other than a bundle",
            where=str(folder),
            hint="choose a new or empty folder",
        )
    return names


def _refuse_links(folder: Path, names: Collection[str]) -> None:
    """Refuse to write or delete through a link, because this would change a file elsewhere."""
    for name in names:
        if leads_through_link(folder, name):
            raise UsageError(
                "a file of the bundle would be written through a link",
                where=str(folder / name),
                hint="remove the link, or choose a new folder",
            )


def _refuse_other_files(folder: Path, names: Collection[str]) -> None:
    """Refuse to replace a file that is not part of the bundle in the folder."""
    for name in sorted(names):
        if (folder / name).exists():
            raise UsageError(
                "this file is not part of the bundle, but has the name of one of its pages",
                where=str(folder / name),
                hint="move it to another folder, or choose a new folder for the bundle",
            )


def _read_marker(folder: Path) -> Sequence[str] | None:
    try:
        with (folder / MARKER).open("rb") as file:
            said = parse_json(file.read(_MOST_MARKER_BYTES))
    except (OSError, ValueError):
        return None
    names = said.get("files") if isinstance(said, dict) and "coreeval_bundle" in said else None
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        return None
    return names
