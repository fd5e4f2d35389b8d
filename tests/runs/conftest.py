"""The finished run of the tests of releases, whose texts name people."""

from tests.releases.conftest import first_people, people

__all__ = ["first_people", "people"]
