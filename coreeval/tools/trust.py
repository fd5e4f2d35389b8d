"""The user's consent in a workspace: to variables sent to endpoints, hooks and plugins."""

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import AwareDatetime, ValidationError

from coreeval.errors import RunCorrupt, UntrustedEndpoint
from coreeval.schema import Value
from coreeval.tools.clock import Clock, utc_now
from coreeval.tools.endpoints import EndpointPair
from coreeval.tools.files import write_json
from coreeval.tools.workspace import Workspace

Kind = Literal["endpoint", "hooks", "plugin"]
T = TypeVar("T")


class TrustEntry(Value):
    """An item that the user has accepted."""

    kind: Kind
    what: tuple[str, ...]
    """`variable, origin` for an endpoint; `name, folder, digest` for a config's hooks; `group,
    name, origin` for a plugin."""
    since: AwareDatetime
    seal: str
    """The HMAC-SHA256 of the workspace's path, the kind and `what`."""


class _Record(Value):
    schema_version: Literal[1] = 1
    trusted: tuple[TrustEntry, ...] = ()


class TrustRecord:
    """The record of what the user has accepted in a workspace."""

    def __init__(self, workspace: Workspace, *, now: Clock = utc_now) -> None:
        self.path = workspace.trust_file
        self._root = str(workspace.root.resolve())
        self._now = now

    @classmethod
    def at(cls, path: Path) -> "TrustRecord":
        """Return the record at a path from another record's `path`."""
        return cls(Workspace(path.parent))

    def endpoints(self) -> frozenset[EndpointPair]:
        """Return the accepted pairs of variables and origins.

        Raises:
            RunCorrupt: the file is damaged.
        """
        known = (entry.what for entry in self._valid_entries("endpoint"))
        return frozenset(EndpointPair(*what) for what in known if len(what) == 2)

    def trust_endpoints(self, pairs: Iterable[EndpointPair]) -> None:
        """Store pairs as accepted.

        Raises:
            RunCorrupt: the file is damaged.
            OSError: the file or the user's key cannot be written.
        """
        for pair in pairs:
            self._add("endpoint", tuple(pair))

    def accepts_hooks(self, name: str, folder: Path, digest: str) -> bool:
        """Return whether a config's hooks are the ones last accepted in its folder.

        Raises:
            RunCorrupt: the file is damaged.
        """
        return (name, _place(folder), digest) in {
            entry.what for entry in self._valid_entries("hooks")
        }

    def accept_hooks(self, name: str, folder: Path, digest: str) -> None:
        """Store a config's hooks as accepted, replacing those accepted before in its folder.

        A command such as `./notify.sh` is a different command in another folder.

        Raises:
            RunCorrupt: the file is damaged.
            OSError: the file or the user's key cannot be written.
        """
        self._add("hooks", (name, _place(folder), digest))

    def accepts_plugin(self, group: str, name: str, origin: str) -> bool:
        """Return whether a plugin is the one last accepted under its name.

        Raises:
            RunCorrupt: the file is damaged.
        """
        return (group, name, origin) in {entry.what for entry in self._valid_entries("plugin")}

    def accept_plugin(self, group: str, name: str, origin: str) -> None:
        """Store a plugin as accepted, replacing another version that was accepted before.

        Args:
            group: The group of the plugin, such as `formats`.
            name: Its name in the config.
            origin: Its package and version, or its file and the digest of its code.

        Raises:
            RunCorrupt: the file is damaged.
            OSError: the file or the user's key cannot be written.
        """
        self._add("plugin", (group, name, origin))

    def _valid_entries(self, kind: Kind) -> list[TrustEntry]:
        key = _read_key()
        if key is None:
            return []
        entries = (entry for entry in self._read().trusted if entry.kind == kind)
        return [e for e in entries if hmac.compare_digest(e.seal, self._seal(key, kind, e.what))]

    def _add(self, kind: Kind, what: tuple[str, ...]) -> None:
        key = _read_key() or _write_key()
        sealed = TrustEntry(
            kind=kind, what=what, since=self._now(), seal=self._seal(key, kind, what)
        )
        same = what if kind == "endpoint" else what[:2]
        kept = (
            entry
            for entry in self._read().trusted
            if entry.kind != kind or entry.what[: len(same)] != same
        )
        record = _Record(trusted=(*kept, sealed))
        write_json(self.path, record.model_dump(mode="json"))

    def _seal(self, key: bytes, kind: Kind, what: tuple[str, ...]) -> str:
        said = json.dumps([self._root, kind, *what])
        return hmac.new(key, said.encode(), hashlib.sha256).hexdigest()

    def _read(self) -> _Record:
        try:
            return _Record.model_validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return _Record()
        except (ValidationError, UnicodeDecodeError):
            raise RunCorrupt(
                "cannot read the record of trusted endpoints and hooks",
                where=str(self.path),
                hint="restore it from a backup, or delete it; CoreEval then asks for consent again",
            ) from None


def load_trusted_endpoints(workspace: Workspace) -> frozenset[EndpointPair]:
    """Return the accepted pairs of variables and origins of a workspace.

    Raises:
        RunCorrupt: the workspace's record is damaged.
    """
    return TrustRecord(workspace).endpoints()


def _place(folder: Path) -> str:
    return str(folder.resolve())


# -- the user's key -----------------------------------------------------------------------------


def _key_path() -> Path:
    """Return the path of the key; its folder cannot be set by a .env file."""
    return Path.home() / ".config" / "coreeval" / "trust.key"


def _read_key() -> bytes | None:
    try:
        return _key_path().read_bytes() or None
    except FileNotFoundError:
        return None


def _write_key() -> bytes:
    path, key = _key_path(), secrets.token_hex(32).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(key)
    try:
        os.link(draft, path)  # another process has written it first
    except FileExistsError:
        key = path.read_bytes()
    finally:
        draft.unlink()
    return key


def retry_with_trust(
    work: Callable[[], T],
    agrees: Callable[[UntrustedEndpoint], bool],
    told: Callable[[str], None] = lambda _: None,
) -> T:
    """Return the result of a piece of work, after the user has agreed to what it sends where.

    Args:
        work: Raises UntrustedEndpoint before anything is written or sent; it is called again.
        agrees: Returns whether the user agrees to what an error names.
        told: Called with each newly accepted pair.

    Raises:
        UntrustedEndpoint: consent was refused.
    """
    asked = set[tuple[str, str]]()
    while True:
        try:
            return work()
        except UntrustedEndpoint as error:
            new = set(error.pairs) - asked
            if error.record is None or not new or not agrees(error):
                raise
            asked |= new
            pairs = [EndpointPair(*pair) for pair in error.pairs]
            TrustRecord.at(error.record).trust_endpoints(pairs)
            for pair in pairs:
                told(f"remembered in {error.record}: {pair}")
