"""A `.env` brings keys and switches; it decides about no address, file, proxy or program."""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from coreeval.config import parse_config
from coreeval.errors import ConfigError
from coreeval.tools.env_file import (
    MOST_BYTES,
    MOST_LINE,
    address_of_hook,
    hold_env_file,
    read_env_file,
    restore_environment,
)
from tests.cli.kit import CONFIG

HOSTILE = {
    "HTTPS_PROXY": "http://192.0.2.1:8080",
    "https_proxy": "http://192.0.2.1:8080",
    "ALL_PROXY": "http://192.0.2.1:8080",
    "NO_PROXY": "",
    "SSL_CERT_FILE": "/tmp/theirs.pem",
    "SSLKEYLOGFILE": "/tmp/keys",
    "REQUESTS_CA_BUNDLE": "/tmp/theirs.pem",
    "PYTHONPATH": "/tmp/theirs",
    "PYTHONSTARTUP_TOKEN": "/tmp/theirs.py",
    "LD_PRELOAD": "/tmp/theirs.so",
    "PATH": "/tmp/theirs",
    "HOME": "/tmp/theirs",
    "TMPDIR": "/tmp/theirs",
    "COREEVAL_HOME": "/tmp/theirs",
    "COREEVAL_SIGNING_KEY": "theirs",
    "LANGGRAPH_STRICT_MSGPACK": "false",
    "LANGGRAPH_AES_KEY": "0123456789abcdef",
    "LANGSMITH_ENDPOINT": "http://192.0.2.1",
    "LANGCHAIN_TRACING_V2": "true",
    "OPENAI_BASE_URL": "http://192.0.2.1/v1",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://192.0.2.1",
    "OTEL_EXPORTER_OTLP_CLIENT_KEY": "/tmp/theirs.key",
    "HF_ENDPOINT": "http://192.0.2.1",
    "GOOGLE_APPLICATION_CREDENTIALS": "/tmp/theirs.json",
    "BIGQUERY_EMULATOR_HOST": "http://192.0.2.1",
}
HARMLESS = {
    "OPENAI_API_KEY": "sk-of-the-file",
    "MY_GATEWAY_KEY": "k1",
    "HF_TOKEN": "hf-of-the-file",
    "AWS_ACCESS_KEY_ID": "id",
    "LANGSMITH_TRACING": "false",
    "LANGSMITH_API_KEY": "ls",
    "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20x",
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a test an environment that is taken back after it."""
    monkeypatch.setattr(os, "environ", os.environ.copy())
    for name in {*HOSTILE, *HARMLESS} - {"HOME", "PATH", "PYTHONPATH"}:
        os.environ.pop(name, None)


def written(folder: Path, values: dict[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    lines = (f"{name}={value}\n" for name, value in values.items())
    (folder / ".env").write_text("".join(lines), encoding="utf-8")
    return folder


def test_nothing_but_keys_and_switches_is_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = dict(os.environ)
    read_env_file(written(tmp_path, {**HOSTILE, **HARMLESS}))
    assert {name: os.environ[name] for name in HARMLESS} == HARMLESS
    assert {k: v for k, v in os.environ.items() if k not in HARMLESS} == before
    told = capsys.readouterr().err
    assert all(name in told for name in list(HOSTILE)[:10])
    assert "export them in the shell" in told
    assert not any(value in told for value in HARMLESS.values())


def test_what_is_left_out_is_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path, {"HTTPS_PROXY": "http://192.0.2.1"})
    read_env_file(folder, quiet=True)
    assert not capsys.readouterr().err
    read_env_file(folder)
    assert capsys.readouterr().err.count("HTTPS_PROXY") == 1
    read_env_file(folder)
    assert not capsys.readouterr().err
    read_env_file(written(tmp_path / "other", {"HTTPS_PROXY": "http://192.0.2.1"}))
    assert "HTTPS_PROXY" in capsys.readouterr().err


def test_the_shell_comes_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.environ |= {"OPENAI_API_KEY": "sk-of-the-shell", "HTTPS_PROXY": "http://127.0.0.1:1"}
    read_env_file(written(tmp_path, {**HARMLESS, "HTTPS_PROXY": "http://127.0.0.1:1"}))
    assert os.environ["OPENAI_API_KEY"] == "sk-of-the-shell"
    assert not capsys.readouterr().err, "what the shell says too is no news"


@pytest.mark.parametrize(
    ("shell", "name"),
    [
        ("LANGCHAIN_API_KEY", "LANGSMITH_API_KEY"),
        ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY"),
        ("LANGSMITH_PROFILE", "LANGSMITH_API_KEY"),
        ("LANGCHAIN_PROJECT", "LANGSMITH_PROJECT"),
        ("LANGCHAIN_HIDE_INPUTS", "LANGSMITH_HIDE_INPUTS"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"),
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        ("HUGGING_FACE_HUB_TOKEN", "HF_TOKEN"),
        ("AWS_PROFILE", "AWS_ACCESS_KEY_ID"),
    ],
)
def test_the_shell_comes_first_under_each_name(tmp_path: Path, shell: str, name: str) -> None:
    folder = written(tmp_path, {name: "true"})
    os.environ.pop(name, None)
    os.environ[shell] = "of the shell"
    read_env_file(folder)
    assert name not in os.environ
    del os.environ[shell]
    read_env_file(folder)
    assert os.environ[name] == "true"


def test_the_file_of_another_config_sets_nothing_for_this_one(tmp_path: Path) -> None:
    theirs = written(
        tmp_path / "theirs", {"OPENAI_API_KEY": "sk-theirs", "LANGSMITH_API_KEY": "ls-theirs"}
    )
    mine = written(tmp_path / "mine", {"OPENAI_API_KEY": "sk-mine"})
    read_env_file(theirs)
    read_env_file(theirs)
    assert os.environ["LANGSMITH_API_KEY"] == "ls-theirs"
    read_env_file(mine)
    assert os.environ["OPENAI_API_KEY"] == "sk-mine"
    assert "LANGSMITH_API_KEY" not in os.environ
    os.environ["OPENAI_API_KEY"] = "sk-of-the-shell"
    read_env_file(tmp_path)  # without a file
    assert os.environ["OPENAI_API_KEY"] == "sk-of-the-shell"


def test_names_of_one_file_do_not_shut_each_other_out(tmp_path: Path) -> None:
    said = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}
    for name in (*said, "AWS_PROFILE"):
        os.environ.pop(name, None)
    read_env_file(written(tmp_path, said))
    assert {name: os.environ.get(name) for name in said} == said


@pytest.mark.parametrize("prefix", ["LANGSMITH", "LANGCHAIN"])
def test_texts_can_be_hidden_and_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], prefix: str
) -> None:
    names = (f"{prefix}_HIDE_INPUTS", f"{prefix}_HIDE_OUTPUTS")
    for name in names:
        os.environ.pop(name, None)
    read_env_file(written(tmp_path, {names[0]: "True", names[1]: "false"}))
    assert os.environ[names[0]] == "True"
    assert names[1] not in os.environ
    assert names[1] in capsys.readouterr().err


def test_a_run_in_progress_keeps_its_variables(tmp_path: Path) -> None:
    one, other = (written(tmp_path / name, {"OPENAI_API_KEY": name}) for name in ("one", "other"))
    same = written(tmp_path / "same", {"OPENAI_API_KEY": "one"})
    with hold_env_file(), ThreadPoolExecutor(1) as beside:
        read_env_file(one)
        for folder in (other, tmp_path):
            with pytest.raises(ConfigError, match="in this process uses OPENAI_API_KEY") as caught:
                beside.submit(read_env_file, folder).result()
            assert str(one) in caught.value.message
            assert os.environ["OPENAI_API_KEY"] == "one"
        beside.submit(read_env_file, same).result()
        assert os.environ["OPENAI_API_KEY"] == "one"
    read_env_file(other)
    assert os.environ["OPENAI_API_KEY"] == "other"


@pytest.mark.parametrize("first", [{}, {"OPENAI_API_KEY": "k"}])
def test_a_run_in_progress_gets_no_further_variables(tmp_path: Path, first: dict[str, str]) -> None:
    one = written(tmp_path / "one", first) if first else tmp_path / "without a file"
    more = written(tmp_path / "more", {**first, "MY_GATEWAY_KEY": "theirs"})
    with hold_env_file(), ThreadPoolExecutor(1) as beside:
        read_env_file(one)
        with pytest.raises(ConfigError, match="sets MY_GATEWAY_KEY, which a run") as caught:
            beside.submit(read_env_file, more).result()
        assert str(one) in caught.value.message
        assert "MY_GATEWAY_KEY" not in os.environ
        os.environ["MY_GATEWAY_KEY"] = "of the shell"
        beside.submit(read_env_file, more).result()
        del os.environ["MY_GATEWAY_KEY"]
    read_env_file(more)
    assert os.environ["MY_GATEWAY_KEY"] == "theirs"


def test_a_value_that_two_runs_share_stays_until_both_have_ended(tmp_path: Path) -> None:
    one, same = (written(tmp_path / name, {"OPENAI_API_KEY": "k"}) for name in ("one", "same"))
    with ThreadPoolExecutor(1) as beside, ExitStack() as second:
        with hold_env_file():
            read_env_file(one)
            beside.submit(second.enter_context, hold_env_file()).result()
            beside.submit(read_env_file, same).result()
        with pytest.raises(ConfigError, match=re.escape(str(same))):
            read_env_file(tmp_path)
        assert os.environ["OPENAI_API_KEY"] == "k"
        beside.submit(second.close).result()
    read_env_file(tmp_path)
    assert "OPENAI_API_KEY" not in os.environ


def test_a_run_inside_another_one_reads_its_own_file(tmp_path: Path) -> None:
    one, other = (written(tmp_path / name, {"OPENAI_API_KEY": name}) for name in ("one", "other"))
    with hold_env_file():
        read_env_file(one)
        with hold_env_file():
            read_env_file(other)
            assert os.environ["OPENAI_API_KEY"] == "other"


def test_a_corrected_file_is_read_again(tmp_path: Path) -> None:
    read_env_file(written(tmp_path, {"OPENAI_API_KEY": "mistyped", "MY_GATEWAY_KEY": "k"}))
    read_env_file(written(tmp_path, {"OPENAI_API_KEY": "right"}))
    assert os.environ["OPENAI_API_KEY"] == "right"
    assert "MY_GATEWAY_KEY" not in os.environ


def test_restored_variables_are_still_known_to_be_of_a_file(tmp_path: Path) -> None:
    names = ("one", "between", "other")
    one, between, other = (written(tmp_path / name, {"OPENAI_API_KEY": name}) for name in names)
    read_env_file(one)
    with restore_environment():
        read_env_file(between)
        assert os.environ["OPENAI_API_KEY"] == "between"
    assert os.environ["OPENAI_API_KEY"] == "one"
    read_env_file(other)
    assert os.environ["OPENAI_API_KEY"] == "other"


def test_no_variable_of_the_shell_is_taken_under_another_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.environ["PRIVATE_THING"] = "not for them"
    read_env_file(written(tmp_path, {"THEIR_KEY": "x${PRIVATE_THING}"}))
    assert "THEIR_KEY" not in os.environ
    assert "THEIR_KEY" in capsys.readouterr().err


def test_the_address_of_a_hook_stays_out_of_the_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hooks = {"success": [{"webhook_env": "HTTP_PROXY"}, {"webhook_env": "ALERTS_URL"}]}
    config = parse_config(
        {**CONFIG, "schedule": {"cron": "0 3 * * MON", "hooks": hooks}}, where="t", base=tmp_path
    )
    said = {"HTTP_PROXY": "http://192.0.2.1", "ALERTS_URL": "http://192.0.2.2"}
    read_env_file(written(tmp_path, said), config)
    assert not {"HTTP_PROXY", "ALERTS_URL"} & set(os.environ)
    assert not capsys.readouterr().err
    assert address_of_hook("ALERTS_URL", tmp_path) == "http://192.0.2.2"
    os.environ["ALERTS_URL"] = "http://192.0.2.3"
    assert address_of_hook("ALERTS_URL", tmp_path) == "http://192.0.2.3"


@pytest.mark.parametrize(
    "content",
    [
        b"OPENAI_API_KEY=\xff\xfe\n",
        b"#" * (MOST_BYTES + 1),
        b"A_KEY=x" + b" " * 300_000 + b"y\n",
    ],
)
def test_a_file_that_is_none_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".env").write_bytes(content)
    with pytest.raises(ConfigError, match=r"cannot read the \.env file"):
        read_env_file(tmp_path)


@pytest.mark.parametrize("blank", [*"\v\f\x1c\x1d\x1e\x85\u2028\u2029"])
def test_a_blank_that_ends_no_line_for_dotenv_makes_none_shorter(
    tmp_path: Path, blank: str
) -> None:
    """One more than a line may have: read, it would not be slow yet."""
    text = f"A_KEY=x{blank * (MOST_LINE - len('A_KEY=x'))}y\n"
    (tmp_path / ".env").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="a line has more than"):
        read_env_file(tmp_path)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("sk-secret-0123456789\n", 1),
        ("A_KEY=x\n\n# note\n\nsk secret=1\n", 5),
        ("A_KEY=x\nB_KEY: y\n", 2),
        ('A_KEY="x\ny"\nB_KEY', 3),
        ('A_KEY="x\n', 1),
    ],
)
def test_a_line_without_a_value_is_named_by_its_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, line: int
) -> None:
    (tmp_path / ".env").write_text(content)
    with pytest.raises(ConfigError, match=rf"file: line {line} is not NAME=value") as caught:
        read_env_file(tmp_path)
    assert caught.value.where == str(tmp_path / ".env") and "secret" not in str(caught.value)
    assert not capsys.readouterr().err


@pytest.mark.parametrize("key", ["sk-Secret-0123456789", "Qz7SECRET0123456789", "f" * 32])
def test_a_key_in_the_place_of_a_name_is_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    read_env_file(written(tmp_path, {key: "1", "https_proxy": "http://192.0.2.1"}))
    told = capsys.readouterr().err
    assert f"{key[:3]}…, https_proxy" in told and key[:4] not in told


def test_a_pipe_in_its_place_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".env")
    read_env_file(tmp_path)
