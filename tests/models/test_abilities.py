"""How a model is asked for structure: the strictest way that works, found out once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from coreeval.config import METHODS, Method, ModelConfig
from coreeval.models import Model, open_model
from coreeval.models.abilities import MISSES, Abilities
from coreeval.tools.stores.call_store import CallStore, open_calls

OWN = "http://127.0.0.1:9/v1"


def model(name: str = "m", **options: object) -> Model:
    config = ModelConfig.model_validate({"model": f"openai:{name}", "base_url": OWN, **options})
    return open_model(config, {})


@pytest.fixture
def abilities(store: CallStore) -> Abilities:
    return Abilities(store)


def test_each_refusal_leads_to_the_next_less_strict_method_and_the_last_one_stays(
    abilities: Abilities,
) -> None:
    used = list[Method]()
    while True:
        used.append(abilities.method(model()))
        if not abilities.refused(model(), used[-1]):
            break
    assert tuple(used) == METHODS
    assert abilities.method(model()) == "text"


def test_many_requests_refused_at_once_are_one_step(abilities: Abilities) -> None:
    assert [abilities.refused(model(), "json_schema") for _ in range(5)] == [True] * 5
    assert abilities.method(model()) == "function_calling"


@pytest.mark.parametrize("method", METHODS)
def test_a_method_that_the_config_names_is_kept_to(abilities: Abilities, method: Method) -> None:
    told = model(structured=method)
    assert not abilities.refused(told, method)
    for _ in range(MISSES):
        abilities.note(told, method, valid=False)
    assert abilities.method(told) == abilities.method(told, looser=True) == method


def test_looser_is_one_step_and_changes_nothing(abilities: Abilities) -> None:
    assert abilities.method(model(), looser=True) == "function_calling"
    assert abilities.method(model()) == "json_schema"
    for method in METHODS[:-1]:
        abilities.refused(model(), method)
    assert abilities.method(model(), looser=True) == "text"


def test_a_looser_method_that_is_refused_is_passed_over(abilities: Abilities) -> None:
    assert abilities.refused(model(), abilities.method(model(), looser=True))
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
    abilities: Abilities, answers: list[bool], method: Method
) -> None:
    for valid in answers:
        abilities.note(model(), abilities.method(model()), valid=valid)
    assert abilities.method(model()) == method


def test_answers_to_another_method_do_not_count(abilities: Abilities) -> None:
    for _ in range(MISSES):
        abilities.note(model(), "json_mode", valid=False)
    assert abilities.method(model()) == "json_schema"


@pytest.mark.parametrize(
    ("options", "plain"), [({}, True), ({"base_url": None}, False)], ids=["own", "public"]
)
def test_the_name_of_the_limit_is_changed_once(
    abilities: Abilities, options: dict[str, object], plain: bool
) -> None:
    config = ModelConfig.model_validate({"model": "openai:m", "base_url": OWN, **options})
    asked = open_model(config, {"OPENAI_API_KEY": "sk-1"})
    assert abilities.plain_limit(asked) is plain
    assert abilities.refused_limit(asked, plain=plain)
    assert abilities.refused_limit(asked, plain=plain), "was sent before the change"
    assert abilities.plain_limit(asked) is not plain
    assert not abilities.refused_limit(asked, plain=not plain)


Step = Callable[[Abilities], object]


@pytest.mark.parametrize(
    ("step", "method", "plain"),
    [
        (lambda one: one.refused(model(), "json_schema"), "function_calling", True),
        (lambda one: one.refused_limit(model(), plain=True), "json_schema", False),
        (
            lambda one: [one.note(model(), "json_schema", valid=False) for _ in range(MISSES)],
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
    step(Abilities(first))
    first.close()
    second = open_calls(tmp_path / "calls.db")
    later = Abilities(second)
    assert (later.method(model()), later.plain_limit(model())) == (method, plain)
    second.close()


def test_models_and_endpoints_are_known_apart(abilities: Abilities) -> None:
    abilities.refused(model(), "json_schema")
    assert abilities.method(model("other")) == "json_schema"
    assert abilities.method(model(base_url="http://127.0.0.1:10/v1")) == "json_schema"
    assert abilities.method(model(temperature=1.0)) == "function_calling"


def test_what_a_newer_version_may_have_written_is_passed_over(tmp_path: Path) -> None:
    store = open_calls(tmp_path / "calls.db")
    store.learn(OWN, "m", {"useless": "json_schema telepathy", "plain_limit": "perhaps"})
    store.close()
    store = open_calls(tmp_path / "calls.db")
    later = Abilities(store)
    assert (later.method(model()), later.plain_limit(model())) == ("function_calling", True)
    store.close()
