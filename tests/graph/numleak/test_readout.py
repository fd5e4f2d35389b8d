"""Asking with log-probabilities: kept with the call, told by name where none come."""

from pathlib import Path

import pytest

from coreeval.evaluation.numleak.document import numleak_document
from coreeval.evaluation.numleak.recorded import read_replies
from coreeval.evaluation.numleak.statistics import Settings
from coreeval.graph.numleak.estimating import estimate_numleak
from coreeval.graph.numleak.work import NumleakFound, ask_numleak
from coreeval.models.replay import write_answers
from tests.graph.numleak.kit import Audited, answer, text_of
from tests.support.llm_server import Reply, Request, refused
from tests.support.logprobs import FLAT, PEAKED, reply

PROBES = ["value", "fictitious", "blind", "entropy"]


def telling(request: Request) -> str | Reply:
    """Answer with log-probabilities, if asked: sure of the series, not of invented names."""
    said = answer(request)
    assert isinstance(said, str)
    if not request.get("logprobs"):
        return said
    return reply(said, PEAKED if "Halcyon" in text_of(request) else FLAT)


def asked_of(audit: Audited, **changes: object) -> NumleakFound:
    audit.write(numleak={"probes": PROBES, "fictitious": 6}, **changes)
    return ask_numleak(audit.plan())


def untold(found: NumleakFound) -> list[str]:
    return [note for note in found.notes() if "read-out entropy" in note]


def entropy_of(found: NumleakFound, replies: Path | None = None) -> dict[str, dict[str, object]]:
    said = read_replies(replies).good if replies else found.replies
    series = {one.definition.id: one for one in found.plan.series}
    document = numleak_document(said, series, Settings(draws=200), found.plan.cutoffs)
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
        "openai:target has no read-out entropy, which needs log-probabilities: it gave none"
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
