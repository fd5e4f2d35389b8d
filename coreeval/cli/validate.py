"""`coreeval validate`: everything that can be checked without spending."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from coreeval.cli.options import (
    ConfigArgument,
    FromOption,
    SetOption,
    StaleOption,
    lineage_arguments,
)
from coreeval.cli.output import AsJson, Document, command, one_line, show
from coreeval.errors import CoreEvalError, DatasetError, UsageError
from coreeval.tools.clock import utc_now

if TYPE_CHECKING:
    from coreeval.config import Config
    from coreeval.graph.run_origin import Lineage
    from coreeval.graph.setup import Setup


SHOWN = 5
"""Most bad rows and gaps listed; the others are only counted."""


def validate(
    config: ConfigArgument,
    setting: SetOption = None,
    release: FromOption = None,
    stale_after: StaleOption = None,
    as_json: AsJson = False,
) -> None:
    """Check the config, task, data, news and keys, free of charge."""
    from coreeval.config import load_config
    from coreeval.graph.run_origin import build_lineage
    from coreeval.tools.env_file import read_env_file

    lineage = build_lineage(release, stale_after)
    loaded = load_config(config.resolve(), setting or ())
    read_env_file(config.resolve().parent, loaded)
    checks = list(_checks(loaded, config, lineage))
    document = {"config": str(config), "ok": all(c["ok"] for c in checks), "checks": checks}
    run = command("refresh", config, *lineage_arguments(release, stale_after))
    show(document, as_json, lambda: "\n".join(_words(document, run)))
    if not document["ok"]:
        raise typer.Exit(UsageError.exit_code)


def _checks(config: "Config", path: Path, lineage: "Lineage | None") -> Iterator[Document]:
    """Yield one check after the other; without a task and a window the others are skipped."""
    from coreeval.graph.money import describe_sample_limit
    from coreeval.graph.setup import set_up
    from coreeval.tools.workspace import workspace_for

    yield _check("config", lambda: [f"{config.name}, task {config.task}"])
    if wrong := _task_mistakes(config.task):
        yield {"name": "task", "ok": False, "found": wrong, "error": None}
        return
    try:
        setup = set_up(config, utc_now(), workspace=workspace_for(path.resolve().parent))
    except CoreEvalError as error:
        yield _failed("task and window", error)
        return
    yield _check("task and window", lambda: _window(setup))
    needed = [
        _check_benchmark(setup),
        _check("news", lambda: _news(setup, path)),
    ]
    if all(check["ok"] for check in needed):
        needed.append(_check("samples with news", lambda: _outlook(setup, path)))
    yield from (check for check in needed if check["found"] or not check["ok"])
    yield _check("models", lambda: _models(setup, path))
    some = (
        _check("sample limit", lambda: describe_sample_limit(config)),
        _check("prices", lambda: _prices(config)),
        _check("endpoints", lambda: _endpoints(config, path)),
        _check("telemetry", lambda: _telemetry(setup)),
    )
    yield from (check for check in some if check["found"] or not check["ok"])
    if config.schedule and config.schedule.gates:
        yield _check("gates", lambda: _gates(config, path))
    if config.detect.pcr:
        yield _check("pcr", lambda: _pcr(setup))
    if lineage:
        yield _check("release", lambda: _kept(setup, lineage, path))


def _check(name: str, look: Callable[[], list[str]]) -> Document:
    try:
        return {"name": name, "ok": True, "found": look(), "error": None}
    except CoreEvalError as error:
        return _failed(name, error)


def _failed(name: str, error: CoreEvalError) -> Document:
    return {"name": name, "ok": False, "found": [], "error": error.as_dict()}


def _task_mistakes(task: str) -> list[str]:
    """Return everything that is wrong with a user's own task file."""
    from coreeval.tasks import explain_task

    if not Path(task).is_file():
        return []
    found = explain_task(task)
    return found if any(not line.startswith("note: ") for line in found) else []


def _window(setup: "Setup") -> list[str]:
    from coreeval.cli.output import target_lines, window_lines
    from coreeval.runs.languages import describe_language
    from coreeval.tasks import explain_task, kind_of

    window, task = setup.window, setup.config.task
    gold = kind_of(setup.task).describe(setup.task)
    notes = explain_task(task) if Path(task).is_file() else []
    language = describe_language(setup.task.language)
    notes += [language] if language else []
    span = [*window_lines(window, setup.window_start), *target_lines(window, setup.target_dates)]
    return [f"{setup.task.name}: {gold}", *notes, *span]


def _check_benchmark(setup: "Setup") -> Document:
    """Return the check of the benchmark, which fails if most rows are bad."""
    rows = Counter[str]()
    check = _check("benchmark", lambda: _benchmark(setup, rows))
    if rows["bad"] <= rows["good"]:
        return check
    error = DatasetError(
        f"{rows['bad']} of {rows.total()} rows are not samples of the task {setup.task.name}",
        where=setup.config.dataset.path,
        hint="check that dataset.format, dataset.columns and the task's labels match the file; "
        "coreeval refresh would use only the other rows",
    )
    return {**check, "ok": False, "error": error.as_dict()}


def _benchmark(setup: "Setup", rows: Counter[str]) -> list[str]:
    """Return what the benchmark is made of, and add up its good and bad rows in `rows`."""
    from coreeval.evaluation.benchmarks import counts_note, iter_benchmark
    from coreeval.evaluation.benchmarks.traits import TraitCounts
    from coreeval.schema import BadRow

    good, bad, shown, traits = 0, 0, list[str](), TraitCounts(setup.task)
    for row in iter_benchmark(setup.config.dataset, setup.task):
        if not isinstance(row, BadRow):
            good += 1
            traits.add(row)
            continue
        bad += 1
        if bad <= SHOWN:
            where = f"{Path(row.file).name} line {row.line}"
            shown.append(f"bad row: {where}: {one_line(row.reason)}")
    more = [f"and {bad - SHOWN} more bad rows"] if bad > SHOWN else []
    rows.update(good=good, bad=bad)
    remark = counts_note(setup.config.dataset, good + bad)
    counts = f"{good} sample{'s' * (good != 1)}, {bad} bad row{'s' * (bad != 1)}"
    few = [f"warning: bad rows: {bad}; a run uses the others"] * (0 < bad <= good)
    return [counts, *traits.describe(), *shown, *more, *few, *([remark] if remark else [])]


def _news(setup: "Setup", config: Path) -> list[str]:
    from contextlib import closing

    from coreeval.graph.inputs import open_news
    from coreeval.graph.refresh import describe_control
    from coreeval.tools.knowledge import describe_coverage
    from coreeval.tools.workspace import workspace_for

    with closing(open_news(setup, workspace_for(config.resolve().parent))) as news:
        coverage, control = news.coverage(setup.window), describe_control(setup, news)
    found = [f"{describe_coverage(coverage)} of the window ({news.name})"]
    if coverage.gaps:
        more = f" and {len(coverage.gaps) - SHOWN} more" if len(coverage.gaps) > SHOWN else ""
        found.append(f"days without news: {', '.join(coverage.gaps[:SHOWN])}{more}")
    if control:
        window, known = control.window, describe_coverage(control.knowledge.coverage)
        span = f"{window.start:%Y-%m-%d} to {window.end:%Y-%m-%d} (end excluded)"
        found.append(f"control arm: {known} from {span}")
    return found


def _outlook(setup: "Setup", config: Path) -> list[str]:
    from contextlib import closing

    from coreeval.graph.inputs import open_news
    from coreeval.graph.news_outlook import find_outlook_lines
    from coreeval.tools.workspace import workspace_for

    with closing(open_news(setup, workspace_for(config.resolve().parent))) as news:
        return find_outlook_lines(setup, news)


def _endpoints(config: "Config", path: Path) -> list[str]:
    """Return which variables a run would send where, and whether that was approved."""
    from coreeval.tools.endpoints import is_agreed, run_pairs
    from coreeval.tools.trust import load_trusted_endpoints
    from coreeval.tools.workspace import workspace_for

    trusted = load_trusted_endpoints(workspace_for(path.resolve().parent))
    return [
        f"{pair}: {'remembered' if is_agreed(pair, trusted) else _NOT_TRUSTED}"
        for pair in run_pairs(config, os.environ)
    ]


_NOT_TRUSTED = "not used before; a run asks for confirmation, or accepts --trust-endpoints"


def _models(setup: "Setup", config: Path) -> list[str]:
    from coreeval.config import ROLES
    from coreeval.graph.news_outlook import OFFLINE_REMARK, WARNING, is_demonstration
    from coreeval.graph.setup import check_models
    from coreeval.tools.workspace import workspace_for

    check_models(setup, workspace_for(config.resolve().parent), untrusted="skip")
    models = setup.config.models
    players: dict[str, list[str]] = {}
    for role in ROLES:
        players.setdefault(models.for_role(role).model, []).append(role)
    roles = [f"{model}: {', '.join(played)}" for model, played in players.items()]
    judges = [f"judge of defences: {judge.model}" for judge in setup.config.detect.judges]
    targets = [f"target: {target.model}" for target in models.targets]
    demonstration = [f"{WARNING}{OFFLINE_REMARK}"] if is_demonstration(setup.config) else []
    return [*roles, *targets, *judges, *demonstration]


def _prices(config: "Config") -> list[str]:
    """Return which models have a price, if the config names a price file, and which are old."""
    from coreeval.graph.money import list_asked_models, list_price_remarks
    from coreeval.tools.catalogs import find_price, load_run_prices

    old = list_price_remarks(config, utc_now().date())
    if not config.run.prices:
        return old
    prices = load_run_prices(config)
    asked = {model.model: find_price(model, prices) for model in list_asked_models(config)}
    return [*(f"{name}: {'priced' if price else 'no price'}" for name, price in asked.items()),
            *old]  # fmt: skip


def _telemetry(setup: "Setup") -> list[str]:
    from coreeval.graph.spans import check_telemetry
    from coreeval.tools.telemetry import redact_url

    url, content = check_telemetry(setup.config), setup.config.telemetry.content
    if url is None:
        return []
    return [
        f"spans are sent to {redact_url(url)}, {'with' if content else 'without'} texts and prompts"
    ]


def _gates(config: "Config", path: Path) -> list[str]:
    from coreeval.releases.gates.limits import resolve_gates

    said = config.schedule.gates if config.schedule else None
    gates = resolve_gates(said, base=path.resolve().parent)
    return [", ".join(gates.model_dump(exclude_none=True))] if gates else []


def _pcr(setup: "Setup") -> list[str]:
    from itertools import islice

    from coreeval.graph.setup import check_splits
    from coreeval.graph.train_split import iter_train_rows, max_train_items

    check_splits(setup)
    most, split = max_train_items(setup.config, None), setup.config.pcr_train_split
    if not most:
        return ["no targets: name some under models.targets"]
    there = sum(1 for _ in islice(iter_train_rows(setup), most))
    return [f"{there} items of the split {split!r} are drawn and reworded"]


def _kept(setup: "Setup", lineage: "Lineage", config: Path) -> list[str]:
    """Return the number of samples that would be kept, and why the others would not be."""
    from coreeval.evaluation.benchmarks import iter_benchmark
    from coreeval.graph.run_origin import find_followed_release, open_keeper
    from coreeval.tools.workspace import workspace_for

    parent = find_followed_release(lineage, setup, workspace_for(config.resolve().parent))
    keeper = open_keeper(parent, setup)
    for _ in keeper.iter_rows(iter_benchmark(setup.config.dataset, setup.task)):
        pass
    return [keeper.describe(parent)]


def _words(document: Document, run: str) -> Iterator[str]:
    for check in document["checks"]:
        yield f"{'ok' if check['ok'] else 'FAILED'} {check['name']}"
        error = check["error"]
        for line in (*check["found"], *(_error_lines(error) if error else ())):
            yield "    " + line.replace("\n", "\n    ")
    warned = sum(
        line.startswith("warning: ") for each in document["checks"] for line in each["found"]
    )
    if document["ok"]:
        held = f"ready to run; warnings: {warned}" if warned else "everything holds"
        yield f"{held}; next: {run}"
    else:
        yield "not ready: see the lines marked FAILED"


def _error_lines(error: Document) -> Iterator[str]:
    yield error["message"]
    if error["where"]:
        yield f"  where: {error['where']}"
    if error["hint"]:
        yield f"  to do: {error['hint']}"
