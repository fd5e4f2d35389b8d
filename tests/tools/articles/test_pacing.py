"""The pace of hosts is shared by processes, and damaged records do no harm."""

from pathlib import Path

import pytest

from coreeval.errors import KnowledgeError
from coreeval.tools.articles.pacing import HostPaces, HostRecord
from tests.support.news_site import FastTime


def paces(folder: Path, time: FastTime) -> HostPaces:
    return HostPaces(folder=folder, most_a_day=9, busy_s=30, clock=time.time, sleep=time.sleep)


async def test_a_second_process_waits_until_the_first_has_its_answer(tmp_path: Path) -> None:
    time = FastTime()
    first, second = paces(tmp_path, time), paces(tmp_path, time)
    assert await first.turn("a.test", 60) is None
    assert await second.turn("a.test", 20) == "out_of_time"
    assert await second.turn("b.test", 20) is None
    first.note_end("a.test", 5)
    assert await second.turn("a.test", 20) is None
    assert time.slept == pytest.approx([5])


async def test_a_process_that_was_killed_blocks_a_host_for_a_while_only(tmp_path: Path) -> None:
    time = FastTime()
    assert await paces(tmp_path, time).turn("a.test", 60) is None
    assert await paces(tmp_path, time).turn("a.test", 60) is None
    assert time.slept == pytest.approx([30])


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", HostRecord(paused_until=9e12).model_dump_json().encode()]
)
async def test_a_record_that_makes_no_sense_is_replaced(content: bytes, tmp_path: Path) -> None:
    time = FastTime()
    await paces(tmp_path, time).turn("a.test", 60)
    (file,) = tmp_path.glob("*.json")
    file.write_bytes(content)
    assert await paces(tmp_path, time).turn("a.test", 0) is None
    assert "a.test" not in file.name


@pytest.mark.timeout(30)
async def test_a_record_that_is_a_link_is_neither_read_nor_written_through(tmp_path: Path) -> None:
    await paces(tmp_path, FastTime()).turn("a.test", 60)
    (file,) = tmp_path.glob("*.json")
    file.unlink()
    file.symlink_to("/dev/zero")
    own = tmp_path / "own"
    own.write_text("mine")
    file.with_suffix(".new").symlink_to(own)
    assert await paces(tmp_path, FastTime()).turn("a.test", 0) is None
    assert not file.is_symlink() and own.read_text() == "mine"


async def test_a_folder_that_cannot_be_written_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("a file")
    with pytest.raises(KnowledgeError, match="time of the last request to a host cannot be stored"):
        await paces(tmp_path / "hosts", FastTime()).turn("a.test", 60)
