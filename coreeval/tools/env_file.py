"""The `.env` file beside a config: keys and a few switches, but no addresses.

A folder from somebody else may contain such a file. So it cannot set an address, proxy,
certificate, file, folder or program: it could otherwise receive a key from the user's shell, or run
code.
"""

import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from io import StringIO
from pathlib import Path
from threading import RLock

from coreeval.config import AnyConfig, Config
from coreeval.errors import ConfigError

FILE = ".env"
MOST_BYTES = 1_000_000
MOST_LINE = 8_000
"""The most characters of a line: python-dotenv's time grows with their square (own choice)."""
_LINE_END = re.compile(r"[\r\n]")
"""The characters that end a line in python-dotenv; str.splitlines also splits at form feeds and
others."""
_SECRET = re.compile(r"[A-Z][A-Z0-9_]*_(?:KEY|KEY_ID|TOKEN|SECRET|PASSWORD)")
"""The last words of the names of secrets; the value of such a variable is sent, but changes no
behaviour."""
_NAME = re.compile(r"[A-Z][A-Z0-9]{0,15}(?:_[A-Z0-9]{0,15}){0,9}|[a-z]{1,15}(?:_[a-z]{1,15}){0,4}")
"""The usual form of a variable's name, unlike a key."""
_SHORTEST_SECRET = 8
"""The fewest characters of a value that is masked: shorter ones, such as `none`, are words too."""
_NOT_SECRET = re.compile(r"LANGGRAPH_.*|OTEL_.*|PYTHON.*|SSL.*|COREEVAL_.*")
_SWITCHES = frozenset(
    {
        *("LANGSMITH_PROJECT", "LANGSMITH_HIDE_INPUTS", "LANGSMITH_HIDE_OUTPUTS"),
        *("LANGCHAIN_PROJECT", "LANGCHAIN_HIDE_INPUTS", "LANGCHAIN_HIDE_OUTPUTS"),
        *("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"),
        *("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_SDK_DISABLED"),
    }
)
_TRACING = re.compile(r"LANG(?:SMITH|CHAIN)_TRACING(?:_V2)?")
"""Switches that the file may turn off but not on: together with a key, they would send the user's
texts to an account of the file's author."""
_HIDING = re.compile(r"LANG(?:SMITH|CHAIN)_HIDE_(?:INPUTS|OUTPUTS)")
"""Switches that the file may turn on but not off: without them, texts would be sent in the
clear."""
_NOT_HIDDEN = {"", "false", "0", "no", "off"}
_LANGSMITH = re.compile(r"LANG(?:SMITH|CHAIN)_(\w+)")
_SAME = (
    {"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"},
    {"LANGSMITH_API_KEY", "LANGCHAIN_API_KEY", "LANGSMITH_PROFILE", "LANGSMITH_CONFIG_FILE"},
    {"GOOGLE_API_KEY", "GEMINI_API_KEY"},
    {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"},
    {
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
        *("AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK"),
    },
)
"""Names with the same meaning for the library that reads them. One of them in the file could take
precedence over another in the shell, so none is read from the file if the shell sets any."""
_REFERENCE = "${"
"""The start of a reference to another variable, which may be a secret."""
_told = set[tuple[Path, tuple[str, ...]]]()
"""The files and names that this process has already reported."""
_set = dict[str, tuple[frozenset[Path], str]]()
"""The variables that this process has set from files: the files and the value, by name."""
_in_use = Counter[Path]()
"""The number of blocks of `hold_env_file` that use the variables of a file."""
_held = ContextVar[list[Path] | None]("_held", default=None)
"""The file that the current block of `hold_env_file` uses, if it has read one."""
_lock = RLock()


def read_env_file(folder: Path, config: AnyConfig | None = None, *, quiet: bool = False) -> None:
    """Set the environment variables of a folder's `.env` that are allowed and not set yet.

    Variables from files that were read before are unset first: a process may read several configs,
    and a foreign key must not be used for the user's own config. Variables that are not allowed are
    skipped and reported once on stderr.

    Args:
        folder: The folder of the config, or the current folder if there is no config.
        config: The config whose webhook addresses are not reported: hooks read them themselves.
        quiet: Whether to leave the report to a later call.

    Raises:
        ConfigError: the file cannot be read, or a run in progress uses another file that sets
            other variables.
    """
    path = (folder / FILE).resolve()
    values = _read(path)
    allowed = {name: value for name, value in values.items() if _may_set(name, value)}
    with _lock:
        held = _held.get()
        _release(held)
        _unset_unused()
        _refuse_other(path, allowed)
        shell = frozenset(os.environ) - _set.keys()
        added = {
            name: value
            for name, value in allowed.items()
            if name not in _set and shell.isdisjoint(_same_names(name))
        }
        _refuse_added(path, added)
        for name in allowed.keys() & _set.keys():
            files, same = _set[name]
            _set[name] = (files | {path}, same)
        for name, value in added.items():
            os.environ[name] = value
            _set[name] = (frozenset({path}), value)
        if held is not None:
            held.append(path)
            _in_use[path] += 1
    known = _hook_variables(config)
    left = tuple(
        name
        for name, value in values.items()
        if not (name in allowed or name in known or os.environ.get(name) == value)
    )
    if left and not quiet and (path, left) not in _told:
        _told.add((path, left))
        sys.stderr.write(f"{_note(path, left)}\n")


@contextmanager
def hold_env_file() -> Iterator[None]:
    """Keep the variables of the file that the block reads set until it ends.

    Meanwhile a file with other variables is refused: all threads of a process share the
    environment, so one run would send the key of the other. A block inside another one is part
    of it.
    """
    if _held.get() is not None:
        yield
        return
    held = list[Path]()
    token = _held.set(held)
    try:
        yield
    finally:
        _held.reset(token)
        with _lock:
            _release(held)


@contextmanager
def restore_environment() -> Iterator[None]:
    """Restore the environment, and the record of what `.env` files have set, after the block."""
    before, recorded = dict(os.environ), dict(_set)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        _set.clear()
        _set.update(recorded)


def _release(held: list[Path] | None) -> None:
    while held:
        _in_use[held.pop()] -= 1


def _unset_unused() -> None:
    """Unset the variables of files, unless they are in use or have been changed since."""
    for name, (files, value) in list(_set.items()):
        if not any(_in_use[each] for each in files):
            del _set[name]
            if os.environ.get(name) == value:
                del os.environ[name]


def _refuse_other(path: Path, values: Mapping[str, str]) -> None:
    """Refuse to read a file that does not set what another one in use has set.

    Raises:
        ConfigError: it differs in a variable.
    """
    for name, (files, value) in _set.items():
        used = sorted(each for each in files if _in_use[each])
        if used and path not in used and values.get(name) != value:
            raise _in_progress(
                f"a run in progress in this process uses {name} from another file: {used[0]}", path
            )


def _refuse_added(path: Path, added: Iterable[str]) -> None:
    """Refuse to set variables that a run in progress would get without having set them.

    Raises:
        ConfigError: there are such variables.
    """
    used = sorted(each for each, blocks in _in_use.items() if blocks and each != path)
    for name in added if used else ():
        raise _in_progress(
            f"this file sets {name}, which a run in progress in this process does not use: "
            f"{used[0].parent}",
            path,
        )


def _in_progress(message: str, path: Path) -> ConfigError:
    hint = "wait until that run has ended, or use another process"
    return ConfigError(message, where=str(path), hint=hint)


def hide_secrets(text: str) -> str:
    """Return a text in which the values of all variables that are named like secrets are masked."""
    secrets = {value for name, value in os.environ.items() if _SECRET.fullmatch(name)}
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return text


def asks_to_hide(value: str) -> bool:
    """Return whether the value of a variable such as LANGSMITH_HIDE_INPUTS requests to hide texts.

    LangSmith itself accepts only `true`; with `True` or 1 it would send the texts.
    """
    return value.strip().lower() not in _NOT_HIDDEN


def address_of_hook(variable: str, folder: Path) -> str:
    """Return the address of a webhook from the environment, or otherwise from a folder's `.env`.

    Raises:
        ConfigError: the file cannot be read.
    """
    return os.environ.get(variable) or _read((folder / FILE).resolve()).get(variable, "")


def _read(path: Path) -> Mapping[str, str]:
    """Return the variables in the file; empty if there is no file."""
    try:
        if not path.is_file():
            return {}
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _unreadable(path, "it is not UTF-8") from None
    except OSError as error:
        raise _unreadable(path, error.strerror or "it cannot be opened") from None
    if len(text.encode()) > MOST_BYTES:
        raise _unreadable(path, f"it has more than {MOST_BYTES:,} bytes")
    if any(len(line) > MOST_LINE for line in _LINE_END.split(text)):
        raise _unreadable(path, f"a line has more than {MOST_LINE:,} characters")
    return _parse(text, path)


def _parse(text: str, path: Path) -> Mapping[str, str]:
    from dotenv.parser import parse_stream

    values = dict[str, str]()
    for line in parse_stream(StringIO(text)):
        if line.key is not None and line.value is not None:
            values[line.key] = line.value
        elif line.key is not None or line.error:
            said = line.original.string
            number = line.original.line + said[: len(said) - len(said.lstrip())].count("\n")
            raise _unreadable(path, f"line {number} is not NAME=value")
    return values


def _may_set(name: str, value: str) -> bool:
    if _REFERENCE in value or "\0" in value:
        return False
    if _TRACING.fullmatch(name):
        return value.lower() == "false"
    if _HIDING.fullmatch(name):
        return asks_to_hide(value)
    return name in _SWITCHES or bool(_SECRET.fullmatch(name) and not _NOT_SECRET.fullmatch(name))


def _same_names(name: str) -> set[str]:
    """Return a name with the other names of the same meaning."""
    for names in _SAME:
        if name in names:
            return names
    found = _LANGSMITH.fullmatch(name)
    return {f"LANGSMITH_{found[1]}", f"LANGCHAIN_{found[1]}"} if found else {name}


def _hook_variables(config: AnyConfig | None) -> frozenset[str]:
    schedule = config.schedule if isinstance(config, Config) else None
    return schedule.webhook_variables if schedule else frozenset()


def _unreadable(path: Path, trouble: str) -> ConfigError:
    return ConfigError(
        f"cannot read the {FILE} file: {trouble}",
        where=str(path),
        hint="write one NAME=value per line, or remove the file and export the keys in the shell",
    )


def _show_name(name: str) -> str:
    """Return a name, shortened if it may be a key that is written in the wrong place."""
    return name if _NAME.fullmatch(name) else f"{ascii(name[:3])[1:-1]}…"


def _note(path: Path, names: Iterable[str]) -> str:
    shown = ", ".join(map(_show_name, names))
    return (
        f"{path} sets variables that a {FILE} file is not allowed to set; they are ignored: "
        f"{shown[:500]}\n  to do: if this is intended, export them in the shell "
        "(coreeval docs config, The .env file)"
    )
