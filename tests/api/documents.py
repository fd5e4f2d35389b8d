"""The document of a result as a test looks into it."""

import json
from typing import Any

from coreeval.api.tables import Result


def read_document(result: Result) -> dict[str, Any]:
    """Return the document as it is written, with everything in it free to change."""
    read: dict[str, Any] = json.loads(result.to_json())
    return read
