"""Checks of a config: everything that can be checked free of charge."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from coreeval.api.tables import Result, Row, Table, parse_columns
from coreeval.config import ROLES, Config, ConfigLike, LoadedConfig, read_config
from coreeval.errors import CoreEvalError, DatasetError
from coreeval.evaluation.benchmarks import counts_note, iter_benchmark
from coreeval.evaluation.benchmarks.traits import TraitCounts
from coreeval.graph.inputs import open_news
from coreeval.graph.money import describe_sample_limit, list_asked_models, list_price_remarks
from coreeval.graph.news_outlook import (
    OFFLINE_REMARK,
    WARNING,
    find_outlook_lines,
    is_demonstration,
)
from coreeval.graph.refresh import describe_control
from coreeval.graph.run_origin import (
    Lineage,
    build_lineage,
    find_followed_release,
    open_keeper,
)
from coreeval.graph.setup import Setup, check_models, check_splits, set_up
from coreeval.graph.spans import check_telemetry
from coreeval.graph.train_split import iter_train_rows, max_train_items
from coreeval.releases.gates.limits import resolve_gates
from coreeval.runs.languages import describe_language
from coreeval.schema import BadRow
from coreeval.tasks import explain_task, kind_of
from coreeval.tools.catalogs import find_price, load_run_prices
from coreeval.tools.clock import utc_now
from coreeval.tools.endpoints import is_agreed, run_pairs
from coreeval.tools.env_file import hold_env_file, read_env_file
from coreeval.tools.formatting import format_quantity, list_first, plural
from coreeval.tools.knowledge import describe_coverage
from coreeval.tools.telemetry import redact_url
from coreeval.tools.terminal import one_line
from coreeval.tools.trust import load_trusted_endpoints
from coreeval.tools.window_lines import target_lines, window_lines
from coreeval.tools.workspace import workspace_for

if TYPE_CHECKING:
    from pydantic import JsonValue

SHOWN: Final = 5
"""The most bad rows and gaps listed; the others are only counted."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """The result of one check."""

    name: str
    ok: bool
    found: tuple[str, ...]
    """The findings, in lines; if a task file fails, its problems."""
    error: CoreEvalError | None = None
    """The error, with what to do; None if nothing is wrong."""

    @property
    def problem(self) -> str:
        """The problem; empty if nothing is wrong."""
        if self.ok:
            return ""
        return self.error.message if self.error else "\n".join(self.found)

    @property
    def hint(self) -> str:
        """What to do, such as the lines to write; empty if that is not known."""
        return self.error.hint if self.error else ""


@dataclass(frozen=True, kw_only=True, repr=False)
class Validation(Result):
    """The result of `validate`."""

    config: str
    """The given path of the config."""
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether a run can start."""
        return all(check.ok for check in self.checks)

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems that prevent a run: each failed check, what is wrong, and what to do."""
        return tuple(
            f"{each.name}: {each.problem}" + (f"; to do: {each.hint}" if each.hint else "")
            for each in self.checks
            if not each.ok
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """The findings of the other checks, in lines; warnings start with `warning: `."""
        return tuple(line for each in self.checks if each.ok for line in each.found)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The notes that are warnings."""
        return tuple(line for line in self.notes if line.startswith(WARNING))

    @property
    def document(self) -> "dict[str, JsonValue]":
        """The document that `coreeval validate --json` prints."""
        checks: list[JsonValue] = [
            {
                "name": each.name,
                "ok": each.ok,
                "found": list(each.found),
                "error": dict(each.error.as_dict()) if each.error else None,
            }
            for each in self.checks
        ]
        return {"config": self.config, "ok": self.ok, "checks": checks}

    @property
    def summary(self) -> str:
        """Whether a run can start, in a line."""
        if not self.ok:
            return f"{self.config}: not ready, problems: {len(self.problems)}"
        return f"{self.config}: ready to run, warnings: {len(self.warnings)}"

    @property
    def table(self) -> Table:
        """A row for each check: `check, ok, found, problem, where, hint`."""
        rows: list[Row] = [
            (
                each.name,
                each.ok,
                each.found,
                each.problem,
                each.error.where if each.error else "",
                each.hint,
            )
            for each in self.checks
        ]
        return Table("checks", _COLUMNS, rows)

    def _remarks(self) -> tuple[str, ...]:
        return self.problems


_COLUMNS: Final = parse_columns("check ok:boolean found:texts problem where hint")


@hold_env_file()
def validate(
    config: ConfigLike,
    *,
    overrides: Sequence[str] = (),
    parent: Path | str | None = None,
    stale_after: str | None = None,
) -> Validation:
    """Check a config, its task, data, news and keys, free of charge.

    Args:
        config: The path of a YAML config, or a config in memory.
        overrides: `key.path=value` settings that override the config's.
        parent: The release that the run would follow, or `latest`.
        stale_after: The maximum age of a kept sample's evidence: `90d`, `12w`, `6m`.

    Raises:
        ConfigError: the config cannot be read, or has an unknown key or a value of the wrong kind.
        UsageError: the age is not valid, or is given without a release.
    """
    lineage = build_lineage(parent, stale_after)
    loaded = read_config(config, overrides)
    read_env_file(loaded.folder, loaded.config)
    given = str(config) if isinstance(config, str | Path) else str(loaded.source)
    return Validation(config=given, checks=tuple(_run_checks(loaded, lineage)))


def _run_checks(loaded: LoadedConfig, lineage: Lineage | None) -> Iterator[Check]:
    """Yield the checks in turn; without a task and a window, the remaining ones are skipped."""
    config, folder = loaded.config, loaded.folder
    yield _check("config", lambda: [f"{config.name}, task {config.task}"])
    if wrong := _task_mistakes(config.task):
        yield Check(name="task", ok=False, found=tuple(wrong))
        return
    try:
        base, workspace = loaded.source.parent, workspace_for(folder)
        setup = set_up(config, utc_now(), workspace=workspace, base=base)
    except CoreEvalError as error:
        yield _failed("task and window", error)
        return
    yield _check("task and window", lambda: _window(setup))
    needed = [
        _check_benchmark(setup),
        _check("news", lambda: _news(setup, folder)),
    ]
    if all(check.ok for check in needed):
        needed.append(_check("samples with news", lambda: _outlook(setup, folder)))
    yield from (check for check in needed if check.found or not check.ok)
    yield _check("models", lambda: _models(setup, folder))
    some = (
        _check("sample limit", lambda: describe_sample_limit(config)),
        _check("prices", lambda: _prices(config)),
        _check("endpoints", lambda: _endpoints(config, folder)),
        _check("telemetry", lambda: _telemetry(setup)),
    )
    yield from (check for check in some if check.found or not check.ok)
    if config.schedule and config.schedule.gates:
        yield _check("gates", lambda: _gates(config, folder))
    if config.detect.pcr:
        yield _check("pcr", lambda: _pcr(setup))
    if lineage:
        yield _check("release", lambda: _kept(setup, lineage, folder))


def _check(name: str, look: Callable[[], list[str]]) -> Check:
    try:
        return Check(name=name, ok=True, found=tuple(look()))
    except CoreEvalError as error:
        return _failed(name, error)


def _failed(name: str, error: CoreEvalError) -> Check:
    return Check(name=name, ok=False, found=(), error=error)


def _task_mistakes(task: str) -> list[str]:
    """Return all problems of a user's own task file."""
    if not Path(task).is_file():
        return []
    found = explain_task(task)
    return found if any(not line.startswith("note: ") for line in found) else []


def _window(setup: Setup) -> list[str]:
    window, task = setup.window, setup.config.task
    gold = kind_of(setup.task).describe(setup.task)
    notes = explain_task(task) if Path(task).is_file() else []
    language = describe_language(setup.task.language)
    notes += [language] if language else []
    span = [*window_lines(window, setup.window_start), *target_lines(window, setup.target_dates)]
    return [f"{setup.task.name}: {gold}", *notes, *span]


def _check_benchmark(setup: Setup) -> Check:
    """Return the check of the benchmark, which fails if most rows are bad."""
    rows = Counter[str]()
    check = _check("benchmark", lambda: _benchmark(setup, rows))
    if rows["bad"] <= rows["good"]:
        return check
    error = DatasetError(
        f"{rows['bad']} of {format_quantity(rows.total(), 'row is', 'rows are')} not "
        f"{plural(rows['bad'], 'a sample', 'samples')} of the task {setup.task.name}",
        where=setup.config.dataset.path,
        hint="check that dataset.format, dataset.columns and the task's labels match the file; "
        "coreeval refresh would use only the other rows",
    )
    return replace(check, ok=False, error=error)


def _benchmark(setup: Setup, rows: Counter[str]) -> list[str]:
    """Describe the benchmark, and count its good and bad rows in `rows`."""
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
    more = [f"and {format_quantity(bad - SHOWN, 'more bad row')}"] if bad > SHOWN else []
    rows.update(good=good, bad=bad)
    remark = counts_note(setup.config.dataset, good + bad)
    counts = f"{good} sample{'s' * (good != 1)}, {bad} bad row{'s' * (bad != 1)}"
    few = [f"warning: bad rows: {bad}; a run uses only the other rows"] * (0 < bad <= good)
    return [counts, *traits.describe(), *shown, *more, *few, *([remark] if remark else [])]


def _news(setup: Setup, folder: Path) -> list[str]:
    with closing(open_news(setup, workspace_for(folder))) as news:
        coverage, control = news.coverage(setup.window), describe_control(setup, news)
        others = news.local.count_less_certain(setup.window).values() if news.local else ()
    left_out = (
        f"; {max(others):,} more are excluded, because their publication time is less certain than "
        f"knowledge.min_precision ({setup.config.knowledge.min_precision})"
        if others
        else ""
    )
    found = [f"{describe_coverage(coverage)} of the window ({news.name}){left_out}"]
    if coverage.gaps:
        found.append(f"days without news: {list_first(coverage.gaps, SHOWN)}")
    if control:
        window, known = control.window, describe_coverage(control.knowledge.coverage)
        span = f"{window.start:%Y-%m-%d} to {window.end:%Y-%m-%d} (end excluded)"
        found.append(f"control arm: {known} from {span}")
    return found


def _outlook(setup: Setup, folder: Path) -> list[str]:
    with closing(open_news(setup, workspace_for(folder))) as news:
        return find_outlook_lines(setup, news)


def _endpoints(config: Config, folder: Path) -> list[str]:
    """Return the variables that a run would send, and where, and whether this was approved."""
    trusted = load_trusted_endpoints(workspace_for(folder))
    return [
        f"{pair}: {'remembered' if is_agreed(pair, trusted) else _NOT_TRUSTED}"
        for pair in run_pairs(config, os.environ)
    ]


_NOT_TRUSTED = "not used before; a run asks for confirmation, unless --trust-endpoints is set"


def _models(setup: Setup, folder: Path) -> list[str]:
    check_models(setup, workspace_for(folder), untrusted="skip")
    models = setup.config.models
    players: dict[str, list[str]] = {}
    for role in ROLES:
        players.setdefault(models.for_role(role).model, []).append(role)
    roles = [f"{model}: {', '.join(played)}" for model, played in players.items()]
    judges = [f"judge of defences: {judge.model}" for judge in setup.config.detect.judges]
    targets = [f"target: {target.model}" for target in models.targets]
    demonstration = [f"{WARNING}{OFFLINE_REMARK}"] if is_demonstration(setup.config) else []
    return [*roles, *targets, *judges, *demonstration]


def _prices(config: Config) -> list[str]:
    """Return models with and without price, if there is a price file, and remarks on old prices."""
    old = list_price_remarks(config, utc_now().date())
    if not config.run.prices:
        return old
    prices = load_run_prices(config)
    asked = {model.model: find_price(model, prices) for model in list_asked_models(config)}
    return [*(f"{name}: {'priced' if price else 'no price'}" for name, price in asked.items()),
            *old]  # fmt: skip


def _telemetry(setup: Setup) -> list[str]:
    url, content = check_telemetry(setup.config), setup.config.telemetry.content
    if url is None:
        return []
    return [
        f"spans are sent to {redact_url(url)}, {'with' if content else 'without'} texts and prompts"
    ]


def _gates(config: Config, folder: Path) -> list[str]:
    said = config.schedule.gates if config.schedule else None
    gates = resolve_gates(said, base=folder)
    return [", ".join(gates.model_dump(exclude_none=True))] if gates else []


def _pcr(setup: Setup) -> list[str]:
    check_splits(setup)
    most, split = max_train_items(setup.config, None), setup.config.pcr_train_split
    if not most:
        return ["no targets: name some under models.targets"]
    there = sum(1 for _ in islice(iter_train_rows(setup), most))
    drawn = plural(there, "is", "are")
    return [f"{format_quantity(there, 'item')} of the {split!r} split {drawn} drawn and reworded"]


def _kept(setup: Setup, lineage: Lineage, folder: Path) -> list[str]:
    """Return the number of samples that would be kept, and the reasons for the others."""
    workspace = workspace_for(folder)
    parent = find_followed_release(lineage, setup, workspace)
    keeper = open_keeper(parent, setup, workspace)
    for _ in keeper.iter_rows(iter_benchmark(setup.config.dataset, setup.task)):
        pass
    return [keeper.describe(parent)]
