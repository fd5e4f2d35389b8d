"""Further ways of asking, put to a server: room for answers, the estimate, the recorded file."""

from coreeval.evaluation.numleak.document import numleak_document
from coreeval.evaluation.numleak.recorded import read_replies
from coreeval.evaluation.numleak.statistics import Settings
from coreeval.graph.numleak.estimating import estimate_numleak
from coreeval.graph.numleak.work import ask_numleak
from tests.graph.numleak.kit import Audited, text_of
from tests.support.llm_server import LLMServer, Reply, Request

PROBES = ["value", "description", "step_by_step", "phrasing", "contradiction", "continuation"]
FURTHER: dict[str, object] = {"probes": PROBES, "dates": 3, "continuations": 2}
QUESTIONS = 3 + 3 + 3 + 4 * 3 + 3 + 2


def says(request: Request) -> str | Reply:
    """Answer at length what asks for it; one chain is cut off."""
    text = text_of(request)
    if "Best estimate:" in text:
        return "It was a quiet month.\n\nBest estimate: 1.25"
    if "Think it through" in text:
        return Reply(content="1. It was quiet, at 1.25", finish_reason="length")
    if "lines of that file" in text:
        return "I do not know them."
    if "My notes say" in text:
        return text.partition(" was ")[2].split()[0].rstrip(".")
    return "1.25"


def test_long_answers_have_room_and_recorded_ones_give_the_same_numbers(audit: Audited) -> None:
    asked_for = list[Request]()

    def heard(request: Request) -> str | Reply:
        asked_for.append(request)
        return says(request)

    with LLMServer(heard).in_thread() as server:
        audit.server = server
        target = {**audit.target, "max_tokens": 64}
        audit.write(numleak=FURTHER, models={"targets": [target]})
        plan = audit.plan()
        assert plan.questions == QUESTIONS
        found = ask_numleak(plan)
    limits = {
        (text_of(one)[:8], "Think it" in text_of(one)): one["max_tokens"] for one in asked_for
    }
    assert limits["Describe", False] == limits["Below ar", False] == 800
    assert limits["What was", False] == limits["My notes", False] == 64
    assert limits["What was", True] == 1600
    roles = {call.role for call in audit.stored()}
    assert roles == {"target_series", "target_series_prose"}
    series = {one.definition.id: one for one in plan.universe.all}
    settings = Settings(draws=100)
    asked = numleak_document(found.replies, series, settings, plan.cutoffs)
    again = read_replies(found.file)
    assert not again.bad and again.good == found.replies
    assert numleak_document(again.good, series, settings, plan.cutoffs) == asked
    variants = asked["series"][0]["variants"]
    assert variants["description"]["asked"]["parsed"] == 3
    assert variants["step_by_step"]["asked"]["statuses"]["truncated"] == 3
    assert variants["contradiction"]["outcomes"]["yields"] == 3
    assert variants["continuation"]["read"]["estimate"] == 0
    assert len(variants["phrasing"]["wordings"]) == 4


def test_the_estimate_counts_them_and_tells_long_answers_apart(audit: Audited) -> None:
    audit.write(numleak=FURTHER)
    lines = {line.role: line for line in estimate_numleak(audit.plan()).lines}
    assert set(lines) == {"target_series", "target_series_prose"}
    plain, prose = (
        lines[role].completion_tokens.likely / lines[role].calls.likely for role in sorted(lines)
    )
    assert prose > plain
