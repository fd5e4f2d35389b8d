"""SQuAD 1.1 and 2.0: one JSON document with articles, their paragraphs and questions.

The files are `train-v1.1.json` or `train.json`, and so on; articles are read one by one. A question
that SQuAD 2.0 marks as impossible has no gold answer and is a bad row. Questions on one paragraph
are one cluster.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from coreeval.config import DatasetConfig
from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.files import (
    display_path,
    find_repeated_key,
    make_digest,
    repeated_key_of,
)
from coreeval.evaluation.benchmarks.json_elements import JsonElement, iter_json_elements
from coreeval.evaluation.benchmarks.rows import (
    LONGEST_ID,
    BenchmarkFormat,
    RowOrBad,
    Rows,
    SourceRow,
    make_bad_row,
)
from coreeval.evaluation.benchmarks.tables import locate_files
from coreeval.schema import Task
from coreeval.tasks.kinds.base import BLANK

_VERSION: Final = re.compile(r"-v\d+\.\d+$")
_ENDING: Final = ".json"
_IMPOSSIBLE: Final = (
    "the passage does not answer the question (is_impossible); only questions with an answer are "
    "refreshed"
)


def _locate(config: DatasetConfig) -> dict[str, Path]:
    """Return the file of each split; suffixes such as `-v1.1` are not part of a split's name."""
    found = dict[str, Path]()
    for name, paths in locate_files(config, _ENDING).items():
        split = name if paths == [Path(config.path)] else _VERSION.sub("", name)
        if split in found:
            raise DatasetError(
                f"two files belong to the split {split!r}: {found[split].name} and {paths[0].name}",
                where=config.path,
                hint="set dataset.path to one of them",
            )
        found[split] = paths[0]
    return found


def _files(config: DatasetConfig, split: str) -> list[Path]:
    return [_locate(config)[split]]


def _rows(config: DatasetConfig, task: Task, split: str) -> Rows:
    path = _locate(config)[split]
    return _iter_rows(path, display_path(path, config))


def _iter_rows(path: Path, file: str) -> Rows:
    number = 0
    for place, article in enumerate(iter_json_elements(path, "data"), start=1):
        for found in _read_article(article, place):
            number += 1
            if isinstance(found, str):
                yield make_bad_row(file, article.line, found, "")
            else:
                yield _make_row(*found, file, article.line, number)


_Question = tuple[dict[str, object], object, str]
"""A question, its passage and its cluster."""


def _read_article(article: JsonElement, place: int) -> Iterator[_Question | str]:
    """Yield the questions of an article; a reason replaces questions that cannot be read."""
    paragraphs = _find_list(article.value, "paragraphs")
    if not isinstance(article.value, dict) or isinstance(paragraphs, str):
        yield f"article {place}{paragraphs}"
        return
    title = str(article.value.get("title") or place)
    if len(title) > LONGEST_ID:
        yield f"the title of article {place} has more than {LONGEST_ID:,} characters"
        return
    for number, paragraph in enumerate(paragraphs, start=1):
        cluster = f"{title}/{number}"
        asked = _find_list(paragraph, "qas")
        if not isinstance(paragraph, dict) or isinstance(asked, str):
            yield f"paragraph {cluster}{asked}"
            continue
        context = paragraph.get("context")
        if isinstance(context, str):  # one text in memory for all of its questions
            context = context.strip(BLANK)
        for one in asked:
            if isinstance(one, dict):
                yield one, context, cluster
            else:
                yield f"paragraph {cluster} has a question that is not an object"


def _find_list(value: object, key: str) -> list[object] | str:
    """Return the list under a key of an object, or the reason why it cannot be read."""
    if twice := repeated_key_of(value):
        return f": {twice}"
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else f" has no `{key}` list"


def _make_row(
    asked: dict[str, object], context: object, cluster: str, file: str, line: int, number: int
) -> RowOrBad:
    own, raw = asked.get("id"), str(asked)
    if twice := find_repeated_key(asked):
        return make_bad_row(file, line, twice, raw)
    if asked.get("is_impossible") is True:
        return make_bad_row(file, line, _IMPOSSIBLE, raw)
    answers = _read_answers(asked.get("answers"))
    if isinstance(answers, str):
        return make_bad_row(file, line, answers, raw)
    return SourceRow(
        file=file,
        line=line,
        number=number,
        values={"question": asked.get("question"), "context": context, "answers": answers},
        id=None if own is None else str(own),
        cluster=cluster,
        raw=raw,
    )


def _read_answers(given: object) -> list[object] | str:
    """Return the texts of the answers, or the reason why there are none."""
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        return "answers is not a list of objects with text"
    return [one.get("text") for one in given] or "the question has no answers"


SQUAD = BenchmarkFormat(
    splits=lambda config: sorted(_locate(config)),
    rows=_rows,
    digest=make_digest(_files),
    spellings={"validation": "dev", "val": "dev"},
    kind="answer",
    fields=("question", "context"),
)
