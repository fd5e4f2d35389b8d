"""A long text of anything: each parser of foreign text reads it, or refuses it, in bounded time.

A reader that holds so many characters against each other takes a minute and more; one that goes
through them once takes less than a second for most, and the bound leaves room for a slow machine.
"""

from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.hostile.parsers import PARSERS
from tests.hostile.patterns import seconds

SIZE: Final = 250_000
MOST_S: Final = 12.0
ANY: Final = ("\n", "[", '"', "{", " ", "a,", "1", "`", "1 , 111 , ", "<!--", "\r", "\\")
OWN: Final = {
    "answer": ('{"a":', '{"items":[{"a":1},', "<think>", "it is joy. ", "A or B. "),
    "numleak": ("4.4% ", "\n\n-", "one ", "(1", "2020 "),
    "yaml": ("- ", "a: ", "? ", "&a [*a,", "!!x ", "x: {", "|\n", "- - "),
    "config": ("- ", "a: ", "run: {"),
    "sheet": ('"a","b\n', '"', ";;;\n"),
    "csv": ('"a","b\n', 'a"\n', '"\n'),
    "worksheet": ('<row><c r="A1"><v>1</v></c></row>', "<row>", "&amp;"),
    "artlist": ('{"url":"a","title":"b"}\n', "url,title,date\n", '{"articles":['),
    "gkg": ("20260610033000-1\t", "\t", "<PAGE_TITLE>"),
    "gal": ('{"url":"a","title":"b","desc":"c"}\n', '{"desc":'),
    "doc": ('{"articles":[', '{"title":"1 . "},', "\\u"),
    "portal": ("word <ul><li>f</li></ul>", "<li>f</li>", "( ", "<li>a<ul>", "<sup><i>"),
    "cassette": ('{"kind": "answer",', "{}\n"),
}


def _parse(parser: str, content: bytes, folder: Path, _: str) -> None:
    PARSERS[parser](content, folder)


@pytest.mark.parametrize("parser", PARSERS)
def test_a_long_text_is_read_in_bounded_time(parser: str, tmp_path: Path) -> None:
    few = ANY[:4] if parser == "numleak" else ANY
    for piece in (*OWN.get(parser, ()), *few):
        content = (piece * (SIZE // len(piece))).encode()
        took = seconds(partial(_parse, parser, content, tmp_path), "", MOST_S)
        assert took < MOST_S, piece
