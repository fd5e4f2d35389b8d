"""How much of a refresh's prompts the providers' prompt caches hold, by role.

    python -m benchmarks.prefix_cache [--samples 200] [--latency 1] [--in-flight 16]
        [--task emotion|mrpc] [--pipeline full|lean] [--tokenizer o200k_base]

A refresh of real texts with real news is made three times, as for OpenAI before GPT-5.6, OpenAI
from then on, and Anthropic, against a local server that answers as the rules do and caches as the
providers do (benchmarks/provider_caches.py). It tells its counts with each answer; what `run.db`
has of them at the end must be what the server counted.

Tokens are those of `--tokenizer`, one of tiktoken's with its file in TIKTOKEN_CACHE_DIR, or else
four characters each, the likely rate of `coreeval estimate`. "constant" is what all prompts of a
role begin with, "found" what a cache of that kind found, "lost" what a role pays because the
beginning is shorter than OpenAI's 1,024 tokens, all as shares of the prompt tokens. "vllm" is what
its cache finds of requests that are sent as to OpenAI, the first of each prefix alone.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from benchmarks.load import counts, serving
from benchmarks.provider_caches import BlockCache, MarkedCache, Prompt, Tokens
from benchmarks.throughput import SHARED, write_config
from coreeval.config.load import load_config
from coreeval.models import anthropic, openai
from coreeval.runs.status import read_status
from coreeval.tools.gdelt.local import open_folder
from tests.support.answers import SHAPE_OF, OfflineAnswers
from tests.support.llm_server import Reply, Request
from tests.support.messages import message

MODELS = {
    "openai": "openai:gpt-5.5",
    "openai, marked": "openai:gpt-5.6-terra",
    "anthropic": "anthropic:claude-sonnet-5",
}
"""Whom each refresh believes to ask."""
TASKS = {
    "emotion": {"format": "tweeteval", "path": str(SHARED / "tweeteval" / "emotion")},
    "mrpc": {"format": "mrpc", "path": str(SHARED / "mrpc")},
}
ROLE_OF = {shape: role for role, shape in SHAPE_OF.items()} | {
    "extraction_and_rewrite": "extractor",
    "plan_and_text": "replacer",
    "labels": "label_judge",
}
"""Whose answer each schema is."""
_SETTINGS = "COREEVAL_BENCH_PREFIX"


def make_encoder(name: str) -> Callable[[str], Tokens]:
    """Return what makes tokens of a text."""
    if name:
        import tiktoken  # not a dependency of ours: some providers' packages bring it

        return tiktoken.get_encoding(name).encode_ordinary
    return lambda text: [text[at : at + 4] for at in range(0, len(text), 4)]


# -- the server ---------------------------------------------------------------------------------


class CachingServer:
    """Answers as the rules do, and counts each request as several kinds of caches would."""

    def __init__(self) -> None:
        told = json.loads(os.environ[_SETTINGS])
        config = Path(told["config"])
        self._answers = OfflineAnswers(load_config(config), config.parent / "server")
        self._encode = make_encoder(told["tokenizer"])
        late = told["latency"]
        block, marked = BlockCache, MarkedCache
        by_fewest: dict[str, BlockCache | MarkedCache] = {
            f"anthropic {fewest}": marked(fewest=fewest, lasts_s=300, answers_after_s=late)
            for fewest in (512, 2048, 4096)
        }
        self._caches: dict[str, dict[str, BlockCache | MarkedCache]] = {
            "openai": {
                "openai": block(first=1024, step=128, answers_after_s=late, per_minute=15),
                "one machine": block(first=1024, step=128, answers_after_s=late),
                "vllm": block(first=16, step=16, answers_after_s=late),
                "openai, unmarked": marked(fewest=1024, lasts_s=1800, answers_after_s=late),
            },
            "openai, marked": {
                "openai, marked": marked(fewest=1024, lasts_s=1800, answers_after_s=late)
            },
            "anthropic": {
                "anthropic": marked(fewest=1024, lasts_s=300, answers_after_s=late),
                **by_fewest,
            },
        }
        self._shared: dict[tuple[str, str], Tokens] = {}
        self._sums: dict[str, list[int]] = {}

    @property
    def counts(self) -> dict[str, object]:
        """What each kind of cache counted, and what all prompts with one schema begin with."""
        shared = {f"{kind}|{shape}": len(tokens) for (kind, shape), tokens in self._shared.items()}
        return {"sums": self._sums, "shared": shared}

    async def __call__(self, request: Request) -> str | Reply:
        """Answer a request, with its tokens as the first kind of cache counts them."""
        plain = _to_plain(request)
        kind = next(kind for kind, model in MODELS.items() if model.endswith(f":{plain['model']}"))
        answer = await self._answers(plain)
        if isinstance(answer, Reply):
            return answer
        shape = plain["tools"][0]["function"]["name"]
        used = self._count(kind, shape, self._read_prompt(request))
        completion = len(self._encode(answer))
        if kind != "anthropic":
            details = {"cached_tokens": used[1], "cache_write_tokens": used[2]}
            usage = {"prompt_tokens": used[0], "completion_tokens": completion}
            return Reply(content=answer, usage=usage | {"prompt_tokens_details": details})
        told = message(request, answer, tool=shape, stop_reason="stop", thinking=None,
                       cached=used[1], written=used[2])  # fmt: skip
        told["usage"] = {
            "input_tokens": used[0] - used[1] - used[2],
            "output_tokens": completion,
            "cache_read_input_tokens": used[1],
            "cache_creation_input_tokens": used[2],
        }
        return Reply(body=json.dumps(told))

    def _read_prompt(self, request: Request) -> Prompt:
        """Return a request as a cache sees it: schema, instructions, then the sample's turn."""
        tokens = list(self._encode(json.dumps(request.get("tools"))))
        marks = list[int]()
        for part in _list_parts(request):
            tokens += self._encode(part["text"])
            if "cache_control" in part or "prompt_cache_breakpoint" in part:
                marks.append(len(tokens))
        options: Any = request.get("prompt_cache_options", {})
        if options.get("mode") != "explicit" and "system" not in request:
            marks.append(len(tokens))
        return Prompt(tokens=tokens, marks=marks, key=str(request.get("prompt_cache_key", "")))

    def _count(self, kind: str, shape: str, prompt: Prompt) -> list[int]:
        """Return the prompt tokens, those found and those written, as the first kind counts."""
        told, now = list[list[int]](), time.monotonic()
        for name, cache in self._caches[kind].items():
            served = cache.serve(prompt, now)
            used = [len(prompt.tokens), served.cached, served.written, 1]
            old = self._sums.setdefault(f"{name}|{shape}", [0, 0, 0, 0])
            self._sums[f"{name}|{shape}"] = [a + b for a, b in zip(old, used, strict=True)]
            told.append(used)
        before = self._shared.get((kind, shape), prompt.tokens)
        pairs = zip(before, prompt.tokens, strict=False)
        same = next((at for at, (a, b) in enumerate(pairs) if a != b), len(before))
        self._shared[kind, shape] = before[:same]
        return told[0]


def _list_parts(request: Request) -> list[dict[str, Any]]:
    """Return the parts of a request's messages in their order, each with its marks."""
    messages: Any = request["messages"]
    system: Any = request.get("system", [])
    contents = [*system, *(one["content"] for one in messages)]
    nested = [[one] if isinstance(one, (str, dict)) else one for one in contents]
    return [{"text": one} if isinstance(one, str) else one for many in nested for one in many]


def _to_plain(request: Request) -> dict[str, Any]:
    """Return a request of any provider as one without marks, with its schema as a function."""
    asked: Any = request
    turns = [
        {**one, "content": "".join(part["text"] for part in _list_parts({"messages": [one]}))}
        for one in asked["messages"]
    ]
    told = "".join(part["text"] for part in asked.get("system", []))
    tool = asked["tools"][0]
    name = tool["name"] if "name" in tool else tool["function"]["name"]
    return {
        "model": asked["model"],
        "messages": ([{"role": "system", "content": told}] if told else []) + turns,
        "tools": [{"function": {"name": name}}],
    }


_made: list[CachingServer] = []


class _Answers:
    """Makes the server's answers when the first is asked for."""

    counts = property(lambda _self: _made[0].counts if _made else {})

    async def __call__(self, request: Request) -> str | Reply:
        if not _made:
            _made.append(CachingServer())
        return await _made[0](request)


answers = _Answers()


# -- the refreshes ------------------------------------------------------------------------------


def refresh(config: Path, samples: int, root: str) -> None:
    """Refresh in this process; whatever it believes to be a public endpoint is the server."""
    from coreeval.cli import main as coreeval

    openai.PUBLIC_URL, anthropic.PUBLIC_URL = f"{root}/v1", root
    sys.argv = ["coreeval", "refresh", str(config), "--limit", str(samples), "--json"]
    raise SystemExit(coreeval())


async def _run(config: Path, samples: int, root: str) -> Path:
    """Refresh in a process of its own; return the run's folder."""
    command = [sys.executable, "-m", "benchmarks.prefix_cache", "--config", str(config)]
    command += ["--samples", str(samples), "--root", root]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    said, trouble = await process.communicate()
    if process.returncode:
        raise SystemExit("\n".join(trouble.decode().splitlines()[-20:]) + said.decode()[-2000:])
    return Path(json.loads(said)["run"])


def _write_config(folder: Path, news: Path, model: str, chosen: argparse.Namespace) -> Path:
    file = write_config(folder, news, "http://127.0.0.1:1/v1", chosen.in_flight)
    config = yaml.safe_load(file.read_text())
    config["task"], config["dataset"] = chosen.task, {**TASKS[chosen.task], "split": "test"}
    config["models"] = {"default": {"model": model, "structured": "function_calling"}}
    config["run"] |= {"pipeline": chosen.pipeline}
    file.write_text(yaml.safe_dump(config))
    return file


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--in-flight", type=int, default=16)
    parser.add_argument("--task", choices=list(TASKS), default="emotion")
    parser.add_argument("--pipeline", choices=("full", "lean"), default="full")
    parser.add_argument("--tokenizer", default="")
    parser.add_argument("--config", type=Path)
    parser.add_argument("--root")
    chosen = parser.parse_args()
    if chosen.config:
        refresh(chosen.config, chosen.samples, chosen.root)
    os.environ |= {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "NO_COLOR": "1"}
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        news = open_folder(SHARED / "gdelt", folder / "news")
        server = _write_config(folder / "server", news, "openai:gpt-5", chosen)
        told = {"config": str(server), "tokenizer": chosen.tokenizer, "latency": chosen.latency}
        os.environ[_SETTINGS] = json.dumps(told)
        arguments = ["--latency", str(chosen.latency)]
        arguments += ["--answers", "benchmarks.prefix_cache:answers"]
        with serving("tests.support.llm_server", *arguments) as root:
            for kind, model in MODELS.items():
                name = kind.replace(", ", "-")
                config = _write_config(folder / name, news, model, chosen)
                run = asyncio.run(_run(config, chosen.samples, root))
                _compare(run, kind, counts(root))
            _print(counts(root))


def _compare(run: Path, kind: str, counted: Mapping[str, Any]) -> None:
    """Stop if run.db has other sums than the server."""
    stored = {
        one.role: (one.prompt_tokens, one.cached_tokens) for one in read_status(run).cache_use
    }
    served = dict[str, tuple[int, int]]()
    for name, (prompt, cached, *_) in counted["sums"].items():
        if name.startswith(f"{kind}|"):
            role = ROLE_OF[name.removeprefix(f"{kind}|")]
            before = served.get(role, (0, 0))
            served[role] = before[0] + prompt, before[1] + cached
    if stored != served:
        raise SystemExit(f"{kind}: run.db has {stored}, the server counted {served}")


def _print(counted: Mapping[str, Any]) -> None:
    sums: dict[str, dict[str, list[int]]] = {}
    for name, used in counted["sums"].items():
        kind, shape = name.split("|")
        sums.setdefault(kind, {})[shape] = used
    shared: dict[str, int] = counted["shared"]
    kinds = list(sums)
    print(
        f"{'answer':<13}{'calls':>7}{'prompt':>10}{'constant':>16}  " + "  ".join(kinds) + "  lost"
    )
    for shape in sums["openai"]:
        prompt, _, _, calls = sums["openai"][shape]
        first = shared[f"openai|{shape}"]
        shares = [f"{sums[kind][shape][1] / sums[kind][shape][0]:.1%}" for kind in kinds]
        lost = (sums["vllm"][shape][1] - sums["one machine"][shape][1]) / prompt
        cells = "  ".join(f"{one:>{len(kind)}}" for one, kind in zip(shares, kinds, strict=True))
        constant = f"{first:,} ({first * calls / prompt:.0%})"
        print(f"{shape:<13}{calls:>7}{prompt:>10,}{constant:>16}  {cells}  {lost:.1%}")
    totals = [[sum(used[at] for used in sums[kind].values()) for at in (0, 1, 2)] for kind in kinds]
    print("whole: " + ", ".join(
        f"{kind} {found / prompt:.1%} found, {written / prompt:.1%} written"
        for kind, (prompt, found, written) in zip(kinds, totals, strict=True)
    ))  # fmt: skip


if __name__ == "__main__":
    main()
