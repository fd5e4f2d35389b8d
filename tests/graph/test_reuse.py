"""Runs of one workspace share their answers: only what was never asked is asked."""

from pathlib import Path

from coreeval.prompts import load_prompts
from tests.graph.kit import Lab, Undisturbed, assert_whole
from tests.support.llm_server import Reply, Request
from tests.support.wire import Fields, LastTry, Prompted, ShownItem

EXTRA = "Prefer short words."


def test_the_same_run_again_asks_nothing(lab: Lab, undisturbed: Undisturbed) -> None:
    first = lab.refresh().manifest
    assert set(lab.asked()) == undisturbed.asked
    assert len(lab.asked()) == first.cost.billed_calls == len(undisturbed.asked)
    assert first.cost.cached_calls == 0
    lab.forget()
    second = lab.refresh("again").manifest
    assert lab.asked() == []
    assert (second.cost.billed_calls, second.cost.cached_calls) == (0, len(undisturbed.asked))
    assert second.cost.prompt_tokens == second.cost.completion_tokens == 0
    assert lab.results("again") == lab.results() == undisturbed.results
    assert lab.arms("again") == lab.arms() == undisturbed.arms


def changed_composer(lab: Lab) -> None:
    """Put another wording of one prompt beside the config."""
    folder = lab.folder / "prompts"
    folder.mkdir()
    text = load_prompts()["composer"].text
    changed = text.replace("\n=== user ===\n", f"\n{EXTRA}\n\n=== user ===\n")
    (folder / "composer.md").write_text(changed)
    lab.write(prompts=str(folder))


def test_a_changed_prompt_asks_that_role_anew(lab: Lab, undisturbed: Undisturbed) -> None:
    first = lab.refresh().manifest
    asked = lab.asked_shapes()
    changed_composer(lab)
    lab.forget()
    second = lab.refresh("again").manifest
    assert set(lab.asked_shapes()) == {"composition"}
    assert len(lab.asked()) == asked.count("composition") > 0
    assert second.prompts["composer"] != first.prompts["composer"]
    assert second.prompts["replacer"] == first.prompts["replacer"]
    assert second.fingerprints.graph != first.fingerprints.graph
    assert lab.results("again") == undisturbed.results


def test_what_depends_on_a_changed_role_is_asked_anew(lab: Lab) -> None:
    """New texts are judged anew; what was read, planned and judged of the originals stands."""
    lab.refresh()
    originals = texts_of_items(lab)
    changed_composer(lab)
    lab.forget()

    async def emphatic(request: Request) -> str | Reply:
        said = await lab.answers(request)
        if Prompted(request).shape != "composition" or not isinstance(said, str):
            return said
        return said.replace('."}', '!"}').replace('. "}', '! "}')

    lab.server.answers = emphatic
    lab.refresh("again")
    asked = [Prompted(request) for request in lab.server.requests]
    assert {"composition", "fact_check", "label"} <= {one.shape for one in asked}
    assert not {"extraction", "rewrite"} & {one.shape for one in asked}
    judged = [one.block("text", Fields)["text"] for one in asked if one.shape == "label"]
    assert judged and originals.isdisjoint(judged)
    plans = [one for one in asked if one.shape == "plan"]
    assert all(one.block("feedback", tuple[object, ...]) for one in plans)


def texts_of_items(lab: Lab) -> set[str]:
    asked = [Prompted(request) for request in lab.server.requests]
    read = [one for one in asked if one.shape == "extraction"]
    return {one.block("item", ShownItem).fields["text"] for one in read}


def test_a_retried_text_is_shown_what_was_wrong(lab: Lab) -> None:
    """The scripted roles make mistakes too; without any, retries would go untested here."""
    lab.refresh()
    asked = [Prompted(request) for request in lab.server.requests]
    written = [one.block("feedback", LastTry) for one in asked if one.shape == "composition"]
    again = [last for last in written if last.previous]
    assert all(last.defects for last in again)
    assert any(result.attempts > 1 for result in lab.results().values())


def test_two_workspaces_share_nothing(lab: Lab, undisturbed: Undisturbed, tmp_path: Path) -> None:
    lab.refresh()
    lab.workspace.calls.unlink()
    lab.forget()
    lab.refresh("again")
    assert set(lab.asked()) == undisturbed.asked
    assert_whole(lab, undisturbed)
