import json
import resource
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from coreeval.tools.gdelt.index.storage import (
    ALIGNED,
    IN_A_BLOCK,
    MOST_BLOCK_BYTES,
    Postings,
    RecordFile,
    Strings,
    find_members,
    open_arrays,
    to_posting_arrays,
    to_string_arrays,
    write_arrays,
    write_records,
)
from coreeval.tools.gdelt.sync.sync import NO_ROOM

WRITTEN: dict[str, NDArray[Any]] = {
    "numbers": np.arange(1000, dtype=np.int64) - 500,
    "none": np.zeros(0, np.uint32),
    "big_endian": np.arange(7, dtype=">u4"),
    "bytes": np.frombuffer(b"caf\xc3\xa9", np.uint8),
    "shares": np.array([0.1, -2.5], np.float32),
}


def test_arrays_come_back(tmp_path: Path) -> None:
    write_arrays(tmp_path / "x", WRITTEN)
    found = open_arrays(tmp_path / "x")
    assert list(found) == list(WRITTEN)
    for name, array in WRITTEN.items():
        assert found[name].tolist() == array.tolist()
        assert found[name].dtype.newbyteorder("<") == array.dtype.newbyteorder("<")
    assert found["numbers"].ctypes.data % ALIGNED == 0
    write_arrays(tmp_path / "x", {})
    assert open_arrays(tmp_path / "x") == {}


def test_arrays_without_room_say_so(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, limits[1]))
    try:
        with pytest.raises(OSError) as caught:
            write_arrays(tmp_path / "x", {"numbers": np.arange(1 << 16)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.errno in NO_ROOM


def test_any_shorter_or_longer_file_is_refused(tmp_path: Path) -> None:
    write_arrays(tmp_path / "x", WRITTEN)
    whole = (tmp_path / "x").read_bytes()
    for data in [*(whole[:size] for size in range(0, len(whole), 37)), whole + b"\0"]:
        (tmp_path / "y").write_bytes(data)
        with pytest.raises(ValueError):
            open_arrays(tmp_path / "y")


def test_a_changed_header_is_refused(tmp_path: Path) -> None:
    write_arrays(tmp_path / "x", WRITTEN)
    whole = (tmp_path / "x").read_bytes()
    for place in range(whole.index(b"}") + 1):
        changed = bytearray(whole)
        changed[place] ^= 1
        (tmp_path / "y").write_bytes(changed)
        with pytest.raises(ValueError):
            open_arrays(tmp_path / "y")


def test_any_changed_number_is_seen_by_its_sum(tmp_path: Path) -> None:
    write_arrays(tmp_path / "x", WRITTEN)
    whole = (tmp_path / "x").read_bytes()
    for array in WRITTEN.values():
        little = array.astype(array.dtype.newbyteorder("<")).tobytes()
        changed = bytearray(whole)
        changed[whole.index(little) + len(little) // 2] ^= 4
        (tmp_path / "y").write_bytes(changed)
        if little:
            assert list(open_arrays(tmp_path / "y")) == list(WRITTEN)
            with pytest.raises(ValueError, match="damaged"):
                open_arrays(tmp_path / "y", checked=True)
    assert list(open_arrays(tmp_path / "x", checked=True)) == list(WRITTEN)


@pytest.mark.parametrize("size", [-1, 0, 10, 2**62])
def test_a_changed_size_of_a_block_of_texts_is_seen(tmp_path: Path, size: int) -> None:
    write_records(tmp_path / "x", ['{"title": "Gold rises"}'])
    whole = bytearray((tmp_path / "x").read_bytes())
    whole[-16:-8] = size.to_bytes(8, "little", signed=True)
    (tmp_path / "x").write_bytes(whole)
    with RecordFile(tmp_path / "x") as records, pytest.raises(ValueError, match="damaged"):
        records.read(0)


def test_a_block_of_texts_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    """34 kB of somebody else's store took all memory."""
    write_records(tmp_path / "x", [json.dumps("a" * MOST_BLOCK_BYTES)])
    with RecordFile(tmp_path / "x") as records, pytest.raises(ValueError, match="16 MiB"):
        records.read(0)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
LISTS = st.lists(st.dictionaries(st.integers(0, 40), st.booleans(), max_size=12), max_size=6)


@settings(deadline=None)
@given(st.sets(TEXTS), TEXTS)
def test_sorted_texts_are_found(texts: set[str], other: str) -> None:
    ordered = sorted(texts, key=str.encode)
    arrays = to_string_arrays("x", ordered)
    strings = Strings(arrays["x_starts"], arrays["x_text"])
    assert list(strings) == ordered
    assert [strings.find(text) for text in ordered] == list(range(len(ordered)))
    assert strings.find(other) == (ordered.index(other) if other in texts else None)


@settings(deadline=None)
@given(LISTS, st.sets(st.integers(0, 41)))
def test_lists_and_what_is_in_them(lists: list[dict[int, bool]], asked: set[int]) -> None:
    postings = postings_of(lists)
    numbers = np.array(sorted(asked), np.uint32)
    assert postings.counts(np.arange(len(lists), dtype=np.uint32)).tolist() == [*map(len, lists)]
    for key, expected in enumerate(lists):
        items = postings.of(key)
        assert [(int(item) >> 1, bool(item & 1)) for item in items] == sorted(expected.items())
        if expected:
            there, flags = find_members(items, numbers)
            assert there.tolist() == [number in expected for number in sorted(asked)]
            assert flags[there].tolist() == [expected[at] for at in sorted(asked & set(expected))]


def postings_of(lists: list[dict[int, bool]]) -> Postings:
    packed: list[Any] = [
        (key << 32) + (number << 1) + flag
        for key, held in enumerate(lists) for number, flag in sorted(held.items())
    ]  # fmt: skip
    arrays = to_posting_arrays("x", np.array(packed, np.uint64), len(lists))
    return Postings(arrays["x_starts"], arrays["x"])


def test_single_records_are_read_whole(tmp_path: Path) -> None:
    records = [
        [number, "caf\u00e9 \u2028\n" * (number % 5)] for number in range(5 * IN_A_BLOCK + 3)
    ]
    write_records(tmp_path / "x", (json.dumps(one, ensure_ascii=False) for one in records))
    wanted = [len(records) - 1, 0, IN_A_BLOCK - 1, IN_A_BLOCK, 0]
    with RecordFile(tmp_path / "x") as texts, ThreadPoolExecutor(4) as pool:
        assert [texts.read(number) for number in wanted] == [records[number] for number in wanted]
        whole = list(pool.map(texts.read, range(len(records))))
    assert whole == records


def test_no_records(tmp_path: Path) -> None:
    write_records(tmp_path / "x", [])
    with RecordFile(tmp_path / "x") as texts, pytest.raises(LookupError):
        texts.read(0)


def test_a_short_file_is_refused(tmp_path: Path) -> None:
    write_records(tmp_path / "x", map(str, range(100)))
    whole = (tmp_path / "x").read_bytes()
    for size in (1, 7, 8, len(whole) // 2, len(whole) - 1):
        (tmp_path / "y").write_bytes(whole[:size])
        with pytest.raises(ValueError, match="truncated"):
            RecordFile(tmp_path / "y")
