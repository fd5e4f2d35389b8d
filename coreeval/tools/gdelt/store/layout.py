"""Where a store keeps what (the files of a store are read by the search and by tools)."""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from coreeval.errors import KnowledgeError
from coreeval.tools.gdelt.own_files import own_paths, refuse_links

LONGEST_NAME = 180
"""Characters of a file name, well below the 255 bytes that file systems allow."""
DATA = ("segments", "signals")
"""The folders whose files are listed in `store.db`."""


@dataclass(frozen=True)
class Layout:
    """The files of one store."""

    root: Path

    @property
    def ledger(self) -> Path:
        """What was read and where it went."""
        return self.root / "store.db"

    @property
    def lock(self) -> Path:
        """Held by the process that adds to the store."""
        return self.root / "lock"

    @property
    def downloads(self) -> Path:
        """Files from the mirror that are being read."""
        return self.root / "downloads"

    def aside(self, name: str) -> Path:
        """Return where the rows of a file are kept that were no rows."""
        return self.root / "aside" / f"{safe_name(name)}.jsonl.gz"

    def prepare(self) -> None:
        """Make the store's folder.

        Raises:
            KnowledgeError: there is something else in its place, or a link in it.
        """
        if self.root.exists() and not self._may_be_store():
            raise KnowledgeError(
                "this is no news store",
                where=str(self.root),
                hint="name an empty or a new folder with --store DIR",
            )
        self.root.mkdir(parents=True, exist_ok=True)
        refuse_links(self.root)

    def require(self) -> None:
        """Ask for a store to be there.

        Raises:
            KnowledgeError: it is not, or there is a link in it.
        """
        if not self.ledger.is_file():
            raise KnowledgeError(
                "there is no news store here",
                where=str(self.root),
                hint="make one with: coreeval gdelt sync --days 7, or name one with --store DIR",
            )
        refuse_links(self.root)

    def clear_leftovers(self, listed: Iterable[str]) -> None:
        """Remove what a killed process left: downloads, and data files that are not listed.

        Raises:
            KnowledgeError: there is a link in the store, or a listed path leads out of it.
        """
        refuse_links(self.root)
        shutil.rmtree(self.downloads, ignore_errors=True)
        kept = {self.root / path for path in own_paths(self.root, listed)}
        for kind in DATA:
            for file in (self.root / kind).glob("*/*"):
                if file not in kept:
                    file.unlink()

    def _may_be_store(self) -> bool:
        if not self.root.is_dir():
            return False
        return self.ledger.is_file() or {path.name for path in self.root.iterdir()} <= {"lock"}


def safe_name(name: str) -> str:
    """Return a name as one that is no path and not too long; different names stay different."""
    plain = quote(name.replace("/", "_"), safe="")
    if plain == name and len(plain) <= LONGEST_NAME:
        return plain
    return f"{plain[: LONGEST_NAME - 9]}-{sha256(name.encode()).hexdigest()[:8]}"
