import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from coreeval.tools.gdelt.parts.texts import IN_A_BLOCK, Texts, write_texts


def test_single_records_are_read_whole(tmp_path: Path) -> None:
    records = [
        [number, "caf\u00e9 \u2028\n" * (number % 5)] for number in range(5 * IN_A_BLOCK + 3)
    ]
    write_texts(tmp_path / "x", (json.dumps(one, ensure_ascii=False) for one in records))
    wanted = [len(records) - 1, 0, IN_A_BLOCK - 1, IN_A_BLOCK, 0]
    with Texts(tmp_path / "x") as texts, ThreadPoolExecutor(4) as pool:
        assert [texts.read(number) for number in wanted] == [records[number] for number in wanted]
        whole = list(pool.map(texts.read, range(len(records))))
    assert whole == records


def test_no_records(tmp_path: Path) -> None:
    write_texts(tmp_path / "x", [])
    with Texts(tmp_path / "x") as texts, pytest.raises(LookupError):
        texts.read(0)


def test_a_short_file_is_refused(tmp_path: Path) -> None:
    write_texts(tmp_path / "x", map(str, range(100)))
    whole = (tmp_path / "x").read_bytes()
    for size in (1, 7, 8, len(whole) // 2, len(whole) - 1):
        (tmp_path / "y").write_bytes(whole[:size])
        with pytest.raises(ValueError, match="cut short"):
            Texts(tmp_path / "y")
