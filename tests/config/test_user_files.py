"""Files that a user names: what has no end, no sense or a thousand levels is a user error."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from coreeval.agents.safety import load_takedown
from coreeval.config import load_config
from coreeval.config.load import read_mapping
from coreeval.config.user_files import (
    MOST_VALUES,
    YamlError,
    iter_raw_lines,
    open_file,
    parse_yaml,
    read_bytes,
    read_text,
)
from coreeval.errors import ConfigError, CoreEvalError
from coreeval.evaluation.benchmarks.files import file_digest, read_lines
from coreeval.evaluation.numleak.series.catalogue import find_definition
from coreeval.evaluation.report.report_file import load_report
from coreeval.tasks import load_task
from coreeval.tools.text import iter_sheet_rows

LAUGHS = "a0: &a0 [1, 2, 3]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
MISTAKES = {
    "deep flow": ("a: 1\nb: " + "[" * 100_000, 2, "nested more than 64 levels"),
    "deep block": ("\n".join(" " * n + "- " for n in range(500)), 65, "nested more than 64 levels"),
    "digits": ("a: 1\n\nseed: " + "9" * 200_000, 3, "a number has more than 400 characters"),
    "base 60": ("a: " + "1:" * 50_000 + "1", 1, "a number has more than 400 characters"),
    "date": ("a: 1\nstart: 2025-13-01", 2, "'2025-13-01' cannot be read: month must be in 1..12"),
    "time": ("start: 2025-01-01T99:00:00Z", 1, "hour must be in 0..23"),
    "laughs": (LAUGHS, 6, f"expands to more than {MOST_VALUES:,} values"),
    "cycle": ("a: &x [*x]", 1, "occurs inside its own value"),
    "object": ("a: !!python/object/apply:os.system ['true']", 1, "could not determine"),
    "incomplete character": ('a: 1\nb: "x\\ud800"', 2, "invalid Unicode character"),
    "NUL in a key": ('a: 1\n"b\\0": 2', 2, "the character NUL"),
    "key twice": ("run: {budget_usd: 5}\na: 1\n'run': {seed: 9}", 3, "'run' is already on line 1"),
    "inner key twice": ("a:\n- b: 1\n  c: {}\n  b: 1", 4, "'b' is already on line 2"),
    "key twice on a line": ("a: {min: 0.9, min: 0.1}", 1, "'min' is already on line 1"),
    "tab": ("a:\n\tb: 1", 2, r"cannot start any token: '\\t'"),
    "list among keys": ("a: 1\n- 2", 2, "does not fit the lines above"),
    "syntax": ("a: 1\nb: c: d", 2, "mapping values are not allowed"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_yaml_names_its_line(mistake: str, tmp_path: Path) -> None:
    text, line, problem = MISTAKES[mistake]
    with pytest.raises(YamlError, match=problem) as caught:
        parse_yaml(text)
    assert caught.value.line == line
    assert len(str(caught.value)) < 300
    config = tmp_path / "c.yaml"
    config.write_text(text)
    with pytest.raises(ConfigError, match=f"not YAML: (near )?line {line}: ") as told:
        read_mapping(config)
    assert (told.value.where, told.value.hint != "") == (str(config), True)


@pytest.mark.parametrize(
    "text", ['a: "\\U00110000"', 'a: "\\UFFFFFFFF"', f"%YAML {'9' * 5000}.1\n---\na: b"]
)
def test_escapes_and_directives_that_python_cannot_hold(text: str) -> None:
    with pytest.raises(YamlError, match=r"invalid Unicode character|extremely long version"):
        parse_yaml(text)


@pytest.mark.parametrize("end", ["\n", "\r", "\x85", "\u2028", "\u2029"])
def test_many_directives_are_refused_before_they_are_parsed(end: str) -> None:
    text = "".join(f"%TAG !a{number}! !b{end}" for number in range(250_000))
    with pytest.raises(YamlError, match="more than 16 lines begin with %"):
        parse_yaml(f"{text}---\na: b")
    assert parse_yaml("%YAML 1.1\n%TAG !a! !b\n---\na: b") == {"a": "b"}


def test_what_people_write_is_read() -> None:
    text = "a: {b: [1, 2.5, 0x1f, 1e3, 2025-01-01, null]}\nbase: &b {z: 1}\nc: {<<: *b, y: '2'}"
    text += "\nd: {<<: *b, <<: {x: 0}, z: 3, 1: a, '1': b}\ne: [{z: 1}, {z: 2}]"
    found = parse_yaml(text)
    assert found["c"] == {"z": 1, "y": "2"}
    assert found["a"]["b"][:3] == [1, 2.5, 31]
    assert found["d"] == {"z": 3, "x": 0, 1: "a", "1": "b"}
    assert parse_yaml("") is None


READERS: dict[str, Callable[[Path], object]] = {
    "text": read_text,
    "config": load_config,
    "takedown list": load_takedown,
    "task": lambda path: load_task(str(path)),
    "report": lambda path: load_report(path, hint=""),
    "sheet": lambda path: list(iter_sheet_rows(path)),
    "lines": lambda path: list(read_lines(path)),
    "digest": lambda path: file_digest([path]),
    "series": lambda path: find_definition(str(path), base=path.parent),
}


@pytest.mark.parametrize("what", READERS)
def test_a_device_without_end_is_refused_at_once(what: str, tmp_path: Path) -> None:
    endless = tmp_path / "file.yaml"
    endless.symlink_to("/dev/zero")
    with pytest.raises((CoreEvalError, OSError), match="it is a device, not a file"):
        READERS[what](endless)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "large.yaml"
    file.write_bytes(b"a" * 101)
    assert len(read_bytes(file, most_bytes=101)) == 101
    with pytest.raises(OSError, match="larger than"):
        read_bytes(file, most_bytes=100)


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coreeval.config.user_files.MOST_LINE_BYTES", 100)
    file = tmp_path / "lines"
    file.write_bytes(b"one\n" + b"x" * 101)
    with open_file(file) as opened, pytest.raises(OSError, match="line 2 is longer"):
        list(iter_raw_lines(opened))


@pytest.mark.parametrize("text", ["name: read once\nlisted: [1]\n", "read: once\nread: twice\n"])
def test_a_text_that_is_read_again_is_not_parsed_again(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    def read() -> object:
        try:
            return parse_yaml(text)
        except YamlError as error:
            return str(error)

    first = read()
    monkeypatch.setattr(yaml, "load", None)
    assert read() == first
    if isinstance(first, dict):
        first["listed"].append(2)
        assert read() == {"name": "read once", "listed": [1]}
