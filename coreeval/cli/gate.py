"""`coreeval gate`: limits that a release must meet before it is published.

In a CI job, the findings are also written to its summary and annotations.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.completion import complete_runs_and_releases, unless_completing
from coreeval.cli.options import find_release_folder
from coreeval.cli.output import AsJson, Document, note, one_line, say, show
from coreeval.errors import GateNotMet, UsageError

if TYPE_CHECKING:
    from coreeval.releases.gates.check import GateFinding, GateResult


def gate(
    release: Annotated[
        Path | None,
        typer.Argument(
            metavar="RELEASE",
            help="The release's directory, or the id of its run.",
            file_okay=False,
            show_default=False,
            callback=unless_completing(find_release_folder),
            autocompletion=complete_runs_and_releases,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A file of gates; by default, the gates that --print-config prints are used.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="The run's report.json, if targets were evaluated after the release.",
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Also write JUnit XML."),
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="File for a Markdown summary; it is also written to $GITHUB_STEP_SUMMARY if "
            "that is set.",
        ),
    ] = None,
    chain: Annotated[
        bool, typer.Option("--chain/--no-chain", help="Whether to check earlier releases too.")
    ] = True,
    print_config: Annotated[
        bool,
        typer.Option(
            "--print-config", help="Print the default gates as a gates file; no release is needed."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check whether a release meets its gates, for CI.

    If a gate is not met, the exit code is 4.
    """
    from coreeval.api.gates import gate as check
    from coreeval.releases.gates.check import write_junit
    from coreeval.tools.clock import utc_now

    if print_config:
        _print_config(as_json)
        return
    if release is None:
        raise UsageError(
            "no release was named",
            where="coreeval gate",
            hint="use coreeval gate RELEASE, or --print-config",
        )
    found = check(release, gates=config, report=report, chain=chain)
    if junit:
        write_junit(junit, found, utc_now())
    written = write_summaries(found, summary)
    document: Document = {
        **found.document,
        "config": config and str(config),
        "report": report and str(report),
        "junit": junit and str(junit),
        "summaries": [str(path) for path in written],
    }
    show(document, as_json, lambda: "\n".join(_words(found)))
    write_annotations(found)
    if not found.passed:
        raise typer.Exit(GateNotMet.exit_code)


def _print_config(as_json: bool) -> None:
    from coreeval.releases.gates.limits import load_default_gates, read_default_text

    if as_json:
        gates = load_default_gates().model_dump(mode="json", exclude_none=True)
        show({"gates": gates}, as_json, str)
    else:
        say(read_default_text().rstrip("\n"))


def _words(found: "GateResult") -> Iterator[str]:
    from coreeval.releases.gates.check import format_verdict

    yield one_line(format_verdict(found))
    for each in found.gates:
        yield from _gate_lines(each)


def _gate_lines(each: "GateFinding") -> Iterator[str]:
    from coreeval.releases.gates.check import STATUS_WORDS, format_value

    value = one_line(f"{format_value(each)}, {each.of}" if each.of else format_value(each))
    yield f"  {STATUS_WORDS[each.status]:<13}{each.gate:<23}{value}; required: {each.limit}"
    for what, told in (("why", each.reason), ("to do", each.hint)):
        if told:  # never at the start of a line, where CI reads some words as commands
            yield f"  {'':<13}{what}: {one_line(told)}"


STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""Variable with the path of the file for a GitHub Actions step summary."""
_ESCAPES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_TITLES = {**_ESCAPES, ":": "%3A", ",": "%2C"}
"""Escapes for characters that would end a GitHub workflow command or one of its properties."""


def write_summaries(found: "GateResult", path: Path | None) -> list[Path]:
    """Write the summary to the requested file, and add it to the summary of GitHub's step."""
    from coreeval.releases.gates.check import format_summary
    from coreeval.tools.files import write_text
    from coreeval.tools.outputs import refuse_foreign_output

    text, written = format_summary(found), list[Path]()
    if path:
        refuse_foreign_output(path, "## \N{WHITE HEAVY CHECK MARK} ", "## \N{CROSS MARK} ")
        write_text(path, text)
        written.append(path)
    if step := os.environ.get(STEP_SUMMARY):
        with Path(step).open("a", encoding="utf-8") as file:
            file.write(text)
        written.append(Path(step))
    return written


def write_annotations(found: "GateResult") -> None:
    """Report each failed gate to GitHub if this is one of its jobs; leave stdout alone."""
    from coreeval.releases.gates.check import format_finding

    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    for each in found.stopped:
        title = _escape(f"{found.name} {found.version}: {each.gate}", _IN_TITLES)
        message = one_line(f"{format_finding(each)}; required: {each.limit}")
        note(f"::error title={title}::{_escape(message, _ESCAPES)}")


def _escape(text: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(each, each) for each in text)
