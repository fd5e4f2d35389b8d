"""How many connections there may be is known before the system refuses one."""

import subprocess
import sys

import pytest

ASKS = """
import resource
from coreeval.tools.open_files import connections_allowed
print(connections_allowed(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ("ulimit -n 256", "156 256"),
        ("ulimit -Sn 256; ulimit -Hn 1024", "924 1024"),
        ("ulimit -Sn 256", "0 4096"),
        ("ulimit -Sn 64; ulimit -Hn 64", "1 64"),
    ],
)
def test_the_limit_is_raised_and_what_is_left_is_told(limit: str, told: str) -> None:
    command = ["bash", "-c", f'{limit}; exec "$@"', "bash", sys.executable, "-c", ASKS]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == told
