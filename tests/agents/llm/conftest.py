"""The scripted client as a fixture."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.agents.llm.support import ScriptedClient, new_store

Script = Callable[..., ScriptedClient]


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Script]:
    store = new_store(tmp_path)
    yield lambda *answers: ScriptedClient(store, *answers)
    store.close()
