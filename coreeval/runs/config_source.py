"""The config of a run: its file at the start, and the file and paths in the run's present place.

The paths in a run's own files are always those from its start. A project can be moved, copied and
renamed any number of times, so present paths are found anew at each reading.
"""

import os
from collections.abc import Callable, Set
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, SerializerFunctionWrapHandler, model_serializer

from coreeval.config.load import read_config_name
from coreeval.errors import ConfigError
from coreeval.schema import Value
from coreeval.tools.workspace import WORKSPACE_NAME, workspace_for


def check_path(said: str) -> str:
    """Return a path.

    Raises:
        ValueError: no file can have this path.
    """
    path = os.fsencode(said)
    if b"\0" in path or len(path) > _MOST_PATH_BYTES or max(map(len, path.split(b"/"))) > 255:
        raise ValueError("no file can have this path")
    return said


_MOST_PATH_BYTES = 4095
"""The longest path on Linux; each of its parts has at most 255 bytes."""
LocalPath = Annotated[str, AfterValidator(check_path)]
"""A path on this or another machine; any other text would be an error wherever it is looked up."""
_MOST_CONFIGS = 100
"""The most files that are read in the search for a config that was renamed (own choice)."""
_MOST_CONFIG_BYTES = 64 << 10
"""The most bytes of a file that is read in this search (own choice): larger ones take seconds."""
_MOST_SEARCHED_BYTES = 1 << 20
"""The most bytes of all files that are read in this search (own choice)."""
_UNREADABLE: Final = object()


class ConfigSource(Value):
    """The config from which the run was started."""

    path: LocalPath
    """The path of its file; empty if it was given in memory, or if the run replays a cassette."""
    sha256: str
    overrides: tuple[str, ...] = ()
    """Settings given in addition, as `key.path=value`."""
    found: LocalPath = ""
    """The path of the file if the run is in another workspace than at its start, otherwise empty.
    It is found again if the workspace is in another place than recorded."""
    project: LocalPath = ""
    """The folder with the workspace at the start, if the config was given in memory; empty in runs
    from before this was recorded."""
    moved: tuple[LocalPath, LocalPath] | None = Field(default=None, exclude=True)
    """The folder of the run's paths at the start, and its present one; None if it is the same."""
    is_of_other: bool = Field(default=False, exclude=True)
    """Whether the file describes another benchmark by now, and no file beside it describes this
    one."""

    @model_serializer(mode="wrap")
    def _leave_out_empty(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave `found` and `project` out if they are empty, as in most manifests."""
        values: dict[str, Any] = dump(self)
        empty = {name for name in ("found", "project") if not values.get(name)}
        return {key: value for key, value in values.items() if key not in empty}

    @property
    def recorded(self) -> Path:
        """Return the path of the file when the run was started."""
        return Path(self.path)

    @property
    def file(self) -> Path:
        """Return the present path of the file, which may be missing."""
        return Path(self.found or self.path)

    @property
    def exists(self) -> bool:
        """Return whether the file is where it is expected; False if it was given in memory."""
        return _is_file(self.file)

    @property
    def folder(self) -> Path | None:
        """Return the present folder of the project; None if it is not known."""
        if self.path:
            return self.file.parent
        here = self.moved[1] if self.moved else self.project
        return Path(here) if here else None

    @property
    def bases(self) -> tuple[Path, Path]:
        """Return the file's present and former folder, to which published paths are relative."""
        return self.file.parent, self.recorded.parent

    def find(self, name: str, *, recorded: Path, workspace: Path) -> Self:
        """Return this config in the run's present place.

        The file of a project that was moved is beside its workspace, or beside a link to it in the
        folder of the start, in the current folder or at `COREEVAL_HOME`. A file there is the run's
        if it has the name of the run's benchmark: another project into whose workspace the run was
        moved may have a config file of the same name, and so may another benchmark of the project.
        If the file was renamed, it is the only one there for this benchmark. If there is none, the
        file stays the former one.

        Args:
            name: The name of the run's benchmark.
            recorded: The run's workspace according to its manifest.
            workspace: The run's present workspace.
        """
        if not self.path:
            return self._find_project(recorded, workspace)
        stays = self.exists and is_same(workspace, recorded)
        if stays and self._describes(self.file, name):
            return self._use(self.found)
        projects = _list_projects(workspace, self.recorded.parent)
        found = next(filter(None, (self._find_file(name, folder) for folder in projects)), None)
        if found and is_same(found, self.recorded):
            return self._use("")
        if found is None and stays:
            return self._use(self.found).model_copy(update={"is_of_other": True})
        return self._use(str(found or (self.file if self.exists else "")))

    def _use(self, found: str) -> Self:
        old, new = self.recorded.parent, Path(found).parent
        moved = (str(old), str(new)) if found and old != new else None
        return self.model_copy(update={"found": found, "moved": moved})

    def _find_project(self, recorded: Path, workspace: Path) -> Self:
        """Return the source of a config that was given in memory, in the present project."""
        start = Path(self.project) if self.project else recorded.parent
        known = bool(self.project) or recorded.name == WORKSPACE_NAME
        projects = _list_projects(workspace, start) if known else []
        if not self.sha256 or not projects:  # a cassette has no config
            return self
        moved = None if is_same(start, projects[0]) else (str(start), str(projects[0]))
        return self.model_copy(update={"project": str(start), "moved": moved})

    def _find_file(self, name: str, folder: Path) -> Path | None:
        here = folder / self.recorded.name
        if _is_file(here) and self._describes(here, name):
            return here
        return self._find_renamed(name, folder)

    def _find_renamed(self, name: str, folder: Path) -> Path | None:
        """Return the only config file for a benchmark in a folder; None if there are several."""
        found = find_configs(folder, name, self.overrides)
        return found[0] if len(found) == 1 else None

    def _describes(self, path: Path, name: str) -> bool:
        """Return whether a config file has the name of a benchmark, or is not YAML.

        The command that needs a file that is not YAML says what is wrong with it.
        """
        return _read_name(path, self.overrides) in (name, _UNREADABLE)

    def locate(self, path: str, named: Callable[[], Set[str]] | None = None) -> str:
        """Return the present path of a file that the config names.

        In a project that was moved or copied, this is the path in the new folder, unless only the
        old folder has the file. A file outside of it, such as `../shared/names.txt`, is looked for
        at the same place relative to the new folder, unless the present config names the old place.

        Args:
            path: The path in the run's own config, or in the present one.
            named: Returns the paths in the present config. None: `path` is one of them.
        """
        if not self.moved or not Path(path).is_absolute():
            return path
        old, new = map(Path, self.moved)
        if folder := _find_folder(path, old, new):
            name = Path(path).relative_to(folder)
            left = os.access(old / name, os.F_OK) and not os.access(new / name, os.F_OK)
            return str((old if left else new) / name)
        stays = os.access(path, os.F_OK)
        moved, back = _move_path(path, old, new), _move_path(path, new, old)
        if os.access(moved, os.F_OK) and not (stays and (named is None or path in named())):
            return moved
        return path if stays or not os.access(back, os.F_OK) else back

    def record(self, path: str) -> str:
        """Return the path from the start of the run for a present one, to be stored with the run.

        A path outside the present folder that would not be found again stays as it is.
        """
        if not self.moved or not Path(path).is_absolute():
            return path
        old, new = map(Path, self.moved)
        if _find_folder(path, old, new) == new:
            return str(old / Path(path).relative_to(new))
        back = _move_path(path, new, old)
        return back if self.locate(back) == path else path


def find_configs(folder: Path, name: str, overrides: tuple[str, ...] = ()) -> list[Path]:
    """Return the config files for a benchmark in a folder."""
    files = _list_small_configs(folder)
    return [file for file in files if _read_name(file, overrides) == name]


def _list_small_configs(folder: Path) -> list[Path]:
    """Return the YAML files in a folder that a search for configs reads, the smallest first."""
    there = (file for file in folder.glob("*.y*ml") if _is_file(file))
    sizes = sorted((file.stat().st_size, file) for file in there)[:_MOST_CONFIGS]
    sums = accumulate(size for size, _ in sizes)
    return [
        file
        for (size, file), read in zip(sizes, sums, strict=True)
        if size <= _MOST_CONFIG_BYTES and read <= _MOST_SEARCHED_BYTES
    ]


def _read_name(path: Path, overrides: tuple[str, ...]) -> object:
    status = path.stat()
    return _read_name_once(path, overrides, status.st_ctime_ns, status.st_size)


@lru_cache(maxsize=10 * _MOST_CONFIGS)
def _read_name_once(path: Path, overrides: tuple[str, ...], changed_ns: int, size: int) -> object:
    """Return the name in a config file, or `_UNREADABLE`; a changed file is read again.

    Each reading of a manifest asks for it.
    """
    try:
        return read_config_name(path, overrides)
    except ConfigError:
        return _UNREADABLE


def _list_projects(workspace: Path, start: Path) -> list[Path]:
    """Return the folders that have a run's workspace, or a link to it, and so perhaps its config.

    Args:
        workspace: The run's present workspace.
        start: The folder of the run's config at the start, which may be gone.
    """
    own, place = workspace_for(Path.cwd()).root, Path(os.path.realpath(workspace))
    known = (start / WORKSPACE_NAME, own, place)
    named = (each for each in known if each.name == WORKSPACE_NAME and is_same(each, place))
    return list(dict.fromkeys(each.absolute().parent for each in named))


def is_same(path: Path, other: Path) -> bool:
    """Return whether two paths lead to the same place; neither need exist."""
    return os.path.realpath(path) == os.path.realpath(other)


def _find_folder(path: str, *folders: Path) -> Path | None:
    """Return the innermost of some folders that a path is in; None if it is in none."""
    inner = sorted(folders, key=lambda each: len(each.parts), reverse=True)
    return next((folder for folder in inner if Path(path).is_relative_to(folder)), None)


def _move_path(path: str, old: Path, new: Path) -> str:
    """Return the path that is at the same place relative to a new folder as to the old one."""
    return os.path.normpath(new / os.path.relpath(path, old))


def _is_file(path: Path) -> bool:
    """Return whether a file exists; False if its folder may not be read."""
    return os.access(path, os.F_OK) and path.is_file()
