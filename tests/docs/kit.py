"""What the pages take for granted: a model, a mirror, a hub, and a user's own files and config."""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.csv  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
import yaml
from huggingface_hub import constants

from coreeval.cli import main
from coreeval.config import load_config
from coreeval.evaluation.numleak.series.catalogue import cache_path
from coreeval.models import openai
from coreeval.tools.clock import utc_now
from tests.docs.pages import ROOT
from tests.releases.test_annotation import fill as fill_sheets
from tests.releases.test_review_output import fill as fill_decisions
from tests.schedule.test_install import FakeCrontab
from tests.support.answers import OfflineAnswers
from tests.support.batch_server import BatchServer
from tests.support.hub_server import TOKEN, HubServer
from tests.support.llm_server import Reply, Request
from tests.support.mirror_server import MirrorServer
from tests.support.news_site import BODY, TITLE
from tests.support.scoring_server import ScoringServer
from tests.support.wiki_server import WikiServer, page_html, parsed
from tests.support.wire import Prompted
from tests.tools.gdelt.sync.kit import fill, quarters

PATIENCE_S = 60
DEMO = ROOT / "examples" / "demo"
CONFIG: dict[str, Any] = {
    "name": "trial",
    "task": "emotion",
    "dataset": {
        "format": "tweeteval",
        "path": str(DEMO / "emotion"),
        "licence": {"name": "Apache-2.0", "redistribute": True},
    },
    "knowledge": {"window": {"start": "2025-08-01", "end": "2026-10-01"}},
    "models": {"default": "offline", "targets": ["offline:classifier", "openai:gpt-4.1"]},
    "schedule": "0 3 * * MON",
}
SERIES: dict[str, Any] = {
    "name": "factors",
    "models": {"targets": ["offline:memorizing"]},
    "detect": {
        "numleak": {
            "series": ["macro_unemp"],
            "dates": 8,
            "pairs": 4,
            "fictitious": 4,
            "defences": {"names": ["none", "soft"], "judge": "offline", "dates": 8},
        }
    },
}
OFFLINE = {"default": "offline"}
ITEMS: dict[str, Any] = {
    "name": "fineval",
    "dataset": {"format": "fineval", "path": "data/fineval"},
    "models": {"targets": ["openai:gpt-x"]},
    "detect": {"pcr": {"samples": 20, "train_split": "dev", "test_split": "val"}},
}
ENDPOINT = "http://127.0.0.1:8000/v1"
"""The endpoint of pages."""
OTHER_ANSWERS = {"": "1.5", "capital": '{"city": "Paris"}'}
"""What the model says to questions that are not of a role, by the name of the answer's schema."""
TEXTS = [
    f"{word} rain fell on the {place}" for word in ("Cold", "Warm") for place in ("sea", "hill")
]
QUESTION = '"选择题。\n问题: 以下属于衍生工具的是第{}种____。\n 选项:[{}]\n 答案: "'
"""An item in the layout of FinEval."""
OPTIONS = {"A": "债券", "B": "股票", "C": "期货", "D": "存款"}
FRENCH = "https://mba.tuck.dartmouth.edu/pages/faculty/ken.french/ftp/"
MONTHS = [f"{year}{month:02}" for year in range(1999, 2022) for month in range(1, 13)]


@dataclass(frozen=True)
class Servers:
    """What answers on loopback."""

    model: BatchServer
    """Plays the roles by the offline rules, and says a number to whatever else it is asked."""
    mirror: MirrorServer
    wiki: WikiServer
    hub: HubServer


@contextmanager
def serving(folder: Path) -> Iterator[Servers]:
    """Serve inside the block.

    Args:
        folder: For the news of the rules.
    """
    path = folder / "rules.yaml"
    path.write_text(
        yaml.safe_dump(CONFIG | {"knowledge": CONFIG["knowledge"] | {"path": str(DEMO / "news")}})
    )
    with ExitStack() as stack:
        rules = stack.enter_context(closing(OfflineAnswers(load_config(path), folder)))

        async def answer(request: Request) -> str | Reply:
            shape = Prompted(request).shape
            return OTHER_ANSWERS.get(shape) or await rules(request)

        model = BatchServer(answer)
        model.scoring = ScoringServer()
        stack.enter_context(model.in_thread())
        mirror = stack.enter_context(MirrorServer().running())
        wiki = stack.enter_context(WikiServer().running())
        now = utc_now().replace(minute=0, second=0, microsecond=0)
        fill(mirror, quarters(now - timedelta(hours=30), 130), ("gkg", "gal"))
        for days in range(40):
            day = now - timedelta(days=days)
            name = f"Portal:Current_events/{day.year}_{day:%B}_{day.day}"
            wiki.pages[name] = [parsed(name, page_html("Voters in Chile elect a new senate."))]
        yield Servers(model, mirror, wiki, stack.enter_context(HubServer().running()))


def connect(patch: pytest.MonkeyPatch, servers: Servers) -> None:
    """Let this process take the servers for those of the web."""
    patch.setattr(openai, "PUBLIC_URL", servers.model.url)
    patch.setenv("OPENAI_API_KEY", "unused")
    patch.setenv("HF_ENDPOINT", servers.hub.url)
    patch.setenv("HF_TOKEN", TOKEN)
    patch.setattr(constants, "HF_HUB_DISABLE_XET", True)


def make_environment() -> dict[str, str]:
    """Return the environment of another process."""
    return os.environ | {"PYTHONPATH": os.pathsep.join([os.environ["PYTHONPATH"], str(ROOT)])}


def prepare(page: str, servers: Servers, patch: pytest.MonkeyPatch) -> None:
    """Make in the current folder what a page takes for granted and others do not."""
    match page:
        case "README.md" | "docs/tutorial.md":
            Path("coreeval.yaml").unlink()  # `init` writes it
        case "docs/batches.md":
            _write_yaml(Path("coreeval.yaml"), CONFIG | {"models": {"default": "openai:gpt-x"}})
        case "docs/knowledge.md":
            Path("path/to").mkdir(parents=True)
            Path("path/to/files").symlink_to(DEMO / "news")
        case "docs/models.md":
            assert main(["evaluate", "latest", "--target", "openai:gpt-x"]) == 0
        case "docs/prompts.md":
            _write_yaml(Path("coreeval.yaml"), CONFIG | {"models": {"default": "openai:gpt-x"}})
            Path("mine").mkdir()
            shutil.copy(ROOT / "coreeval" / "prompts" / "composer.md", "mine")
        case "docs/schedule.md":
            _write_yaml(Path("other.yaml"), CONFIG | {"name": "other", "models": OFFLINE})
            _write_yaml(Path("coreeval.yaml"), CONFIG | {"models": OFFLINE})
            FakeCrontab(Path.cwd(), patch).table.touch()
        case "docs/whitebox.md":
            price = {"input": 1, "output": 1}
            target = {"model": "openai:qwen", "base_url": servers.model.url, "price": price}
            _write_yaml(Path("qwen.yaml"), CONFIG | {"models": OFFLINE | {"targets": [target]}})
            assert main(["refresh", "qwen.yaml"]) == 0


def play_person(command: str) -> None:
    """Do what a page asks of a person before a command."""
    if command.startswith("validate coreeval.yaml") and Path("task.yaml").exists():
        config = yaml.safe_load(Path("coreeval.yaml").read_text("utf-8"))
        config["knowledge"]["window"] = CONFIG["knowledge"]["window"]  # that of the demo's news
        _write_yaml(Path("coreeval.yaml"), config)
    if command.startswith("annotate score"):
        for folder in Path().glob("DIR-*"):
            fill_sheets(folder)
    if command.startswith("review latest --csv"):
        for decisions in Path().glob(".coreeval/reviews/*.jsonl"):
            decisions.unlink()  # the page decided all before
    if "--from-csv" in command:
        fill_decisions(Path("list.csv"), "approve", "reject")


def run_until_ready(words: Sequence[str], ready: str) -> int:
    """Run a command in another process until it is ready; then end it by Ctrl-C.

    What it says goes to stderr.

    Args:
        words: Its arguments.
        ready: A pattern that a line of its output begins with.

    Returns:
        Its exit code.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "coreeval", *words],
        env=make_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout
        for line in process.stdout:
            sys.stderr.write(line)
            if re.match(ready, line):
                process.send_signal(signal.SIGINT)
        return process.wait(PATIENCE_S)


def write_files(folder: Path) -> None:
    """Write what the pages call a user's own files.

    Args:
        folder: The current folder of the commands.
    """
    for name in ("coreeval", "weekly", "other"):
        _write_yaml(folder / f"{name}.yaml", CONFIG)
    _write_yaml(folder / "factors.yaml", SERIES)
    _write_yaml(folder / "fineval.yaml", ITEMS)
    (folder / "ids.txt").write_text("emotion/test/2\n", "utf-8")
    (folder / "sheets").mkdir()
    (folder / "sheets" / "ada.csv").write_text("item,note\n1,by Jane Q. Example\n", "utf-8")
    _write_texts(folder)
    _write_benchmarks(folder)
    _write_answers(folder)


def _write_yaml(path: Path, value: object) -> None:
    path.write_text(yaml.safe_dump(value), "utf-8")


def _write_lines(path: Path, rows: Sequence[object]) -> None:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def _write_texts(folder: Path) -> None:
    """Write tables and articles."""
    rows = [
        {"id": str(number), "text": text, "input": text, "question": text, "output": "yes"}
        for number, text in enumerate([*TEXTS, TEXTS[0]])
    ]
    for name in ("theirs.jsonl", "test.jsonl"):
        _write_lines(folder / name, rows)
    table = "".join(f"{row['id']},{row['text']},{row['question']},joy\n" for row in rows)
    (folder / "mine.csv").write_text(f"id,text,question,label\n{table}", "utf-8")
    pq.write_table(pa.Table.from_pylist(rows), folder / "corpus.parquet")
    article = {"url": "https://example.org/article", "title": TITLE, "text": "\n".join(BODY)}
    _write_lines(folder / "texts.jsonl.gz", [article])
    texts, labels, names = (
        (DEMO / "emotion" / name).read_text("utf-8").splitlines()
        for name in ("test_text.txt", "test_labels.txt", "mapping.txt")
    )
    named = dict(line.split("\t") for line in names)
    tweets = [
        {"text": text, "label": named[label]} for text, label in zip(texts, labels, strict=True)
    ]
    pa.csv.write_csv(pa.Table.from_pylist(tweets), folder / "tweets.csv")


def _write_benchmarks(folder: Path) -> None:
    """Write benchmarks that the package does not have, in their layouts."""
    (folder / "data" / "tweeteval").mkdir(parents=True)
    shutil.copytree(DEMO / "emotion", folder / "data" / "tweeteval" / "emotion")
    shown = ", ".join(f"'{letter}':{text}" for letter, text in OPTIONS.items())
    for place in ("data/fineval", "cap/fineval"):
        (folder / place).mkdir(parents=True)
        for start, split in ((0, "dev"), (20, "val")):
            items = [
                {"input": QUESTION.format(number, shown), "output": "C"}
                for number in range(start, start + 20)
            ]
            (folder / place / f"ori_{split}.json").write_text(json.dumps(items), "utf-8")


def _write_answers(folder: Path) -> None:
    """Write recorded answers, and the series that they are about."""
    for number, name in enumerate(("mine", "clean-a", "clean-b")):
        pairs = [
            {
                "split": split,
                "id": str(at),
                "input": f"{TEXTS[at % 4]} {at}",
                "text": f"{TEXTS[at % 4]} {at}",
                "reference": "yes",
                "output": "yes",
                "original_output": "yes" if at % (number + 2) else "no",
                "modified_output": "yes" if at % 3 else "no",
            }
            for split in ("train", "test")
            for at in range(30)
        ]
        _write_lines(folder / f"{name}.jsonl", pairs)
    values = {month: (number * 37 % 101 - 50) / 10 for number, month in enumerate(MONTHS)}
    table = "".join(
        f"{month}, {value}, {-value}, {value / 2}, {value / 3}, {value / 4}, {value / 2}\n"
        for month, value in values.items()
    )
    head = ",Mkt-RF,SMB,HML,RMW,CMA,Mom"
    (folder / "F-F_Research_Data_Factors.csv").write_text(f"Made up.\n\n{head}\n{table}", "utf-8")
    _write_lines(
        folder / "said.jsonl",
        [
            {
                "model": "claude-sonnet-4.6",
                "series": "mkt_rf",
                "date": month,
                "response": f"{value}",
            }
            for month, value in list(values.items())[:60]
        ],
    )
    (folder / "tone.csv").write_text(
        "date,value\n"
        + "".join(f"{month[:4]}-{month[4:]},{value / 10}\n" for month, value in values.items()),
        "utf-8",
    )
    ranked = [
        {"model": "m", "date": f"2001-{month:02}", "candidate": name, "mean_logprob": -1.0 - at}
        for month in range(1, 13)
        for at, name in enumerate(("true", "near", "far"))
    ]
    _write_lines(folder / "scored.jsonl", ranked)
    (folder / "dose").mkdir()
    _write_lines(folder / "dose" / "rankings.jsonl", ranked)
    series = folder / ".coreeval" / "series"
    series.mkdir(parents=True)
    for name in ("Research_Data_Factors", "Research_Data_5_Factors_2x3", "Momentum_Factor"):
        kept = cache_path(f"{FRENCH}F-F_{name}_CSV.zip", series)
        shutil.copy(folder / "F-F_Research_Data_Factors.csv", kept)
