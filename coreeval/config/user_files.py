"""Reads files given by users, with limits: no devices, limited sizes, YAML of limited depth.

PyYAML recurses for each level, calls `int` for numbers of any length, lets aliases expand a few
lines to gigabytes, and keeps the last of two equal keys. Errors name the line of the mistake.
"""

import codecs
import difflib
import errno
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import yaml
from yaml.composer import Composer

try:
    from yaml import CSafeLoader as _SafeLoader  # parses with libyaml: five times as fast
except ImportError:  # PyYAML was built without it
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]

MOST_BYTES = 4 << 20
"""The most bytes of a file of settings or words that a person wrote (own choice)."""
MOST_DATA_BYTES = 512 << 20
"""The most bytes of a data file that is read whole: a recording, a sheet, a report (own choice)."""
MOST_LINE_BYTES = 64 << 20
"""The most bytes of a line in a file that is read line by line (own choice)."""
MOST_BESIDE = 20_000
"""The most files of a folder that are compared with the name of a missing one."""
MOST_DEPTH = 64
"""The most levels of nested mappings and lists; a config has six (own choice)."""
MOST_VALUES = 200_000
"""The most values of a document with its aliases expanded; a price list of 2,000 models has 20,000
(own choice)."""
MOST_DIGITS = 400
"""The most characters of a number; the largest float has 309 digits."""
YAML_HINT = (
    "correct this line, or the one above it; put text that YAML would misread in quotation marks"
)
"""How a user can fix a `YamlError`."""
_MOST_PROBLEM_LENGTH = 200
"""The most characters of a problem, which may quote the text."""
_MERGE_TAG = "tag:yaml.org,2002:merge"
_NUMBER_TAGS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


_OF_INDENTATION = re.compile(r"expected <block end>|did not find expected (?:key|'-' indicator)")
"""Problems that the parser notices only after the line with the mistake."""
_DIRECTIVE = re.compile(r"(?:\A|[\r\n\x85\u2028\u2029])\ufeff?%")
MOST_DIRECTIVES = 16
"""The most lines that begin with %; libyaml compares each `%TAG` with all before it."""
_NO_TOKEN = "found character that cannot start any token"
"""The problem of, for example, a tab as indentation; libyaml does not name the character."""


class YamlError(yaml.YAMLError):
    """The text is not YAML, or not YAML that CoreEval reads."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        problem = problem[:_MOST_PROBLEM_LENGTH]
        if _OF_INDENTATION.search(problem):
            problem = (
                "this does not fit the lines above: check the indentation of this "
                f"line and of those above it ({problem})"
            )
            super().__init__(f"near line {line}: {problem}" if line else problem)
        else:
            super().__init__(f"line {line}: {problem}" if line else problem)
        self.problem = problem
        self.line = line
        """The line number from 1; None if the problem is not on one line."""


def open_file(path: Path) -> BinaryIO:
    """Open a file or a pipe for reading; refuse a device such as /dev/zero, which has no end.

    Raises:
        OSError: it cannot be opened, or is a device (ENOTSUP).
    """
    file = path.open("rb")
    mode = os.fstat(file.fileno()).st_mode
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        file.close()
        raise OSError(errno.ENOTSUP, "it is a device, not a file", str(path))
    return file


def iter_raw_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file, each with its line ending.

    Raises:
        OSError: a line has more bytes than `MOST_LINE_BYTES` (EFBIG).
    """
    number = 0
    while line := file.readline(MOST_LINE_BYTES + 1):
        number += 1
        if len(line) > MOST_LINE_BYTES:
            raise OSError(errno.EFBIG, f"line {number} is longer than {MOST_LINE_BYTES >> 20} MiB")
        yield line


def read_bytes(path: Path, *, most_bytes: int = MOST_BYTES) -> bytes:
    """Return the content of a file.

    Raises:
        OSError: it cannot be read, is a device, or has more bytes than `most_bytes` (EFBIG).
    """
    with open_file(path) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {most_bytes >> 20} MiB", str(path))
    return content


def read_text(path: Path, *, most_bytes: int = MOST_BYTES) -> str:
    """Return the text of a file, without a byte order mark.

    Raises:
        OSError: see `read_bytes`.
        UnicodeDecodeError: it is not UTF-8.
    """
    return read_bytes(path, most_bytes=most_bytes).decode("utf-8-sig")


UNREADABLE_HINT = "use a readable text file, saved as UTF-8"


def describe_unreadable(error: OSError | UnicodeDecodeError) -> str:
    """Return in words why `read_text` could not read a file."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if is_utf16(error.object):
        return "it is UTF-16, not UTF-8"
    line = error.object.count(b"\n", 0, error.start) + 1
    return f"it is not UTF-8: line {line} has the byte 0x{error.object[error.start]:02x}"


def is_utf16(content: bytes) -> bool:
    """Return whether a text file begins with the mark of UTF-16, as PowerShell's `>` writes it."""
    return content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def parse_yaml(text: str) -> Any:  # noqa: ANN401 - plain data, checked by whoever asked for it
    """Return the plain values in a YAML document.

    Raises:
        YamlError: it is not YAML, has a key twice or an impossible value (such as the date
            2025-13-01), or is beyond the limits of this module.
    """
    found = _parse_once(text)
    if isinstance(found, YamlError):
        raise found.with_traceback(None)
    return deepcopy(found)  # since callers may change it


@lru_cache(maxsize=4)
def _parse_once(text: str) -> object:
    """Return the values, or the error; a large text takes seconds and is read for each run."""
    try:
        return _parse(text)
    except YamlError as error:
        return error


def _parse(text: str) -> object:
    try:
        return yaml.load(text, Loader=_BoundedLoader)
    except YamlError:
        raise
    except (ValueError, OverflowError) as error:  # raised by PyYAML for escapes and directives
        raise YamlError(f"cannot read it: {error}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(str(error.problem or error.context).split())
        if mark and problem == _NO_TOKEN:
            problem += f": {text[mark.index : mark.index + 1]!r}"
        raise YamlError(problem, mark.line + 1 if mark else None) from None
    except yaml.YAMLError as error:
        raise YamlError(" ".join(str(error).split())) from None


def suggest_file(path: Path) -> str:
    """Return `did you mean …?` with the most similar file beside a missing one; empty if none is.

    The file has the same ending.
    """
    try:
        beside = [*islice(path.parent.iterdir(), MOST_BESIDE)]
    except OSError:
        return ""
    there = [each.name for each in beside if each.suffix == path.suffix]
    near = difflib.get_close_matches(path.name, there, n=1)
    return f"did you mean {str(path.with_name(near[0]))!r}?" if near else ""


def find_line(path: Path, keys: Sequence[str]) -> int | None:
    """Return the line of a YAML file with the value at a key path, as far as the path leads.

    None if the file cannot be read or does not have the first key.
    """
    try:
        node, line = yaml.compose(read_text(path), Loader=_BoundedLoader), None
    except (OSError, ValueError, yaml.YAMLError):
        return None
    for key in keys:
        found = _find_child(node, key)
        if found is None:
            break
        at, node = found
        line = at.start_mark.line + 1
    return line


def _find_child(node: yaml.Node | None, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the key and value nodes of a mapping's key, or twice the node of a list's entry."""
    if isinstance(node, yaml.MappingNode):
        return next((pair for pair in node.value if pair[0].value == key), None)
    if isinstance(node, yaml.SequenceNode) and key.isdecimal() and int(key) < len(node.value):
        return node.value[int(key)], node.value[int(key)]
    return None


_NO_TEXT = re.compile("[\0\ud800-\udfff]")
"""Characters that no file name, address or UTF-8 file can hold; an escape such as
`\\ud800` writes it."""


class _BoundedComposer(Composer):
    """Composes nodes from a parser's events, and counts levels and values."""

    peek_event: Callable[[], yaml.Event]

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0
        self._sizes = dict[int, int]()
        """The number of values inside each node, by its id, with aliases expanded."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose a node; raise an error if it is nested too deep or expands to too many values."""
        event = self.peek_event()
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise _yaml_error(f"values are nested more than {MOST_DEPTH} levels deep", event)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if node is not None:
            self._count(node, event)
        if isinstance(node, yaml.MappingNode) and not isinstance(event, yaml.AliasEvent):
            _refuse_equal_keys(node)
        return node

    def _count(self, node: yaml.Node, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent) and _NO_TEXT.search(event.value):
            raise _yaml_error("a text contains an incomplete character or the character NUL", event)
        if isinstance(event, yaml.AliasEvent):
            size = self._sizes.get(id(node))
            if size is None:
                raise _yaml_error(f"the alias *{event.anchor} occurs inside its own value", event)
        else:
            size = self._sizes[id(node)] = 1 + sum(
                self._sizes[id(one)] for one in _child_nodes(node)
            )
        if size > MOST_VALUES:
            raise _yaml_error(f"the document expands to more than {MOST_VALUES:,} values", event)


class _BoundedLoader(_BoundedComposer, _SafeLoader):
    """Builds plain values from bounded nodes."""

    def __init__(self, text: str) -> None:
        if len(_DIRECTIVE.findall(text)) > MOST_DIRECTIVES:
            raise YamlError(f"more than {MOST_DIRECTIVES} lines begin with %")
        _SafeLoader.__init__(self, text)
        _BoundedComposer.__init__(self)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ANN401
        """Build a value; report an impossible value as an error on its line."""
        if node.tag in _NUMBER_TAGS and len(node.value) > MOST_DIGITS:
            raise _yaml_error(f"a number has more than {MOST_DIGITS} characters", node)
        try:
            return super().construct_object(node, deep)
        except (ValueError, OverflowError) as error:
            raise _yaml_error(f"{str(node.value)[:40]!r} cannot be read: {error}", node) from None
        except (LookupError, AttributeError, TypeError):  # raised by PyYAML for a tag such as !!int
            kind = node.tag.rpartition(":")[2]
            raise _yaml_error(f"{str(node.value)[:40]!r} is not a valid {kind}", node) from None


def _refuse_equal_keys(mapping: yaml.MappingNode) -> None:
    lines = dict[tuple[str, str], int]()
    for key, _ in mapping.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE_TAG:
            continue
        if first := lines.get((key.tag, key.value)):
            problem = f"the key {key.value[:40]!r} is already on line {first}; keep one of them"
            raise _yaml_error(problem, key)
        lines[key.tag, key.value] = key.start_mark.line + 1


def _child_nodes(node: yaml.Node) -> list[yaml.Node]:
    """Return the nodes directly inside a node."""
    if isinstance(node, yaml.MappingNode):
        return [one for pair in node.value for one in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _yaml_error(problem: str, at: yaml.Event | yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=at.start_mark)  # type: ignore[arg-type]
