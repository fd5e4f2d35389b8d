"""How commands print: one JSON document on stdout with `--json`, else words.

Outcomes, roles that rules played, progress figures (the same in the progress of a command and in
`status`), training cutoffs with their sources, wrapped texts and their differences.
"""

import json
import os
import re
import shlex
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TextIO

import typer

from coreeval.errors import CoreEvalError
from coreeval.meanings import COMPARABILITY, OUTCOMES
from coreeval.tools.formatting import format_rate, format_span

if TYPE_CHECKING:
    from coreeval.runs.history import ArmDiff
    from coreeval.runs.manifest import Manifest
    from coreeval.schema import Arm, Window
    from coreeval.tools.cutoffs import DateClaim, LatestDate, TargetDates
    from coreeval.tools.stores.heartbeat import (
        CostForecast,
        ProgressSnapshot,
        Spend,
        Wait,
        WorkerSnapshot,
    )


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Document = Mapping[str, Any]
DEBUG_ASKED = ContextVar("DEBUG_ASKED", default=False)
"""Whether the command line asked for tracebacks."""
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters that move the cursor, colour text, or reorder what a terminal shows."""
REMOVED, ADDED, END = "\ue000", "\ue001", "\ue002"
"""Marks around removed or added text, for `say(…, coloured=True)`: private-use characters."""
_COLOURS = {REMOVED: "\x1b[31m", ADDED: "\x1b[32m", END: "\x1b[0m"}
_BRACKETS = re.compile(f"({REMOVED})([^{END}]*){END}|({ADDED})([^{END}]*){END}")


def plain(text: str) -> str:
    """Return the text without terminal control codes, because samples and news are untrusted."""
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str) -> str:
    """Return the text on one line, so that it cannot imitate a line of our own output."""
    return " ".join(text.split())


def say(text: str, *, coloured: bool = False) -> None:
    """Write a line for people to stdout; `coloured` shows diff marks as colours."""
    _write(sys.stdout, _apply_marks(plain(text)) if coloured else plain(text))


def _apply_marks(text: str) -> str:
    """Return a text with diff marks as colours on a terminal, else as `[-…-]` and `{+…+}`."""
    if on_terminal() and not os.environ.get("NO_COLOR"):
        return re.sub(f"[{''.join(_COLOURS)}]", lambda mark: _COLOURS[mark[0]], text)
    return _BRACKETS.sub(lambda m: f"[-{m[2]}-]" if m[1] else f"{{+{m[4]}+}}", text)


def on_terminal() -> bool:
    """Return whether stdout is a terminal that can show colours."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def note(text: str) -> None:
    """Write a line to stderr: progress, warnings, errors."""
    _write(sys.stderr, plain(text))


def redraw(text: str) -> None:
    """Replace the previous text on a terminal; elsewhere, write below it."""
    clear = "\x1b[H\x1b[2J" if sys.stdout.isatty() else ""
    _write(sys.stdout, clear + plain(text))


def show(
    document: Document, as_json: bool, words: Callable[[], str], *, coloured: bool = False
) -> None:
    """Print a result as a document or in words."""
    if as_json:
        _print_json(document)
    else:
        say(words(), coloured=coloured)


def show_error(error: CoreEvalError, as_json: bool) -> None:
    """Print an error: a document on stdout with `--json`, else one message on stderr."""
    if as_json:
        _print_json({"error": error.as_dict()})
    else:
        note(f"error: {error}")


def note_traceback(error: BaseException) -> None:
    """Write the traceback of an error to stderr if the command line asked for it."""
    if DEBUG_ASKED.get():
        note("".join(traceback.format_exception(error)))


def brief(path: Path) -> Path:
    """Return a path relative to the current folder if possible."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


DIFFERENCES: Final = 3
"""Our choice: the most differences of the arms that are printed; the report has them all."""


def comparability_lines(found: Document | None) -> Iterator[str]:
    """Yield whether the arms are comparable, and in what they differ; nothing if not measured."""
    if found is None:
        return
    yield f"arms:    {COMPARABILITY.get(found['verdict'], one_line(found['verdict']))}"
    sentences = found["sentences"]
    yield from (f"         {one_line(each)}" for each in sentences[:DIFFERENCES])
    if len(sentences) > DIFFERENCES:
        yield f"         and {len(sentences) - DIFFERENCES} more differences: see the report"


def command(name: str, *arguments: str | Path) -> str:
    """Return a command line to copy; words in capitals are for the reader to fill in."""
    words = (str(brief(word)) if isinstance(word, Path) else word for word in arguments)
    return shlex.join(["coreeval", name, *words])


def _print_json(document: Document) -> None:
    # ASCII only: valid in every encoding, and no character is left that a terminal would obey.
    _write(sys.stdout, json.dumps(document, indent=2))


def _write(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        stream.flush()
    except BrokenPipeError:  # head or less has seen enough; the exit code still tells the rest
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def outcome_lines(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each outcome that occurred: name, number, meaning."""
    for name, meaning in OUTCOMES.items():
        if counts.get(name):
            yield f"  {name:<20}{counts[name]:>8}   {meaning}"


def control_lines(counts: Mapping[str, int] | None) -> Iterator[str]:
    """Yield the progress of the pass that writes the control arm, once it has begun."""
    if counts and counts["total"]:
        ended = counts["total"] - counts["pending"]
        yield f"control arm: {ended} of {counts['total']} samples have ended"
        yield from outcome_lines(counts)


def list_offline_roles(manifest: "Manifest") -> list[str]:
    """Return the roles that rules play in a run."""
    from coreeval.config import ModelsConfig

    return list(ModelsConfig.model_validate(manifest.models).rule_based_roles)


def offline_lines(roles: list[str]) -> list[str]:
    """Return a line saying that rules played these roles; none if models played them all."""
    from coreeval.runs.status import ROLES

    who = "every role" if len(roles) == len(ROLES) else ", ".join(roles)
    return [
        f"offline: {who} played by rules, which demonstrate the process, not a model's quality"
    ] * bool(roles)


REASON = 120
"""Most characters shown of an endpoint's message."""
WAITS = 3
"""Most waits shown, one line each."""
SILENT_S = 10.0
"""The seconds since its last report after which a worker is called silent; it reports each second.
"""
_CAUSES: Mapping[str, str] = {
    "budget": "{who}: {number} waiting for budget that calls in flight may free",
    "throttled": "{who}: throttled by its endpoint, {number} waiting",
    "resting": "{who}: {number} waiting to retry after a failure",
    "news": "news: {number} looked for",
    "turn": "{who}: {number} queued (limits of the endpoint or the config)",
    "answer": "{who}: {number} sent, not answered yet",
    "step": "the step {who}: {number} in it",
}


def pace_parts(pulse: "ProgressSnapshot") -> Iterator[str]:
    """Yield rate and remaining time, requests in flight, and the slowest role."""
    if pulse.per_minute is not None:
        yield f"{format_rate(pulse.per_minute)}/min"
    if pulse.left_s:
        until = f" (until {pulse.ends_at[:16].replace('T', ' ')} UTC)" if pulse.ends_at else ""
        yield f"{format_span(pulse.left_s)} left{until}"
    if pulse.sent:
        yield f"{pulse.sent} in flight"
    if pulse.roles:
        slowest = pulse.roles[0]
        yield f"slowest: {slowest.role} {slowest.mean_s:.2g} s"


def spend_parts(spend: "Spend") -> Iterator[str]:
    """Yield what was spent, if anything was or may be."""
    spent = spend.billed_usd + spend.reserved_usd
    if spend.budget_usd is not None:
        yield f"{spent:.4g} of {spend.budget_usd:.4g} USD"
    elif spent:
        yield f"{spent:.4g} USD"
    if spend.unpriced:
        yield f"{spend.unpriced} answers with unknown price"


def forecast_parts(found: "CostForecast | None") -> Iterator[str]:
    """Yield what the run will have spent at the end of its stage, and whether the budget lasts."""
    if found is None:
        return
    ends = f"{found.low_usd:.4g} to {found.high_usd:.4g}"
    more = {None: "", True: ", more than the budget", False: ", within the budget"}
    yield f"{found.usd:.4g} USD at the end ({ends}{more[found.exceeds_budget]})"


def format_idle_time(idle_s: float) -> str:
    """Return that there is no progress, and for how long."""
    return f"no progress for {format_span(idle_s)}"


def wait_lines(waits: "tuple[Wait, ...]") -> list[str]:
    """Return what the run is waiting for, the main reason first."""
    return [_wait_line(wait) for wait in waits[:WAITS]]


def worker_lines(workers: "tuple[WorkerSnapshot, ...]") -> list[str]:
    """Return where each worker process stands."""
    return [_worker_line(worker) for worker in workers]


def _worker_line(worker: "WorkerSnapshot") -> str:
    waits = f", {_wait_line(worker.waits[0])}" if worker.waits else ""
    silent = f", silent for {format_span(worker.age_s)}" if worker.age_s >= SILENT_S else ""
    return (
        f"worker {worker.number + 1} (process {worker.pid} on {one_line(worker.host)}): "
        f"{worker.ended} samples, {worker.per_second:.1f} calls/s, {worker.sent} in flight"
        f"{waits}{silent}"
    )


def _wait_line(wait: "Wait") -> str:
    what = _CAUSES[wait.cause].format(who=wait.who, number=wait.number)
    reason = one_line(wait.reason)
    said = f": {reason[:REASON]}" if reason else ""
    return f"{what}, the longest for {format_span(wait.seconds)}{said}"


def format_counts(counts: Mapping[str, int]) -> str:
    """Return counts as part of a line, with rejections combined and zero counts left out."""
    rejected = sum(count for name, count in counts.items() if name.startswith("rejected_"))
    others = {name: count for name, count in counts.items() if not name.startswith("rejected_")}
    accepted = others.pop("accepted", 0)
    brief = {"accepted": accepted, "rejected": rejected, **dict(sorted(others.items()))}
    return ", ".join(f"{name} {count}" for name, count in brief.items() if count)


DATE_KINDS = {"cutoff": "training cutoff", "released": "release"}


def format_date(fact: "DateClaim") -> str:
    """Return a date with its source."""
    if fact.confidence == "given":
        return f"{fact.date} (config)"
    return f"{fact.date} ({fact.confidence}, {fact.source}, read {fact.as_of})"


def window_lines(window: "Window", start: "LatestDate | None") -> Iterator[str]:
    """Yield the window, and the basis of its start if that is automatic."""
    yield f"news from {window.start:%Y-%m-%d} to {window.end:%Y-%m-%d} (end excluded)"
    if start:
        yield f"start: auto: {DATE_KINDS[start.kind]} of {start.target}: {format_date(start)}"


def target_lines(window: "Window", targets: "Iterable[TargetDates]") -> Iterator[str]:
    """Yield for each target whether all news of the window is new to it."""
    for target in targets:
        yield f"{target.target}: {_describe_newness(window, target.latest)}"


def _describe_newness(window: "Window", latest: "LatestDate | None") -> str:
    if latest is None:
        return "its cutoff is unknown, so it may have been trained on this news"
    known = f"its {DATE_KINDS[latest.kind]}, {format_date(latest)}"
    if window.start >= latest.counts_from:
        return f"all news in the window is after {known}"
    return f"the window starts before {known}: it may know part of the news"


WIDTH = 100
_MARKS = str.maketrans("", "", REMOVED + ADDED + END)


def text_lines(title: str, fields: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a sample's text fields."""
    for name, text in fields.items():
        yield from wrap_text(f"{title} {name}: {text}")


def difference_lines(diffs: "Iterable[ArmDiff]", before: "Arm", after: "Arm") -> Iterator[str]:
    """Yield the differences between two arms, with removed and added text marked."""
    marks = {"same": ("", ""), "removed": (REMOVED, END), "added": (ADDED, END)}
    for diff in diffs:
        if (diff.before, diff.after) == (before, after):
            words = "".join(
                piece.text.translate(_MARKS).join(marks[piece.op]) for piece in diff.pieces
            )
            yield from wrap_marked_text(f"{before} -> {after} {diff.field}: {words}")


def wrap_text(text: str) -> list[str]:
    """Return indented lines; an address is not broken, so that it stays clickable."""
    return wrap_marked_text(text.translate(_MARKS))


def wrap_marked_text(text: str) -> list[str]:
    """Return indented lines that keep their marks."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent="    ",
        subsequent_indent="      ",
        break_long_words=False,
        break_on_hyphens=False,
    )
