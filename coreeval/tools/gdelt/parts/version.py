"""By which rules parts are made; apart from making them, which takes DuckDB and Arrow."""

import hashlib
from functools import cache
from pathlib import Path


@cache
def code_version() -> str:
    """Hash the code that makes parts: a part made by other rules is made again."""
    digest = hashlib.sha256()
    for module in sorted(Path(__file__).parents[1].glob("**/*.py")):
        digest.update(module.read_bytes())
    return digest.hexdigest()
