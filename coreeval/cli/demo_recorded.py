"""`coreeval demo --kind`: recorded runs for kinds of task that rules cannot write."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from coreeval.api.cassettes import describe_replay
from coreeval.cli.cassette import replay_lines
from coreeval.cli.output import Document, brief, command
from coreeval.graph.bundled import RECORDED, RecordedKind, write_recording

if TYPE_CHECKING:
    from coreeval.graph.cassettes.replay import ReplayResult
    from coreeval.graph.execute import RunSummary


def repeat_recorded(kind: RecordedKind, folder: Path) -> "list[ReplayResult]":
    """Replay the recorded runs of a kind in new folders, next to copies of their cassettes.

    Raises:
        UsageError: this Python cannot unpack the recorded runs.
        CassetteError: a cassette is damaged.
        Interrupted: a signal stopped it; the next call starts again, in another folder.
    """
    from coreeval.api.progress import show_progress
    from coreeval.graph.cassettes.replay import replay
    from coreeval.graph.execute import RunHooks

    done = list["ReplayResult"]()
    for name in RECORDED[kind]:
        out = _find_free(folder / name)
        cassette = write_recording(name, folder / "recorded")
        with show_progress(name) as watch:
            done.append(replay(cassette, out, around=RunHooks(watch=watch)))
    return done


def _find_free(folder: Path) -> Path:
    """Return a new or empty folder: this one, or one with a number appended."""
    free, number = folder, 1
    while free.exists() and (not free.is_dir() or any(free.iterdir())):
        number += 1
        free = folder.with_name(f"{folder.name}-{number}")
    return free


def recorded_document(done: "list[ReplayResult]") -> Document:
    """Return the result of the replayed runs."""
    return {"replays": [describe_replay(one).document for one in done]}


def summarize_runs(done: "list[ReplayResult]") -> "list[RunSummary]":
    """Return the replays as ordinary runs."""
    from coreeval.graph.execute import RunSummary
    from coreeval.runs.manifest import read_manifest

    return [
        RunSummary(run_dir=one.run, manifest=read_manifest(one.run / "manifest.json"))
        for one in done
    ]


def recorded_lines(done: "list[ReplayResult]") -> Iterator[str]:
    """Yield whether the bytes match, an updated sample of each run, and where to look."""
    yield "Readers who saw only the prompts played every role; their answers were recorded."
    for one in done:
        yield ""
        yield from replay_lines(describe_replay(one).document)
    for one in done:
        yield ""
        yield from _show_example(one.run)
    yield ""
    yield "Where to look:"
    for one in done:
        yield f"  everything in a browser  {command('view', one.run)}"
        yield f"  all outcomes          {command('trace', one.run)}"
        yield f"  the dataset          {brief(one.run / 'dataset')} (parquet)"
        yield f"  the recording         {command('cassette', 'show', one.cassette.path)}"


def _show_example(run: Path) -> Iterator[str]:
    """Yield the first updated sample, before and after."""
    from coreeval.tools.clock import utc_now
    from coreeval.tools.stores.run_store import RunStore

    with RunStore.open(run / "run.db", now=utc_now) as store:
        one = next(iter(store.sample_results(["accepted"])), None)
    if one is None or one.result.updated is None:
        return
    yield one.sample.id
    for name, old in one.sample.fields.items():
        yield f"  {name:<10} {_in_line(old)}"
        yield f"  {'':<7} -> {_in_line(one.result.updated[name])}"


def _in_line(text: str) -> str:
    return " / ".join(text.split("\n"))
