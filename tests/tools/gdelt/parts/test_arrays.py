from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from coreeval.tools.gdelt.parts.arrays import ALIGNED, open_arrays, write_arrays

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
