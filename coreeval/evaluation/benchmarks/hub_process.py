"""The package `datasets` in a separate process, which protects the command from crashes and memory.

The process reads one dataset: it gets a question on standard input, answers on standard output, and
is ended when the answer is no longer needed. On Linux it may use `MOST_MEMORY` bytes.
"""

import importlib
import os
import pickle
import sys
import traceback
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from coreeval.errors import CoreEvalError, DatasetError, UsageError
from coreeval.evaluation.benchmarks.hub_files import keep_to_own_files
from coreeval.tools.endpoints import import_for_hub
from coreeval.tools.extras import require_extra
from coreeval.tools.files import MOST_ROW_BYTES
from coreeval.tools.processes import (
    describe_ending,
    limit_memory,
    start_serving,
    take_answer_stream,
)
from coreeval.tools.short_floats import shorten_rows

MOST_MEMORY: Final = 8 << 30
"""The most bytes of memory of the process, without mapped files (own choice)."""
HubRecord = Mapping[str, object]
HubAnswer = Generator[Any, None, None]
"""The parts of an answer; closing it ends the process."""


@dataclass(frozen=True, slots=True)
class HubQuestion:
    """The request for a dataset: its splits, or the rows of one."""

    path: str
    subset: str | None
    split: str | None = None
    """The name of the split; None requests the names of the splits."""


@dataclass(frozen=True, slots=True)
class HubRefusal:
    """The message of the packages about a dataset that they cannot read."""

    message: str


@dataclass(frozen=True, slots=True)
class HubEnd:
    """The end of the answer."""


@dataclass(frozen=True, slots=True)
class HubColumns:
    """The columns that a dataset declares, before its rows; None if it declares none."""

    names: list[str] | None


@dataclass(frozen=True, slots=True)
class _Trouble:
    """An error of CoreEval, in parts because its class cannot be pickled."""

    kind: str
    message: str
    where: str
    hint: str


_NO_DATASETS = Path(__file__).parent
"""A folder in which no dataset can be, so that the name of one is not taken for a folder."""


def ask_apart(question: HubQuestion) -> HubAnswer:
    """Yield the parts of an answer from `answer` in a separate process.

    Raises:
        DatasetError: the process died, the package is not installed, or the dataset names files
            that are not its own.
        UsageError: the address of the hub is invalid.
    """
    process = start_serving("coreeval.evaluation.benchmarks.hub_process")
    assert process.stdin and process.stdout
    with process:
        try:
            pickle.dump(question, process.stdin)
            process.stdin.close()
            while not isinstance(part := pickle.load(process.stdout), HubEnd):
                if isinstance(part, _Trouble):
                    kind = UsageError if part.kind == UsageError.kind else DatasetError
                    raise kind(part.message, where=part.where, hint=part.hint)
                yield part
        except (BrokenPipeError, EOFError, pickle.UnpicklingError):
            raise DatasetError(
                "the process that reads the dataset ended unexpectedly: "
                f"{describe_ending(process.wait())}",
                where=question.path,
                hint="a file of the dataset is damaged or malicious, or reading it needs more than "
                f"{MOST_MEMORY >> 30} GiB of memory: check the file, or remove it",
            ) from None
        finally:
            process.kill()


def answer(question: HubQuestion) -> HubAnswer:
    """Yield the parts of an answer: names of splits, or `HubColumns` and the rows.

    The packages raise Python's own errors for incomplete responses and damaged files; each of them
    becomes a `HubRefusal`.

    Raises:
        DatasetError: the package is not installed, or the dataset names files that are not its own.
        UsageError: the address of the hub is invalid.
    """
    parts = _read_parts(_import_datasets(), question)
    try:
        while True:
            try:
                part = next(parts)
            except StopIteration:
                return
            except CoreEvalError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, the dataset cannot be read
                yield HubRefusal(str(error) or type(error).__name__)
                return
            yield part
    finally:
        with suppress(Exception):  # from a package that is stopped while it reads
            parts.close()


def _read_parts(package: ModuleType, question: HubQuestion) -> HubAnswer:
    with keep_to_own_files(package, question.path):
        if question.split is None:
            yield package.get_dataset_split_names(question.path, question.subset)
            return
        yield from _iter_rows(package, question)


def _import_datasets() -> ModuleType:
    with import_for_hub(os.environ), require_extra("hf", "the format hf", error=DatasetError):
        return importlib.import_module("datasets")


def _iter_rows(package: ModuleType, question: HubQuestion) -> Iterator[Any]:
    """Yield the columns and rows of a split.

    Images, audio and similar values are not decoded: this would open the paths and addresses in the
    rows. If no types are known, there is nothing to decode.
    """
    records = package.load_dataset(
        question.path, question.subset, split=question.split, streaming=True
    )
    kinds = records.features
    if kinds is not None:
        records = records.decode(False)
    yield HubColumns(getattr(records, "column_names", None))
    yield from records if kinds is None else shorten_rows(records, kinds.arrow_schema)


def serve() -> None:
    """Answer the question on standard input."""
    answers = take_answer_stream()
    limit_memory(MOST_MEMORY)
    try:
        question: HubQuestion = pickle.load(sys.stdin.buffer)
        if not Path(question.path).is_absolute():
            os.chdir(_NO_DATASETS)
        for part in answer(question):
            packed = pickle.dumps(part, protocol=5)
            if len(packed) > MOST_ROW_BYTES:
                packed = pickle.dumps(
                    HubRefusal(f"the next row has more than {MOST_ROW_BYTES >> 20} MiB")
                )
            answers.write(packed)
        pickle.dump(HubEnd(), answers)
        answers.flush()
    except CoreEvalError as error:
        pickle.dump(_Trouble(error.kind, error.message, error.where, error.hint), answers)
        answers.flush()
    except BrokenPipeError:
        pass
    except BaseException:  # noqa: BLE001 - the end of this process tells the other one
        traceback.print_exc()
        os._exit(1)
    os._exit(0)  # threads of the packages may still be running
