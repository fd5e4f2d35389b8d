"""Reading a release: its manifest, its samples, their texts and facts."""

import errno
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import TypeAdapter, ValidationError

from coreeval.config.user_files import read_bytes
from coreeval.errors import ReleaseError
from coreeval.releases.release_manifest import (
    SCHEMA_VERSION,
    ArmRow,
    FactRow,
    IdentifierRow,
    ReleaseManifest,
    SampleRow,
    Sha256,
)
from coreeval.runs.arms import shard_name
from coreeval.runs.manifest import describe_first_problem
from coreeval.schema import Outcome, Task
from coreeval.tasks import kind_of
from coreeval.tasks.kinds import PublishedItem
from coreeval.tools.files import (
    ParquetRow,
    parse_json,
    read_parquet,
    select_parquet_rows,
    special_kind_on_way,
)
from coreeval.tools.outputs import DIGEST as DIGEST
from coreeval.tools.outputs import MANIFEST as MANIFEST
from coreeval.tools.stores.run_queries import ComparedSample

TASK = "task.json"
MOST_BYTES = 64 << 20
"""The most bytes of release.json or task.json (own choice); they have about 20 KB."""
ReleasedArm = Literal["updated", "semantic", "original"]
T = TypeVar("T")
_COMPARED_COLUMNS = ("id", "label_text", "outcome", "updated_sha256", "semantic_sha256")
_COMPARED_ROWS = TypeAdapter(list[tuple[str, str, Outcome, Sha256 | None, Sha256 | None]])
_BESIDE_ITEM = frozenset(ArmRow.model_fields) - {*PublishedItem._fields}


@dataclass(frozen=True, kw_only=True)
class Release:
    """A directory that `make_release` wrote."""

    path: Path
    manifest: ReleaseManifest

    @property
    def digest(self) -> str:
        """Return the sha256 of release.json, which a child release records."""
        return hash_file(self.path / MANIFEST)

    @property
    def task(self) -> Task:
        """Return the task as the run used it.

        Raises:
            ReleaseError: the task file is missing or damaged.
        """
        file = self.path / TASK
        try:
            return Task.model_validate(parse_json(_content(self.path, TASK)))
        except ValidationError as error:
            raise _unreadable(file, describe_first_problem(error)) from None
        except (OSError, ValueError) as error:
            raise _unreadable(file, str(error)) from None

    def file(self, folder: str) -> Path:
        """Return the path of the Parquet file in one of the release's folders.

        Raises:
            ReleaseError: the path contains a link, or is a pipe or device.
        """
        name = f"{folder}/{shard_name(self.manifest.split)}"
        if kind := special_kind_on_way(self.path, name):
            raise _unreadable(self.path / name, f"it is {kind}")
        return self.path / name

    def samples(self, ids: Sequence[str] | None = None) -> Iterator[SampleRow]:
        """Stream every sample of the benchmark, or those with the ids, in the benchmark's order.

        Raises:
            ReleaseError: the file is missing or damaged.
        """
        return read_samples(self.file("samples"), ids)

    def facts(self, ids: Sequence[str] | None = None) -> Iterator[FactRow]:
        """Stream the replaced facts, all or of some samples, in the benchmark's order.

        Raises:
            ReleaseError: the file is missing or damaged.
        """
        return read_facts(self.file("provenance"), ids)

    def arm(self, name: ReleasedArm, ids: Sequence[str] | None = None) -> Iterator[ArmRow]:
        """Stream the rows of an arm; originals that may not be redistributed have none.

        Raises:
            ReleaseError: the file is missing or damaged.
        """
        if name == "original" and not self.manifest.licence.redistribute:
            return iter(())
        restore = kind_of(self.task).restore
        return _rows(self.file(name), lambda row: _arm_row(row, restore), ids)

    def identifiers(self) -> Iterator[IdentifierRow]:
        """Stream the rows of `original/` in a release that may not redistribute these texts.

        Raises:
            ReleaseError: the file is missing or damaged.
        """
        return _rows(self.file("original"), IdentifierRow.model_validate)

    def compared_samples(self) -> Sequence[ComparedSample]:
        """Return the values for comparing every sample of two releases; much faster than `samples`.

        Raises:
            ReleaseError: the file is missing or damaged.
        """
        file = self.file("samples")
        try:
            rows = select_parquet_rows(file, columns=_COMPARED_COLUMNS)
            return _COMPARED_ROWS.validate_python([tuple(row.values()) for row in rows])
        except ValidationError as error:
            raise _unreadable(file, describe_first_problem(error)) from None
        except (OSError, ValueError) as error:
            raise _unreadable(file, str(error)) from None


def read_samples(file: Path, ids: Sequence[str] | None = None) -> Iterator[SampleRow]:
    """Stream the table of samples.

    Raises:
        ReleaseError: the file is missing or damaged.
    """
    return _rows(file, SampleRow.model_validate, ids)


def read_facts(file: Path, ids: Sequence[str] | None = None) -> Iterator[FactRow]:
    """Stream the replaced facts of provenance.

    Raises:
        ReleaseError: the file is missing or damaged.
    """
    return _rows(file, FactRow.model_validate, ids)


def _rows(
    file: Path, parse: Callable[[ParquetRow], T], ids: Sequence[str] | None = None
) -> Iterator[T]:
    """Stream the rows of a file, which may contain anything."""
    number = 0
    try:
        for row in read_parquet(file) if ids is None else select_parquet_rows(file, ids=ids):
            number += 1
            yield parse(row)
    except ValidationError as error:
        raise _unreadable(file, f"row {number}: {describe_first_problem(error)}") from None
    except (OSError, ValueError) as error:
        raise _unreadable(file, str(error)) from None


def _unreadable(file: Path, problem: str) -> ReleaseError:
    return ReleaseError(
        f"cannot read a file of the release: {problem}",
        where=str(file),
        hint="check the rest of the release with: coreeval verify RELEASE",
    )


def _arm_row(row: ParquetRow, restore: Callable[[ParquetRow], PublishedItem]) -> ArmRow:
    item = restore({name: value for name, value in row.items() if name not in _BESIDE_ITEM})
    beside = {name: value for name, value in row.items() if name in _BESIDE_ITEM}
    return ArmRow.model_validate(beside | item._asdict())


def read_release(path: Path) -> Release:
    """Open a release without checking its files; `verify` does that.

    Raises:
        ReleaseError: there is no release, it is damaged, or a newer CoreEval wrote it.
    """
    where = path / MANIFEST
    try:
        said = parse_json(_content(path, MANIFEST))
    except (FileNotFoundError, NotADirectoryError):
        raise ReleaseError(
            f"this is not a release: it has no {MANIFEST}",
            where=str(path),
            hint="use the directory printed by `coreeval release",
        ) from None
    except (OSError, ValueError) as error:
        raise _damaged(where, str(error)) from None
    _refuse_newer(said, where)
    try:
        return Release(path=path, manifest=ReleaseManifest.model_validate(said))
    except ValidationError as error:
        raise _damaged(where, describe_first_problem(error)) from None


def _content(folder: Path, name: str) -> bytes:
    """Return the content of a small file of a release.

    Raises:
        OSError: the file is missing, is a link, pipe or device, or exceeds the size limit.
    """
    if kind := special_kind_on_way(folder, name):
        raise OSError(errno.ENOTSUP, f"it is {kind}", str(folder / name))
    return read_bytes(folder / name, most_bytes=MOST_BYTES)


def _refuse_newer(said: object, where: Path) -> None:
    """Refuse a manifest with a newer schema; only its version number can be read safely."""
    number = said.get("schema_version") if isinstance(said, dict) else None
    if isinstance(number, int) and number > SCHEMA_VERSION:
        raise ReleaseError(
            f"a newer CoreEval wrote this release (format {number}, this version reads "
            f"{SCHEMA_VERSION})",
            where=str(where),
            hint="update CoreEval: pip install --upgrade coreeval",
        )


def _damaged(where: Path, problem: str) -> ReleaseError:
    return ReleaseError(
        f"{MANIFEST} is damaged: {problem}",
        where=str(where),
        hint="download the release again; do not repair it by hand",
    )


def list_releases(folder: Path) -> list[Release]:
    """Return the releases in a folder, sorted by the names of their directories.

    Raises:
        ReleaseError: a release is damaged.
    """
    found = sorted(folder.glob(f"[!.]*/{MANIFEST}"))
    return [read_release(path.parent) for path in found]


def find_latest_release(releases: list[Release]) -> Release | None:
    """Return the release that no other follows; of several, the one made last.

    The chain decides, because the clock may have jumped back.
    """
    followed = {each.manifest.parent.digest for each in releases if each.manifest.parent}
    heads = [each for each in releases if each.digest not in followed]
    return max(heads, key=lambda each: each.manifest.created_at, default=None)


def hash_file(path: Path) -> str:
    """Return the sha256 of a file, reading it in chunks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_texts(fields: Mapping[str, str]) -> str:
    """Return the sha256 of a sample's texts, as JSON in UTF-8 with sorted keys and no spaces."""
    told = json.dumps(dict(fields), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(told.encode()).hexdigest()
