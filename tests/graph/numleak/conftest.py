"""A server and a config that asks it about the tide index."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.graph.numleak.kit import Audited, answer
from tests.support.llm_server import LLMServer


@pytest.fixture
def audit(tmp_path: Path) -> Iterator[Audited]:
    """Return the config, written, while the server answers."""
    with LLMServer(answer).in_thread() as server:
        audited = Audited(tmp_path, server)
        audited.write()
        yield audited
