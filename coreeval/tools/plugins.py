"""Finds plugins, asks for consent, and checks them against their protocols.

A plugin is an object with `plugin_api`, the version of its protocol, or a class of such objects
that takes no arguments. Installed packages offer plugins as entry points of `coreeval.GROUP`; a
plugin is only imported if the user names it and agrees to run its code. The protocols are in
`coreeval.plugins`.
"""

import hashlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata, util
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from itertools import islice
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final, get_args

from typing_extensions import get_protocol_members

from coreeval.config import ROLES, AnyConfig, Config
from coreeval.config.models import ModelConfig
from coreeval.config.plugins import (
    PROVIDER,
    PluginGroup,
    PluginUse,
    is_class_name,
    parse_plugin,
)
from coreeval.errors import CoreEvalError, PluginError, PluginFailed, UnallowedPlugin
from coreeval.tools.plugin_origin import PluginOrigin
from coreeval.tools.text import visible_line
from coreeval.tools.trust import TrustRecord
from coreeval.tools.workspace import Workspace

GROUPS: Final[tuple[PluginGroup, ...]] = get_args(PluginGroup)
PLUGIN_API: Final[Mapping[PluginGroup, int]] = dict.fromkeys(GROUPS, 1)
"""The version of each protocol, which changes if the protocol needs other plugins."""
ALLOW_OPTION: Final = "--allow-plugins"
_VERSION: Final = "plugin_api"
_MOST_FILES: Final = 10_000
"""The most files of a module without a package that are hashed."""
_CODE: Final = frozenset((".py", ".pyw", ".pyc", ".so", ".pyd"))
"""The endings of files that an import may execute."""
_MOST_WORDS: Final = 200
"""The most characters shown of a plugin's texts."""
_RAISED: Final = (Exception, SystemExit)
"""The errors of a plugin's code; `sys.exit` in it must not end CoreEval as if all were well."""


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """A loaded plugin that fits its protocol."""

    origin: PluginOrigin
    loaded: object

    def read_text(self, name: str, default: str = "") -> str:
        """Return an optional text of the plugin.

        Raises:
            PluginError: the value is not a text.
        """
        found = getattr(self.loaded, name, default)
        if isinstance(found, str):
            return found
        raise self.refuse(f"{name} must be a text, not {visible_line(repr(found))[:_MOST_WORDS]}")

    def refuse(self, problem: str) -> PluginError:
        """Return the error for a plugin that does not fit its protocol."""
        return refuse_plugin(self.origin, problem)

    def fail(self, problem: str) -> PluginFailed:
        """Return the error for a plugin whose code violated its protocol."""
        return PluginFailed(
            f"the plugin {self.origin.name} {problem}",
            where=str(self.origin),
            hint="report this to the plugin's author; `coreeval docs plugins` describes the "
            "protocol",
        )

    @contextmanager
    def guard(self, what: str, *, but: tuple[type[Exception], ...] = ()) -> Iterator[None]:
        """Raise PluginFailed if the block, which calls the plugin, raises any other error.

        Args:
            what: What the plugin should do.
            but: Errors that are passed on.
        """
        try:
            yield
        except CoreEvalError:
            raise
        except _RAISED as error:  # the code is not ours
            if isinstance(error, but):
                raise
            said = visible_line(f"{type(error).__name__}: {error}")[:_MOST_WORDS]
            failed = self.fail(f"failed in {what}: {said}")
            failed.hint += "; --debug shows the traceback"
            raise failed from error


# -- which plugins there are ----------------------------------------------------------------------


def list_installed() -> list[PluginOrigin]:
    """Return the plugins that installed packages offer; nothing is imported."""
    offered = metadata.entry_points()
    return [
        _describe_entry(group, point)
        for group in GROUPS
        for point in sorted(offered.select(group=f"coreeval.{group}"))
    ]


def _describe_entry(group: PluginGroup, point: metadata.EntryPoint) -> PluginOrigin:
    found = point.dist
    return PluginOrigin(
        group=group,
        name=point.name,
        target=f"{point.module}:{point.attr or ''}",
        api=PLUGIN_API[group],
        distribution=found.name if found else "",
        version=found.version if found else "",
    )


@cache
def find_origin(group: PluginGroup, name: str) -> PluginOrigin:
    """Return a plugin's origin without importing the plugin.

    Args:
        group: The group of plugins.
        name: The name of an entry point, or `module:Class`.

    Raises:
        PluginError: no installed package offers it, several do, or the module is missing.
    """
    if is_class_name(name):
        return _find_class(group, name)
    installed = [each for each in list_installed() if each.group == group]
    offered = [each for each in installed if each.name == name]
    if not offered:
        known = ", ".join(each.name for each in installed)
        raise PluginError(
            f"no installed package offers a plugin named {name!r} for {group}",
            where=f"entry points of coreeval.{group}",
            hint=f"install the package, or use one of: {known}"
            if known
            else "install the package into this environment, or use plugin:module:Class",
        )
    if len(offered) > 1:
        several = " and ".join(f"{each.distribution} {each.version}" for each in offered)
        raise PluginError(
            f"several packages offer a plugin named {name!r} for {group}: {several}",
            where=f"entry points of coreeval.{group}",
            hint=f"choose one of them by its class: plugin:{offered[0].target}",
        )
    return _identify_code(offered[0], [offered[0].distribution])


def _find_class(group: PluginGroup, name: str) -> PluginOrigin:
    origin = PluginOrigin(group=group, name=name, target=name, api=PLUGIN_API[group])
    return _identify_code(origin, metadata.packages_distributions().get(_top_module(origin), ()))


def _top_module(origin: PluginOrigin) -> str:
    return origin.target.partition(":")[0].partition(".")[0]


def _identify_code(origin: PluginOrigin, packages: Iterable[str]) -> PluginOrigin:
    """Return an origin with the package that has installed its module, or else with a digest.

    Args:
        origin: The origin.
        packages: The packages that may have installed it.

    Raises:
        PluginError: the module is missing, or its code is neither in files nor in folders.
    """
    top, named = _top_module(origin), sorted({*filter(None, packages)})
    spec = util.find_spec(top)
    if spec is None:
        raise PluginError(
            f"there is no module {top!r}, which should contain the plugin {origin.name}",
            where=f"plugin:{origin.name}",
            hint="install its package into this environment, or add its folder to PYTHONPATH",
        )
    found = metadata.distribution(named[0]) if len(named) == 1 else None
    if found and _is_installed_by(found, spec):
        package = {"distribution": found.name, "version": found.version}
        return origin.model_copy(update=package)
    places = list(spec.submodule_search_locations or ()) or [spec.origin or ""]
    _refuse_unreadable(places, origin.name)
    digest = _hash_code(map(Path, places), origin.name)
    return origin.model_copy(update={"distribution": "", "version": "", "digest": digest})


def _is_installed_by(package: metadata.Distribution, spec: ModuleSpec) -> bool:
    """Return whether a package has installed a module, which may also be the user's own file.

    The code of an editable package is outside its files, and changes without a new version.
    """
    own = {os.path.realpath(str(each.locate())) for each in package.files or ()}
    if spec.origin:
        return os.path.realpath(spec.origin) in own
    folders = {parent for each in own for parent in Path(each).parents}
    return {*map(Path, map(os.path.realpath, spec.submodule_search_locations or ()))} <= folders


def _refuse_unreadable(places: Iterable[str], name: str) -> None:
    """Raise an error if some code of a module is in no file or folder, as in a ZIP archive."""
    for place in places:
        if not place or not (Path(place).is_file() or Path(place).is_dir()):
            raise PluginError(
                f"the code of the plugin {name} is neither in a file nor in a folder, so a change "
                "of it would not be noticed",
                where=place or f"plugin:{name}",
                hint="unpack it into a folder on PYTHONPATH, or install its package into this "
                "environment",
            )


def _hash_code(places: Iterable[Path], name: str) -> str:
    """Return the SHA-256 of the files of a module that Python may execute."""
    found = hashlib.sha256()
    listed = islice(_iter_code(places), _MOST_FILES + 1)
    for number, (shown, path) in enumerate(sorted(listed), start=1):
        if number > _MOST_FILES:
            raise PluginError(
                f"the module of the plugin {name} has more than {_MOST_FILES:,} files and belongs "
                "to no package",
                where=f"plugin:{name}",
                hint="put the plugin into a package that has a version",
            )
        code = path.read_bytes() if path.is_file() else b""
        found.update(f"{shown}\0{len(code)}\0".encode(errors="surrogateescape") + code)
    return found.hexdigest()


def _iter_code(places: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """Yield each file that Python may execute, also behind a link; caches are never read."""
    seen = set[str]()
    for place in places:
        if not place.is_dir():
            yield place.name, place
        for folder, inside, files in os.walk(place, followlinks=True):
            real = {name: os.path.realpath(Path(folder, name)) for name in sorted(inside)}
            inside[:] = [name for name, at in real.items() if at not in seen]
            seen.update(real.values())
            for path in (Path(folder, name) for name in files):
                is_cache = path.parent.name == "__pycache__" and len(path.suffixes) > 1
                if path.suffix in _CODE and not is_cache:
                    yield path.relative_to(place.parent).as_posix(), path


# -- consent --------------------------------------------------------------------------------------


class _Consent:
    """The plugins that may run in this process."""

    def __init__(self) -> None:
        self.everything = False
        """Whether the user has agreed to all plugins that a command names."""
        self.origins = set[PluginOrigin]()


_CONSENT: Final = _Consent()


def allow_named_plugins(agreed: bool = True) -> None:
    """Agree to all plugins named from now on in this process, as `--allow-plugins` does.

    Args:
        agreed: False withdraws the consent.
    """
    _CONSENT.everything = agreed


def allow_plugin(use: PluginUse) -> PluginOrigin:
    """Agree to run the code of one plugin in this process; return its origin.

    Raises:
        PluginError: there is no such plugin.
    """
    origin = find_origin(use.group, use.name)
    _CONSENT.origins.add(origin)
    return origin


def allow_target(model: str) -> None:
    """Agree to run a target that the user names, if it is a plugin.

    Raises:
        PluginError: there is no such plugin.
    """
    if model.startswith(f"{PROVIDER}:") and (name := parse_plugin(model)):
        allow_plugin(PluginUse("targets", name, "--target"))


def adopt_plugins(origins: Iterable[PluginOrigin]) -> None:
    """Agree to the plugins, with their versions, that the parent process may run."""
    _CONSENT.origins.update(origins)


def list_plugins(config: AnyConfig) -> list[PluginUse]:
    """Return the plugins that a config names, with the keys that name them."""
    named: list[tuple[PluginGroup, str, str]] = []
    models: Sequence[tuple[str, ModelConfig]] = ()
    if isinstance(config, Config):
        named.append(("formats", config.dataset.format, "dataset.format"))
        named += [("knowledge", each, "knowledge.backends") for each in config.knowledge.backends]
        models = [
            (role if getattr(config.models, role) else "default", config.models.for_role(role))
            for role in ROLES
        ]
    named += [("roles", each.model, f"models.{role}") for role, each in models if each.is_plugin]
    targets = (each for each in config.models.targets if each.is_plugin)
    named += [("targets", each.model, "models.targets") for each in targets]
    found = [(group, parse_plugin(text), where) for group, text, where in named]
    uses = [PluginUse(group, name, where) for group, name, where in found if name]
    return list({(use.group, use.name): use for use in reversed(uses)}.values())[::-1]


def permit_plugins(config: AnyConfig, workspace: Workspace | None) -> list[PluginOrigin]:
    """Let this process run a config's plugins that the user has agreed to; return all plugins.

    Args:
        config: The config, which somebody else may have written.
        workspace: The workspace that records consent; None to use only this process's.

    Raises:
        PluginError: a plugin is not installed.
        UnallowedPlugin: the user has not allowed one of them.
    """
    uses = list_plugins(config)
    if not uses:
        return []
    origins = [find_origin(use.group, use.name) for use in uses]
    record = TrustRecord(workspace) if workspace else None
    new = [each for each in origins if not _is_remembered(each, record)]
    if refused := [each for each in new if not _is_allowed(each)]:
        where = {(use.group, use.name): use.where for use in uses}
        raise _refuse_unallowed(refused, where[refused[0].group, refused[0].name])
    if record:
        for each in new:
            record.accept_plugin(each.group, each.name, each.identity)
    _CONSENT.origins.update(origins)
    return origins


def _is_remembered(origin: PluginOrigin, record: TrustRecord | None) -> bool:
    return record is not None and record.accepts_plugin(origin.group, origin.name, origin.identity)


def _is_allowed(origin: PluginOrigin) -> bool:
    return _CONSENT.everything or origin in _CONSENT.origins


def _refuse_unallowed(origins: Sequence[PluginOrigin], where: str) -> UnallowedPlugin:
    named = ", ".join(map(str, origins))
    return UnallowedPlugin(
        f"this config runs third-party code that you have not allowed in this workspace: {named}",
        where=where,
        hint=f"if you trust this code, use {ALLOW_OPTION}, which remembers this version of it; "
        "if not, use something built-in instead",
    )


# -- loading --------------------------------------------------------------------------------------


def load_plugin(use: PluginUse, protocol: type[object]) -> Plugin:
    """Import a plugin that the user has agreed to, and check that it fits its protocol.

    Args:
        use: The plugin.
        protocol: The members that it must have; methods must accept the protocol's arguments.

    Raises:
        PluginError: it is not installed, cannot be imported, or does not fit.
        UnallowedPlugin: the user has not allowed its code to run.
    """
    origin = find_origin(use.group, use.name)
    if not _is_allowed(origin):
        raise _refuse_unallowed([origin], use.where)
    if origin not in _LOADED:
        _LOADED[origin] = _load(origin, protocol)
    return _LOADED[origin]


_LOADED: Final = dict[PluginOrigin, Plugin]()
"""The plugins of this process."""


def _load(origin: PluginOrigin, protocol: type[object]) -> Plugin:
    found = import_object(origin)
    _check_version(origin, found)
    if isinstance(found, type):
        try:
            found = found()
        except _RAISED as error:  # the code is not ours
            raise refuse_plugin(
                origin, f"it cannot be created without arguments: {_describe(error)}"
            ) from error
    _check_members(origin, found, protocol)
    return Plugin(origin=origin, loaded=found)


def _describe(error: BaseException) -> str:
    return f"it called sys.exit({error})" if isinstance(error, SystemExit) else str(error)


class _UncachedLoader(SourceFileLoader):
    """Compiles the source, since a file in `__pycache__` may contain code without consent."""

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of a module."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class _UncachedFinder:
    """Finds the modules of plugins that are identified by the digest of their code."""

    def __init__(self) -> None:
        self.tops = set[str]()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module; None if the module is not a plugin's."""
        if name.partition(".")[0] not in self.tops:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec and type(spec.loader) is SourceFileLoader:
            spec.loader = _UncachedLoader(spec.loader.name, spec.loader.path)
        return spec


_FINDER: Final = _UncachedFinder()


def import_object(origin: PluginOrigin) -> Any:  # noqa: ANN401 - anything may have that name
    """Return the object that a plugin's name refers to.

    Raises:
        PluginError: it cannot be imported.
    """
    module, _, path = origin.target.partition(":")
    if origin.digest:
        _FINDER.tops.add(module.partition(".")[0])
        if _FINDER not in sys.meta_path:
            sys.meta_path.insert(0, _FINDER)
    try:
        found: Any = import_module(module)
    except _RAISED as error:  # the code is not ours
        raise refuse_plugin(origin, f"it cannot be imported: {_describe(error)}") from error
    for name in filter(None, path.split(".")):
        if not hasattr(found, name):
            raise refuse_plugin(origin, f"the module {module} has no {path!r}")
        found = getattr(found, name)
    return found


def _check_version(origin: PluginOrigin, found: object) -> None:
    stated = getattr(found, _VERSION, None)
    if stated is None:
        raise refuse_plugin(
            origin, f"it does not set {_VERSION}; this CoreEval supports version {origin.api}"
        )
    if stated != origin.api or isinstance(stated, bool):
        raise refuse_plugin(
            origin,
            f"it implements version {visible_line(repr(stated))[:_MOST_WORDS]} of the protocol for "
            f"{origin.group}; this CoreEval supports version {origin.api}",
        )


def _check_members(origin: PluginOrigin, found: object, protocol: type[object]) -> None:
    for name in sorted(get_protocol_members(protocol)):
        wanted = inspect.getattr_static(protocol, name, None)
        is_method = inspect.isfunction(wanted)
        if not hasattr(found, name):
            what = f"the method {name}{inspect.signature(wanted)}" if is_method else name
            raise refuse_plugin(
                origin, f"it lacks {what.replace('(self, ', '(').replace('(self)', '()')}"
            )
        if is_method:
            _check_method(origin, found, name, wanted)


def _check_method(
    origin: PluginOrigin, found: object, name: str, wanted: Callable[..., object]
) -> None:
    """Raise an error unless a method can be called as in the protocol."""
    method = getattr(found, name)
    if not callable(method):
        raise refuse_plugin(origin, f"{name} is not a method")
    asked = [each for each in inspect.signature(wanted).parameters if each != "self"]
    try:
        inspect.signature(method).bind(*asked)
    except TypeError as error:
        raise refuse_plugin(
            origin, f"{name} must take ({', '.join(asked)}), as positional arguments: {error}"
        ) from None
    if inspect.iscoroutinefunction(wanted) and not inspect.iscoroutinefunction(method):
        raise refuse_plugin(origin, f"{name} must be a coroutine: async def {name}")


def refuse_plugin(origin: PluginOrigin, problem: str, use: str = "") -> PluginError:
    """Return the error for a plugin that does not fit its protocol or cannot be used.

    Args:
        origin: The plugin.
        problem: The problem.
        use: The use that it does not fit; by default its group.
    """
    return PluginError(
        f"the plugin {origin.name} cannot be used for {use or origin.group}: "
        f"{visible_line(problem)}",
        where=str(origin),
        hint="install a version of the plugin that follows the protocol in coreeval docs plugins",
    )
