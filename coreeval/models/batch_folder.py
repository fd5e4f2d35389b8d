"""Batches as files in a folder, for offline inference with vLLM's `run-batch`.

    vllm run-batch -i FOLDER/ID.jsonl -o FOLDER/ID.results.jsonl --model NAME

Both files have OpenAI's JSON Lines format; results, including errors, are appended line by line
(https://docs.vllm.ai/en/latest/examples/offline_inference/openai_batch).
"""

import asyncio
import os
import re
import stat
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import IO, Final, TypeVar

from langchain_core.messages import AIMessage

from coreeval.config import ModelConfig
from coreeval.models.batch_results import iter_answers, read_in_thread
from coreeval.models.batches import (
    MOST_BATCH_BYTES,
    MOST_BATCH_REQUESTS,
    BatchAnswer,
    BatchRequest,
    BatchState,
    check_batch_id,
    check_requests,
    lost_batch,
    name_batch_files,
)
from coreeval.models.failures import CallFailure
from coreeval.models.openai_batches import read_result, write_batch_file
from coreeval.tools.files import replacing

T = TypeVar("T")
_PUT_BACK: Final = (
    "mount the folder or move it back; if its batches are lost, put any file into the folder, and "
    "CoreEval will send their calls again"
)


class BatchFolder:
    """Batches in a folder; see `BatchEndpoint`. The provider's id of a batch is our own.

    Args:
        folder: The folder of the files; created if it is missing.
        config: The model's config.
    """

    most_requests = MOST_BATCH_REQUESTS
    most_bytes = MOST_BATCH_BYTES
    absent_after_s = 0.0

    def __init__(self, folder: Path, config: ModelConfig) -> None:
        self._folder, self._config = folder, config

    async def read_clock(self) -> datetime:
        """Return the time by this machine's clock."""
        return datetime.now(UTC)

    async def create(self, batch_id: str, requests: Sequence[BatchRequest]) -> BatchState:
        """Write the requests to `FOLDER/ID.jsonl` atomically.

        Raises:
            CallFailure: it cannot be written (`unusable`).
        """
        check_requests(self, batch_id, requests)

        def write() -> None:
            self._folder.mkdir(parents=True, exist_ok=True)
            with replacing(self._requests(batch_id)) as draft, draft.open("wb") as file:
                write_batch_file(requests, file)

        _use_disk(write)
        return await self.look(batch_id)

    async def find(
        self,
        batch_id: str,
        requests: Collection[str],
        *,
        since: datetime,
        total: int | None = None,
        known: Collection[str] = (),
    ) -> BatchState | None:
        """Return the batch with our id, if its file exists.

        Raises:
            CallFailure: the folder is missing or cannot be used (`unusable`).
        """
        check_batch_id(batch_id)
        state = await asyncio.to_thread(_use_disk, lambda: self._look(batch_id))
        return None if state.phase == "lost" else state

    async def look(self, provider_id: str) -> BatchState:
        """Return the state of a batch: it has ended when each request has a result line.

        Raises:
            CallFailure: the folder is missing or empty, for example because a disk is not mounted,
                or it cannot be used (`unusable`).
        """
        check_batch_id(provider_id)
        state = await asyncio.to_thread(_use_disk, lambda: self._look(provider_id))
        if state.phase == "lost" and not _use_disk(lambda: any(self._folder.iterdir())):
            raise CallFailure("unusable", f"the batch folder is empty: {_PUT_BACK}")
        return state

    def _check_folder(self) -> None:
        if not self._folder.is_dir():
            raise CallFailure("unusable", f"the batch folder is missing: {_PUT_BACK}")

    def _look(self, batch_id: str) -> BatchState:
        self._check_folder()
        asked, results = self._requests(batch_id), self._results(batch_id)
        total, done = _count_lines(asked), _count_lines(results)
        if total is None and self._cancelled(batch_id).exists():
            return self._look_at_cancelled(batch_id)
        if total is None:
            return lost_batch(batch_id, f"{asked.name} is missing")
        made = datetime.fromtimestamp(asked.stat().st_mtime, UTC)
        if done is None or done < total:
            status = f"{done or 0:,} of {total:,} lines are in {results.name}"
            if done is None:
                status = (
                    f"waiting for vllm run-batch -i {quote(str(asked))} -o {quote(str(results))} "
                    f"--model {quote(self._config.name)}"
                )
            return BatchState(
                provider_id=batch_id,
                phase="running",
                status=status,
                total=total,
                input_file=asked.name,
                created_at=made,
            )
        outcomes = _read_outcomes(asked, results)
        return BatchState(
            provider_id=batch_id,
            phase="ended",
            status="completed",
            total=total,
            succeeded=sum(outcomes.values()),
            failed=len(outcomes) - sum(outcomes.values()),
            input_file=asked.name,
            result_files=(results.name,),
            created_at=made,
        )

    async def cancel(self, provider_id: str) -> BatchState:
        """Rename the request file; requests with a complete result line keep their results."""
        state = await self.look(provider_id)
        if state.phase != "running":
            return state
        asked, put_away = self._requests(provider_id), self._cancelled(provider_id)
        _use_disk(lambda: asked.rename(put_away))
        return self._look_at_cancelled(provider_id)

    def _look_at_cancelled(self, batch_id: str) -> BatchState:
        results = self._results(batch_id)
        return BatchState(
            provider_id=batch_id,
            phase="ended",
            status="cancelled",
            total=_count_lines(self._cancelled(batch_id)) or 0,
            input_file=self._cancelled(batch_id).name,
            result_files=(results.name,) if results.exists() else (),
        )

    async def read_answers(self, state: BatchState) -> AsyncGenerator[BatchAnswer, None]:
        """Yield the answers; of a cancelled batch, those with complete lines."""
        if not state.result_files:
            return
        with _use_disk(lambda: _open_file(self._results(state.provider_id))) as file:
            try:
                async for answer in read_in_thread(file, _read, ""):
                    yield answer
            except CallFailure:
                if state.status != "cancelled":  # vLLM was writing it
                    raise

    async def delete_files(self, state: BatchState) -> None:
        """Delete the request and result files."""

        def delete() -> None:
            self._check_folder()
            self._requests(state.provider_id).unlink(missing_ok=True)
            self._cancelled(state.provider_id).unlink(missing_ok=True)
            self._results(state.provider_id).unlink(missing_ok=True)

        _use_disk(delete)

    def _requests(self, batch_id: str) -> Path:
        return self._folder / name_batch_files(batch_id)[0]

    def _cancelled(self, batch_id: str) -> Path:
        return self._folder / name_batch_files(batch_id)[1]

    def _results(self, batch_id: str) -> Path:
        return self._folder / name_batch_files(batch_id)[2]


def _read(fields: dict[str, object]) -> AIMessage | CallFailure | None:
    return read_result(fields, "")


_PIECE_BYTES: Final = 1 << 16
_OUR_LINE = re.compile(rb'\{"custom_id":"([0-9a-f]{64})"')


def _open_file(path: Path) -> IO[bytes]:
    """Open a file for reading without blocking on a pipe.

    Raises:
        CallFailure: it is not a regular file (`unusable`).
        OSError: it cannot be opened.
    """
    opened = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise CallFailure("unusable", f"{path.name} is not a regular file: remove it")
    return os.fdopen(opened, "rb")


def _iter_lines(path: Path) -> Iterator[bytes]:
    """Yield the first 64 KiB at most of each complete, non-blank line."""
    with _open_file(path) as file:
        while start := file.readline(_PIECE_BYTES):
            piece = start
            while piece and not piece.endswith(b"\n"):
                piece = file.readline(_PIECE_BYTES)
            if piece and start.strip():
                yield start


def _count_lines(path: Path) -> int | None:
    """Return the number of complete lines in a file; None if it is missing."""
    try:
        return sum(1 for _ in _iter_lines(path))
    except FileNotFoundError:
        return None


def _read_outcomes(asked: Path, results: Path) -> dict[str, bool]:
    """Return, for each request with a result, whether its first result is an answer."""
    found = (_OUR_LINE.match(line) for line in _iter_lines(asked))
    ours, outcomes = {each.group(1).decode() for each in found if each}, dict[str, bool]()
    with _open_file(results) as file, suppress(CallFailure):  # which `read_answers` raises
        for one in iter_answers(file, _read, ""):
            if one.custom_id in ours:
                outcomes.setdefault(one.custom_id, isinstance(one.outcome, AIMessage))
    return outcomes


def _use_disk(act: Callable[[], T]) -> T:
    """Return the result of a disk operation.

    Raises:
        CallFailure: the disk cannot be used.
    """
    try:
        return act()
    except OSError as error:
        told = f"the batch folder cannot be used: {error.strerror}: {error.filename}"
    raise CallFailure("unusable", told)
