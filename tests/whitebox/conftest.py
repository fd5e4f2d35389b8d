"""Tests that need the extra whitebox: collected where torch is installed (tests/conftest.py)."""

from pathlib import Path

import pytest

from tests.graph.conftest import finished, make_lab, undisturbed  # noqa: F401 - fixtures
from tests.whitebox.kit import save_model


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a tiny model without a chat template."""
    return save_model(tmp_path_factory.mktemp("tiny"))
