"""From the name of a series, or the YAML file that defines one, to its values."""

import hashlib
from datetime import UTC, date, datetime, timedelta
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from coreeval.config.user_files import open_file
from coreeval.errors import DatasetError
from coreeval.evaluation.numleak.series.catalogue import definition_of, place_of
from coreeval.evaluation.numleak.series.cells import observe
from coreeval.evaluation.numleak.series.checking import check
from coreeval.evaluation.numleak.series.definition import SeriesDefinition
from coreeval.evaluation.numleak.series.layouts import read_rows
from coreeval.evaluation.numleak.series.packed import MOST_BYTES, text_of
from coreeval.evaluation.numleak.series.series import Series
from coreeval.evaluation.numleak.series.transforming import transform
from coreeval.tools.clock import Clock, utc_now
from coreeval.tools.files import replacing

OLD: Final = timedelta(days=45)
"""Age from which a note tells when a kept file was fetched: monthly series have gone on by then."""


class _File(NamedTuple):
    """The bytes that a series is read from."""

    data: bytes
    origin: str
    notes: tuple[str, ...] = ()
    keep: Path | None = None
    """Where a file just fetched is kept once it turned out to be readable."""


def open_series(
    name_or_path: str,
    *,
    base: Path,
    cache: Path | None = None,
    file: Path | None = None,
    clock: Clock = utc_now,
) -> Series:
    """Return a built-in series by its id, or that of a YAML file, with its values.

    Args:
        name_or_path: An id that `known` lists, or the path of a YAML file.
        base: Folder that a relative path starts at.
        cache: Folder where fetched files are kept; None: they are fetched anew each time.
        file: The publisher's file on this machine, read in place of the definition's source.
        clock: Tells the year for a URL that has it, and how old a kept file is.

    Raises:
        ConfigError: there is no such series, or a mistake in its definition.
        DatasetError: its file is missing, cannot be fetched, or has no usable values.
    """
    place = place_of(name_or_path, base=base)
    definition = definition_of(name_or_path, base=base)
    found = _find(definition, place, file=file and base / file, cache=cache, today=clock().date())
    series = read_series(definition, found.data, origin=found.origin, notes=found.notes)
    if found.keep:
        with replacing(found.keep) as draft:
            draft.write_bytes(found.data)
    return series


def read_series(
    definition: SeriesDefinition, data: bytes, *, origin: str, notes: tuple[str, ...] = ()
) -> Series:
    """Return the series in the bytes of a publisher's file.

    Raises:
        DatasetError: they are not laid out as the definition says, or have no usable values.
    """
    try:
        text = text_of(data)
        rows = read_rows(text, definition)
        made = transform(observe(rows, definition), definition)
        said = check(made.values, definition)
    except DatasetError as error:
        raise DatasetError(
            f"{definition.id}: {error.message}", where=error.where or origin, hint=error.hint
        ) from None
    return Series(
        definition=definition,
        values=made.values,
        notes=(*notes, *made.notes, *said),
        origin=origin,
        digest=hashlib.sha256(data).hexdigest(),
        text=text,
    )


# -- where the bytes are --------------------------------------------------------------------------


def _find(
    definition: SeriesDefinition, place: Path, *, file: Path | None, cache: Path | None, today: date
) -> _File:
    source = definition.source
    if file:
        return _local(file, definition)
    if source.package:
        return _packaged(definition)
    if source.url:
        return _published(source.url.replace("{year}", str(today.year)), definition, cache, today)
    return _local(place.parent / Path(source.path or "").expanduser(), definition)


def _local(path: Path, definition: SeriesDefinition) -> _File:
    return _File(_bytes(path, definition), str(path))


def _packaged(definition: SeriesDefinition) -> _File:
    """Read a library's data file without importing the library, which takes seconds."""
    name = str(definition.source.package)
    found = find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise DatasetError(
            f"{definition.id} is read from the data files of {name}, which is not installed",
            hint=f"pip install 'coreeval[series]', or {_own_file(definition)}",
        )
    path = Path(found.submodule_search_locations[0]) / str(definition.source.path)
    data = _bytes(path, definition)
    return _File(data, f"{name} {version(name)}: {definition.source.path}")


def _published(url: str, definition: SeriesDefinition, cache: Path | None, today: date) -> _File:
    from coreeval.evaluation.numleak.series.fetching import fetch, kept_at  # httpx2 takes 0.1 s

    kept = kept_at(url, cache) if cache else None
    if kept and kept.is_file():
        fetched = datetime.fromtimestamp(kept.stat().st_mtime, UTC).date()
        note = f"fetched on {fetched}; delete {kept} to fetch it anew"
        return _File(kept.read_bytes(), url, (note,) if today - fetched > OLD else ())
    data = fetch(url, hint=f"without a network download it elsewhere, and {_own_file(definition)}")
    return _File(data, url, keep=kept)


def _bytes(path: Path, definition: SeriesDefinition) -> bytes:
    try:
        with open_file(path) as opened:
            data = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise DatasetError(
            f"{definition.id}: its file cannot be read: {error.strerror}",
            where=str(path),
            hint=_own_file(definition),
        ) from None
    if len(data) > MOST_BYTES:
        raise DatasetError(
            f"{definition.id}: its file has more than {MOST_BYTES >> 20} MiB", where=str(path)
        )
    return data


def _own_file(definition: SeriesDefinition) -> str:
    return f"name a file: detect.numleak.files: {{{definition.id}: PATH}}"
