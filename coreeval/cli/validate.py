"""`coreeval validate`: everything that can be checked without spending."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.output import AsJson, Document, show
from coreeval.errors import CoreEvalError

if TYPE_CHECKING:
    from coreeval.config import Config
    from coreeval.graph.setup import Setup


def validate(
    config: Annotated[Path, typer.Argument(help="YAML config.", show_default=False)],
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="key.path=value over the config's.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the config, its task, benchmark, news, keys and endpoints; nothing is spent."""
    from coreeval.config import load_config
    from coreeval.graph.setup import set_up

    loaded = load_config(config.resolve(), setting or ())
    checks = [_check("config", lambda: [f"{loaded.name}, task {loaded.task}"])]
    checks += _check_task(loaded)
    if all(check["ok"] for check in checks):
        setup = set_up(loaded, datetime.now(UTC))
        checks += _check_rest(setup, config)
    document = {"config": str(config), "ok": all(c["ok"] for c in checks), "checks": checks}
    show(document, as_json, lambda: "\n".join(_words(document)))
    if not document["ok"]:
        raise typer.Exit(2)


def _check_task(config: "Config") -> list[Document]:
    from coreeval.tasks import BUILT_IN, explain_task

    if config.task in BUILT_IN:
        return []
    found = explain_task(config.task)
    wrong = [line for line in found if not line.startswith("note: ")]
    return [{"name": "task", "ok": not wrong, "found": found or ["the task file is complete"]}]


def _check_rest(setup: "Setup", config: Path) -> list[Document]:
    return [
        _check("task and window", lambda: _window(setup)),
        _check("benchmark", lambda: _benchmark(setup)),
        _check("news", lambda: _news(setup, config)),
        _check("models", lambda: _models(setup)),
    ]


def _check(name: str, look: Callable[[], list[str]]) -> Document:
    try:
        return {"name": name, "ok": True, "found": look()}
    except CoreEvalError as error:
        return {"name": name, "ok": False, "found": [str(error)]}


def _window(setup: "Setup") -> list[str]:
    window = setup.window
    labels = ", ".join(label.name for label in setup.task.labels)
    span = f"{window.start:%Y-%m-%d} to {window.end:%Y-%m-%d} (end excluded)"
    return [f"{setup.task.name}: {labels}", f"news from {span}"]


def _benchmark(setup: "Setup") -> list[str]:
    from coreeval.evaluation.benchmarks import counts_note, iter_benchmark
    from coreeval.schema import BadRow

    good, bad = 0, list[BadRow]()
    for row in iter_benchmark(setup.config.dataset, setup.task):
        if isinstance(row, BadRow):
            bad.append(row)
        else:
            good += 1
    found = [f"{good} samples, {len(bad)} bad rows"]
    found += [f"bad row: {Path(row.file).name} line {row.line}: {row.reason}" for row in bad[:5]]
    note = counts_note(setup.config.dataset, good + len(bad))
    return found + ([note] if note else [])


def _news(setup: "Setup", config: Path) -> list[str]:
    from contextlib import closing

    from coreeval.graph.setup import open_knowledge
    from coreeval.tools.workspace import workspace_for

    with closing(open_knowledge(setup, workspace_for(config.resolve().parent))) as knowledge:
        coverage = knowledge.coverage(setup.window)
    found = [f"{coverage.articles} articles on {coverage.days} days of the window"]
    return found + ([f"no news at all: {', '.join(coverage.gaps[:5])}"] if coverage.gaps else [])


def _models(setup: "Setup") -> list[str]:
    from coreeval.config import ROLES
    from coreeval.graph.setup import check_models

    check_models(setup.config)
    models = setup.config.models
    roles = [f"{role}: {models.of(role).model}" for role in ROLES]
    return [*roles, *(f"target: {target.model}" for target in models.targets)]


def _words(document: Document) -> Iterator[str]:
    for check in document["checks"]:
        yield f"{'ok ' if check['ok'] else 'NOT'} {check['name']}"
        for line in check["found"]:
            yield "    " + line.replace("\n", "\n    ")
    yield "everything holds" if document["ok"] else "not ready: see the lines marked NOT"
