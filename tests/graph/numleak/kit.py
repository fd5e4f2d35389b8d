"""An audit of the tide index by a server of a test's own."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from coreeval.graph.numleak.plan import NumleakPlan, build_numleak_plan
from coreeval.graph.pool import max_open_samples
from coreeval.tools.stores.call_records import CallRecord
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.workspace import Workspace
from tests.support.llm_server import LLMServer, Reply, Request
from tests.support.tides import write_series

CONCURRENCY = 4
OPEN = max_open_samples(CONCURRENCY)
"""Most calls that a kill may cost: those in flight and one whose answer is being written."""
ASKED: Mapping[str, object] = {
    "dates": 6,
    "pairs": 5,
    "fictitious": 4,
    "recent": 3,
}
"""Few questions, of every kind."""


def text_of(request: Request) -> str:
    """Return what is asked."""
    messages: Any = request["messages"]
    return str(messages[-1]["content"])


def answer(request: Request) -> str | Reply:
    """Name the first date, or a number that the question decides."""
    text = text_of(request)
    if "nothing else:" in text:
        return text.splitlines()[-2]
    if " higher " in text:
        return "The former was higher."
    draw = hashlib.sha256(text.encode()).digest()
    return f"{(draw[0] - 128) / 10:.2f}%"


@dataclass
class Audited:
    """A config of series alone, in a folder of its own."""

    folder: Path
    server: LLMServer
    changes: dict[str, object] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        return self.folder / "audit.yaml"

    @property
    def target(self) -> dict[str, object]:
        """A target on the server."""
        return {"model": "openai:target", "base_url": self.server.url, "cutoff": "2020-06"}

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.folder / ".coreeval")

    def write(self, *, numleak: Mapping[str, object] | None = None, **changes: object) -> None:
        """Write the series and the config, with these keys in place of the usual ones."""
        write_series(self.folder)
        asked = {"series": "tides.yaml", **ASKED, **(numleak or {})}
        usual: dict[str, object] = {
            "name": "audit",
            "models": {"targets": [self.target]},
            "run": {"concurrency": CONCURRENCY},
            "detect": {"numleak": asked},
        }
        self.config.write_text(yaml.safe_dump({**usual, **changes}), encoding="utf-8")

    def plan(self, *overrides: str) -> NumleakPlan:
        return build_numleak_plan(self.config, overrides=overrides)

    def stored(self) -> list[CallRecord]:
        """Return the calls that were answered and kept."""
        store = open_calls(self.workspace.calls)
        try:
            return list(store.records())
        finally:
            store.close()
