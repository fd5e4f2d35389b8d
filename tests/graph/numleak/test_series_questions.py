"""Asking about series: each question once, whatever happens in between."""

import os
import re
import signal
from collections import Counter
from pathlib import Path

import pytest

from coreeval.errors import BudgetSpent, ConfigError, Interrupted, RunError, UsageError
from coreeval.evaluation.numleak.audit import numleak_document
from coreeval.evaluation.numleak.replies import Reply as Said
from coreeval.evaluation.numleak.replies import read_replies
from coreeval.evaluation.numleak.statistics import AuditSettings
from coreeval.graph.estimate.numleak_lines import estimate_numleak
from coreeval.graph.numleak.plan import build_numleak_plan
from coreeval.graph.numleak.series_questions import NumleakAnswers, ask_numleak
from coreeval.models.replay import write_answers
from tests.graph.numleak.kit import CONCURRENCY, OPEN, Audited, answer, text_of
from tests.support import worker
from tests.support.llm_server import LLMServer, Reply, Request, refused
from tests.support.logprobs import FLAT, PEAKED, reply


def read(file: Path) -> list[Said]:
    return [Said.model_validate_json(line) for line in file.read_text("utf-8").splitlines()]


def test_every_question_is_asked_once_and_never_again(audit: Audited) -> None:
    plan = audit.plan()
    estimate = estimate_numleak(plan)
    assert estimate.totals.calls.likely == plan.questions == estimate.samples
    found = ask_numleak(plan)
    assert len(audit.server.requests) == plan.questions == len(found.replies)
    assert read(found.file) == list(found.replies)
    assert found.file == audit.workspace.numleak / "audit" / "responses.jsonl"
    assert {one.kind for one in found.replies} == {"answered"}
    assert ask_numleak(audit.plan()).replies == found.replies
    assert len(audit.server.requests) == plan.questions
    assert audit.workspace.asking_payers == {plan.payer}


def test_repeated_answers_are_calls_of_their_own_at_temperature_one(audit: Audited) -> None:
    turns = iter(range(1000))
    audit.server.answers = lambda _request: f"{next(turns)}.5"
    target = {**audit.target, "temperature": 0, "seed": 11}
    audit.write(models={"targets": [target]}, numleak={"draws": 3, "probes": ["value", "repeated"]})
    replies = ask_numleak(audit.plan()).replies
    assert len({one.response for one in replies}) == len(replies) == 6 * (1 + 3)
    told = Counter((one["temperature"], one.get("seed")) for one in audit.server.requests)
    assert told == {(0, 11): 6, (1, None): 18}
    assert len({record.key for record in audit.stored()}) == 24


def test_what_is_refused_or_cut_off_is_kept_as_such(audit: Audited) -> None:
    bad = {
        "value": Reply(content="It was about -3", finish_reason="length"),
        "blind": Reply(content="", refusal="I cannot say."),
        "fictitious": Reply(status=400, error={"message": "no", "code": "content_filter"}),
        "forced_choice": Reply(content=""),
    }
    audit.write(numleak={"probes": ["value", "blind", "fictitious", "forced_choice", "pair"]})
    asked = {text_of({"messages": one.messages}): one.variant
             for each in audit.plan().audits[0].asked for one in each.questions}  # fmt: skip
    audit.server.answers = lambda request: bad.get(asked[text_of(request)]) or answer(request)
    found = Counter((one.variant, one.kind, one.response) for one in ask_numleak(
        audit.plan()).replies if one.variant != "pair")  # fmt: skip
    assert found == {
        ("value", "truncated", "It was about -3"): 6,
        ("blind", "refused", "I cannot say."): 6,
        ("fictitious", "refused", None): 4,
        ("forced_choice", "answered", ""): 5,
    }
    audit.server.requests.clear()
    ask_numleak(audit.plan())
    again = [asked[text_of(request)] for request in audit.server.requests]
    assert set(again) <= {"fictitious"}


# -- in the middle --------------------------------------------------------------------------------


def test_a_signal_lets_what_is_in_flight_come_in_and_the_same_call_goes_on(
    audit: Audited,
) -> None:
    def stop(request: Request) -> str | Reply:
        if len(audit.server.requests) == 10:
            os.kill(os.getpid(), signal.SIGINT)
        return answer(request)

    audit.server.answers = stop
    plan = audit.plan()
    with pytest.raises(
        Interrupted, match="stopped: what is finished is kept and will not be repeated"
    ):
        ask_numleak(plan)
    sent = len(audit.server.requests)
    assert 10 <= sent == len(audit.stored()) <= 10 + 2 * CONCURRENCY
    assert not (audit.workspace.numleak / "audit" / "responses.jsonl").exists()
    found = ask_numleak(plan)
    assert len(audit.server.requests) == plan.questions == len(found.replies)


def test_a_kill_costs_what_was_in_flight(audit: Audited) -> None:
    def kill(request: Request) -> str | Reply:
        if len(audit.server.requests) == 20:
            os.kill(child.pid or 0, signal.SIGKILL)
        return answer(request)

    audit.server.answers = kill
    child = worker.fork(_ask, audit.config)
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    kept = len(audit.stored())
    assert 20 - OPEN <= kept <= 20
    audit.server.answers = answer
    audit.server.requests.clear()
    found = ask_numleak(audit.plan())
    assert len(audit.server.requests) == len(found.replies) - kept


def _ask(config: Path) -> None:
    ask_numleak(build_numleak_plan(config, overrides=()))


def test_a_spent_budget_stops_with_exit_3_and_a_larger_one_goes_on(audit: Audited) -> None:
    priced = {**audit.target, "price": {"input": 0, "output": 1000}, "max_tokens": 10}
    audit.write(models={"targets": [priced]}, run={"budget_usd": 0.05, "concurrency": 1})
    with pytest.raises(BudgetSpent) as caught:
        ask_numleak(audit.plan())
    assert caught.value.exit_code == 3 and "run the same command to continue" in caught.value.hint
    sent = len(audit.server.requests)
    assert 0 < sent == len(audit.stored())
    plan = audit.plan("run.budget_usd=5")
    budget = estimate_numleak(plan).budget
    assert budget is not None and budget.usd < 5
    ask_numleak(plan)
    assert len(audit.server.requests) == plan.questions


def test_an_outage_is_told_and_what_was_answered_is_kept(audit: Audited) -> None:
    def fail(request: Request) -> str | Reply:
        return refused(400, "down") if len(audit.server.requests) > 12 else answer(request)

    audit.server.answers = fail
    plan = audit.plan()
    with pytest.raises(RunError, match=r"left \d+ of \d+ questions unanswered"):
        ask_numleak(plan)
    audit.server.answers = answer
    audit.server.requests.clear()
    ask_numleak(plan)
    assert len(audit.server.requests) == plan.questions - 12


# -- what makes a call another --------------------------------------------------------------------


def keys(audit: Audited, *overrides: str) -> set[str]:
    """Return the keys of the calls that an audit makes which were not made before."""
    before = {record.key for record in audit.stored()} if audit.workspace.calls.exists() else set()
    ask_numleak(audit.plan("detect.numleak.probes=[value]", *overrides))
    return {record.key for record in audit.stored()} - before


def test_a_call_is_known_by_model_endpoint_parameters_words_and_draw(audit: Audited) -> None:
    assert len(keys(audit)) == 6
    assert not keys(audit)
    target = f"base_url: '{audit.server.url}', cutoff: 2020-06"
    with LLMServer(answer).in_thread() as other:
        elsewhere = f"base_url: '{other.url}', cutoff: 2020-06"
        for changed in (
            f"models.targets=[{{model: 'openai:other', {target}}}]",
            f"models.targets=[{{model: 'openai:target', {elsewhere}}}]",
            f"models.targets=[{{model: 'openai:target', temperature: 0.5, {target}}}]",
            f"models.targets=[{{model: 'openai:target', seed: 5, {target}}}]",
            "run.seed=99",
        ):
            assert len(keys(audit, changed)) >= 5, changed
    definition = audit.folder / "tides.yaml"
    definition.write_text(definition.read_text().replace("Halcyon", "Halkyon"))
    assert len(keys(audit)) == 6
    assert len(keys(audit, "detect.numleak.probes=[value, repeated]")) == 12


def test_recorded_answers_give_the_same_without_a_server(audit: Audited, tmp_path: Path) -> None:
    found = ask_numleak(audit.plan())
    own = tmp_path / "own.jsonl"
    own.write_text('{"text": "a"}')
    with pytest.raises(UsageError, match="CoreEval did not write this file"):
        write_answers(audit.stored(), own, model="openai:target")
    for _ in range(2):
        write_answers(audit.stored(), tmp_path / "said.jsonl", model="openai:target")
    audit.server.requests.clear()
    replayed = {"model": "replay:said.jsonl", "cutoff": "2020-06"}
    audit.write(models={"targets": [replayed]}, name="again")
    again = ask_numleak(audit.plan()).replies
    same = [one.model_copy(update={"model": "openai:target"}) for one in again]
    assert same == list(found.replies) and not audit.server.requests


# -- personas -------------------------------------------------------------------------------------


def test_personas_are_asked_without_a_call_and_know_nothing_after_their_cutoff(
    audit: Audited,
) -> None:
    names = ["offline:memorizing", "offline:fabricating"]
    personas = [{"model": name, "cutoff": "2020-06"} for name in names]
    audit.write(models={"targets": [*personas, "offline:classifier"]})
    plan = audit.plan()
    assert next(iter(plan.notes())).startswith("offline:classifier only labels texts")
    assert plan.passed_over == ("offline:classifier",)
    assert not estimate_numleak(plan).lines
    found = ask_numleak(plan)
    assert not audit.server.requests and not audit.stored()
    assert {one.model for one in found.replies} == set(names)
    assert ask_numleak(plan).replies == found.replies
    known = Counter(
        (one.date > "2021", _near(one)) for one in found.replies
        if one.variant == "value" and one.model == "offline:memorizing"
    )  # fmt: skip
    assert known[False, True] > known[False, False] and not known[True, True]


def _near(said: Said) -> bool:
    """Tell whether the truth stands in an answer, give or take a tenth."""
    numbers = re.findall(r"[-+\N{MINUS SIGN}]?\d+\.\d+", said.response or "")
    truth = said.truth or 0.0
    return any(abs(float(one.replace("\N{MINUS SIGN}", "-")) - truth) < 0.1 for one in numbers)


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        (
            ["offline:classifier"],
            "no target can answer with numbers",
        ),
        (["offline:nobody"], "there is no embedded persona"),
    ],
)
def test_who_cannot_answer_is_refused(audit: Audited, targets: list[str], said: str) -> None:
    audit.write(models={"targets": targets})
    with pytest.raises(ConfigError, match=said):
        audit.plan()


def test_an_answer_that_was_never_recorded_is_an_error_not_a_refusal(
    audit: Audited, tmp_path: Path
) -> None:
    (tmp_path / "none.jsonl").touch()
    audit.write(models={"targets": ["replay:none.jsonl"]})
    with pytest.raises(RunError, match="not among the recorded answers"):
        ask_numleak(audit.plan())


PROBES = ["value", "fictitious", "blind", "entropy"]


def telling(request: Request) -> str | Reply:
    """Answer with log-probabilities, if asked: sure of the series, not of invented names."""
    said = answer(request)
    assert isinstance(said, str)
    if not request.get("logprobs"):
        return said
    return reply(said, PEAKED if "Halcyon" in text_of(request) else FLAT)


def asked_of(audit: Audited, **changes: object) -> NumleakAnswers:
    audit.write(numleak={"probes": PROBES, "fictitious": 6}, **changes)
    return ask_numleak(audit.plan())


def untold(found: NumleakAnswers) -> list[str]:
    return [note for note in found.notes() if "read-out entropy" in note]


def entropy_of(found: NumleakAnswers, replies: Path | None = None) -> dict[str, dict[str, object]]:
    said = read_replies(replies).good if replies else found.replies
    series = {one.definition.id: one for one in found.plan.series}
    document = numleak_document(said, series, AuditSettings(draws=200), found.plan.cutoffs)
    measured: dict[str, dict[str, object]] = document["series"][0]["entropy"]
    return measured


def test_values_are_asked_with_log_probabilities_and_nothing_else_is(audit: Audited) -> None:
    audit.server.answers = telling
    found = asked_of(audit)
    asked = {(bool(one.get("logprobs")), one.get("top_logprobs")) for one in audit.server.requests}
    assert asked == {(True, 5), (False, None)}
    assert len(audit.server.requests) == estimate_numleak(found.plan).samples == 18
    assert {one.variant for one in found.replies if one.first_tokens} == {"value", "fictitious"}
    first = next(one for one in found.replies if one.first_tokens)
    assert "".join(each.text for each in first.first_tokens or ()) == first.response
    assert not untold(found)
    entropy = entropy_of(found)
    assert entropy["series"]["mean"]["estimate"] < 0.3 < entropy["fictitious"]["mean"]["estimate"]  # type: ignore[index]
    assert entropy_of(found, found.file) == entropy


def test_they_are_kept_with_the_call_and_replayed(audit: Audited, tmp_path: Path) -> None:
    audit.server.answers = telling
    found = asked_of(audit)
    audit.server.requests.clear()
    assert asked_of(audit).replies == found.replies and not audit.server.requests
    write_answers(audit.stored(), tmp_path / "said.jsonl", model="openai:target")
    again = asked_of(
        audit, models={"targets": [{"model": "replay:said.jsonl", "cutoff": "2020-06"}]}, name="b"
    )
    assert [one.first_tokens for one in again.replies] == [
        one.first_tokens for one in found.replies
    ]
    assert not audit.server.requests and not untold(again)


def test_a_call_with_them_is_another_than_one_without(audit: Audited) -> None:
    audit.server.answers = telling
    audit.write(numleak={"probes": ["value"]})
    ask_numleak(audit.plan())
    assert ask_numleak(audit.plan("detect.numleak.probes=[value, entropy]")).replies[0].first_tokens
    assert len(audit.server.requests) == len({one.key for one in audit.stored()}) == 12


@pytest.mark.parametrize(
    "no",
    [
        refused(400, "Unsupported parameter: 'logprobs' is not supported with this model."),
        refused(403, "You are not allowed to request logprobs from this model"),
        refused(500, "top_logprobs is not implemented"),
        refused(422, "Extra inputs are not permitted"),
    ],
)
def test_a_model_that_rejects_them_is_named_and_asked_plainly(audit: Audited, no: Reply) -> None:
    audit.server.answers = lambda request: no if request.get("logprobs") else answer(request)
    found = asked_of(audit, run={"concurrency": 1})
    assert {one.kind for one in found.replies} == {"answered"}
    assert untold(found) == [
        "openai:target has no read-out entropy, which needs log-probabilities: "
        "the model returned none"
    ]
    assert sum(bool(one.get("logprobs")) for one in audit.server.requests) == 1
    assert entropy_of(found) is None
    audit.server.answers = telling  # the endpoint has learnt it: what was said plainly stands apart
    assert not untold(asked_of(audit))


def test_a_model_that_ignores_them_is_named(audit: Audited) -> None:
    assert len(untold(asked_of(audit))) == 1


def test_a_persona_has_none(audit: Audited) -> None:
    found = asked_of(audit, models={"targets": [{"model": "offline:memorizing"}]})
    assert untold(found)[0].endswith("a persona has none")


def test_without_a_fictitious_name_nothing_is_compared(audit: Audited) -> None:
    audit.server.answers = telling
    audit.write(numleak={"probes": ["value", "entropy"]})
    found = ask_numleak(audit.plan())
    entropy = entropy_of(found)
    assert entropy["series"]["asked"] == 6 and entropy["difference"]["estimate"] is None


FURTHER_PROBES = [
    "value",
    "description",
    "step_by_step",
    "phrasing",
    "contradiction",
    "continuation",
]
FURTHER: dict[str, object] = {"probes": FURTHER_PROBES, "dates": 3, "continuations": 2}
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
    settings = AuditSettings(draws=100)
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
