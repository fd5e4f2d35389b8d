"""What the survival tests ask, and what they find in the store."""

import json
from collections.abc import Sequence

from coreeval.models import ModelClient, OutputSchema
from coreeval.schema import Value
from coreeval.tools.stores.call_records import CallRecord
from coreeval.tools.stores.call_store import CallStore
from tests.support.llm_server import Request


class Answer(Value):
    """What is asked for."""

    label: str


SHAPE = OutputSchema(Answer, name="answer")
GOOD = '{"label": "joy"}'
JOY = Answer(label="joy")


def question(number: int = 0) -> list[dict[str, str]]:
    """Return one of many questions."""
    told = {"role": "system", "content": "You label."}
    return [told, {"role": "user", "content": f"text {number}"}]


async def asked(client: ModelClient, number: int = 0) -> Answer:
    """Ask one of many questions."""
    return await client.ask(question(number), SHAPE)


def records(store: CallStore) -> Sequence[CallRecord]:
    """Return what is stored, by draw."""
    return sorted(store.records(), key=lambda record: (record.draw, record.request))


def method_of(request: Request) -> str:
    """Return how a request asks for structure."""
    if "tools" in request:
        return "function_calling"
    form = request.get("response_format")
    if not isinstance(form, dict):
        return "text"
    return "json_mode" if form["type"] == "json_object" else str(form["type"])


def bodies(requests: Sequence[Request]) -> list[str]:
    """Return requests as texts, to be counted and compared."""
    return [json.dumps(request, sort_keys=True) for request in requests]
