"""The Hugging Face hub on loopback, as far as pushing a dataset needs it; it refuses on demand.

It keeps to the protocol that huggingface_hub speaks: large files go to a store by their sha256
(Git LFS, basic transfer) before a commit names them, and a commit is whole or not there.
"""

import base64
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from tests.support.threads import from_thread

TOKEN = "hf_only-for-tests"
Files = dict[str, bytes]
Refusal = Callable[[web.Request], int | None]


@dataclass
class Repository:
    """A dataset repository: its commits in their order, and its tags."""

    commits: list[tuple[str, Files]] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)
    large: set[str] = field(default_factory=set)
    """Paths of files that are kept in the store of large ones."""

    def __post_init__(self) -> None:
        self.commit({".gitattributes": b"*.parquet filter=lfs\n"})

    @property
    def head(self) -> str:
        return self.commits[-1][0]

    @property
    def files(self) -> Files:
        """The files of the last commit."""
        return self.commits[-1][1]

    def at(self, revision: str) -> Files:
        """Return the files of a commit, a tag or the branch."""
        wanted = self.head if revision == "main" else self.tags.get(revision, revision)
        return dict(self.commits)[wanted]

    def commit(self, files: Files) -> str:
        """Add a commit."""
        oid = hashlib.sha1(f"{len(self.commits)}".encode()).hexdigest()
        self.commits.append((oid, files))
        return oid


class HubServer:
    """Serves repositories, and remembers what it was asked."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.stored: Files = {}
        """Large files by their sha256."""
        self.asked: list[str] = []
        self.created: list[dict[str, Any]] = []
        self.pages_without_end = False
        """Whether each page of a list of files names a next one."""
        self.pause: dict[str, str] = {}
        """Headers of what is refused."""
        self.refuses: Refusal = lambda _: None
        """Returns the status to refuse a request with, or None."""
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def sent(self) -> list[str]:
        """Return the sha256 of each large file that was sent, refused ones included."""
        return [line.rpartition("/")[2] for line in self.asked if line.startswith("PUT ")]

    @contextmanager
    def running(self) -> Iterator["HubServer"]:
        """Serve inside the block, from a thread."""
        with from_thread(self._served(), "hub") as server:
            yield server

    @asynccontextmanager
    async def _served(self) -> AsyncIterator["HubServer"]:
        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            return self._refused(request) or await handler(request)

        app = web.Application(middlewares=[guard], client_max_size=2**26)
        api = "/api/datasets/{owner}/{name}"
        app.add_routes(
            [
                web.get(api, self._info),
                web.get(f"{api}/refs", self._refs),
                web.get(f"{api}/tree/{{revision}}", self._tree),
                web.post(f"{api}/preupload/{{revision}}", self._preupload),
                web.post(f"{api}/commit/{{revision}}", self._commit),
                web.post(f"{api}/tag/{{revision}}", self._tag),
                web.post("/api/repos/create", self._create),
                web.post("/api/validate-yaml", self._validate),
                web.post("/datasets/{owner}/{name}.git/info/lfs/objects/batch", self._batch),
                web.put("/large/{sha256}", self._put),
            ]
        )
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self._port = int(runner.addresses[0][1])
        try:
            yield self
        finally:
            await runner.cleanup()

    def _refused(self, http: web.Request) -> web.StreamResponse | None:
        """Note a request; refuse it if told to, or if it has not the token."""
        self.asked.append(f"{http.method} {http.path}")
        status = self.refuses(http)
        stored = http.path.startswith("/large/")  # the address is the permission, as on the hub
        if status is None and not stored and http.headers.get("authorization") != f"Bearer {TOKEN}":
            status = 401
        if status is None:
            return None
        error = {"error": "refused by the test"}
        return web.json_response(error, status=status, headers=self.pause)

    def _repository(self, http: web.Request) -> Repository:
        name = f"{http.match_info['owner']}/{http.match_info['name']}"
        if name not in self.repositories:
            raise web.HTTPNotFound(headers={"X-Error-Code": "RepoNotFound"})
        return self.repositories[name]

    async def _info(self, http: web.Request) -> web.Response:
        return web.json_response({"id": "any", "sha": self._repository(http).head, "tags": []})

    async def _refs(self, http: web.Request) -> web.Response:
        repository = self._repository(http)
        tags = [
            {"name": name, "ref": f"refs/tags/{name}", "targetCommit": commit}
            for name, commit in repository.tags.items()
        ]
        branch = {"name": "main", "ref": "refs/heads/main", "targetCommit": repository.head}
        return web.json_response({"branches": [branch], "converts": [], "tags": tags})

    async def _tree(self, http: web.Request) -> web.Response:
        repository = self._repository(http)
        files = repository.at(http.match_info["revision"])
        headers = {}
        if self.pages_without_end:
            headers["Link"] = f'<{self.url}{http.path}?cursor={len(self.asked)}>; rel="next"'
        entries = [_entry(path, files[path], repository) for path in files]
        return web.json_response(entries, headers=headers)

    async def _create(self, http: web.Request) -> web.Response:
        asked = await http.json()
        self.created.append(asked)
        name = f"{asked['organization']}/{asked['name']}"
        self.repositories[name] = Repository()
        return web.json_response({"url": f"{self.url}/datasets/{name}"})

    async def _validate(self, http: web.Request) -> web.Response:
        return web.json_response({"errors": [], "warnings": []})

    async def _preupload(self, http: web.Request) -> web.Response:
        files = [
            {
                "path": file["path"],
                "uploadMode": "lfs" if file["path"].endswith(".parquet") else "regular",
                "shouldIgnore": False,
            }
            for file in (await http.json())["files"]
        ]
        return web.json_response({"files": files})

    async def _batch(self, http: web.Request) -> web.Response:
        asked = (await http.json())["objects"]
        return web.json_response({"transfer": "basic", "objects": list(map(self._object, asked))})

    def _object(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return where a large file goes; nothing to do for one that is there."""
        where = {"upload": {"href": f"{self.url}/large/{asked['oid']}"}}
        return asked if asked["oid"] in self.stored else {**asked, "actions": where}

    async def _put(self, http: web.Request) -> web.Response:
        body, sha256 = await http.read(), http.match_info["sha256"]
        assert hashlib.sha256(body).hexdigest() == sha256
        self.stored[sha256] = body
        return web.Response()

    async def _commit(self, http: web.Request) -> web.Response:
        repository = self._repository(http)
        lines = [json.loads(line) for line in (await http.text()).splitlines()]
        header = next(line["value"] for line in lines if line["key"] == "header")
        if header.get("parentCommit", repository.head) != repository.head:
            return web.json_response({"error": "the branch has moved"}, status=412)
        files = dict(repository.files)
        for line in lines:
            self._apply(line["key"], line["value"], files, repository)
        oid = repository.commit(files)
        place = http.path.removeprefix("/api").partition("/commit/")[0]
        url = f"{self.url}{place}/commit/{oid}"
        return web.json_response({"commitUrl": url, "commitOid": oid})

    def _apply(self, key: str, said: dict[str, Any], files: Files, repository: Repository) -> None:
        if key == "file":
            files[said["path"]] = base64.b64decode(said["content"])
        elif key == "lfsFile":
            files[said["path"]] = self.stored[said["oid"]]
            repository.large.add(said["path"])
        elif key == "deletedFile":
            del files[said["path"]]

    async def _tag(self, http: web.Request) -> web.Response:
        repository, asked = self._repository(http), await http.json()
        repository.tags[asked["tag"]] = http.match_info["revision"]
        return web.json_response({})


def _entry(path: str, content: bytes, repository: Repository) -> dict[str, object]:
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    entry: dict[str, object] = {"type": "file", "path": path, "size": len(content), "oid": blob}
    if path in repository.large:
        sha256 = hashlib.sha256(content).hexdigest()
        entry["lfs"] = {"oid": sha256, "size": len(content), "pointerSize": 130}
    return entry
