"""How a model is asked for structure: the strictest way that works, found out once."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from coreeval.config import METHODS, Method, ModelConfig
from coreeval.errors import ModelCallError, NoValidAnswer, RequestRejected
from coreeval.models import Model, open_model
from coreeval.models.capabilities import MISSES, Capabilities
from coreeval.tools.stores.call_store import CallStore, open_calls
from tests.models.conftest import Connect, Naps
from tests.models.kit import GOOD, Taking, ask, client_of, method_of
from tests.support.exchanges import exchange
from tests.support.llm_server import LLMServer, Reply, Request, refused, script

OWN = "http://127.0.0.1:9/v1"


def model(name: str = "m", **options: object) -> Model:
    config = ModelConfig.model_validate({"model": f"openai:{name}", "base_url": OWN, **options})
    return open_model(config, {})


@pytest.fixture
def abilities(store: CallStore) -> Capabilities:
    return Capabilities(store)


def test_each_refusal_leads_to_the_next_less_strict_method_and_the_last_one_stays(
    abilities: Capabilities,
) -> None:
    used = list[Method]()
    while True:
        used.append(abilities.method(model()))
        if not abilities.drop_method(model(), used[-1]):
            break
    assert tuple(used) == METHODS
    assert abilities.method(model()) == "text"


def test_many_requests_refused_at_once_are_one_step(abilities: Capabilities) -> None:
    assert [abilities.drop_method(model(), "json_schema") for _ in range(5)] == [True] * 5
    assert abilities.method(model()) == "function_calling"


@pytest.mark.parametrize("method", METHODS)
def test_a_method_that_the_config_names_is_kept_to(abilities: Capabilities, method: Method) -> None:
    told = model(structured=method)
    assert not abilities.drop_method(told, method)
    for _ in range(MISSES):
        abilities.record_outcome(told, method, valid=False)
    assert abilities.method(told) == abilities.method(told, looser=True) == method


def test_looser_is_one_step_and_changes_nothing(abilities: Capabilities) -> None:
    assert abilities.method(model(), looser=True) == "function_calling"
    assert abilities.method(model()) == "json_schema"
    for method in METHODS[:-1]:
        abilities.drop_method(model(), method)
    assert abilities.method(model(), looser=True) == "text"


def test_a_looser_method_that_is_refused_is_passed_over(abilities: Capabilities) -> None:
    assert abilities.drop_method(model(), abilities.method(model(), looser=True))
    assert abilities.method(model()) == "json_schema"
    assert abilities.method(model(), looser=True) == "json_mode"


@pytest.mark.parametrize(
    ("answers", "method"),
    [
        ([False] * (MISSES - 1), "json_schema"),
        ([False] * MISSES, "function_calling"),
        ([*[False] * (MISSES - 1), True, *[False] * 50], "json_schema"),
        ([True, *[False] * 50], "json_schema"),
        ([False] * 3 * MISSES, "text"),
        ([False] * 9 * MISSES, "text"),
    ],
    ids=["few", "enough", "late", "once", "all methods", "for ever"],
)
def test_a_method_that_never_brought_an_answer_is_given_up(
    abilities: Capabilities, answers: list[bool], method: Method
) -> None:
    for valid in answers:
        abilities.record_outcome(model(), abilities.method(model()), valid=valid)
    assert abilities.method(model()) == method


def test_answers_to_another_method_do_not_count(abilities: Capabilities) -> None:
    for _ in range(MISSES):
        abilities.record_outcome(model(), "json_mode", valid=False)
    assert abilities.method(model()) == "json_schema"


@pytest.mark.parametrize(
    ("options", "plain"), [({}, True), ({"base_url": None}, False)], ids=["own", "public"]
)
def test_the_name_of_the_limit_is_changed_once(
    abilities: Capabilities, options: dict[str, object], plain: bool
) -> None:
    config = ModelConfig.model_validate({"model": "openai:m", "base_url": OWN, **options})
    asked = open_model(config, {"OPENAI_API_KEY": "sk-1"})
    assert abilities.plain_limit(asked) is plain
    assert abilities.drop_limit_name(asked, plain=plain)
    assert abilities.drop_limit_name(asked, plain=plain), "was sent before the change"
    assert abilities.plain_limit(asked) is not plain
    assert not abilities.drop_limit_name(asked, plain=not plain)


Step = Callable[[Capabilities], object]


@pytest.mark.parametrize(
    ("step", "method", "plain"),
    [
        (lambda one: one.drop_method(model(), "json_schema"), "function_calling", True),
        (lambda one: one.drop_limit_name(model(), plain=True), "json_schema", False),
        (
            lambda one: [
                one.record_outcome(model(), "json_schema", valid=False) for _ in range(MISSES)
            ],
            "function_calling",
            True,
        ),
    ],
    ids=["method", "limit", "misses"],
)
def test_what_was_found_out_is_known_to_the_next_process(
    tmp_path: Path, step: Step, method: Method, plain: bool
) -> None:
    first = open_calls(tmp_path / "calls.db")
    step(Capabilities(first))
    first.close()
    second = open_calls(tmp_path / "calls.db")
    later = Capabilities(second)
    assert (later.method(model()), later.plain_limit(model())) == (method, plain)
    second.close()


def test_models_and_endpoints_are_known_apart(abilities: Capabilities) -> None:
    abilities.drop_method(model(), "json_schema")
    assert abilities.method(model("other")) == "json_schema"
    assert abilities.method(model(base_url="http://127.0.0.1:10/v1")) == "json_schema"
    assert abilities.method(model(temperature=1.0)) == "function_calling"


def test_what_a_newer_version_may_have_written_is_passed_over(tmp_path: Path) -> None:
    store = open_calls(tmp_path / "calls.db")
    store.learn(OWN, "m", {"useless": "json_schema telepathy", "plain_limit": "perhaps"})
    store.close()
    store = open_calls(tmp_path / "calls.db")
    later = Capabilities(store)
    assert (later.method(model()), later.plain_limit(model())) == ("function_calling", True)
    store.close()


@pytest.mark.parametrize("taken", METHODS)
async def test_the_strictest_method_that_the_endpoint_takes_is_found_once(
    connect: Connect, server: LLMServer, naps: Naps, taken: str
) -> None:
    server.answers = endpoint = Taking(taken)
    connected, order = connect(), list(METHODS[: METHODS.index(taken) + 1])
    first = await ask(client_of(connected, server))
    second = await ask(client_of(connected, server, temperature=1.0), "another")
    assert endpoint.asked == [*order, taken]
    assert (first.method, second.method) == (taken, taken)
    assert first.draw == 0 and first.tries.count("not supported") == len(order) - 1
    assert second.tries == ""
    assert naps == [], "to ask otherwise needs no patience"


async def test_what_one_process_found_out_the_next_one_knows(
    tmp_path: Path, server: LLMServer
) -> None:
    server.answers = endpoint = Taking("json_mode")
    for text in ("one", "another"):
        store = open_calls(tmp_path / "calls.db")
        await ask(client_of(exchange(store), server), text)
        store.close()
    assert endpoint.asked[2:] == ["json_mode"] * 2


async def test_an_endpoint_that_takes_no_method_fails_the_sample(
    connect: Connect, server: LLMServer
) -> None:
    server.answers = endpoint = Taking()
    with pytest.raises(RequestRejected, match="not supported"):
        await ask(client_of(connect(), server))
    assert endpoint.asked == list(METHODS)


async def test_a_method_that_the_config_names_is_not_changed(
    connect: Connect, server: LLMServer
) -> None:
    server.answers = endpoint = Taking("text")
    with pytest.raises(ModelCallError, match="not supported"):
        await ask(client_of(connect(), server, structured="json_mode"))
    assert endpoint.asked == ["json_mode"]


async def test_many_at_once_change_the_method_together(connect: Connect, server: LLMServer) -> None:
    server.answers = endpoint = Taking("json_mode")
    client = client_of(connect(), server)
    await asyncio.gather(*(ask(client, str(number)) for number in range(8)))
    assert endpoint.asked.count("json_mode") == 8
    assert await ask(client, "later") and endpoint.asked[-1] == "json_mode"


async def test_the_name_of_the_limit_is_found_out_too(connect: Connect, server: LLMServer) -> None:
    def answers(request: Request) -> str | Reply:
        if "max_tokens" in request:
            return refused(400, "Unsupported parameter: 'max_tokens'")
        return GOOD

    server.answers = answers
    client = client_of(connect(), server, max_tokens=77)
    for text in ("one", "two"):
        await ask(client, text)
    limits = [one.get("max_completion_tokens") for one in server.requests]
    assert limits == [None, 77, 77]


async def test_a_second_bad_answer_is_asked_for_less_strictly_and_the_next_question_is_not(
    connect: Connect, server: LLMServer
) -> None:
    server.answers = script("no", "no", GOOD, GOOD)
    client = client_of(connect(), server)
    assert (await ask(client)).method == "function_calling"
    await ask(client, "another")
    methods = [method_of(request) for request in server.requests]
    assert methods == ["json_schema", "json_schema", "function_calling", "json_schema"]


async def test_what_was_cut_off_may_be_twice_as_long(connect: Connect, server: LLMServer) -> None:
    cut = Reply(content='{"label": "jo', finish_reason="length")
    server.answers = script(cut, cut, GOOD)
    await ask(client_of(connect(), server, max_tokens=50))
    assert [request["max_tokens"] for request in server.requests] == [50, 100, 100]
    assert {method_of(request) for request in server.requests} == {"json_schema"}


async def test_words_round_an_answer_are_passed_over_only_where_words_were_asked_for(
    connect: Connect, server: LLMServer
) -> None:
    server.answers = script("Sure: {label: 'joy',} There.")
    assert (await ask(client_of(connect(), server, structured="text"))).draw == 0
    with pytest.raises(NoValidAnswer):
        await ask(client_of(connect(), server, structured="json_mode"))


@pytest.mark.parametrize("said", [f"<think>joy?</think>{GOOD}", f"```json\n{GOOD}\n```"])
async def test_thoughts_and_a_fence_are_passed_over_always(
    connect: Connect, server: LLMServer, said: str
) -> None:
    server.answers = script(said)
    assert (await ask(client_of(connect(), server))).draw == 0
