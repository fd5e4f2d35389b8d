"""Secrets in set-ups that fail: after each, no file and no output has the secret.

Each set-up plants a secret of its own where a person or a server would put it, gives a command that
fails for it, and then every file is searched that the command could have written: the workspace,
its folder, the home directory, the temporary files, and what it said. Files that are packed are
unpacked, databases are read cell by cell, Parquet column by column. Where the set-up itself had the
secret in a file (a config, .env, a key file), that one file is left out.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from urllib.parse import quote

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import yaml

from benchmarks.chaos.cases import Case, Outcome
from benchmarks.chaos.processes import Said, say
from coreeval.graph.bundled import write_configs
from tests.cli.test_secrets import contents, refusing

AT_ONCE = 4
"""Set-ups that are tried at a time: most of them wait for servers."""
PIECE = 12
"""Characters of a secret that are too many to show."""


@dataclass(frozen=True, kw_only=True)
class SetUp:
    """A set-up that fails."""

    name: str
    secret: str
    model: Mapping[str, object] = field(default_factory=lambda: {"model": "openai:x"})
    """Of all roles."""
    config: Mapping[str, object] = field(default_factory=dict)
    """What the config has besides."""
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """Files of the user's own, by their name in the folder."""
    text: str = ""
    """The config as it stands, in place of one that is made."""
    command: Sequence[str] = ("refresh", "c.yaml", "--limit", "1", "--run-dir", "run", "--debug")
    status: int = 0
    """What a server answers that the model is behind; 0 for no server."""
    body: str = ""


def secret(number: int, tail: str = "") -> str:
    """Return a secret that looks like a key."""
    return f"sk-pl4nted{number:02}Qz7{'wXyK3v' * 2}{number:02}end{tail}"


def served() -> Iterator[SetUp]:
    """Yield set-ups whose server repeats the key while it fails."""
    bodies = (
        (401, '{"error": {"message": "Incorrect API key provided: KEY", "code": "KEY"}}'),
        (403, "<html>KEY may not</html>"),
        (400, '{"error": {"message": "Authorization was Bearer KEY", "param": "KEY"}}'),
        (404, '{"detail": "no /v1 for KEY"}'),
        (429, '{"error": {"message": "KEY is out of quota", "code": "insufficient_quota"}}'),
        (500, "KEY"),
        (200, '{"error": {"message": "KEY"}}'),
        (200, "KEY is no JSON"),
        (307, "KEY"),
    )
    for number, (status, body) in enumerate(bodies):
        for provider in ("openai", "anthropic")[: 2 if status in (401, 500) else 1]:
            key = secret(number, provider[0])
            yield SetUp(
                name=f"{provider}: {status} {body[:20]!r}",
                secret=key,
                model={"model": f"{provider}:x"},
                env={f"{provider.upper()}_API_KEY": key},
                status=status,
                body=body,
            )


def misplaced() -> Iterator[SetUp]:
    """Yield set-ups whose config, .env or environment has a secret in the wrong place or form."""
    key = secret(20)
    local = "http://127.0.0.1:9/v1"

    def model(**more: object) -> dict[str, object]:
        return {"model": "openai:x", "base_url": local} | more

    yield SetUp(name="key with a line break", secret=key, env={"OPENAI_API_KEY": f"{key}\n{key}"})
    yield SetUp(name="key with a space", secret=key, env={"OPENAI_API_KEY": f"{key} {key}"})
    yield SetUp(name="key not in ASCII", secret=key, env={"OPENAI_API_KEY": f"{key}é"})
    yield SetUp(name="nothing listens", secret=key, model=model(), env={"OPENAI_API_KEY": key})
    yield SetUp(
        name="key as user of a URL",
        secret=key,
        model=model(base_url=f"http://u:{key}@127.0.0.1:9/v1"),
    )
    yield SetUp(name="key in a query", secret=key, model=model(base_url=f"{local}?api-key={key}"))
    yield SetUp(name="key in place of its variable", secret=key, model=model(api_key_env=key))
    yield SetUp(
        name="key in headers",
        secret=key,
        model=model(extra={"default_headers": {"X-Api-Key": key}}),
    )
    yield SetUp(name="key as a word of its own", secret=key, model=model(extra={"user": key}))
    yield SetUp(name="key as an unknown key", secret=key, model=model(api_key=key))
    yield SetUp(name="key as the model's name", secret=key, model=model(model=key))
    yield SetUp(
        name="password of a proxy",
        secret=key,
        env={"OPENAI_API_KEY": "k" * 20, "HTTPS_PROXY": f"http://u:{key}@127.0.0.1:9"},
    )
    yield SetUp(
        name="proxy of a kind that is not known",
        secret=key,
        env={"OPENAI_API_KEY": "k" * 20, "ALL_PROXY": f"gopher://u:{key}@127.0.0.1:9"},
    )
    yield SetUp(
        name="YAML that breaks in the line of the key",
        secret=key,
        text=f"name: x\nmodels: {{default: {{model: openai:x, api_key: '{key}}}}}\n",
        files={},
    )
    yield SetUp(
        name="YAML with a tab after the key", secret=key, text=f"name: x\nkey: {key}\n\tmodels: 1\n"
    )
    yield SetUp(
        name="a .env that is no such file",
        secret=key,
        files={".env": f"OPENAI_API_KEY {key}\n= {key}\n'{key}\n"},
    )
    yield SetUp(
        name="a .env that is not UTF-8", secret=key, files={".env": f"OPENAI_API_KEY={key}\udcff\n"}
    )
    yield SetUp(
        name="a database with a password", secret=key, config={"store": f"postgresql://u:{key}@h/d"}
    )
    yield SetUp(
        name="a dataset at a URL with a password",
        secret=key,
        config={"dataset": {"format": "jsonl", "path": f"https://u:{key}@h/x.jsonl"}},
    )
    yield SetUp(
        name="on the command line",
        secret=key,
        command=("refresh", "c.yaml", "--set", f"models.default.api_key={key}"),
    )
    yield SetUp(
        name="a collector with a password",
        secret=key,
        config={"telemetry": {"otlp": f"http://u:{key}@127.0.0.1:9"}},
    )
    yield SetUp(
        name="headers of a collector",
        secret=key,
        config={"telemetry": {"otlp": "http://127.0.0.1:9"}},
        env={"OPENAI_API_KEY": "k" * 20, "OTEL_EXPORTER_OTLP_HEADERS": f"authorization={key}"},
    )
    yield SetUp(
        name="a mirror with a password",
        secret=key,
        command=("gdelt", "sync", "--days", "1", "--mirror", f"https://u:{key}@127.0.0.1:9"),
    )
    yield SetUp(
        name="LangSmith's key",
        secret=key,
        env={
            "OPENAI_API_KEY": "k" * 20,
            "LANGSMITH_API_KEY": key,
            "LANGSMITH_TRACING": "true",
            "LANGSMITH_ENDPOINT": "http://127.0.0.1:9",
        },
    )
    account = f'{{"type": "service_account", "private_key": "{key}", "client_email": "a@b"'
    big = {
        "knowledge": {
            "backends": ["bigquery"],
            "bigquery": {"project": "p"},
            "window": {"start": "2026-01-01", "end": "2026-02-01"},
        }
    }
    for name, words in (("broken", account), ("that is not whole", account + "}")):
        yield SetUp(
            name=f"a service account's file {name}",
            secret=key,
            model={"model": "offline"},
            config=big,
            files={"sa.json": words},
            env={"GOOGLE_APPLICATION_CREDENTIALS": "sa.json"},
        )
    yield SetUp(
        name="the hub's token",
        secret=f"hf_{key[3:]}",
        command=("push", "run", "--to", "o/n"),
        env={"HF_TOKEN": f"hf_{key[3:]}", "HF_ENDPOINT": "http://127.0.0.1:9"},
    )
    hooks = {
        "schedule": {
            "every": "1d",
            "hooks": [
                {"command": "env; exit 3", "on": ["failed"]},
                {"webhook_env": "HOOK", "on": ["failed"]},
            ],
        }
    }
    yield SetUp(
        name="a hook that fails",
        secret=key,
        config=hooks,
        env={"OPENAI_API_KEY": key, "HOOK": f"http://127.0.0.1:9/{key}"},
        model=model(),
        command=("schedule", "due", "c.yaml", "--debug"),
    )


def attempt(folder: Path, _chance: Random) -> Outcome:
    """Try every set-up in a folder of its own."""
    every = [*served(), *misplaced()]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        tried = list(pool.map(try_one, every, (folder / str(n) for n in range(len(every)))))
    files = sum(looked for looked, _ in tried)
    broken = [words for _, words in tried if words]
    return Outcome(
        tried=len(every),
        held=len(every) - len(broken),
        measured=f"{len(every)} set-ups, {files} files searched",
        broken=tuple(broken),
    )


def try_one(one: SetUp, place: Path) -> tuple[int, str]:
    """Try a set-up; return how many files were searched, and what did not hold."""
    said = fail(one, place)
    looked, found = search(one, place, said)
    if found:
        return looked, f"{one.name}: in {', '.join(found)}"
    if said.code == 0:
        return looked, f"{one.name}: it did not fail: {said.out[-200:]}"
    wrong = "fault of CoreEval" in said.out + said.err
    return looked, f"{one.name}: taken for a fault: {said.out[-300:]}" if wrong else ""


def fail(one: SetUp, place: Path) -> Said:
    """Give a set-up's command."""
    (place / "home").mkdir(parents=True)
    (place / "tmp").mkdir()
    env = {"HOME": str(place / "home"), "TMPDIR": str(place / "tmp"), **one.env}
    with contextlib.ExitStack() as stack:
        model = dict(one.model)
        if one.status:
            model["base_url"] = stack.enter_context(refusing(one.status, one.body))
        (place / "c.yaml").write_text(one.text or config_of(place, model, one.config), "utf-8")
        for name, words in one.files.items():
            (place / name).write_bytes(words.encode("utf-8", "surrogateescape"))
        return say(*one.command, folder=place, env=env)


def config_of(place: Path, model: Mapping[str, object], more: Mapping[str, object]) -> str:
    """Return a config of the bundled benchmark."""
    written = next(path for path in write_configs(place / "home") if path.stem == "emotion")
    raw = yaml.safe_load(written.read_text("utf-8"))
    retry = {"timeout_s": 20}
    played = dict(model) if model["model"] == "offline" else dict(model) | retry
    return yaml.safe_dump(raw | {"models": {"default": played}, "run": {"timeout_s": 15}} | more)


def search(one: SetUp, place: Path, said: Said) -> tuple[int, list[str]]:
    """Return how many files were searched, and where the secret was found."""
    wanted = forms(one.secret)
    own = {place / "c.yaml", *(place / name for name in one.files)}
    every = (path for path in place.rglob("*") if path.is_file() and path not in own)
    files = sorted(every, key=is_database)  # reading one takes away the log beside it
    found = [
        str(path.relative_to(place))
        for path in files
        if any(form in held for held in held_by(path) for form in wanted)
    ]
    spoken = {"stdout": said.out, "stderr": said.err}
    found += [name for name, words in spoken.items() if any(f in words.encode() for f in wanted)]
    return len(files), found


def is_database(path: Path) -> bool:
    """Return whether a file is a database."""
    return path.suffix == ".db"


def held_by(path: Path) -> Iterator[bytes]:
    """Yield what a file holds, what is packed in it included."""
    yield from contents(path)
    if path.suffix == ".parquet":
        yield repr(pq.read_table(path).to_pylist()).encode()


def forms(key: str) -> set[bytes]:
    """Return how a secret may look where it was written down, its first and last part included."""
    return {one.encode() for one in (key, key[:PIECE], key[-PIECE:], quote(key, safe=""))}


CASES: tuple[Case, ...] = (
    Case(
        name="set-ups that fail with a secret in them",
        promise="no file and no output has the secret, or a part of it",
        attempt=attempt,
    ),
)
