"""Cassettes: a run as one file that anybody can replay offline."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from coreeval.api.places import RunLike, find_run
from coreeval.api.tables import CommandResult, Table, parse_columns
from coreeval.releases.cassettes.format import AnswerLine
from coreeval.releases.cassettes.read import FileComparison, count_fixed_results, open_cassette
from coreeval.tools.formatting import format_quantity

if TYPE_CHECKING:
    from coreeval.graph.cassettes.replay import ReplayResult

_ROLE_COLUMNS: Final = parse_columns("role model answers:integer prompt")
_FILE_COLUMNS: Final = parse_columns("name rows:integer equal:boolean recorded found")


def export_cassette(run: RunLike, *, out: Path | str, texts: bool | None = None) -> CommandResult:
    """Write a finished run to a cassette, without any API keys.

    Args:
        run: The run: its directory, its id, its benchmark's name, `latest`, or a `Run`.
        out: The file to write.
        texts: Whether to include the benchmark's own texts; by default, only if their licence
            allows it.

    Raises:
        RunStateError: there is no such run, or it has not ended.
        UsageError: the run cannot be replayed from a file, or `out` is a file that is
            not a cassette.
        ReleaseError: `out` is in a release.
    """
    from coreeval.graph.cassettes.record import record

    made = record(find_run(run), out, texts=texts)
    packed, head = made.packed, made.packed.head
    document = {
        "cassette": str(packed.path),
        "digest": packed.digest,
        "bytes": packed.bytes,
        "unpacked": head.bytes,
        "run": head.run.run,
        "samples": head.lines["sample"],
        "answers": head.lines["answer"],
        "texts": head.texts,
        "licence": {"name": made.licence.name, "redistribute": made.licence.redistribute},
        "notes": list(made.notes),
    }
    table = Table("lines", parse_columns("kind lines:integer"), head.lines.items())
    samples = format_quantity(head.lines["sample"], "sample")
    return CommandResult(document, f"{packed.path}: {samples}", table)


def read_cassette(file: Path | str) -> CommandResult:
    """Return what a cassette contains, without running or unpacking it.

    Args:
        file: The cassette.

    Returns:
        A result whose table has the model or rules of each role, and the number of answers.

    Raises:
        CassetteError: it is not a cassette, is damaged, or is of another version.
    """
    cassette = open_cassette(Path(file))
    head, run = cassette.head, cassette.head.run
    answers = Counter[str](line.role for line in cassette.lines(AnswerLine))
    document = {
        "cassette": str(cassette.path),
        "digest": cassette.digest,
        "format": head.version,
        "made_with": head.made_with.model_dump(),
        "run": run.run,
        "task": run.task,
        "now": run.now,
        "window": run.window.model_dump(mode="json"),
        "control_window": run.control and run.control.window.model_dump(mode="json"),
        "counts": run.counts,
        "texts": head.texts,
        "snippet_chars": head.snippet_chars,
        "stated": dict(count_fixed_results(cassette)),
        "answers": dict(answers),
        "prompts": run.prompts,
        "takedown": run.knowledge.takedown,
        "parent": run.parent and run.parent.version,
        "lines": head.lines,
        "files": [file.model_dump(mode="json") for file in head.files],
        "config": head.config.model_dump(mode="json"),
        "models": head.models,
    }
    rows = [
        (role, str(model.get("model", "")), answers[role], run.prompts.get(role, ""))
        for role, model in head.models.items()
    ]
    samples = format_quantity(head.lines["sample"], "sample")
    return CommandResult(document, f"{run.run}: {samples}", Table("roles", _ROLE_COLUMNS, rows))


def replay_cassette(
    file: Path | str,
    *,
    out: Path | str,
    dataset: Path | str | None = None,
    progress: bool = True,
) -> CommandResult:
    """Replay the run in a cassette and compare its output byte for byte.

    Args:
        file: The cassette.
        out: A new or empty folder for the run.
        dataset: Your copy of the benchmark, for a cassette without texts.
        progress: Show a progress bar on a terminal and in a notebook.

    Returns:
        A result whose table has a row for each file; `same` of its document is true if
        everything ended as recorded.

    Raises:
        CassetteError: it is not a cassette, is damaged, or is of another version.
        UsageError: `out` is not empty, or the benchmark is missing or a different one.
    """
    from coreeval.api.progress import show_progress_to_viewer
    from coreeval.graph.cassettes.replay import replay
    from coreeval.graph.execute import RunHooks

    with show_progress_to_viewer(progress) as watch:
        done = replay(
            Path(file),
            Path(out),
            dataset=None if dataset is None else Path(dataset),
            around=RunHooks(watch=watch),
        )
    return describe_replay(done)


def describe_replay(done: "ReplayResult") -> CommandResult:
    """Return the result of a replay: its document, and a table with a row for each file."""
    head, files = done.cassette.head, [_file_document(file) for file in done.files]
    document = {
        "cassette": str(done.cassette.path),
        "digest": done.cassette.digest,
        "run": str(done.run),
        "equal": done.equal,
        "same": done.same,
        "files": files,
        "samples": head.lines["sample"],
        "answers": head.lines["answer"],
        "stated": done.stated,
        "shifts": [asdict(one) for one in done.shifts],
        "missing": [asdict(one) for one in done.missing],
        "changed": list(done.changed),
        "versions": [
            {"name": name, "recorded": then, "here": now} for name, then, now in done.versions
        ],
        "seconds": round(done.seconds, 3),
    }
    said = f"{done.run}: {'the same' if done.same else 'NOT the same'} as {done.cassette.path}"
    return CommandResult(document, said, Table.from_dicts("files", _FILE_COLUMNS, files))


def _file_document(file: FileComparison) -> dict[str, object]:
    return {
        "name": file.name,
        "rows": file.rows,
        "equal": file.equal,
        "same_rows": file.same_rows,
        "recorded": file.sha256,
        "found": file.found,
        "difference": file.difference and asdict(file.difference),
    }
