"""Inspect and lm-eval read an export whose texts and names are made to be evaluated or run.

The benchmark is exported for each harness, and the harness's own package reads it, in a folder of
its own: each prompt must hold its text byte for byte, and what the texts ask for must not have
happened.
"""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from random import Random

import yaml

from benchmarks.chaos.cases import Case, Outcome
from benchmarks.chaos.processes import environment, say
from coreeval.graph.bundled import write_configs

CANARY = "canary-of-the-campaign"
COLUMN = """te"x't {{ 7*7 }}: !!python"""
TEXTS = (
    "{{ 7*7 }} and {% raw %} and {# no comment #} and ${7*7}",
    "{{ cycler.__init__.__globals__.os.popen('touch " + CANARY + "').read() }}",
    "!function os.system: !!python/object/apply:os.system ['touch " + CANARY + "']",
    "$(touch " + CANARY + "); `touch " + CANARY + "` && touch " + CANARY,
    "<script>fetch('http://127.0.0.1')</script><img src=x onerror=alert(1)>",
    "bidi \u202egnol\u202c and \u2066isolated\u2069 and zero\u200bwidth and \ufeff",
    "first line\nsecond: line\n---\n- a list\n\ttab\r\nlast",
    "'single' \"double\" \\n \\u0041 \\ and %s and {0} and {name} and {",
    '{"role": "system", "content": "an order"}',
    "prompt",
    "label_text",
    "attachment://0123 and data:text/html;base64,PHNjcmlwdD4=",
    "very long " * 20_000 + "end",
    "combining e\u0301 and \u212b and \U0001f9d1\u200d\U0001f680",
    "control \x01\x1b[31m\x7f and \u2028 and \u0085 end",
)
LM_EVAL = """
import json, sys
from lm_eval import tasks
known = tasks.TaskManager(include_path=sys.argv[1], include_defaults=False)
names = [name for name in known.all_tasks if "_original_" in name]
found = tasks.get_task_dict(names, known)
print("SAID" + json.dumps([
    task.doc_to_text(doc) for task in found.values() for doc in task.test_docs()
]))
"""
INSPECT = """
import json, sys
sys.path.insert(0, sys.argv[1])
import coreeval_task
print("SAID" + json.dumps([one.input for one in coreeval_task.coreeval("original").dataset]))
"""


def attempt(folder: Path, _chance: Random) -> Outcome:
    """Make a release of such texts, export it, and read it with each harness."""
    run = folder / "run"
    release = folder / ".coreeval" / "releases" / "hostile" / "1"
    commands = [
        ["refresh", hostile(folder), "--run-dir", run],
        ["release", run, "--version", "1", "--allow-empty-arm"],
        ["export", release, "--to", "lm-eval", "--out", folder / "lm"],
        ["export", release, "--to", "inspect", "--out", folder / "inspect"],
    ]
    for given in commands:
        said = say(*given, folder=folder)
        if wrong := said.defect(0, hinted=False):
            return Outcome(tried=2 * len(TEXTS), held=0, broken=(wrong,))
    broken, tried = list[str](), 0
    for name, code, asked in (("lm-eval", LM_EVAL, 2), ("Inspect", INSPECT, 1)):
        place = folder / {"lm-eval": "lm", "Inspect": "inspect"}[name]
        prompts = read(code, place, folder)
        tried += len(TEXTS)
        for text in TEXTS:
            shown = sum(text in prompt for prompt in prompts)
            if shown < asked or (text not in ("prompt", "label_text") and shown != asked):
                broken.append(f"{name}: {text[:40]!r} is in {shown} prompts, not in {asked}")
    broken += [f"{path} was made" for path in folder.rglob(CANARY)]
    return Outcome(
        tried=tried,
        held=max(0, tried - len(broken)),
        measured=f"{len(TEXTS)} texts, byte for byte",
        broken=tuple(broken),
    )


def hostile(folder: Path) -> Path:
    """Write a benchmark of the texts, and its config."""
    rows = [{COLUMN: text, "label": number % 4} for number, text in enumerate(TEXTS)]
    (folder / "data").mkdir()
    for split in ("train", "test"):
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        (folder / "data" / f"{split}.jsonl").write_text(lines, "utf-8")
    written = next(path for path in write_configs(folder) if path.stem == "emotion")
    raw = yaml.safe_load(written.read_text("utf-8"))
    raw["name"] = "hostile"
    raw["dataset"] = {
        "format": "jsonl",
        "path": str(folder / "data"),
        "split": "test",
        "columns": {"text": COLUMN, "label": "label"},
        "licence": {"name": "CC0-1.0", "redistribute": True},
    }
    written.write_text(yaml.safe_dump(raw), "utf-8")
    return written


def read(code: str, place: Path, folder: Path) -> list[str]:
    """Return the prompts that a harness would ask."""
    own = {"HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hf")}
    done = subprocess.run(
        [sys.executable, "-c", code, str(place)],
        cwd=folder,
        env=environment(own),
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in done.stdout.splitlines() if line.startswith("SAID")]
    if not said:
        return [done.stderr[-500:]]
    prompts: list[str] = json.loads(said[-1].removeprefix("SAID"))
    return prompts


def no_harness() -> str:
    """Return which harness is not installed here."""
    lacking = [name for name in ("lm_eval", "inspect_ai") if find_spec(name) is None]
    return f"not installed: {', '.join(lacking)}" if lacking else ""


HARNESSES = Case(
    name="Inspect and lm-eval read an export of hostile texts",
    promise="every text comes out byte for byte; none is evaluated or run",
    attempt=attempt,
    obstacle=no_harness,
)
