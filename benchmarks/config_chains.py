"""Random configs through every command that follows a refresh.

    python -m benchmarks.config_chains [--seeds 1:100] [--seconds 600] [--keep FOLDER]

Each seed makes a config of documented options for one of the bundled benchmarks, with the rules in
the place of models. Its run is refreshed, released, verified, exported, recorded and replayed; then
the release is refreshed and released again. In between, files that belong together come apart: the
project is renamed or copied, its config file is renamed, it names a takedown list or its licence is
withdrawn. A chain fails if a command calls something a bug in CoreEval, if it ends with a code that
its page does not name, if a release that was just made does not verify, or if it contains a name
that is taken down or a text that may not be published.
"""

import argparse
import io
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import yaml

from coreeval.cli import main as run_command
from coreeval.config.run import SafetyConfig
from coreeval.graph.bundled import DATASETS, MEMORY, WINDOW, demo_data

POLICIES = ("allow", "neutral_only", "semantic_only", "skip")
LIST = "names.txt"
FORMATS = ("hf", "lm-eval", "inspect", "junit", "csv", "spreadsheet", "jsonl")
BETWEEN = "2026-06-11"
"""A day between the first and the last bundled news."""
GATE_MISSED = 4
NAME = re.compile(r"\b[A-Z]\w{4,}")
"""A word that may be a name."""
WITHOUT_TEXTS = frozenset({"id", "label", "label_text", "sha256"})
"""The columns of originals whose licence does not allow a copy."""
UNCHANGED, CHANGED, CONFIG_RENAMED = 0.2, 0.5, 0.2
"""The shares of chains in which nothing is changed, one of the terms, or the config's name."""
SHOWN = 600
"""The most characters of an output that are shown."""


@dataclass
class Chain:
    """The commands of one seed.

    Args:
        seed: Decides every choice.
        folder: An empty folder, which becomes the workspace.
    """

    seed: int
    folder: Path
    steps: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    takedown: list[str] = field(default_factory=list)
    """The options of `release` that name a list; each release has to apply its parent's."""

    def __post_init__(self) -> None:
        self.pick, self.edits = random.Random(self.seed), random.Random(f"edits {self.seed}")
        if self.maybe(0.3):
            (self.folder / LIST).write_text("Ada Roe\nDenmark\n", "utf-8")
            self.takedown = ["--takedown", LIST]

    def run(self, *arguments: object, codes: Sequence[int] = (0,)) -> str | None:
        """Run a command; return what it prints, or None if it ended with an error."""
        words = [str(each) for each in arguments]
        out, told = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(told):
            try:
                code = run_command(words)
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 1
            except BaseException:  # noqa: BLE001 - it is what is looked for
                code = -1
                told.write(traceback.format_exc())
        said = told.getvalue()
        self.steps.append(f"{words[0]} = {code}")
        if code not in codes or "bug in CoreEval" in said or "Traceback" in said:
            printed = f"{out.getvalue()[-SHOWN:]}\n{said[-SHOWN:]}"
            self.faults.append(f"coreeval {' '.join(words)}\n  code {code}\n{printed}")
        return out.getvalue() if code == 0 else None

    def maybe(self, share: float) -> bool:
        """Return True in this share of all cases."""
        return self.pick.random() < share


@dataclass(frozen=True)
class Project:
    """A folder with a config, a run and a release of it."""

    folder: Path
    config: Path
    run: Path
    release: Path

    def move(self, folder: Path) -> "Project":
        """Return the project with its paths in another folder."""
        parts = (self.config, self.run, self.release)
        return Project(folder, *(folder / part.relative_to(self.folder) for part in parts))


def choose_config(chain: Chain) -> dict[str, Any]:
    """Return a config of documented options."""
    pick, maybe = chain.pick, chain.maybe
    task = pick.choice([*DATASETS, MEMORY])
    dataset: dict[str, Any] = dict(DATASETS.get(task, {"format": "jsonl", "path": MEMORY}))
    dataset["split"] = "test"
    for source in (dataset["path"], "news"):
        shutil.copytree(demo_data() / source, chain.folder / source, dirs_exist_ok=True)
    if task == "stance":
        shutil.copy(demo_data() / "stance" / "mapping.txt", chain.folder / "stance")
    if maybe(0.5):
        dataset["licence"] = {"name": "CC-BY-4.0", "redistribute": maybe(0.5)}
    knowledge: dict[str, Any] = {
        "path": "news",
        "window": WINDOW,
        "min_precision": "crawl",
        "text": pick.choice(["headline", "description"]),
        "candidates": pick.choice([2, 4, 8]),
        "reuse": pick.choice([1, 2, None]),
        "documents": pick.choice(["excerpts", "private"]),
    }
    targets = [{"model": "offline:classifier"}]
    targets += [{"model": "offline:clean", "cutoff": "2025-06-01"}] if maybe(0.5) else []
    run: dict[str, Any] = {
        "max_attempts": pick.choice([1, 2, 3]),
        "arms": ["semantic", "updated"] if maybe(0.7) else ["updated"],
        "label_batch": pick.choice([1, 5, 10]),
        "seed": pick.randrange(100),
        "concurrency": pick.choice([1, 4, 32]),
    }
    if maybe(0.3):
        run["control_window"] = {"start": "2025-08-01", "end": BETWEEN}
        knowledge["window"] = {"start": BETWEEN, "end": "2026-10-01"}
    detect: dict[str, Any] = {"evaluate": maybe(0.8)}
    rewordings = "semantic" in run["arms"]
    run["on_reject"] = pick.choice(["drop", "original", *(["semantic"] if rewordings else [])])
    if rewordings and maybe(0.3):
        detect["pcr"] = {"samples": 10}
    safety = {name: pick.choice(POLICIES) for name in SafetyConfig.model_fields if maybe(0.3)}
    return {
        "name": f"chain-{chain.seed}",
        "task": "emotion" if task == MEMORY else task,
        "dataset": dataset,
        "knowledge": knowledge,
        "models": {"default": "offline", "targets": targets},
        "run": run,
        "detect": detect,
        **({"safety": safety} if safety else {}),
    }


def run_chain(chain: Chain) -> None:
    """Run every command of a chain, as far as it comes."""
    os.chdir(chain.folder)
    config = chain.folder / "chain.yaml"
    chosen = choose_config(chain)
    config.write_text(yaml.safe_dump(chosen, sort_keys=False), "utf-8")
    if chain.run("validate", config) is None or chain.run("estimate", config, "--json") is None:
        return
    limit = chain.pick.choice([6, 12, 24])
    first = _refresh(chain, config, "--limit", limit)
    if first is None:
        return
    _read(chain, first)
    release = _release(chain, first, "1", chosen)
    if release is None:
        return
    _follow(chain, first, release, chosen)
    project = _part(chain, Project(chain.folder, config, first, release), chosen)
    config, first, release = project.config, project.run, project.release
    if not chain.takedown and chain.maybe(0.5):
        _take_down(chain, first, release, chosen)
    changed = chain.pick.choice([(), ("--limit", max(2, limit - 2)), ("--stale-after", "30d")])
    more = () if "--limit" in changed else ("--limit", limit)
    second = _refresh(chain, config, "--from", release, *changed, *more)
    if second is None:
        return
    newer = _release(chain, second, "2", chosen)
    if newer is not None:
        _follow(chain, second, newer, chosen)
        chain.run("diff", release, newer, "--page", "diff.html")
        chain.run("diff", first, second, "--json")


def _refresh(chain: Chain, config: Path, *options: object) -> Path | None:
    said = chain.run("refresh", config, *options, "--json")
    return None if said is None else Path(json.loads(said)["run"])


def _read(chain: Chain, run: Path) -> None:
    """Run the commands that look at a run, and measure one more model."""
    chain.run("status", run)
    listed = chain.run("trace", run, "--json")
    if listed:
        samples = [row["sample"] for row in json.loads(listed)["samples"]]
        chain.run("trace", run, chain.pick.choice(samples), "--calls")
    chain.run("evaluate", run, "--target", "offline:contaminated")
    chain.run("review", run, "--csv", "review.csv", "--html", "review.html")
    if chain.maybe(0.5):
        chain.run("review", run, "--all", chain.pick.choice(["approve", "reject"]), "--by", "A")


def _release(
    chain: Chain, run: Path, version: str, config: Mapping[str, Any], *, apply: bool = True
) -> Path | None:
    """Release a run; with `apply` False, the list has to be found through its config."""
    options = ["--allow-empty-arm", *(chain.takedown if apply else ())]
    if chain.maybe(0.3):
        options.append("--no-snippets")
    made = chain.run("release", run, "--version", version, *options)
    return None if made is None else run.parents[2] / "releases" / config["name"] / version


def _follow(
    chain: Chain, run: Path, release: Path, config: Mapping[str, Any], *, record: bool = True
) -> None:
    """Run the commands that read a release, and record and replay its run."""
    chain.run("verify", release)
    chain.run("gate", release, codes=(0, GATE_MISSED))
    chain.run("review", release)
    for number, format_ in enumerate(chain.pick.sample(FORMATS, 3)):
        for source, name in ((release, "release"), (run, "run")):
            out = chain.folder / "exports" / f"{release.name}-{name}-{number}"
            chain.run("export", source, "--to", format_, "--out", out)
    if not record or config["knowledge"]["documents"] == "private":  # no cassette contains them
        return
    cassette = chain.folder / f"{release.name}.cassette"
    texts = chain.pick.choice([("--texts",), ("--no-texts",)])
    if chain.run("cassette", "export", run, "--out", cassette, *texts) is not None:
        replayed = chain.folder / f"replayed-{release.name}"
        own = () if "--texts" in texts else ("--dataset", config["dataset"]["path"])
        chain.run("cassette", "replay", cassette, "--out", replayed, *own)


def _part(chain: Chain, project: Project, config: dict[str, Any]) -> Project:
    """Move the project or its config file, change its terms, and release its run again."""
    if chain.edits.random() < UNCHANGED:
        return project
    applied = bool(chain.takedown)
    project = _move_project(chain, project)
    terms = _change_terms(chain, project.release, config)
    project.config.write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")
    keep = ["--keep"] if terms.listed else []  # without it, a changed list is refused
    if chain.run("resume", project.run, *keep) is not None:
        newer = _release(chain, project.run, "1.0.1", config, apply=applied)
        if newer is not None:
            chain.run("verify", newer)
            chain.faults += _check_terms(terms, newer)
    return project


def _move_project(chain: Chain, project: Project) -> Project:
    """Rename or copy a project's folder, or leave it; sometimes rename its config file."""
    how = chain.edits.choice(["stay", "rename", "copy"])
    if how != "stay":
        moved = project.folder.with_name(f"{project.folder.name}-{how}")
        os.chdir(moved.parent)
        if how == "copy":
            shutil.copytree(project.folder, moved)
        else:
            project.folder.rename(moved)
        project, chain.folder = project.move(moved), moved
        os.chdir(moved)
    chain.steps.append(f"project: {how}")
    if chain.edits.random() < CONFIG_RENAMED:
        renamed = project.config.with_name("renamed.yaml")
        project.config.rename(renamed)
        chain.steps.append("config: renamed")
        return replace(project, config=renamed)
    return project


@dataclass(frozen=True)
class Terms:
    """The terms that a config names since the run."""

    listed: str | None = None
    """A name on a takedown list."""
    withdrawn: bool = False
    """Whether the licence no longer allows copies of the originals."""


def _change_terms(chain: Chain, release: Path, config: dict[str, Any]) -> Terms:
    """Let a config name a takedown list, or withdraw its licence."""
    listed, edits = None, chain.edits
    names = [] if chain.takedown else _list_new_names(release, Path(config["dataset"]["path"]))
    if names and edits.random() < CHANGED:
        listed = edits.choice(names)
        Path(LIST).write_text(f"{listed}\n", "utf-8")
        config["knowledge"]["takedown"] = LIST
        chain.takedown = ["--takedown", LIST]
        chain.steps.append("config: names a list")
    licence = config["dataset"].get("licence", {})  # `resume` takes it, but not with --keep
    withdrawn = not listed and bool(licence.get("redistribute")) and edits.random() < CHANGED
    if withdrawn:
        licence["redistribute"] = False
        chain.steps.append("config: licence withdrawn")
    return Terms(listed, withdrawn)


def _check_terms(terms: Terms, release: Path) -> Iterator[str]:
    """Yield a fault for each of the terms that a release does not keep."""
    if terms.listed and re.search(rf"\b{terms.listed}\b", _read_texts(release)):
        yield f"{terms.listed!r} is on the config's takedown list and in {release}"
    for file in (release / "original").rglob("*.parquet") if terms.withdrawn else ():
        if extra := sorted(set(pq.read_schema(file).names) - WITHOUT_TEXTS):
            yield f"{release} has {extra} of originals, whose licence was withdrawn"


def _list_new_names(release: Path, benchmark: Path) -> list[str]:
    """Return the names of a release's new texts and facts that the benchmark does not have."""
    texts = (_read_texts(release / arm) for arm in ("updated", "provenance"))
    own = _read_texts(benchmark).casefold()
    found = {name for text in texts for name in NAME.findall(text)}
    return sorted(name for name in found if name.casefold() not in own)


def _take_down(chain: Chain, run: Path, release: Path, config: Mapping[str, Any]) -> None:
    """Take down somebody whom the release names, and look for the name in the next release."""
    names = _list_new_names(release, Path(config["dataset"]["path"]))
    if not names:
        return
    name = chain.pick.choice(names)
    chain.run("takedown", name, "--yes")
    if chain.run("resume", run) is None:
        return
    newer = _release(chain, run, "1.1", config)
    if newer is None:
        return
    _follow(chain, run, newer, config, record=False)  # its answers were given before
    if re.search(rf"\b{name}\b", _read_texts(newer)):
        chain.faults.append(f"{name!r} was taken down and is in {newer}")


def _read_texts(folder: Path) -> str:
    """Return the texts of all files of a folder."""
    return "\n".join(
        json.dumps(pq.read_table(file).to_pylist(), default=str, ensure_ascii=False)
        if file.suffix == ".parquet"
        else file.read_text("utf-8", errors="replace")
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    )


def iter_chains(seeds: range, seconds: float, keep: Path | None) -> Iterator[Chain]:
    """Run the chains of the seeds, as many as fit in the time."""
    end, here = time.monotonic() + seconds, Path.cwd()
    for seed in seeds:
        if time.monotonic() > end:
            return
        folder = Path(tempfile.mkdtemp(prefix=f"chain-{seed}-"))
        chain = Chain(seed, folder)
        try:
            run_chain(chain)
        finally:
            os.chdir(here)
        if keep and chain.faults:
            shutil.copytree(chain.folder, keep / str(seed), dirs_exist_ok=True)
        for made in {folder, chain.folder}:
            shutil.rmtree(made, ignore_errors=True)
        yield chain


def _read_seeds(text: str) -> range:
    first, _, last = text.partition(":")
    return range(int(first), int(last or first) + 1)


def main() -> None:
    """Run the chains, print the faults, and end with 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=_read_seeds, default=range(1, 101))
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--keep", type=Path, help="where the folders of failed chains are copied")
    chosen = parser.parse_args()
    codes, chains, failed = Counter[str](), 0, 0
    for chain in iter_chains(chosen.seeds, chosen.seconds, chosen.keep):
        chains, failed = chains + 1, failed + bool(chain.faults)
        codes.update(chain.steps)
        for fault in chain.faults:
            print(f"seed {chain.seed}: {fault}", flush=True)
    for step, number in sorted(codes.items()):
        print(f"{number:6} {step}")
    print(f"{chains} chains, {failed} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
