"""The catalogue of series (built-in, families, a user's own files), and how to open them."""

import hashlib
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib import resources
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import httpx2
from pydantic import ValidationError

from coreeval.config.user_files import (
    UNREADABLE_HINT,
    YAML_HINT,
    YamlError,
    describe_unreadable,
    open_file,
    parse_yaml,
    read_text,
)
from coreeval.config.validation import explain_validation_error
from coreeval.errors import ConfigError, DatasetError, suggest_name
from coreeval.evaluation.numleak.series.definition import Series, SeriesDefinition
from coreeval.evaluation.numleak.series.layouts import MOST_BYTES, extract_text, read_rows
from coreeval.evaluation.numleak.series.observations import check_values, observe, transform
from coreeval.models.http import find_proxy, load_trusted_certificates
from coreeval.paths import expand_home
from coreeval.project import make_user_agent
from coreeval.tools.clock import Clock, utc_now
from coreeval.tools.files import replacing
from coreeval.tools.http import BoundedClient, to_same_host

BUNDLE_FAMILY: Final = "statsmodels"
"""The family of all series from the installed library, which do not need a download."""
_DOCS: Final = "coreeval docs series"


@cache
def list_definitions() -> tuple[SeriesDefinition, ...]:
    """Return the built-in definitions sorted by family; those without a family come last."""
    built_in = [find_definition(name, base=Path()) for name in _ids()]
    return tuple(sorted(built_in, key=lambda one: (one.family or "~", one.id)))


def expand_families(names: Iterable[str]) -> list[str]:
    """Return ids and paths without duplicates, with each family name replaced by its members."""
    found = dict[str, None]()
    for name in names:
        found |= dict.fromkeys(_members(name) or [name])
    return list(found)


def list_families() -> dict[str, list[str]]:
    """Return the members of each built-in family, and of the bundle from an installed library."""
    found = dict[str, list[str]]()
    for one in list_definitions():
        if one.family:
            found.setdefault(one.family, []).append(one.id)
    return found | {
        BUNDLE_FAMILY: [one.id for one in list_definitions() if one.source.package == BUNDLE_FAMILY]
    }


def find_definition(name_or_path: str, *, base: Path) -> SeriesDefinition:
    """Return the built-in definition with an id, or the one in a YAML file.

    Raises:
        ConfigError: the series does not exist, or its file has an error.
    """
    return _parse_definition(find_file(name_or_path, base=base))


def find_file(name_or_path: str, *, base: Path) -> Path:
    """Return the YAML file of a series.

    Raises:
        ConfigError: the name is neither a built-in id nor a path.
    """
    if name_or_path in _ids():
        return _folder() / f"{name_or_path}.yaml"
    path = expand_home(name_or_path)
    if path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        return base / path
    names = [*_ids(), *list_families()]
    raise ConfigError(
        f"there is no built-in series {name_or_path!r}",
        hint=f"{suggest_name(name_or_path, names, likeness=0.5)} (built in: {', '.join(names)}; "
        "the name of your own definition file must end in .yaml)",
    )


def _members(name: str) -> list[str] | None:
    return None if name in _ids() or name.endswith((".yaml", ".yml")) else list_families().get(name)


def _folder() -> Path:
    return Path(str(resources.files("coreeval.evaluation.numleak.series"))) / "built_in"


@cache
def _ids() -> tuple[str, ...]:
    return tuple(sorted(file.stem for file in _folder().glob("*.yaml")))


def _parse_definition(path: Path) -> SeriesDefinition:
    try:
        raw = parse_yaml(read_text(path))
    except FileNotFoundError:
        hint = f"built in: {', '.join(_ids())}"
        raise ConfigError("there is no such series file", where=str(path), hint=hint) from None
    except (OSError, UnicodeDecodeError) as error:
        told = f"the series file cannot be read: {describe_unreadable(error)}"
        raise ConfigError(told, where=str(path), hint=UNREADABLE_HINT) from None
    except YamlError as error:
        raise ConfigError(f"this is not YAML: {error}", where=str(path), hint=YAML_HINT) from None
    if not isinstance(raw, dict):
        raise ConfigError(
            "a series must be a mapping of keys to values", where=str(path), hint=f"see {_DOCS}"
        )
    try:
        return SeriesDefinition.model_validate(raw)
    except ValidationError as error:
        raise explain_validation_error(error, SeriesDefinition, str(path), docs=_DOCS) from None


STALE_AFTER: Final = timedelta(days=45)
"""The age from which a note gives the time when a cached file was fetched.

By then, monthly series have new values.
"""


class _SeriesFile(NamedTuple):
    """The bytes of a series' file and their origin."""

    data: bytes
    origin: str
    notes: tuple[str, ...] = ()
    keep: Path | None = None
    """The path under which to cache a fetched file once it has been read successfully."""


def open_series(
    name_or_path: str,
    *,
    base: Path,
    cache: Path | None = None,
    file: Path | None = None,
    clock: Clock = utc_now,
) -> Series:
    """Return a built-in series by its id, or the series in a YAML file, with its values.

    Args:
        name_or_path: An id in `list_definitions`, or the path of a YAML file.
        base: The folder that relative paths start from.
        cache: The folder for fetched files; None fetches them each time.
        file: A local copy of the publisher's file, read instead of the definition's source.
        clock: Used for URLs that contain the year and for the age of cached files.

    Raises:
        ConfigError: the series does not exist, or its definition has an error.
        DatasetError: its file is missing, cannot be fetched, or has no usable values.
    """
    place = find_file(name_or_path, base=base)
    definition = find_definition(name_or_path, base=base)
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
        DatasetError: the layout differs from the definition, or there are no usable values.
    """
    try:
        text = extract_text(data)
        rows = read_rows(text, definition)
        made = transform(observe(rows, definition), definition)
        said = check_values(made.values, definition)
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
) -> _SeriesFile:
    source = definition.source
    if file:
        return _read_local(file, definition)
    if source.package:
        return _read_package(definition)
    if source.url:
        return _read_published_file(
            source.url.replace("{year}", str(today.year)), definition, cache, today
        )
    return _read_local(place.parent / expand_home(source.path or ""), definition)


def _read_local(path: Path, definition: SeriesDefinition) -> _SeriesFile:
    return _SeriesFile(_bytes(path, definition), str(path))


def _read_package(definition: SeriesDefinition) -> _SeriesFile:
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
    return _SeriesFile(data, f"{name} {version(name)}: {definition.source.path}")


def _read_published_file(
    url: str, definition: SeriesDefinition, cache: Path | None, today: date
) -> _SeriesFile:

    kept = cache_path(url, cache) if cache else None
    if kept and kept.is_file():
        fetched = datetime.fromtimestamp(kept.stat().st_mtime, UTC).date()
        note = f"the file was fetched on {fetched}; to download it again, delete {kept}"
        data = _bytes(kept, definition)
        return _SeriesFile(data, url, (note,) if today - fetched > STALE_AFTER else ())
    hint = f"without a network, download the file elsewhere and {_own_file(definition)}"
    data = fetch(url, hint=hint)
    return _SeriesFile(data, url, keep=kept)


def _bytes(path: Path, definition: SeriesDefinition) -> bytes:
    try:
        with open_file(path) as opened:
            data = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise DatasetError(
            f"the file of {definition.id} cannot be read: {error.strerror}",
            where=str(path),
            hint=_own_file(definition),
        ) from None
    if len(data) > MOST_BYTES:
        raise DatasetError(
            f"the file of {definition.id} has more than {MOST_BYTES >> 20} MiB", where=str(path)
        )
    return data


def _own_file(definition: SeriesDefinition) -> str:
    return f"set detect.numleak.files: {{{definition.id}: PATH}}"


_PATIENCE: Final = httpx2.Timeout(30.0, connect=10.0)
_LONGEST_S: Final = 600.0
_REDIRECTS: Final = 5


def cache_path(url: str, cache: Path) -> Path:
    """Return the cache path of a URL: a hash of the URL, then its file name."""
    parts = urlsplit(url)
    name = re.sub(r"[^A-Za-z0-9.=-]+", "_", f"{Path(parts.path).name}_{parts.query}").strip("_")
    return cache / f"{hashlib.sha256(url.encode()).hexdigest()[:12]}-{name[:80]}"


def fetch(url: str, *, hint: str) -> bytes:
    """Fetch the bytes at a URL.

    Raises:
        DatasetError: there is no response, the status is not success, or the body is too large;
            `hint` says how to work around it.
    """
    client = BoundedClient(
        most_s=_LONGEST_S,
        most_bytes=MOST_BYTES,
        proxy=find_proxy(url),
        verify=load_trusted_certificates(None),
        trust_env=False,
        timeout=_PATIENCE,
        headers={"User-Agent": make_user_agent("a series for an audit"), "Accept-Encoding": "gzip"},
        follow_redirects=True,
        event_hooks={"request": [to_same_host(url)]},
        max_redirects=_REDIRECTS,
    )
    try:
        with client:
            answer = client.get(url)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        told = str(error) or type(error).__name__
        raise DatasetError(f"the file cannot be downloaded: {told}", where=url, hint=hint) from None
    if answer.status_code != 200:
        raise DatasetError(
            f"the publisher's server responded with status {answer.status_code}",
            where=url,
            hint=hint,
        )
    return answer.content
