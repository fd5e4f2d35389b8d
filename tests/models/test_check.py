"""What a model can do is found by asking it, remembered, and one bad model hides no other."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from coreeval.config import METHODS, ModelConfig, ModelsConfig
from coreeval.models import Retry, close_models, open_model
from coreeval.models.capabilities import Capabilities
from coreeval.models.check import (
    ROOM,
    SHORT,
    CheckResult,
    ModelProbe,
    check_models,
    group_models,
    sum_costs,
)
from coreeval.tools.catalogs import Price
from coreeval.tools.cutoffs import DateClaim, ModelDates
from coreeval.tools.stores.call_store import CallStore, open_calls
from tests.models.conftest import KEY, Naps
from tests.support.crippled import (
    GOOD,
    complete,
    completion,
    modern,
    prose_only,
    tools_only,
    unsupported,
)
from tests.support.llm_server import Answers, LLMServer, Reply, Request, refused, script

ENV = {"OPENAI_API_KEY": KEY}
CUTOFFS = {
    "x": ModelDates(
        released=DateClaim(
            date="2026-02", source="https://x.test", confidence="reported", as_of=date(2026, 3, 1)
        )
    )
}
PRICE = Price(input=1.0, output=2.0, as_of=date(2026, 1, 2), source="https://prices.test")


async def check(
    store: CallStore, models: dict[str, Any], env: dict[str, str] | None = None
) -> list[CheckResult]:
    """Check the models of a config, without waiting between requests."""
    retry, config = Retry(attempts=2, sleep=Naps().sleep), ModelsConfig.model_validate(models)
    prices = {"openai:priced": PRICE}
    given = ENV if env is None else env
    return await check_models(
        config, prices, Capabilities(store), cutoffs=CUTOFFS, trusted=(), env=given, retry=retry
    )


async def check_one(store: CallStore, server: LLMServer, **more: object) -> CheckResult:
    """Check one model that plays every role."""
    model = {"model": "openai:stub", "base_url": server.url, **more}
    (checked,) = await check(store, {"default": model})
    return checked


def outcomes(checked: CheckResult) -> list[tuple[str, str]]:
    """Return what came of each method."""
    assert checked.probe
    return [(one.method, one.outcome) for one in checked.probe.tried]


def probed(checked: CheckResult) -> ModelProbe:
    """Return what was found of a usable model."""
    assert checked.state == "usable" and checked.error is None and checked.probe
    return checked.probe


# -- crippled endpoints ---------------------------------------------------------------------------


async def test_an_endpoint_that_takes_everything(store: CallStore, server: LLMServer) -> None:
    server.answers = complete
    checked = await check_one(store, server, temperature=0.5)
    probe = probed(checked)
    assert outcomes(checked) == [("json_schema", "works")]
    assert probe.plain_limit and not probe.thinks
    assert probe.logprobs and probe.seed
    assert (probe.logprobs.verdict, probe.seed.verdict) == ("yes", "yes")
    assert [request["temperature"] for request in server.requests] == [0.5] * 3
    assert {request["max_tokens"] for request in server.requests} == {SHORT}
    assert "JSON" not in json.dumps(server.requests[0]["messages"])


async def test_one_that_refuses_response_format_is_asked_by_tools(
    store: CallStore, server: LLMServer
) -> None:
    server.answers = tools_only
    checked = await check_one(store, server)
    probe = probed(checked)
    assert outcomes(checked) == [("json_schema", "refused"), ("function_calling", "works")]
    assert probe.tried[0].why.endswith("400 - Unsupported parameter: 'response_format'")
    assert probe.counts_tokens
    assert probe.answers[0].response_metadata["model_name"] == "stub-2026-01"


async def test_one_that_ignores_structure_is_asked_in_words(
    store: CallStore, server: LLMServer
) -> None:
    server.answers = prose_only
    checked = await check_one(store, server)
    probe = probed(checked)
    assert outcomes(checked) == [
        *((method, "ignored") for method in METHODS[:3]),
        ("text", "works"),
    ]
    assert "it is not one JSON object" in probe.tried[0].why
    assert probe.thinks and not probe.counts_tokens
    assert probe.logprobs and probe.logprobs.verdict == "ignored"
    assert checked.spent.usd is None


async def test_one_that_takes_neither_max_tokens_nor_seed_nor_logprobs(
    store: CallStore, server: LLMServer
) -> None:
    server.answers = modern
    probe = probed(await check_one(store, server))
    assert not probe.plain_limit
    assert probe.logprobs and probe.seed
    assert (probe.logprobs.verdict, probe.seed.verdict) == ("no", "no")
    assert probe.seed.why.endswith("Unsupported parameter: 'seed'")
    assert sum("max_tokens" in request for request in server.requests) == 1


async def test_a_seed_that_is_configured_is_in_every_request(
    store: CallStore, server: LLMServer
) -> None:
    server.answers = complete
    probe = probed(await check_one(store, server, seed=3))
    assert [request["seed"] for request in server.requests] == [3, 3]
    assert probe.seed and probe.seed.verdict == "yes"


@pytest.mark.parametrize("method", METHODS)
async def test_only_the_configured_method_is_tried(
    store: CallStore, server: LLMServer, method: str
) -> None:
    server.answers = script("no JSON at all")
    checked = await check_one(store, server, structured=method)
    assert outcomes(checked) == [(method, "ignored")]
    assert checked.error and checked.error.kind == "model"


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (completion("", message={"content": None, "refusal": "Rather not."}), "refusal"),
        (Reply(content="Paris is", finish_reason="length"), "truncated"),
        (Reply(content=""), "empty"),
        (Reply(content="Paris"), "ignored"),
        (unsupported("temperature"), "refused"),
    ],
)
async def test_why_no_method_works(
    store: CallStore, server: LLMServer, reply: Reply, outcome: str
) -> None:
    server.answers = script(reply)
    checked = await check_one(store, server)
    assert outcomes(checked) == [(method, outcome) for method in METHODS]
    assert checked.state == "unusable"
    assert checked.error and checked.error.hint


async def test_a_model_that_thinks_before_it_speaks_gets_room(
    store: CallStore, server: LLMServer
) -> None:
    def thinks(request: Request) -> Reply:
        enough = request["max_tokens"] == ROOM
        return Reply(content=GOOD if enough else "", finish_reason="stop" if enough else "length")

    server.answers = thinks
    checked = await check_one(store, server)
    assert outcomes(checked) == [("json_schema", "works")]
    assert probed(checked).room == ROOM


# -- what is remembered ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "method", "plain"),
    [
        (complete, "json_schema", True),
        (tools_only, "function_calling", True),
        (prose_only, "text", True),
        (modern, "json_schema", False),
    ],
)
async def test_a_later_run_starts_with_what_was_found(
    server: LLMServer, tmp_path: Path, answers: Answers, method: str, plain: bool
) -> None:
    config = ModelConfig(model="openai:stub", base_url=server.url)
    for endpoint in (prose_only, modern, answers):  # the last one counts, whatever was before
        server.answers = endpoint
        store = open_calls(tmp_path / "calls.db")
        await check_one(store, server)
        store.close()
    later = open_calls(tmp_path / "calls.db")
    abilities, model = Capabilities(later), open_model(config, ENV)
    assert (abilities.method(model), abilities.plain_limit(model)) == (method, plain)
    later.close()


async def test_a_configured_method_teaches_nothing_about_the_others(
    store: CallStore, server: LLMServer
) -> None:
    server.answers = prose_only
    await check_one(store, server, structured="text")
    model = open_model(ModelConfig(model="openai:stub", base_url=server.url), ENV)
    assert Capabilities(store).method(model) == "json_schema"


async def test_nothing_goes_into_the_store_of_calls(store: CallStore, server: LLMServer) -> None:
    server.answers = complete
    await check_one(store, server)
    assert list(store.records()) == []


# -- models that cannot be used -------------------------------------------------------------------


@pytest.fixture
async def others() -> AsyncIterator[list[LLMServer]]:
    """Serve from several ports."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(LLMServer(complete).running()) for _ in range(3)]
        await close_models()


async def test_a_way_of_asking_that_was_chosen_and_is_refused_is_what_to_change(
    store: CallStore, server: LLMServer
) -> None:
    server.answers = tools_only
    error = (await check_one(store, server, structured="json_schema")).error
    assert error and "structured: json_schema" in error.message and "response_format" in str(error)
    assert "remove `structured`" in error.hint


async def test_what_a_run_would_find_before_it_begins_is_found_here(
    store: CallStore, server: LLMServer
) -> None:
    server.models = ["another"]
    error = (await check_one(store, server)).error
    assert error and "no model 'stub'" in error.message and not server.requests


async def test_one_bad_model_hides_no_other(
    store: CallStore, server: LLMServer, others: Sequence[LLMServer], tmp_path: Path
) -> None:
    wrong_key, html, good = others
    wrong_key.answers = script(refused(401, f"Incorrect API key provided: {KEY}"))
    html.answers = script(Reply(body="<html>It works!</html>"))
    answers = tmp_path / "answers.jsonl"
    answers.write_text("", encoding="utf-8")
    checked = await check(
        store,
        {
            "default": "offline",
            "extractor": {"model": "openai:a", "base_url": wrong_key.url},
            "replacer": {"model": "openai:b", "base_url": html.url},
            "rewriter": {"model": "openai:c", "base_url": "http://127.0.0.1:9/v1"},
            "composer": {"model": "nobody:d"},
            "fact_judge": {"model": "openai:e", "api_key_env": "NOT_SET"},
            "label_judge": {"model": f"replay:{answers}"},
            "targets": [{"model": "openai:good", "base_url": good.url}, "offline:classifier"],
        },
    )
    kinds = {one.configured.config.model: one.error and one.error.kind for one in checked}
    assert kinds == {
        "openai:a": "credential",
        "openai:b": "model",
        "openai:c": "model",
        "nobody:d": "config",
        "openai:e": "credential",
        f"replay:{answers}": None,
        "openai:good": None,
        "offline:classifier": None,
    }
    assert [one.state for one in checked[5:]] == ["recorded", "usable", "rules"]
    assert KEY not in "".join(str(one.error) for one in checked)
    assert len(wrong_key.requests) == 1 and len(html.requests) == 2


# -- who is asked, and what it costs --------------------------------------------------------------


def test_a_model_is_asked_once_for_an_endpoint_and_a_key() -> None:
    models = ModelsConfig.model_validate(
        {
            "default": "openai:x",
            "composer": {"model": "openai:x", "temperature": 1},
            "fact_judge": {"model": "openai:x", "base_url": "http://127.0.0.1/v1"},
            "label_judge": {"model": "openai:x", "api_key_env": "OTHER_KEY"},
            "targets": [{"model": "openai:x", "cutoff": "2026-03-01"}],
        }
    )
    found = group_models(models, {"openai:x": PRICE}, CUTOFFS)
    assert [one.used_by for one in found] == [
        ("extractor", "replacer", "rewriter", "composer", "target"),
        ("fact_judge",),
        ("label_judge",),
    ]
    assert [one.price for one in found] == [PRICE] * 3
    assert [one.is_target for one in found] == [True, False, False]
    dates = found[0].dates
    assert dates and dates.cutoff and dates.released and found[1].dates is None
    assert (dates.cutoff.date, dates.released.date) == ("2026-03-01", "2026-02")


async def test_the_price_is_that_of_all_answers(store: CallStore, server: LLMServer) -> None:
    server.answers = script(GOOD)
    checked = await check_one(store, server, model="openai:priced")
    spent = checked.spent
    assert spent.calls == len(server.requests) == 3
    assert spent.prompt_tokens > 0
    assert spent.usd == pytest.approx((spent.prompt_tokens + 2 * spent.completion_tokens) / 1e6)
    assert sum_costs([checked, checked]).usd == pytest.approx(2 * (spent.usd or 0))


async def test_a_price_that_is_not_known_makes_the_sum_unknown(
    store: CallStore, server: LLMServer
) -> None:
    server.answers = script(GOOD)
    priced = await check_one(store, server, model="openai:priced")
    own = await check_one(store, server, price={"input": 0, "output": 0})
    unpriced = await check_one(store, server)
    assert (own.spent.usd, unpriced.spent.usd) == (0.0, None)
    assert sum_costs([priced, unpriced]).usd is None


async def test_an_answer_without_the_key_that_the_server_repeats(
    store: CallStore, server: LLMServer
) -> None:
    server.answers = script(
        completion(f'{{"city": "{KEY}"}}', logprobs={"content": [{"token": KEY}]})
    )
    probe = probed(await check_one(store, server))
    assert probe.answers[0].text == '{"city": "***"}'
    assert KEY not in repr(probe.answers)


async def test_a_server_that_fails_is_told_with_what_it_said(
    store: CallStore, server: LLMServer
) -> None:
    server.answers = lambda _request: refused(500, "out of memory")
    error = (await check_one(store, server)).error
    assert error and error.message == "openai:stub: the server answered 500: out of memory"
    assert "the server's log" in error.hint and "/v1" not in error.hint
