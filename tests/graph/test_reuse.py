"""Runs of one workspace share their answers: only what was never asked is asked."""

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from coreeval.prompts import PromptName, load_prompts
from coreeval.schema import RoleName
from tests.graph.kit import Lab, Undisturbed
from tests.support.llm_server import Reply, Request
from tests.support.wire import Fields, Prompted, ShownItem

EXTRA = "Prefer short words."
SHAPES: dict[RoleName, set[str]] = {
    "extractor": {"extraction"},
    "replacer": {"plan"},
    "rewriter": {"rewrite"},
    "composer": {"composition"},
    "fact_judge": {"fact_check"},
    "label_judge": {"label", "labels"},
}


@pytest.fixture
def done(undisturbed: Undisturbed) -> Iterator[Lab]:
    """Return the workspace in which all has been asked once."""
    lab = undisturbed.lab
    lab.forget()
    yield lab
    lab.forget()
    lab.write(prompts=None)


def reword(lab: Lab, role: RoleName, name: str) -> None:
    """Put another wording of one prompt beside the config."""
    folder = lab.folder / name
    folder.mkdir()
    names: list[PromptName] = [role]
    names += ["label_judge_batch"] if role == "label_judge" else []
    for prompt in names:
        text = load_prompts()[prompt].text
        changed = text.replace("\n=== user ===\n", f"\n{EXTRA} ({name})\n\n=== user ===\n")
        assert changed != text
        (folder / f"{prompt}.md").write_text(changed)
    lab.write(prompts=str(folder))


def test_the_same_run_again_asks_nothing(done: Lab, undisturbed: Undisturbed) -> None:
    first, second = done.manifest.cost, done.refresh("again").manifest.cost
    assert done.asked() == []
    assert (first.billed_calls, first.cached_calls) == (len(undisturbed.asked), 0)
    assert (second.billed_calls, second.cached_calls) == (0, len(undisturbed.asked))
    assert first.prompt_tokens > 0
    assert second.prompt_tokens == second.completion_tokens == 0
    assert done.results("again") == undisturbed.results
    assert done.arms("again") == undisturbed.arms


@pytest.mark.parametrize("role", SHAPES)
def test_a_changed_prompt_asks_that_role_anew(
    role: RoleName, done: Lab, undisturbed: Undisturbed
) -> None:
    """A role that answers as before costs its own calls, and nobody else's."""
    first = done.manifest
    reword(done, role, f"same-{role}")
    second = done.refresh(f"same-{role}").manifest
    usual = Counter(undisturbed.shapes)
    assert set(done.asked_shapes()) == SHAPES[role]
    assert len(done.asked()) == sum(usual[shape] for shape in SHAPES[role]) > 0
    changed = {name for name, known in second.prompts.items() if known != first.prompts[name]}
    assert changed == {role}
    assert second.fingerprints.graph != first.fingerprints.graph
    assert second.cost.billed_calls == len(done.asked())
    assert second.cost.billed_calls + second.cost.cached_calls == first.cost.billed_calls
    assert done.results(f"same-{role}") == undisturbed.results


def test_what_depends_on_a_changed_role_is_asked_anew(done: Lab, undisturbed: Undisturbed) -> None:
    """New texts are judged anew; what was read, planned and judged of the originals stands."""
    reword(done, "composer", "other")

    async def emphatic(request: Request) -> str | Reply:
        said = await done.answers(request)
        return exclaimed(said) if Prompted(request).shape == "composition" else said

    done.server.answers = emphatic
    done.refresh("other-texts")
    asked = [Prompted(request) for request in done.server.requests]
    shapes = {one.shape for one in asked}
    assert {"composition", "fact_check", "label"} <= shapes
    assert shapes.isdisjoint({"extraction", "rewrite"})
    items = [one.block("item", ShownItem) for one in asked if one.shape == "composition"]
    judged = [one.block("text", Fields) for one in asked if one.shape == "label"]
    assert not [text for text in judged if text in [item.fields for item in items]]
    plans = [one for one in asked if one.shape == "plan"]
    assert all(one.block("feedback", tuple[object, ...]) for one in plans)


def exclaimed(said: str | Reply) -> str | Reply:
    """Return a composition whose sentences end louder."""
    if not isinstance(said, str):
        return said
    answer = json.loads(said)
    texts = {name: text.replace(".", "!") for name, text in answer["fields"].items()}
    return json.dumps(answer | {"fields": texts})
