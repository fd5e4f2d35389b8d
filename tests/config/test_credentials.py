"""What looks like a credential is refused in a config, and no message repeats it."""

import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from coreeval.config import load_config, parse_config, parse_target
from coreeval.config.credentials import (
    has_hidden_credential,
    hide_credentials,
    hide_url_credentials,
    refuse_credentials,
)
from coreeval.errors import ConfigError
from coreeval.tools.catalogs import load_prices
from coreeval.tools.env_file import read_env_file
from tests.config.test_load import BASE

OPAQUE = "Zx9kQ2mW7vR4tY8uP1sD6fG3hJ5lA0bN"
SHAPED = [
    "sk-proj-AbCdefGh12345678901234",
    "sk-ant-api03-abcDEF1234567890_x",
    "Bearer abc12345",
    "Basic dXNlcjpwYXNzd29yZDE=",
    "http://user:hunter22@proxy.example",
    "https://models.example/v1?api_key=hunter22",
    "https://hooks.slack.com/services/T1/B2/x3",
    "curl -H 'Authorization: Bearer abc12345' https://models.example",
    "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjMifQ.c2ln",
    "ghp_" + "a1" * 18,
]
NAMED = [
    "api_key",
    "apiKey",
    "X-Api-Key",
    "Authorization",
    "password",
    "client_secret",
    "hf_token",
    "token",
    "Ocp-Apim-Subscription-Key",
]
PLAIN: list[dict[str, Any]] = [
    {"eos_token": "</s>", "prompt_cache_key": "a1" * 32, "max_tokens": 5, "stop_token_ids": [1]},
    {"user": "550e8400-e29b-41d4-a716-446655440000", "lora": "/models/sk-learn-emotion-2024-v1"},
    {"note": "Answer with basic knowledge only; bearer instruments count.", "token": None},
    {"command": 'curl -H "Authorization: Bearer $TOKEN" "$URL?token=$TOKEN"'},
    {"columns": {"password": "text"}, "add_bos_token": True},
]


def _refused(**changes: object) -> ConfigError:
    with pytest.raises(ConfigError, match="looks like a credential") as caught:
        parse_config(BASE | changes, where="c.yaml", base=Path("/base"))
    assert "environment variable" in caught.value.hint
    return caught.value


def _model(**extra: object) -> dict[str, object]:
    return {"default": {"model": "openai:m", "extra": extra}}


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("value", ["plainword", 1234567])
def test_a_key_named_like_a_credential_is_refused(name: str, value: object) -> None:
    error = _refused(models=_model(default_headers={name: value}))
    assert f"extra.default_headers.{name} looks" in error.message
    assert str(value) not in str(error.as_dict())


@pytest.mark.parametrize("text", [*SHAPED, OPAQUE])
def test_a_text_shaped_like_a_credential_is_refused_under_any_key_of_extra(text: str) -> None:
    error = _refused(models=_model(anything=["x", {"y": text}]))
    assert text not in str(error.as_dict())


@pytest.mark.parametrize("text", SHAPED)
def test_so_it_is_elsewhere_in_a_config(text: str) -> None:
    for changes in (
        {"schedule": {"cron": "0 3 * * MON", "hooks": {"success": [text]}}},
        {"knowledge": {**BASE["knowledge"], "doc": {"base_url": text}}},
        {"dataset": {**BASE["dataset"], "columns": {"text": text}}},
    ):
        assert text not in str(_refused(**changes).as_dict())


@pytest.mark.parametrize("extra", PLAIN)
def test_what_only_resembles_one_passes(extra: dict[str, Any]) -> None:
    refuse_credentials({"extra": extra}, where="c.yaml")


def test_no_message_about_another_mistake_repeats_one(tmp_path: Path) -> None:
    config, key = tmp_path / "c.yaml", SHAPED[0]
    config.write_text(yaml.safe_dump(BASE), encoding="utf-8")
    for override in (f"models.default.api_key={OPAQUE}", f"nmae={key}", f"name=[{key}"):
        with pytest.raises(ConfigError) as caught:
            load_config(config, [override])
        assert not {OPAQUE, key} & set(str(caught.value).replace("=", " ").split())
        assert key not in str(caught.value)
    config.write_text(f"name: {key}\n  bad: x", encoding="utf-8")
    for refused in (
        lambda: load_config(config),
        lambda: parse_target(f"{{model: 'openai:x', extra: {{a: {key}}}}}", base=tmp_path),
        lambda: parse_target(f"{{model: {key}", base=tmp_path),
    ):
        with pytest.raises(ConfigError) as caught:
            refused()
        assert key not in str(caught.value)


def test_a_file_of_prices_is_held_to_the_same_rule(tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    row = {"input": 1, "output": 1, "as_of": "2026-01-01", "source": SHAPED[5]}
    prices.write_text(yaml.safe_dump({"openai:token": row}), encoding="utf-8")
    with pytest.raises(ConfigError, match="looks like a credential") as caught:
        load_prices(prices)
    assert "hunter22" not in str(caught.value)
    prices.write_text(yaml.safe_dump({"openai:token": row | {"source": "a page"}}), "utf-8")
    assert "openai:token" in load_prices(prices)


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("https://ann:hunter22@a.example/x?id=7#top", "https://a.example/x?id=7#top"),
        ("https://ann@a.example:8443/@bob", "https://a.example:8443/@bob"),
        ("https://a.example/x?id=7&token=abcdef&page=2", "https://a.example/x?id=7&token=…&page=2"),
        ("https://a.example/x?api%5Fkey=abcdef", "https://a.example/x?api%5Fkey=…"),
        (
            "https://a.example/x?X-Amz-Signature=abcdef&v=1",
            "https://a.example/x?X-Amz-Signature=…&v=1",
        ),
        ("https://a.example/x?q=ghp_" + "a1" * 12, "https://a.example/x?q=…"),
        ("https://a.example/x?ghp_" + "a1" * 12 + "=1", "https://a.example/x?…"),
        ("https://a.example/x?u=%2F%2Fb.example%2F%3Ftoken%3Dabcdef", "https://a.example/x?u=…"),
        ("https://a.example/x#access_token=abcdef", "https://a.example/x#access_token=…"),
        ("https://a.example/x#!/b?token=abcdef", "https://a.example/x#!/b?token=…"),
        ("https://a.example/x?id=7;token=abcdef", "https://a.example/x?id=7;token=…"),
        ("https://a.example/x?id=7;token=abc;def&v=1", "https://a.example/x?id=7;token=…&v=1"),
        ("https://a.example/x;v=1;token=abcdef/y", "https://a.example/x;v=1;token=…/y"),
        (
            "https://a.example/x?token[]=abcdef&auth[token]=abcdef&tokens[]=abcdef",
            "https://a.example/x?token[]=…&auth[token]=…&tokens[]=abcdef",
        ),
        ("https://a.example/x?token%5B0%5D=abcdef", "https://a.example/x?token%5B0%5D=…"),
        ("https://a.example/x?user=ann&pass=hunter22", "https://a.example/x?user=ann&pass=…"),
        ("https://a.example/v1/sk-proj-" + "a1B2" * 6 + "/x", "https://a.example/v1/…/x"),
        ("https://a.example/v1/ghp_" + "a1" * 12, "https://a.example/v1/…"),
        ("https://a.example/sk-hynix-profit-202611290012", None),
        ("https://a.example/sk-hynix-a1b2c3d4e5f6;v=2/eyJafjallajokull.html?a=1;b=2", None),
        ("https://a.example/x?boarding_pass=abcdef;;", None),
        ("https://a.example/x?", "https://a.example/x?"),
        ("https://a.example/X?q=a%20b&key=7&&next_token=2", None),
        ("https://a.example/view.php?key=20260102010001", None),
        ("https://a.example/s?url=https%3A%2F%2Fb.example%2F%3Fkey%3D1234", None),
        ("https://a.example/s?key=how-ferries-are-built-in-norwick", None),
        ("https://a.example/s?key=world-cup-2026-final-in-norwick", None),
        ("https://a.example/s?article_key=20260102010001&articleKey=12345&news-key=12345", None),
        ("https://a.example/s?key=64f1c2d3e4b5a6978899aabb", None),
        ("https://a.example/s?p=1&key=" + "9f8a7b6c" * 4, "https://a.example/s?p=1&key=…"),
        ("https://a.example/s?key=" + "9f8a7b6c" * 4 + ";id=5", "https://a.example/s?key=…"),
        ("http://[", None),
        ("no address", None),
    ],
)
def test_an_address_is_stored_without_its_credentials(url: str, public: str | None) -> None:
    hidden = hide_url_credentials(url)
    assert re.sub("hidden-[0-9a-f]{12}", "…", hidden) == (public or url)
    assert hide_url_credentials(hidden) == hidden
    assert has_hidden_credential(hidden) == ("…" in (public or url))


@pytest.mark.parametrize(
    ("one", "other"), [("alpha1", "beta22"), ("%FFaa1", "%FEaa1"), ("hidden-abcde", "hidden-abcdf")]
)
def test_a_hidden_credential_tells_two_addresses_apart(one: str, other: str) -> None:
    first, second = (f"https://a.example/x?token={each}" for each in (one, other))
    assert len({hide_url_credentials(each) for each in (first, second)}) == 2


def test_the_value_of_a_parameter_is_hidden() -> None:
    told = 'see https://a.example/x?id=1234&token=abcdef"'
    assert hide_credentials(told) == 'see https://a.example/x?id=1234&token=***"'


@pytest.mark.parametrize(
    "piece",
    [
        "sk-",
        "eyJ-",
        "://",
        "a:",
        "bearer ",
        "?a=",
        ";a[]=",
        "sk-a-",
        "a" * 9,
        "%41;",
        ";",
        "sk-" + "_" * 90,
    ],
)
def test_a_long_text_takes_no_longer_than_it_must(piece: str) -> None:
    began = time.process_time()
    hide_credentials(piece * (250_000 // len(piece)))
    for place in ("https://a.example/", "https://a.example/?q="):
        hide_url_credentials(place + piece * (250_000 // len(piece)))
    assert time.process_time() - began < 3


def test_what_follows_very_many_semicolons_is_hidden() -> None:
    few, many = ("https://a.example/?q=" + "a=1;" * number + "last" for number in (60, 70))
    assert hide_url_credentials(few) == few
    hidden = hide_url_credentials(many)
    assert "last" not in hidden and hidden.startswith("https://a.example/?q=a=1;a=1;")
    assert hide_url_credentials(hidden) == hidden


def test_an_env_file_that_is_no_text_is_told_without_its_values(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"OPENAI_API_KEY=s3cret\xff\n")
    with pytest.raises(ConfigError, match="not UTF-8") as caught:
        read_env_file(tmp_path)
    assert caught.value.where == str(tmp_path / ".env")
    assert "s3cret" not in str(caught.value)
