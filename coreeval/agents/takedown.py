"""Names and pieces of evidence that nothing published may rest on, now or later (pilot §4.8)."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from coreeval.agents.name_finder import NameFinder, is_unspaced
from coreeval.agents.words import normalise
from coreeval.config.user_files import MOST_DATA_BYTES, read_text
from coreeval.errors import ConfigError
from coreeval.schema import Evidence

_ID = re.compile(r"[0-9a-f]{16}")
FEWEST_LETTERS = 3
"""A shorter name would forbid half of the news; it is a mistake in the list. Chinese and Japanese
names may have one letter less."""


@dataclass(frozen=True)
class Takedown:
    """What must not be published."""

    names: tuple[str, ...] = ()
    ids: frozenset[str] = frozenset()

    def forbids(self, item: Evidence) -> bool:
        """Tell whether a piece of evidence is listed, or names somebody who is."""
        told = (item.title, item.snippet, item.url, *(entity.name for entity in item.entities))
        return item.id in self.ids or any(self.names_in(" | ".join(told)))

    def names_in(self, text: str) -> Iterator[str]:
        """Yield the listed names that stand in a text, however they are written there."""
        return (name for name, finder in self._finders if finder.finds(text))

    @property
    def fingerprint(self) -> str:
        """Hash of the entries, whatever their order; empty for an empty list."""
        entries = sorted({*map(folded, self.names), *self.ids})
        return hashlib.sha256("\n".join(entries).encode()).hexdigest() if entries else ""

    def __len__(self) -> int:
        return len(self.names) + len(self.ids)

    @cached_property
    def _finders(self) -> list[tuple[str, NameFinder]]:
        return [(name, NameFinder([name])) for name in self.names]


NOTHING = Takedown()


def load_takedown(path: Path) -> Takedown:
    """Read a list: one name or evidence id a line; `#` begins a comment.

    Raises:
        ConfigError: the file cannot be read, or a line is neither a name nor an id.
    """
    try:
        lines = read_text(path, most_bytes=MOST_DATA_BYTES).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the takedown list cannot be read: {error}",
            where=str(path),
            hint="knowledge.takedown names a UTF-8 text file, one name or evidence id a line",
        ) from None
    return takedown_of(_entries(lines, path))


def takedown_in_force(listed: str | None, workspace: Path | None) -> Takedown:
    """Return the list that a config names together with that of its workspace.

    Args:
        listed: The file that the config names, if it names one.
        workspace: The workspace's own list; it need not be there.

    Raises:
        ConfigError: one of them cannot be read.
    """
    files = [*([Path(listed)] if listed else []), *([workspace] if workspace else [])]
    named = [load_takedown(file) for file in files if file != workspace or file.exists()]
    return takedown_of(entry for each in named for entry in (*each.names, *sorted(each.ids)))


def takedown_of(entries: Iterable[str]) -> Takedown:
    """Return the list that some entries make."""
    kept = list(dict.fromkeys(entries))
    ids = frozenset(entry for entry in kept if _ID.fullmatch(entry))
    return Takedown(tuple(entry for entry in kept if entry not in ids), ids)


def _entries(lines: Iterable[str], path: Path) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        entry = " ".join(line.partition("#")[0].split())
        if entry and not is_long_enough(entry):
            raise ConfigError(
                f"{entry!r} is neither a name nor an evidence id",
                where=f"{path}, line {number}",
                hint="a name has at least three letters (two in Chinese or Japanese), an id 16 "
                "hexadecimal digits",
            )
        if entry:
            yield entry


def is_long_enough(name: str) -> bool:
    """Return whether a name has the letters that tell one person from many."""
    letters = [letter for letter in name if letter.isalnum()]
    unspaced = any(map(is_unspaced, letters))
    return len(letters) >= FEWEST_LETTERS - unspaced


def folded(text: str) -> str:
    """Return a text as names are looked for in it: without case, accents and double spaces."""
    apart = unicodedata.normalize("NFKD", normalise(text))
    bare = "".join(letter for letter in apart if not unicodedata.combining(letter))
    return " ".join(bare.casefold().split())
