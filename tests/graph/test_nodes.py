"""The nodes of the sample graph: which calls they spare."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from coreeval.cli import main
from coreeval.config import load_config
from coreeval.graph.bundled import demo_data
from tests.graph.kit import Lab, config_of
from tests.support.answers import OfflineAnswers
from tests.support.batch_server import BatchServer
from tests.support.careless import Careless
from tests.support.llm_server import Reply, Request
from tests.support.wire import Prompted, ShownItem

MARKS = "@user so happy \U0001f602 #happy #joy"
WORDS = "I am so happy that we all won the game again today"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Lab]:
    """Return a workspace whose benchmark is two joyful tweets, of marks and of words."""
    folder = tmp_path / "own"
    shutil.copytree(demo_data() / "emotion", folder)
    (folder / "test_text.txt").write_text(f"{MARKS}\n{WORDS}\n")
    (folder / "test_labels.txt").write_text("1\n1\n")
    dataset = {"format": "tweeteval", "path": str(folder), "split": "test"}
    config = tmp_path / "any.yaml"
    config.write_text(yaml.safe_dump(config_of("http://127.0.0.1:9/v1") | {"dataset": dataset}))
    answers = OfflineAnswers(load_config(config), tmp_path / ".coreeval")
    server = BatchServer(answers)
    with server.in_thread():
        lab = Lab(folder=tmp_path, server=server, answers=Careless(answers))
        lab.write(dataset=dataset)
        yield lab
    answers.close()


def test_a_text_whose_words_must_stay_is_not_reworded(own: Lab) -> None:
    own.refresh(limit=None)
    asked = [Prompted(request) for request in own.server.requests]
    reworded = [one.block("item", ShownItem) for one in asked if one.shape == "rewrite"]
    assert {item.fields["text"] for item in reworded} == {WORDS}
    first = own.results()["emotion/test/1"]
    assert (first.semantic_status, first.semantic) == ("unchanged", None)
    [step] = [step for step in own.steps("emotion/test/1") if step.node == "reword"]
    [verdict] = step.verdicts
    assert "nearly every word is a name, a quotation or locked" in verdict.reason
    assert not verdict.passed and not step.calls


def test_without_a_semantic_arm_nobody_is_said_to_have_reworded(
    own: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    own.write(
        run={"arms": ["updated"]},
        models={
            "default": {"model": "openai:scripted", "base_url": own.server.url},
            "targets": [{"model": "offline:classifier"}],
        },
    )
    own.refresh(limit=None)
    assert {Prompted(request).shape for request in own.server.requests}.isdisjoint({"rewrite"})
    assert "only a semantic arm" in own.files.report_html.read_text()
    of_run = ["--run", str(own.files.root), "--sample", "emotion/test/1"]
    assert main(["prompts", "show", "label_judge", *of_run]) == 0
    assert "one call was about several texts" in " ".join(capsys.readouterr().out.split())
    assert main(["prompts", "show", "rewriter", *of_run]) == 2
    assert "the run did not call the rewriter" in capsys.readouterr().err


@pytest.mark.parametrize(("attempts", "spent"), [(1, False), (2, False), (2, True)])
def test_a_text_that_is_easier_is_returned_only_if_an_attempt_is_left(
    lab: Lab, attempts: int, *, spent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coreeval.graph.nodes.has_spent_half", lambda: spent)
    certain = lab.answers

    async def answer(request: Request) -> str | Reply:
        """Be less certain of originals, which are labelled in batches, than of texts."""
        said = await certain(request)
        sure = {"labels": "medium", "label": "high"}.get(Prompted(request).shape)
        if sure is None or not isinstance(said, str):
            return said
        return re.sub('"confidence": ?"[a-z]+"', f'"confidence": "{sure}"', said)

    lab.server.answers = answer
    lab.write(run={"max_attempts": attempts, "concurrency": 4})
    lab.refresh()
    results = lab.results()
    plainer = [
        known
        for known in results
        for step in lab.steps(known)
        for verdict in step.verdicts
        if verdict.name == "difficulty" and not verdict.passed
    ]
    assert bool(plainer) == (attempts > 1 and not spent)
    assert not [each for each in results.values() if "ease" in each.reason]
    assert "accepted" in {each.outcome for each in results.values()}
