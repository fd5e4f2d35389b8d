"""Checkpoints of threads: in memory while they run, on disk when they stop.

Most threads finish, so saving each step would be wasted work. A thread that is lost in a kill
starts again over stored calls.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from sqlite3 import DatabaseError, OperationalError
from typing import Any, NoReturn, Self

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from coreeval.errors import RunCorrupt, RunError
from coreeval.tools.stores.foreign_schema import CHECKPOINTS, refuse_foreign_schema
from coreeval.tools.stores.heartbeat import refuse_side_files, refuse_special_file

_PLAIN_KINDS = frozenset({"null", "msgpack"})
"""Encodings that this serializer reads; LangGraph's others (json, pickle) can create objects."""
_MOST_HELD = 4096
"""The most threads in memory (own choice)."""
_MOVE = "move it away, then resume the run"
_DELETE = "delete it: samples in flight start again from the calls already answered"


class InvalidCheckpointRow(ValueError):
    """A row of checkpoints.db has content that CoreEval does not write there."""


class PlainValueSerializer(JsonPlusSerializer):
    """Reads rows of plain JSON values only, in any environment and any order of imports.

    LangGraph's default imports and calls what a row names, unless `LANGGRAPH_STRICT_MSGPACK` was
    set when `langgraph` was first imported. This serializer allows no types, its allow-list cannot
    be extended, and an object raises an error instead of being replaced by its raw data.
    """

    def __init__(self) -> None:
        super().__init__(
            pickle_fallback=False,
            allowed_json_modules=None,
            allowed_msgpack_modules=None,
            __unpack_ext_hook__=_refuse_object,
        )

    def with_msgpack_allowlist(self, extra_allowlist: object) -> Self:
        """Return this serializer, because a graph cannot allow more types."""
        return self

    def loads_typed(self, data: tuple[str, bytes]) -> object:
        """Decode a value.

        Raises:
            RefusedRow: its encoding can build objects, it contains one, or it is malformed.
        """
        kind, encoded = data
        if kind not in _PLAIN_KINDS:
            raise InvalidCheckpointRow(f"a value is encoded as {kind!r}")
        try:
            return super().loads_typed((kind, encoded))
        except (TypeError, ValueError):
            raise InvalidCheckpointRow("a value is not plain JSON") from None


def _refuse_object(code: int, encoded: bytes) -> NoReturn:
    """Raise an error for a msgpack extension: each builds an object of a type named by the row."""
    raise InvalidCheckpointRow(f"a value is an object (extension {code})")


class _CheckpointKeys(TypedDict):
    """The keys of a checkpoint that LangGraph reads without checking them."""

    __pydantic_config__ = ConfigDict(extra="allow", strict=True)  # type: ignore[misc]

    v: int
    id: str
    ts: str
    channel_values: dict[str, Any]
    channel_versions: dict[str, str]
    versions_seen: dict[str, dict[str, str]]


_CHECKPOINT_ADAPTER = TypeAdapter(_CheckpointKeys)


@dataclass
class _ThreadCheckpoint:
    """The newest checkpoint of a thread, with the writes since."""

    config: RunnableConfig
    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    new_versions: ChannelVersions
    writes: dict[str, Sequence[tuple[str, Any]]] = field(default_factory=dict)
    """Writes by the task that made them."""

    @property
    def own_config(self) -> RunnableConfig:
        """Return the config that names this checkpoint."""
        place = self.config["configurable"]
        return {
            "configurable": {
                "thread_id": place["thread_id"],
                "checkpoint_ns": place.get("checkpoint_ns", ""),
                "checkpoint_id": self.checkpoint["id"],
            }
        }


class CheckpointStore(BaseCheckpointSaver[str]):
    """In-memory checkpoints of running threads, backed by those of stopped threads on disk.

    Args:
        disk: Stores the checkpoints that outlive the process.
        threads: Ids of the threads on disk.
    """

    def __init__(self, disk: AsyncSqliteSaver, threads: set[str]) -> None:
        super().__init__(serde=disk.serde)
        self._disk = disk
        self._on_disk = threads
        self._held: dict[str, _ThreadCheckpoint] = {}

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return the version after this one."""
        return self._disk.get_next_version(current, channel)

    def has_thread(self, thread_id: str) -> bool:
        """Return whether a thread has a checkpoint to continue from."""
        return thread_id in self._held or thread_id in self._on_disk

    @property
    def is_full(self) -> bool:
        """Whether waiting threads must be stored on disk, because many are in memory."""
        return len(self._held) > _MOST_HELD

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the current checkpoint of a thread."""
        thread_id = config["configurable"]["thread_id"]
        if held := self._held.get(thread_id):
            pending = [(task, *write) for task, writes in held.writes.items() for write in writes]
            return CheckpointTuple(held.own_config, held.checkpoint, held.metadata, None, pending)
        return await self._read(config) if thread_id in self._on_disk else None

    async def _read(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a thread's checkpoint from disk.

        Raises:
            RefusedRow: the stored data was not written by CoreEval.
        """
        try:
            found = await self._disk.aget_tuple(config)
            if found:
                _CHECKPOINT_ADAPTER.validate_python(found.checkpoint)
        except InvalidCheckpointRow:
            raise
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"])) or "the checkpoint"
            raise InvalidCheckpointRow(f"{place}: {first['msg']}") from None
        except (TypeError, ValueError) as error:  # metadata and columns, which LangGraph decodes
            raise InvalidCheckpointRow(str(error)) from None
        return found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint in memory, replacing the previous one."""
        held = _ThreadCheckpoint(config, checkpoint, metadata, new_versions)
        self._held[config["configurable"]["thread_id"]] = held
        return held.own_config

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store in memory what a task wrote after the newest checkpoint."""
        held = self._held.get(config["configurable"]["thread_id"])
        if held is None or held.checkpoint["id"] != config["configurable"]["checkpoint_id"]:
            await self._disk.aput_writes(config, writes, task_id, task_path)
        elif task_id not in held.writes or all(name in WRITES_IDX_MAP for name, _ in writes):
            held.writes[task_id] = writes

    async def keep(self, thread_id: str) -> None:
        """Write a stopped thread's checkpoint to disk."""
        held = self._held.pop(thread_id, None)
        if held is None:
            return
        await self._disk.aput(held.config, held.checkpoint, held.metadata, held.new_versions)
        for task_id, writes in held.writes.items():
            await self._disk.aput_writes(held.own_config, writes, task_id)
        self._on_disk.add(thread_id)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread's checkpoint from memory and from disk."""
        self._held.pop(thread_id, None)
        if thread_id in self._on_disk:
            await self._disk.adelete_thread(thread_id)
            self._on_disk.discard(thread_id)


@asynccontextmanager
async def open_checkpoints(path: Path) -> AsyncIterator[CheckpointStore]:
    """Open the checkpoints of a run.

    Raises:
        RunCorrupt: the file is damaged, links to a file elsewhere, or belongs to another program.
    """
    await asyncio.to_thread(_check_file, path)
    async with aiosqlite.connect(path) as connection:
        with report_damage(path):
            await connection.execute("PRAGMA synchronous=NORMAL")
            disk = AsyncSqliteSaver(connection, serde=PlainValueSerializer())
            await disk.setup()
            found = await connection.execute_fetchall("SELECT DISTINCT thread_id FROM checkpoints")
        yield CheckpointStore(disk, {row[0] for row in found})


def _check_file(path: Path) -> None:
    """Raise an error if the file is a link, names another file, or was not created by LangGraph."""
    refuse_special_file(path)
    refuse_side_files(path)
    if path.exists():
        with report_damage(path), closing(sqlite3.connect(path)) as connection:
            refuse_foreign_schema(connection.execute, path, CHECKPOINTS, hint=_MOVE)


@contextmanager
def report_damage(path: Path) -> Iterator[None]:
    """Report damaged checkpoints to the user; no sample in flight could survive them."""
    try:
        yield
    except OperationalError as error:
        raise RunError(
            f"checkpoints.db cannot be used: {error}",
            where=str(path),
            hint="check the disk",
        ) from None
    except DatabaseError as error:
        raise RunCorrupt(
            f"checkpoints.db is damaged: {error}", where=str(path), hint=_DELETE
        ) from None
    except InvalidCheckpointRow as error:
        raise RunCorrupt(
            f"checkpoints.db contains a row that CoreEval did not write; it was not read: {error}",
            where=str(path),
            hint=_DELETE,
        ) from None
