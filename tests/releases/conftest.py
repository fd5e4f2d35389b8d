"""A finished run whose texts name people, made once and copied for each test."""

from pathlib import Path

import pytest

from tests.releases.kit import Made
from tests.releases.people import copied, make_people


@pytest.fixture(scope="session")
def first_people(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return the run that is copied."""
    return make_people(tmp_path_factory.mktemp("people"))


@pytest.fixture
def people(first_people: Made, tmp_path: Path) -> Made:
    """Return a copy of it."""
    return copied(first_people, tmp_path)
