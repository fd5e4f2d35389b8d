"""The pages of the documentation, and the commands in their blocks."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for path in (
        *sorted(ROOT.glob("*.md")),
        *sorted((ROOT / "docs").glob("*.md")),
        *sorted((ROOT / "examples").rglob("README.md")),
    )
}
"""The text of each page by its path in the repository."""
_BLOCK = re.compile(
    r"(?:^<!-- parsed only: (?P<reason>[^>]+) -->\n)?^```bash\n(?P<code>.*?)^```", re.M | re.S
)
_HEREDOC = re.compile(
    r"^cat > (?P<file>\S+) <<'(?P<end>\w+)'\n(?P<text>.*?)^(?P=end)\n", re.M | re.S
)


@dataclass(frozen=True)
class Command:
    """A call of `coreeval` on a page."""

    words: tuple[str, ...]
    """The arguments after `coreeval`."""
    output: str = ""
    """The file that takes what it prints; empty for none."""
    reason: str = ""
    """Why the page says that it is not run in tests; empty if it says nothing."""

    def __str__(self) -> str:
        return shlex.join(("coreeval", *self.words))


@dataclass(frozen=True)
class Written:
    """A file that a page writes with `cat`."""

    name: str
    text: str


@dataclass(frozen=True)
class Script:
    """A call of an example of the repository."""

    words: tuple[str, ...]
    """The arguments of Python."""


def iter_steps(page: str) -> Iterator[Command | Script | Written]:
    """Yield the commands, scripts and files of a page's bash blocks, in their order."""
    for block in _BLOCK.finditer(page):
        code = block["code"].replace("\\\n", " ")
        start = 0
        for file in _HEREDOC.finditer(code):
            yield from _iter_commands(code[start : file.start()], block["reason"] or "")
            yield Written(file["file"], file["text"])
            start = file.end()
        yield from _iter_commands(code[start:], block["reason"] or "")


def iter_commands(page: str) -> Iterator[Command]:
    """Yield the commands of a page's bash blocks."""
    return (each for each in iter_steps(page) if isinstance(each, Command))


def _iter_commands(code: str, reason: str) -> Iterator[Command | Script]:
    for line in code.splitlines():
        if not re.search(r"(?:^|[;&|]\s*)(?:coreeval\s|python examples/)", line):
            continue
        for words in _split(line):
            given, _, output = _partition(words[1:], ">")
            if words[:1] == ["coreeval"]:
                yield Command(tuple(given), "".join(output), reason)
            elif words[:1] == ["python"]:
                yield Script(tuple(given))


def _split(line: str) -> Iterator[list[str]]:
    """Yield the words of each command of a line, without comments."""
    lexer = shlex.shlex(_drop_comment(line), posix=True, punctuation_chars=";&|>")
    lexer.whitespace_split, lexer.commenters = True, ""
    words = list[str]()
    for word in lexer:
        if word in (";", "&&", "|"):
            yield words
            words = []
        else:
            words.append(word)
    yield words


def _drop_comment(line: str) -> str:
    return re.sub(r"(^|\s)#.*$", "", line)


def _partition(words: list[str], at: str) -> tuple[list[str], str, list[str]]:
    if at not in words:
        return words, "", []
    place = words.index(at)
    return words[:place], at, words[place + 1 :]
