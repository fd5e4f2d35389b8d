"""What `coreeval schedule` says: documents for programs, lines for people."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from coreeval.cli.meanings import outcome_lines
from coreeval.cli.output import Document, brief, note, one_line, say, show
from coreeval.schedule.due import ScheduleResult
from coreeval.schedule.install import CRONTAB
from coreeval.schedule.plan import MOST_MISSED, SchedulePeriod

if TYPE_CHECKING:
    from coreeval.schedule.plan import ScheduleSummary

DAY = "%a %Y-%m-%d %H:%M %Z"


def tell(done: Sequence[ScheduleResult], as_json: bool) -> None:
    """Print what became of schedules; trouble goes to stderr."""
    if as_json:
        show(due_document(done), as_json, str)
        return
    for each in done:
        if each.trouble and each.ending == "failed":
            note("error: " + "\n".join([*_trouble(each), *_told(each)]))
        else:
            say("\n".join(_lines(each)))


def due_document(done: Sequence[ScheduleResult]) -> Document:
    """Return what `--json` prints for `due` and for each look of `run`."""
    return {"schedules": [_done_document(each) for each in done]}


def _done_document(done: ScheduleResult) -> Document:
    return {
        "config": str(done.config),
        "name": done.name,
        "ending": done.ending,
        "exit_code": done.exit_code,
        **_period(done.period),
        "next_due": done.next_due and done.next_due.isoformat(),
        "missed": done.missed,
        "run": done.run,
        "release": done.release,
        "counts": dict(done.counts),
        "trouble": done.trouble and done.trouble.model_dump(),
        "hooks": [
            {"hook": told.hook, "tries": told.tries, "problem": told.problem} for told in done.told
        ],
        "note": done.note,
    }


def _period(period: SchedulePeriod | None) -> Document:
    return {
        "version": period.version if period else "",
        "due_at": period.due_at.isoformat() if period else "",
    }


def _lines(done: ScheduleResult) -> Iterator[str]:
    yield f"{done.name}: {_ending(done)}"
    yield from outcome_lines(done.counts)
    if done.missed:
        most = " or more" if done.missed == MOST_MISSED else ""
        yield f"  before it, missed: {done.missed}{most}; this release is for all"
    yield from _told(done)


def _told(done: ScheduleResult) -> Iterator[str]:
    for told in done.told:
        how = f"not told ({told.tries} tries): {told.problem}" if told.problem else "told"
        yield f"  {how}: {told.hook}"


def _ending(done: ScheduleResult) -> str:
    """Return how a look ended, in words."""
    said = _ENDINGS[done.ending](done, done.period.version if done.period else "")
    return f"{said}; next {done.next_due.strftime(DAY)}" if done.next_due else said


def _nothing(done: ScheduleResult, version: str) -> str:
    there = f"{version} is there already: {brief(Path(done.release))}"
    return there if version else "nothing is due"


_ENDINGS: dict[str, Callable[[ScheduleResult, str], str]] = {
    "nothing": _nothing,
    "held": lambda done, _: f"at work already: {done.note}",
    "clock_back": lambda done, _: f"nothing was done: {done.note}",
    "released": lambda done, version: f"{version} is released: {brief(Path(done.release))}",
    "gate": lambda done, version: f"{version} waits: " + "\n".join(_trouble(done)),
    "interrupted": lambda done, version: (
        f"{version} was stopped; the next look goes on with {done.run}"
    ),
}


def _trouble(done: ScheduleResult) -> Iterator[str]:
    """Yield trouble as errors are told: what, where, what to do."""
    trouble = done.trouble
    assert trouble is not None, "only such endings are told so"
    named = done.ending == "failed" and done.period
    yield f"{done.name} {named.version}: {trouble.message}" if named else trouble.message
    yield f"  where: {trouble.where or done.config}"
    if trouble.hint:
        yield f"  to do: {trouble.hint}"


# -- explain ------------------------------------------------------------------------------------


def explain_document(now: datetime, found: "Sequence[ScheduleSummary]") -> Document:
    """Return what `due --explain --json` prints."""
    return {"now": now.isoformat(), "schedules": [_explained(each) for each in found]}


def _explained(found: "ScheduleSummary") -> Document:
    state = found.state
    return {
        "config": str(found.config),
        "name": found.name,
        "cron": found.cron,
        "words": found.words,
        "timezone": found.timezone,
        "versions": found.pattern,
        "newest": found.newest and _period(found.newest),
        "next": [_period(period) for period in found.coming],
        "finished": state.finished and state.finished.model_dump(mode="json"),
        "begun": state.begun and state.begun.model_dump(mode="json"),
    }


def explain_lines(found: "Sequence[ScheduleSummary]") -> Iterator[str]:
    """Yield what schedules mean, in words."""
    for each in found:
        yield f"{each.name}: {each.cron} in {each.timezone}: {each.words}"
        yield from _story(each)
        for period in each.coming:
            yield f"  next   {period.due_at.strftime(DAY)}   {period.version}"


def _story(found: "ScheduleSummary") -> Iterator[str]:
    """Yield where the newest period is."""
    newest, finished, begun = found.newest, found.state.finished, found.state.begun
    if begun:
        trouble = f": {one_line(begun.trouble.message)}" if begun.trouble else ""
        tries = f"{begun.tries} tries" if begun.tries > 1 else "1 try"
        yield f"  begun  {begun.version}, {begun.outcome} after {tries}{trouble}"
        yield f"         {begun.run}"
    if finished:
        yield f"  last   {finished.version}: {finished.release}"
    if newest and not begun and (finished is None or finished.due_at < newest.due_at):
        yield f"  due    {newest.due_at.strftime(DAY)}   {newest.version}"


# -- install ------------------------------------------------------------------------------------


def unit_lines(document: Document) -> Iterator[str]:
    """Yield units as they are printed, or where they were written and what comes next."""
    for hook in document["accepted"]["hooks"]:
        yield f"accepted: {hook}"
    for digest in () if document["way"] else document["accepted"]["digests"]:
        yield f"on a machine without this record: coreeval schedule due --accepted {digest}"
    for place, text in document["units"].items():
        if document["written"]:
            yield f"wrote {place}"
        else:
            yield text if place == CRONTAB else f"# {place}\n{text}"
    if document["written"] and document["way"]:
        yield from _NEXT[document["way"]](document["unit"])


_NEXT: dict[str, Callable[[str], list[str]]] = {
    "cron": lambda unit: [f"see it with: crontab -l   (the line ends in # {unit})"],
    "systemd": lambda unit: [
        "next: systemctl --user daemon-reload",
        f"      systemctl --user enable --now {unit}.timer",
        "      loginctl enable-linger    # it also runs while you are not logged in",
    ],
    "github": lambda unit: [
        "next: commit it, and set the secrets that it names in the repository's settings",
    ],
}
