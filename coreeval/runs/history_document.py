"""What happened to one sample, as JSON."""

from typing import Any

from coreeval.runs.history import SampleHistory


def build_history_document(history: SampleHistory) -> dict[str, Any]:
    """Return a history in machine-readable form; the attempts of a call are lines of one text."""
    document = history.model_dump(mode="json")
    for step in document["steps"]:
        for call in step["calls"]:
            call["tries"] = "\n".join(call["tries"])
    return document
