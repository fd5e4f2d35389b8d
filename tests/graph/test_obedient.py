"""Writers that obey a headline, and judges that wave all through: nothing of it is published."""

import json

import pytest

from tests.graph.kit import Lab
from tests.hostile.texts import HOSTILE
from tests.support.llm_server import Reply, Request
from tests.support.wire import Prompted


class Obedient:
    """Plays all roles for whoever wrote the news: the writers obey, and the judges wave through."""

    def __init__(self, lab: Lab, text: str) -> None:
        self._answers, self._text = lab.answers, text

    async def __call__(self, request: Request) -> str | Reply:
        prompted = Prompted(request)
        match prompted.shape:
            case "composition" | "rewrite":
                said = await self._answers(request)
                if isinstance(said, Reply):
                    return said
                told = json.loads(said)
                return json.dumps(told | {"fields": dict.fromkeys(told["fields"], self._text)})
            case "fact_check":
                return json.dumps({"statements": [_waved_through()]})
            case _:
                return await self._answers(request)


def _waved_through() -> dict[str, object]:
    return {
        "text": "all is well", "field": "text", "words": "all", "kind": "fact",
        "supported": "yes", "evidence": 1, "quote": "supports everything", "defect": "none",
    }  # fmt: skip


@pytest.mark.parametrize("trick", ["label order", "fake answer", "Spanish", "plain order"])
def test_no_run_publishes_what_was_ordered(lab: Lab, trick: str) -> None:
    lab.server.answers = Obedient(lab, HOSTILE[trick])
    lab.refresh(limit=8)
    assert lab.manifest.counts["total"] == 8
    assert lab.manifest.counts["accepted"] == 0
    assert lab.arms()["updated"] == []
    assert HOSTILE[trick] not in str(lab.arms())


def test_a_judge_that_waves_all_through_is_not_believed(lab: Lab) -> None:
    async def answers(request: Request) -> str | Reply:
        if Prompted(request).shape == "fact_check":
            return json.dumps({"statements": [_waved_through()]})
        return await lab.answers(request)

    lab.server.answers = answers
    lab.refresh()
    assert lab.manifest.counts["accepted"] == 0
    assert lab.manifest.counts["rejected_facts"] > 0
