"""A blind reading of what runs wrote: sheets for readers, and the score of the sheets filled in.

    python -m benchmarks.quality sheets --out DIR [--recent FILE] RUN [RUN …]
    python -m benchmarks.quality score DIR [DIR …]
    python -m benchmarks.quality records DIR RUN [RUN …]

`sheets` writes `labels-a.jsonl` and `labels-b.jsonl`: every accepted sample's original stands in
one of them and its updated text in the other, shuffled, without gold label or provenance, so that
no reader sees both; the originals of other samples are shared out between the two. It also writes
`facts.jsonl`, the updated texts with the news that they rest on, and `key.jsonl`, which says what
is what.

A reader who knows old benchmarks sees at once which texts are of this year. With `--recent`, texts
of this year that people wrote stand among the others, so that this alone gives nobody away: JSON
lines with "task" and "text" (its fields).

Of questions, readers see neither the accepted answers nor the right option: "label" is their
answer, or the option's letter. Of a summary it is "faithful", "incomplete" or "unfaithful".

A reader adds a line for each line, with the same "n", to `labels-a.answers.jsonl` and so on:

    labels: {"n", "label", "fluency": 1 to 3, "difficulty": 1 to 3, "machine": true|false,
             "harmful": true|false, "note"}
    facts:  {"n", "claims": number, "unsupported": [text, …]}

"difficulty" asks how hard the label was to decide; "machine" whether the text looks as if a machine
had written or edited it, where the reader knows that texts of either kind may be about this year;
"harmful" whether it could harm a real person or group if published as true. Fluency is the CoreEval
paper's scale (Table 13: 1 to 3). `score` pools folders. `records` prints what
`benchmarks.voice --records` reads.
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from coreeval.agents.kinds import item_kind
from coreeval.config import load_config
from coreeval.evaluation.benchmarks import find_target
from coreeval.evaluation.scores import LabelPair, score_accuracy, score_proportion
from coreeval.schema import Evidence, Result, Sample, Task
from coreeval.tasks import adapt_task, find_label, load_task
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import SampleResult
from coreeval.tools.workspace import RunFiles

Row = dict[str, Any]
FloatArray = npt.NDArray[np.float64]
SHEETS = ("a", "b")
TWEETS: Final = ("emotion", "irony", "stance")
SENTENCES: Final = ("mrpc", "rte")
SUMMARIES: Final = {
    "faithful": "the summary has the main points, and nothing that the document does not say",
    "incomplete": "what is missing matters more than what the summary has",
    "unfaithful": "it says something that the document does not say",
}
LENGTHS: Final = (0.6, 1.5)
"""Times the original's words that an updated text of like length has."""
DRAWS: Final = 2000


@dataclass(frozen=True)
class Read:
    """One finished sample of a run."""

    run: str
    task: Task
    sample: Sample
    result: Result
    news: tuple[Evidence, ...]


def main() -> None:
    """Write sheets, or score them."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    sheets = commands.add_parser("sheets")
    sheets.add_argument("--out", type=Path, required=True)
    sheets.add_argument("--seed", type=int, default=7)
    sheets.add_argument("--recent", type=Path)
    sheets.add_argument("runs", type=Path, nargs="+")
    commands.add_parser("score").add_argument("folders", type=Path, nargs="+")
    records = commands.add_parser("records")
    records.add_argument("folder", type=Path)
    records.add_argument("runs", type=Path, nargs="+")
    chosen = parser.parse_args()
    if chosen.command == "score":
        print(score(chosen.folders))
        return
    read = [one for run in chosen.runs for one in _read(run)]
    if chosen.command == "sheets":
        recent = _lines(chosen.recent) if chosen.recent else []
        write_sheets(chosen.out, read, chosen.seed, recent)
    else:
        for row in _records(chosen.folder, read):
            print(json.dumps(row, ensure_ascii=False))


def _read(run: Path) -> Iterator[Read]:
    files = RunFiles(run)
    config = load_config(files.config)
    store = RunStore.open(files.require_store(), now=utc_now)
    for ended in store.sample_results():
        sample = ended.sample
        target = find_target(sample.id) if config.dataset.target == "all" else config.dataset.target
        shown = store.events.passages(sample.id) if config.knowledge.text == "article" else {}
        news = tuple(
            item.model_copy(update={"snippet": shown.get(known, item.snippet)})
            for known, item in store.history.evidence(_rests_on(store, ended)).items()
        )
        task = adapt_task(load_task(config.task, target), sample.fields)
        yield Read(run.name, task, sample, ended.result, news)
    store.close()


def _rests_on(store: RunStore, ended: SampleResult) -> list[str]:
    """Return the ids of the news that the last plan rests on."""
    plans = [
        step.detail["plan"]
        for step in store.history.steps(ended.sample.id)
        if "plan" in step.detail
    ]
    statements = plans[-1]["statements"] if plans else []
    return list(dict.fromkeys(key for one in statements for key in one["evidence_ids"]))


# -- sheets --------------------------------------------------------------------------------------


def write_sheets(out: Path, read: Sequence[Read], seed: int, recent: Sequence[Row]) -> None:
    """Write the sheets and the key."""
    out.mkdir(parents=True, exist_ok=True)
    luck, sheets = random.Random(seed), {name: list[tuple[Row, Row]]() for name in SHEETS}
    for place, one in enumerate(luck.sample(read, len(read))):
        first, second = SHEETS if place % 2 else SHEETS[::-1]
        sheets[first].append(_entry(one, "original", one.sample.fields))
        if one.result.updated:
            sheets[second].append(_entry(one, "updated", one.result.updated))
    tasks = {one.task.name: one.task for one in read}
    for place, row in enumerate(luck.sample(recent, len(recent))):
        sheets[SHEETS[place % 2]].append(_recent_entry(tasks[row["task"]], row["text"]))
    key = []
    for name, entries in sheets.items():
        shuffled = luck.sample(entries, len(entries))
        _write(out / f"labels-{name}.jsonl", _numbered(row for row, _ in shuffled))
        key += [{"sheet": name, **row} for row in _numbered(row for _, row in shuffled)]
    accepted = [one for one in read if one.result.updated]
    _write(out / "facts.jsonl", _numbered(_fact_entry(one) for one in accepted))
    _write(out / "key.jsonl", key)


def _entry(one: Read, arm: str, fields: dict[str, str]) -> tuple[Row, Row]:
    task, sample = one.task, one.sample
    shown = _question(task, fields)
    item = {"task": task.model_dump(mode="json"), "sample": sample.model_dump(mode="json")}
    hidden: Row = {
        **({} if item_kind(task).plain_text else {"item": item, "fields": fields}),
        "task": task.name, "id": sample.id, "arm": arm, "gold": sample.label_text,
        "outcome": one.result.outcome, "words": sum(len(text.split()) for text in fields.values()),
    }  # fmt: skip
    return shown, hidden


def _recent_entry(task: Task, fields: dict[str, str]) -> tuple[Row, Row]:
    return _question(task, fields), {"task": task.name, "arm": "recent", "gold": "", "outcome": ""}


def _question(task: Task, fields: dict[str, str]) -> Row:
    question = task.question.replace("$target", task.target or "")
    if task.kind == "summary":
        return {"question": "Is the summary faithful?", "labels": SUMMARIES, "text": fields}
    if item_kind(task).plain_text:
        labels = {label.name: label.meaning for label in task.labels}
        return {"question": question, "labels": labels, "text": fields}
    return {"question": question, "text": {name: fields[name] for name in task.shown_fields}}


def _fact_entry(one: Read) -> Row:
    updated = one.result.updated or {}
    fields = one.task.factual_fields or one.task.fields
    news = [
        {"title": item.title, "snippet": item.snippet, "published": f"{item.published_at:%Y-%m-%d}"}
        for item in one.news
    ]
    return {"id": one.sample.id, "text": {name: updated[name] for name in fields}, "news": news}


def _numbered(rows: Iterable[Row]) -> list[Row]:
    return [{"n": number, **row} for number, row in enumerate(rows, start=1)]


def _write(path: Path, rows: Iterable[Row]) -> None:
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text("".join(lines), encoding="utf-8")


def _records(folder: Path, read: Sequence[Read]) -> Iterator[Row]:
    """Yield each updated text with its original, its news and whether a reader recognised it."""
    joined = [row for name in SHEETS for row in _joined(folder, name)]
    machine = {(r["task"], r["id"]): bool(r["machine"]) for r in joined if r["arm"] == "updated"}
    for one in read:
        if one.result.updated:
            yield {
                "original": one.sample.fields,
                "updated": one.result.updated,
                "titles": [item.title for item in one.news],
                "recognised": machine[one.task.name, one.sample.id],
            }


# -- score ---------------------------------------------------------------------------------------


def score(folders: Sequence[Path]) -> str:
    """Return the figures of the sheets filled in, by task and arm."""
    joined = [row for folder in folders for name in SHEETS for row in _joined(folder, name)]
    columns = (
        f"{'n':>3} {'agree (95 %)':>16} {'fluency':>8} {'difficulty':>10} {'machine':>8} harmful"
    )
    lines = [f"{'task':10} {'arm':9} {columns}"]
    tasks = sorted({row["task"] for row in joined})
    for task in [*tasks, "all"]:
        for arm in ("original", "updated"):
            rows = [r for r in joined if r["arm"] == arm and task in (r["task"], "all")]
            lines += [_line(task, arm, rows)] if rows else []
    accepted = [r for r in joined if r["outcome"] == "accepted" and r["arm"] == "original"]
    lines += [_line("accepted", "original", accepted)] if accepted else []
    return "\n".join([*lines, "", *_recent(joined), *_differences(joined), *_facts(folders)])


def _recent(joined: Sequence[Row]) -> Iterator[str]:
    """Yield how often recent texts by people are taken for a machine's, beside updated ones."""
    for kind, tasks in (("tweets", TWEETS), ("sentences", SENTENCES)):
        for arm in ("recent", "updated"):
            taken = [bool(r["machine"]) for r in joined if r["arm"] == arm and r["task"] in tasks]
            if taken:
                share = score_proportion(sum(taken), len(taken))
                span = f"{share.estimate:.2f} ({share.ci_low:.2f} to {share.ci_high:.2f})"
                yield f"{kind}, {arm}: {len(taken)} texts, taken for a machine's {span}"


def _differences(joined: Sequence[Row]) -> Iterator[str]:
    """Yield what the updated texts differ in from their own originals, with intervals."""
    arms: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in joined:
        if "id" in row:
            arms.setdefault((row["folder"], row["task"], row["id"]), {})[row["arm"]] = row
    others = tuple(sorted({row["task"] for row in joined if "item" in row}))
    kinds = [("tweets", TWEETS), ("sentences", SENTENCES), *((name, (name,)) for name in others)]
    for kind, tasks in [*kinds, ("all", (*TWEETS, *SENTENCES, *others))]:
        pairs = [
            (found["original"], found["updated"])
            for (_, task, _), found in arms.items()
            if task in tasks and len(found) == len(SHEETS)
        ]
        if pairs:
            yield f"{kind}: {len(pairs)} updated texts beside their originals"
            yield from _measures(pairs)


def _measures(pairs: Sequence[tuple[Row, Row]]) -> Iterator[str]:
    ratios = np.array([new["words"] / old["words"] for old, new in pairs])
    inside = np.mean((ratios >= LENGTHS[0]) & (ratios <= LENGTHS[1]))
    yield f"  words, median of updated/original: {_interval(ratios, np.median)}"
    yield f"  within {LENGTHS[0]} to {LENGTHS[1]} times the original: {inside:.0%}"
    for name in ("difficulty", "fluency", "machine"):
        apart = np.array([float(new[name]) - float(old[name]) for old, new in pairs])
        yield f"  {name}, mean difference: {_interval(apart, np.mean)}"
    right = np.array([float(_agrees(new)) - float(_agrees(old)) for old, new in pairs])
    yield f"  blind label equals gold, mean difference: {_interval(right, np.mean)}"
    machine = np.array([[float(one["machine"]) for one in pair] for pair in pairs])
    if machine[:, 0].any():
        yield f"  taken for a machine's, updated/original: {_interval(machine, _ratio)}"


def _interval(values: FloatArray, measure: Callable[..., Any]) -> str:
    """Return a measure with its percentile interval over samples (2,000 bootstrap draws)."""
    luck = np.random.default_rng(7)
    drawn = luck.integers(len(values), size=(DRAWS, len(values)))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = [measure(values[one], axis=0) for one in drawn]
    low, high = np.nanpercentile(found, (2.5, 97.5))
    return f"{measure(values, axis=0):.2f} ({low:.2f} to {high:.2f})"


def _ratio(pairs: FloatArray, axis: int) -> float:
    old, new = pairs.mean(axis=axis)
    return float(new / old)


def _agrees(row: Row) -> bool:
    gold, given = _labels(row)
    return gold == given


def _is_gold(row: Row) -> bool:
    """Return whether the reader gave the gold of a question or summary."""
    task = Task.model_validate(row["item"]["task"])
    sample = Sample.model_validate(row["item"]["sample"])
    return item_kind(task).is_gold(task, sample, row["fields"], str(row["label"]))


def _joined(folder: Path, name: str) -> Iterator[Row]:
    key = {row["n"]: row for row in _lines(folder / "key.jsonl") if row["sheet"] == name}
    answers = {row["n"]: row for row in _lines(folder / f"labels-{name}.answers.jsonl")}
    if key.keys() != answers.keys():
        raise SystemExit(f"labels-{name}: not answered: {sorted(key.keys() - answers.keys())}")
    return ({"folder": str(folder)} | key[number] | answers[number] for number in key)


def _lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def _line(task: str, arm: str, rows: Sequence[Row]) -> str:
    agree = score_accuracy(Counter(_labels(row) for row in rows))
    fluency = mean(float(row["fluency"]) for row in rows)
    difficulty = mean(float(row["difficulty"]) for row in rows)
    machine, harmful = (sum(bool(row[name]) for row in rows) for name in ("machine", "harmful"))
    share = f"{agree.estimate:.2f} ({agree.ci_low:.2f}-{agree.ci_high:.2f})"
    return (
        f"{task:10} {arm:9} {len(rows):3} {share:>16} {fluency:8.2f} "
        f"{difficulty:10.2f} {machine / len(rows):8.0%} {harmful:8}"
    )


def _labels(row: Row) -> LabelPair:
    """Return the label of the benchmark and the reader's, as the task spells them."""
    if "item" in row:
        return "gold", "gold" if _is_gold(row) else str(row["label"])
    task = load_task(row["task"], "hillary" if row["task"] == "stance" else None)
    found = (find_label(task, row[key]) for key in ("gold", "label"))
    gold, given = (label.name if label else "" for label in found)
    return gold, given


def _facts(folders: Sequence[Path]) -> Iterator[str]:
    answers = [row for folder in folders for row in _lines(folder / "facts.answers.jsonl")]
    claims = sum(row["claims"] for row in answers)
    wrong = [(row["n"], text) for row in answers for text in row["unsupported"]]
    supported = 1 - len(wrong) / claims if claims else 1.0
    texts = len({number for number, _ in wrong})
    yield f"facts: {claims} claims in {len(answers)} texts, {supported:.3f} supported"
    yield f"texts with a claim that is not: {texts}"
    yield from (f"  {number}: {text}" for number, text in wrong)


if __name__ == "__main__":
    main()
