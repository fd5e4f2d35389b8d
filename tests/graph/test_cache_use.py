"""How much of the prompts the providers had in their caches, as a run tells it."""

import json
from dataclasses import replace

import pytest

from coreeval import cli
from coreeval.runs.status import read_status
from tests.graph.kit import Lab
from tests.support.llm_server import Reply, Request
from tests.support.wire import Prompted

USAGE = {
    "prompt_tokens": 1000, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 400},
}  # fmt: skip


def test_the_share_from_caches_is_told_by_role_and_model(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    async def answers(request: Request) -> str | Reply:
        said = await lab.answers(request)
        if Prompted(request).shape != "extraction":
            return said
        reply = said if isinstance(said, Reply) else Reply(content=said)
        return replace(reply, usage=USAGE)

    lab.server.answers = answers
    lab.refresh(limit=4)
    used = {one.role: one for one in read_status(lab.files.root).cache_use}
    extractor = used["extractor"]
    assert (extractor.prompt_tokens, extractor.cached_tokens) == (4000, 1600)
    assert {one.cached_tokens for role, one in used.items() if role != "extractor"} == {0}

    capsys.readouterr()
    assert cli.main(["status", str(lab.files.root)]) == 0
    said = capsys.readouterr().out
    assert "prompt tokens from the providers' caches:" in said
    assert "  extractor (openai:scripted): 40% of 4,000" in said
    assert cli.main(["status", str(lab.files.root), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    told = {one["role"]: one["cached_tokens"] for one in document["cache_use"]}
    assert (told["extractor"], told["label_judge"]) == (1600, 0)

    report = json.loads(lab.files.report_json.read_text())
    shares = {row["role"]: row["cached_share"] for row in report["calls"]}
    assert (shares["extractor"], shares["label_judge"]) == (0.4, 0.0)
    page = (lab.files.root / "report.html").read_text()
    assert '<td class="n">40%</td>' in page


def test_without_a_cache_nothing_is_said_of_it(
    finished: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["status", str(finished.files.root)]) == 0
    assert "caches" not in capsys.readouterr().out


def test_what_is_the_same_in_all_calls_of_a_role_comes_first(lab: Lab) -> None:
    lab.refresh(limit=6)
    systems: dict[str, set[str]] = {}
    for request in lab.server.requests:
        messages = request["messages"]
        assert isinstance(messages, list)
        assert [one["role"] for one in messages[:2]] == ["system", "user"]
        systems.setdefault(Prompted(request).shape, set()).add(messages[0]["content"])
    assert len(systems) > 4
    assert all(len(found) == 1 for found in systems.values())
