"""Every parser of foreign text, each given bytes: it reads them or says what is wrong.

What a parser may raise is a message for the user or for whoever asks a model again. Anything else
comes out of here, and is a defect.
"""

import gzip
import io
import zipfile
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from coreeval.config.load import load_config
from coreeval.config.user_files import YamlError, parse_yaml
from coreeval.errors import CoreEvalError
from coreeval.evaluation import answer_parsers
from coreeval.evaluation.annotation.sheets import read_workbook_rows
from coreeval.evaluation.answer_parsers import LabelShape
from coreeval.evaluation.benchmarks.files import BadRecord, read_records
from coreeval.evaluation.benchmarks.tables import read_csv_records, read_tab_records
from coreeval.evaluation.numleak.parsing import read_choice, read_value
from coreeval.evaluation.numleak.parsing.probe_answers import (
    read_disputed,
    read_prose,
    read_reasoned,
    read_score,
)
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.series.definition import load_units
from coreeval.evaluation.numleak.series.layouts import extract_text
from coreeval.models.answers import InvalidAnswer, OutputSchema, PlainOutput
from coreeval.models.rate_limit import parse_allowances
from coreeval.releases.cassettes.read import open_cassette
from coreeval.releases.gates.limits import load_gates
from coreeval.tasks import load_task
from coreeval.tools.catalogs import load_prices
from coreeval.tools.gdelt import page_text
from coreeval.tools.gdelt.doc import replies
from coreeval.tools.gdelt.doc.fetch import to_articles
from coreeval.tools.gdelt.doc.replies import HttpReply
from coreeval.tools.gdelt.rows import FileDamage, read_lines
from coreeval.tools.gdelt.sync.article_lists import read_artlist
from coreeval.tools.gdelt.sync.file_reader import Offer, read
from coreeval.tools.gdelt.sync.portal_page import UnknownLayout, read_page
from coreeval.tools.text import iter_sheet_rows
from coreeval.viewer.sample_page import indent_json

Parser = Callable[[bytes, Path], None]
"""Reads bytes; it may write them into an empty folder."""
MONTH: Final = Period.parse("2008-09", "monthly")
PERCENT: Final = load_units()["percent"]
NAME: Final = "the Fama-French market excess return (Mkt-RF) factor, Mkt-RF, monthly return"


class Item(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(extra="forbid")
    a: int
    b: str


class Answer(BaseModel):
    """What a model is asked for."""

    model_config = ConfigDict(extra="forbid")
    items: tuple[Item, ...]


SHAPE: Final = OutputSchema(Answer)
LABELS: Final = LabelShape(load_task("emotion"))


def answer(text: str) -> None:
    for shape in (SHAPE, LABELS, PlainOutput()):
        for mend in (False, True):
            with suppress(InvalidAnswer):
                shape.parse(text, mend=mend)
    answer_parsers.read_choice(text, {"A": "tin", "B": "gold"})
    indent_json(text)


def numleak(text: str) -> None:
    read_value(text, unit=PERCENT, period=MONTH, name=NAME)
    read_prose(text, unit=PERCENT, period=MONTH, name=NAME)
    read_reasoned(text, unit=PERCENT, period=MONTH, name=NAME)
    read_disputed(text, stated=-42.0, unit=PERCENT, period=MONTH)
    read_score(text, period=MONTH)
    read_choice(text, first=MONTH, second=MONTH.shift(1))


def title(text: str) -> None:
    for part in (text, *text.splitlines()[:1000]):
        page_text.without_outlet(page_text.repair_title(part))
    page_text.is_instruction_like(page_text.clean_text(text))


def header(text: str) -> None:
    names = (
        "x-ratelimit-remaining-tokens",
        "x-ratelimit-reset-tokens",
        "anthropic-ratelimit-tokens-remaining",
        "anthropic-ratelimit-tokens-reset",
    )
    parse_allowances(dict.fromkeys(names, text) | {names[0]: "1", names[2]: "1"})


def doc(content: bytes, _folder: Path) -> None:
    found = replies.read_reply(
        HttpReply(status=200, body=content, retry_after=content.decode("latin-1"))
    )
    if isinstance(found, replies.ArticleList):
        _use_up(to_articles(found.rows, "doc"))


def _of_text(read_text: Callable[[str], None]) -> Parser:
    return lambda content, _: read_text(content.decode("utf-8", "replace"))


def _of_file(name: str, read_file: Callable[[Path], object]) -> Parser:
    def parse(content: bytes, folder: Path) -> None:
        path = folder / name
        path.write_bytes(content)
        with suppress(CoreEvalError, FileDamage):
            _use_up(read_file(path))

    return parse


def _use_up(found: object) -> None:
    if isinstance(found, Iterable) and not isinstance(found, str | BaseModel | Mapping):
        deque(found, maxlen=0)


def _yaml(text: str) -> None:
    with suppress(YamlError):
        parse_yaml(text)


def _json_lines(path: Path) -> object:
    return read_records(
        path,
        lambda row: BadRecord("no") if "x" in row else str(row),
        key=str,
        twice=lambda *_: "twice",
    )


def _cassette(path: Path) -> object:
    opened = open_cassette(path)
    from tests.support.cassettes import lines_of

    return lines_of(opened)


def _packed(content: bytes, folder: Path) -> None:
    """Read bytes as the lines of a cassette."""
    _of_file("a.cassette", _cassette)(gzip.compress(content, 1), folder)


def _sheet_xml(content: bytes, folder: Path) -> None:
    """Read bytes as the one page of a workbook that is otherwise whole."""
    made = io.BytesIO()
    with zipfile.ZipFile(_empty_book()) as whole, zipfile.ZipFile(made, "w") as new:
        for member in whole.infolist():
            page = member.filename == "xl/worksheets/sheet1.xml"
            new.writestr(member.filename, content if page else whole.read(member))
    _of_file("a.xlsx", read_workbook_rows)(made.getvalue(), folder)


def _empty_book() -> io.BytesIO:
    from openpyxl import Workbook

    made = io.BytesIO()
    Workbook().save(made)
    return made


def _archive(content: bytes, folder: Path) -> None:
    """Read bytes as a file of news and as one of a series."""
    _of_file("a.zip", read_lines)(content, folder)
    with suppress(CoreEvalError):
        extract_text(content)


def _news(name: str, feed: str) -> Parser:
    def parse(content: bytes, folder: Path) -> None:
        path = folder / name
        path.write_bytes(content)
        for known in (feed, None):
            read(Offer(path=path, name=name, feed=known), ())  # type: ignore[arg-type]

    return parse


def portal(said: str) -> None:
    """Read a topic of a page of current events, and what stands below it."""
    with suppress(UnknownLayout):
        deque(read_page(f'<div class="current-events-content"><ul><li>{said}'), maxlen=0)


PARSERS: Final[Mapping[str, Parser]] = {
    "answer": _of_text(answer),
    "numleak": _of_text(numleak),
    "title": _of_text(title),
    "header": _of_text(header),
    "yaml": _of_text(_yaml),
    "config": _of_file("coreeval.yaml", load_config),
    "task": _of_file("task.yaml", lambda path: load_task(str(path))),
    "gates": _of_file("gates.yaml", load_gates),
    "prices": _of_file("prices.yaml", load_prices),
    "sheet": _of_file("a.csv", iter_sheet_rows),
    "workbook": _of_file("a.xlsx", read_workbook_rows),
    "worksheet": _sheet_xml,
    "csv": _of_file("a.csv", read_csv_records),
    "tsv": _of_file("a.tsv", read_tab_records),
    "jsonl": _of_file("a.jsonl", _json_lines),
    "archive": _archive,
    "artlist": _of_file("a.json", lambda path: read_artlist(path, path.name)),
    "gkg": _news("20260610033000.gkg.csv", "gkg"),
    "gal": _news("20260610033000.gal.json", "gal"),
    "doc": doc,
    "portal": _of_text(portal),
    "cassette": _packed,
}
"""By the name of the folder of its corpus."""
