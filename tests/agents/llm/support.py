"""A scripted client and small samples for tests of the roles that models play."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from coreeval.config import ModelConfig
from coreeval.errors import ModelCallError
from coreeval.models import ModelClient, OutputSchema
from coreeval.models.capabilities import Capabilities
from coreeval.models.client import accept_any, ignore_call
from coreeval.prompts import load_prompts
from coreeval.schema import Evidence, Sample
from coreeval.tasks import load_task
from coreeval.tools.stores.call_records import CallRecord
from coreeval.tools.stores.call_store import CallStore, open_calls
from tests.support.exchanges import exchange

T = TypeVar("T", bound=BaseModel)
PROMPTS = load_prompts()
EMOTION = load_task("emotion")
RTE = load_task("rte")
TWEET = Sample(
    id="emotion/test/1",
    split="test",
    fields={"text": "So happy Acme opened in Paris!! \U0001f60a @user &amp; me"},
    label=1,
    label_text="joy",
)
PAIR = Sample(
    id="rte/test/1",
    split="test",
    fields={"premise": "Acme, a maker of tins, closed.", "hypothesis": "Acme makes tins."},
    label=0,
    label_text="entailment",
)


def news(number: int, title: str = "Globex opens a store in Rome", snippet: str = "") -> Evidence:
    return Evidence(
        id=f"{number:016x}",
        url=f"https://news.example/{number}",
        domain="news.example",
        title=title,
        snippet=snippet,
        published_at=datetime(2026, 6, number, tzinfo=UTC),
        published_precision="exact",
        origin="test",
    )


class ScriptedClient(ModelClient):
    """Answers in turn through the real shapes and checks; remembers messages and complaints."""

    def __init__(self, store: CallStore, *answers: object) -> None:
        config = ModelConfig(model="openai:scripted", base_url="http://127.0.0.1:9/v1")
        real = exchange(store).open_client(config, "test")
        super().__init__(real.model, real.dispatcher, store, Capabilities(store), role="test")
        self._answers = [json.dumps(answer) for answer in answers]
        self.asked: list[Sequence[Mapping[str, str]]] = []
        self.schemas: list[Mapping[str, object]] = []

    async def ask(
        self,
        messages: Sequence[Mapping[str, str]],
        output_schema: OutputSchema[T],
        *,
        check: Callable[[T], None] = accept_any,
        chain: int = 0,
        on_answer: Callable[[CallRecord], None] = ignore_call,
    ) -> T:
        self.asked.append(messages)
        self.schemas.append(output_schema.schema)
        if not self._answers:
            raise ModelCallError("the script is over")
        value = output_schema.parse(self._answers.pop(0))
        check(value)
        return value

    @property
    def system(self) -> str:
        return self.asked[-1][0]["content"]

    def block(self, name: str) -> object:
        """Return what the last user message holds in a block."""
        text = self.asked[-1][1]["content"]
        return json.loads(text.split(f"<{name}>\n")[1].split(f"\n</{name}>")[0])


def new_store(folder: Path) -> CallStore:
    return open_calls(folder / "calls.db")
