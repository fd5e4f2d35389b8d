"""Runs of one workspace share their answers: only what was never asked is asked."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from coreeval.prompts import PromptName, load_prompts
from coreeval.releases.create import make_release
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
    folder = lab.folder / f"prompts-{name}"
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


EARLY = ["knowledge.window.end=2025-12-01"]
"""A window whose news makes one sample another text, and leaves one that is accepted without."""


def test_other_news_ask_only_what_depends_on_them(done: Lab, undisturbed: Undisturbed) -> None:
    """A second refresh of a benchmark pays for plans and texts, not for what it read before."""
    done.refresh("early", overrides=EARLY)
    assert_only_new_texts_were_asked(done, "early")
    assert reworded(done, "early") == reworded(done, "run")
    texts = {row["text"] for row in undisturbed.arms["updated"]}
    assert {row["text"] for row in done.arms("early")["updated"]} - texts


def test_a_renewed_release_asks_only_what_depends_on_the_news(lab: Lab, tmp_path: Path) -> None:
    lab.refresh("early", overrides=EARLY)
    release = make_release(lab.folder / "early", version="1", out=tmp_path / "released")
    lab.forget()
    lab.refresh("renewed", parent=release.path, stale_after="1d")
    assert_only_new_texts_were_asked(lab, "renewed")


def assert_only_new_texts_were_asked(lab: Lab, run: str) -> None:
    """Assert that no question about an original or its rewording was sent."""
    asked = [Prompted(request) for request in lab.server.requests]
    shapes = {one.shape for one in asked}
    assert {"plan", "composition"} <= shapes <= {"plan", "composition", "fact_check", "label"}
    judged = [one.block("text", Fields)["text"] for one in asked if one.shape == "label"]
    originals = [
        one.block("item", ShownItem).fields["text"] for one in asked if one.shape == "plan"
    ]
    assert reworded(lab, run) and not {*reworded(lab, run).values(), *originals} & {*judged}


def reworded(lab: Lab, run: str) -> dict[object, object]:
    """Return the texts of the semantic arm, by sample."""
    return {row["id"]: row["text"] for row in lab.arms(run)["semantic"]}
