"""The series that are asked about, opened, with the others of their families as far as need be."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from coreeval.config import NumleakConfig
from coreeval.errors import ConfigError, UsageError
from coreeval.evaluation.numleak.series import Series, expand, known, open_series


@dataclass(frozen=True, kw_only=True)
class Universe:
    """All series that questions are about."""

    series: tuple[Series, ...]
    """Those that the config names, families taken apart."""
    siblings: tuple[Series, ...] = ()
    left_out: tuple[str, ...] = ()
    """Siblings that could not be opened, and why, a sentence each."""

    @property
    def all(self) -> tuple[Series, ...]:
        """Both."""
        return (*self.series, *self.siblings)

    def notes(self) -> Iterator[str]:
        """Yield what a reader should know of the series' files."""
        for one in self.series:
            yield from (f"{one.definition.id}: {note}" for note in one.notes)


def open_universe(asked: NumleakConfig, *, base: Path, cache: Path) -> Universe:
    """Open all series.

    Args:
        asked: What the config says.
        base: Folder that relative paths start at.
        cache: Folder where fetched files are kept.

    Raises:
        ConfigError: there is no such series, one is there twice, or a file is given for another.
        DatasetError: a file is missing, cannot be fetched, or has no values.
    """
    files = {name: base / path for name, path in asked.files.items()}
    named = expand(asked.series)
    series = [open_series(one, base=base, cache=cache, file=files.get(one)) for one in named]
    ids = [one.definition.id for one in series]
    _refuse_twice(ids)
    relatives = [*_relatives(series)] if "siblings" in asked.probes else []
    _refuse_strange(asked.files, [*named, *ids, *relatives])
    siblings, left_out = list[Series](), list[str]()
    for name in relatives:
        try:
            siblings.append(open_series(name, base=base, cache=cache, file=files.get(name)))
        except UsageError as error:
            left_out.append(f"the sibling {name} is not asked about: {error.message}")
    return Universe(series=tuple(series), siblings=tuple(siblings), left_out=tuple(left_out))


def _relatives(series: Iterable[Series]) -> Iterator[str]:
    """Yield the built-in series of the same families that are not asked about anyhow."""
    there = {one.definition.id for one in series}
    families = {one.definition.family for one in series if one.definition.family}
    for one in known():
        if one.family in families and one.id not in there:
            yield one.id


def _refuse_twice(ids: list[str]) -> None:
    twice = sorted({one for one in ids if ids.count(one) > 1})
    if twice:
        raise ConfigError(
            f"the series {twice[0]!r} is there twice",
            where="detect.numleak.series",
            hint="what is answered is kept by the id of a series: give one of them another",
        )


def _refuse_strange(files: Iterable[str], asked: list[str]) -> None:
    strange = [name for name in files if name not in asked]
    if strange:
        raise ConfigError(
            f"a file is given for {strange[0]!r}, which is not asked about",
            where="detect.numleak.files",
            hint=f"asked about: {', '.join(dict.fromkeys(asked))}",
        )
