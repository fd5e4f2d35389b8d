"""The last calls of a role, for whoever wants to learn from them."""

from pathlib import Path

import pytest

from coreeval.tools.stores.call_rows import CallRecord, call_key
from coreeval.tools.stores.calls import open_calls


def record(number: int, role: str) -> CallRecord:
    request = f'{{"messages":[],"schema":{{"n":{number}}},"role":"{role}"}}'
    return CallRecord(
        key=call_key(request), draw=0, role=role, request=request, response="{}", valid=True
    )


@pytest.mark.parametrize(("most", "expected"), [(2, {3, 4}), (99, set(range(5))), (0, set())])
async def test_the_last_ones_of_a_role(tmp_path: Path, most: int, expected: set[int]) -> None:
    kept = [record(number, role) for number in range(5) for role in ("composer", "target")]
    store = open_calls(tmp_path / "calls.db")
    for one in kept:
        await store.put(one)
    found = {one.key for one in store.newest("composer", most)}
    none = list(store.newest("extractor", 5))
    store.close()
    assert found == {record(number, "composer").key for number in expected}
    assert none == []
