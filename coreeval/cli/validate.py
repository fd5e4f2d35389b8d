"""`coreeval validate`: all checks that are free of charge."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from coreeval.cli.options import (
    ConfigArgument,
    FromOption,
    SetOption,
    StaleOption,
    lineage_arguments,
)
from coreeval.cli.output import AsJson, command, show
from coreeval.errors import CoreEvalError, UsageError

if TYPE_CHECKING:
    from coreeval.api.validation import Validation


def validate(
    config: ConfigArgument,
    setting: SetOption = None,
    release: FromOption = None,
    stale_after: StaleOption = None,
    as_json: AsJson = False,
) -> None:
    """Check the config, task, data, news and keys, free of charge."""
    from coreeval.api.validation import validate as check

    found = check(config, overrides=setting or (), parent=release, stale_after=stale_after)
    run = command("refresh", config, *lineage_arguments(release, stale_after))
    run += "" if release else _FIRST_TRY
    show(found.document, as_json, lambda: "\n".join(_words(found, run)))
    if not found.ok:
        raise typer.Exit(UsageError.exit_code)


_FIRST_TRY = " --limit 20   # a first try; without --limit, all samples"


def _words(found: "Validation", run: str) -> Iterator[str]:
    for check in found.checks:
        yield f"{'ok' if check.ok else 'FAILED'} {check.name}"
        for line in (*check.found, *(_error_lines(check.error) if check.error else ())):
            yield "    " + line.replace("\n", "\n    ")
    warned = len(found.warnings)
    if found.ok:
        held = f"ready to run; warnings: {warned}" if warned else "all checks passed"
        yield f"{held}; next: {run}"
    else:
        yield "not ready: see the lines marked FAILED"


def _error_lines(error: CoreEvalError) -> Iterator[str]:
    yield error.message
    if error.where:
        yield f"  where: {error.where}"
    if error.hint:
        yield f"  to do: {error.hint}"
