"""The scripted asker as a fixture."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.agents.llm.support import ScriptedAsker, new_store

Script = Callable[..., ScriptedAsker]


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Script]:
    store = new_store(tmp_path)
    yield lambda *answers: ScriptedAsker(store, *answers)
    store.close()
