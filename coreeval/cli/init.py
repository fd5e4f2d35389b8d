"""`coreeval init`: writes a commented config and, with `--data`, the task file of a table."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from importlib import resources
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer
from pydantic import ValidationError

from coreeval.cli.completion import complete_providers
from coreeval.cli.output import AsJson, brief, command, one_line, show
from coreeval.errors import ConfigError, CredentialError, UsageError
from coreeval.tools.clock import utc_now
from coreeval.tools.formatting import format_quantity, list_first

if TYPE_CHECKING:
    from coreeval.config import ModelConfig
    from coreeval.evaluation.benchmarks.table_guess import ItemGuess, TableGuess


CONFIG, TASK = "coreeval.yaml", "task.yaml"
GENERAL_NAMES = ("", "label", "labels", "class", "category", "gold", "target")
"""Names of a label column that do not say what the labels are."""
FIRST_DAYS = 30
"""The number of days in the first news window."""
_OWN_TARGET = '    - {model: "offline:classifier"}'
_LEAN = {
    "run: {": "# lean: fewer calls, with prompts that are written for items like these\n"
    "run: {pipeline: lean, concurrency: 32, max_attempts: 3, seed: 7, on_reject: drop}"
}
MOST_SHOWN = 6
"""The most labels or unused columns listed on the terminal."""


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", file_okay=False, help="Output folder.")
    ] = Path(),
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="FILE", help="A labelled CSV, TSV or JSON Lines file."),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option("--text", metavar="COLUMN", help="With --data: a text column; repeatable."),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option("--label", metavar="COLUMN", help="With --data: the label column."),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="VALUE=NAME,…",
            help="With --data: names for numeric labels, such as 0=negative,1=positive.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="PROVIDER:NAME",
            autocompletion=complete_providers,
            help="The model that plays the roles and is tested as a target.",
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            "--base-url", metavar="URL", help="With --model: the URL of its OpenAI-compatible API."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a commented config; --data FILE adapts it to a table."""
    if data is None and (text or label or labels):
        raise UsageError("--text, --label and --labels need --data FILE", where="coreeval init")
    if base_url and model is None:
        raise UsageError("--base-url needs --model PROVIDER:NAME", where="coreeval init")
    lines, told, task = dict[str, str](), list[str](), None
    items = _guess_items(data, label) if data and not (text or labels) else None
    if data and items:
        lines = _file_lines(data, items.format, items.columns, folder, task=items.task) | _LEAN
        told = list(_item_lines(data, items))
    elif data:
        found = _guess(data, text or (), label)
        task = _task_text(data, found, _parse_names(found, labels))
        lines, told = _data_lines(data, found, folder), list(_guess_lines(data, found))
    if model:
        lines |= _model_lines(model, base_url)
    path = folder / CONFIG
    folder.mkdir(parents=True, exist_ok=True)
    _refuse_taken([path, *([folder / TASK] if task else [])])
    _write_new(path, _replace_lines(_template(), lines))
    if task:
        _write_new(folder / TASK, task)
    if base_url and not _answers(base_url):
        check = command("models", "check", CONFIG)
        told.append(f"note: nothing answers at {one_line(base_url)} yet; check it with: {check}")
    told += _next_lines(folder, bool(task), bool(model), items)
    show(
        {"config": str(path), "task": str(folder / TASK) if task else None},
        as_json,
        lambda: "\n".join(told),
    )


def _template() -> str:
    """Return the commented config, with a window that starts some days ago."""
    text = resources.files("coreeval.cli").joinpath(CONFIG).read_text(encoding="utf-8")
    start = utc_now() - timedelta(days=FIRST_DAYS)
    return text.replace("{start: 2026-01-01,", f"{{start: {start:%Y-%m-%d},")


def _replace_lines(config: str, lines: Mapping[str, str]) -> str:
    """Return the config with other lines in place of those with these beginnings."""
    for start, line in lines.items():
        found = re.search(rf"(?m)^{re.escape(start)}.*$", config)
        assert found, f"the template has a line {start!r}"
        config = config[: found.start()] + line + config[found.end() :]
    return config


def _quote(value: object, *, style: str | None = None) -> str:
    """Return a value in YAML, on one line; `style` is the quotation mark of texts."""
    import yaml

    written = yaml.safe_dump(
        [value], default_flow_style=True, default_style=style, allow_unicode=True, width=10**9
    )
    return written.strip()[1:-1]


def _flow(values: Mapping[str, str]) -> str:
    """Return a mapping in YAML, on one line."""
    return "{" + ", ".join(f"{key}: {_quote(value)}" for key, value in values.items()) + "}"


def _model_lines(model: str, base_url: str | None) -> dict[str, str]:
    """Return the lines of a model that plays all roles and is tested.

    Raises:
        UsageError: there is no such provider, or the address cannot be used.
    """
    from coreeval.config import ModelConfig
    from coreeval.config.value_errors import describe_value_error

    values = {"model": model} | ({"base_url": base_url} if base_url else {})
    try:
        _check_model(ModelConfig.model_validate(values))
    except ValidationError as error:
        told = describe_value_error(error.errors()[0])
        raise UsageError(told, where="--model, --base-url") from None
    except ConfigError as error:
        raise UsageError(error.message, where="--model, --base-url", hint=error.hint) from None
    return {
        "  default: offline": f"  default: {_flow(values)}",
        "  targets:": "  targets:",
        _OWN_TARGET: f"    - {_flow(values)}   # add cutoff: 2026-03-01 if CoreEval does not "
        "know it",
    }


def _check_model(config: "ModelConfig") -> None:
    """Check a model like `coreeval validate`, but not its key, files or endpoint."""
    from coreeval.models.providers import open_model
    from coreeval.tools.endpoints import origin_of

    if config.base_url is not None:
        origin_of(config.base_url)
    if config.is_rule_based or (config.name and config.is_on_this_machine):
        return
    with suppress(CredentialError):
        open_model(config, {})


def _answers(base_url: str) -> bool:
    """Return whether a program on this machine listens at an address; others are not tried."""
    import socket

    from coreeval.tools.endpoints import is_loopback, origin_of

    origin = origin_of(base_url)
    parts = urlsplit(origin)
    if not is_loopback(origin):
        return True
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    with suppress(OSError), socket.create_connection((parts.hostname, port), timeout=1):
        return True
    return False


# -- a table of one's own -------------------------------------------------------------------------


def _guess_items(data: Path, label: str | None) -> "ItemGuess | None":
    from coreeval.evaluation.benchmarks.table_guess import guess_items

    return guess_items(data, answer=label)


def _guess(data: Path, texts: Sequence[str], label: str | None) -> "TableGuess":
    from coreeval.evaluation.benchmarks.table_guess import guess_table

    return guess_table(data, texts=texts, label=label)


def _parse_names(found: "TableGuess", stated: str | None) -> Mapping[str, str]:
    """Return the name of each value of the label.

    Raises:
        UsageError: labels are numbers without names, or a name belongs to no value.
    """
    from coreeval.evaluation.benchmarks.table_guess import simplify_label
    from coreeval.tasks.label_finder import parse_label_number

    pairs = [pair.partition("=") for pair in stated.split(",")] if stated else []
    names = {simplify_label(value.strip()): name.strip() for value, _, name in pairs}
    if unknown := [value for value in names if value not in found.labels]:
        raise UsageError(
            f"the {found.label!r} column has no value {unknown[0]!r}",
            where="--labels",
            hint=f"its values are {', '.join(found.labels)}",
        )
    _refuse_alike(found)
    numbers = (value for value in found.labels if parse_label_number(value) is not None)
    unnamed = [value for value in numbers if not names.get(value)]
    if unnamed:
        example = ",".join(f"{value}=NAME" for value in found.labels)
        raise UsageError(
            f"the labels in the {found.label!r} column are numbers: explain what they mean",
            where="coreeval init",
            hint=f"--labels {example}",
        )
    return {value: names.get(value) or value for value in found.labels}


def _refuse_alike(found: "TableGuess") -> None:
    """Raise an error for labels that differ only in case, spaces, `_` or `-`."""
    from coreeval.tasks.label_finder import fold_name, parse_label_number

    seen = dict[str, str]()
    names = [value for value in found.labels if parse_label_number(value) is None]
    for value in names:
        other = seen.setdefault(fold_name(value), value)
        if other != value:
            one, two = found.spellings[other], found.spellings[value]
            raise UsageError(
                f"the labels {one} and {two} differ only in case, spaces, _ or -",
                where=f"the {found.label!r} column",
                hint="write them the same way in the whole file",
            )
    if unnamed := [value for value in names if not fold_name(value)]:
        raise UsageError(
            f"the label {found.spellings[unnamed[0]]} has no name",
            where=f"the {found.label!r} column",
            hint="write a word in its place, or remove its rows if they have no label",
        )


def _field_names(found: "TableGuess") -> dict[str, str]:
    """Return the file's columns by the names of the task's fields."""
    from coreeval.tasks.task_file import RESERVED_NAMES

    named = dict[str, str]()
    for number, column in enumerate(found.texts, start=1):
        usable = column.isidentifier() and column.isascii() and column not in RESERVED_NAMES
        named[column if usable else f"text{number if len(found.texts) > 1 else ''}"] = column
    return named


def _slug(data: Path) -> str:
    """Return a file's name as a valid name of a task and a run."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", data.stem).strip("-._") or "benchmark"


def _data_lines(data: Path, found: "TableGuess", folder: Path) -> dict[str, str]:
    """Return the lines of a table with labels."""
    columns = {ours: theirs for ours, theirs in _field_names(found).items() if ours != theirs}
    if found.label != "label":
        columns["label"] = found.label
    return _file_lines(data, found.format, columns, folder, task=TASK)


def _file_lines(
    data: Path, of_format: str, columns: Mapping[str, str], folder: Path, *, task: str
) -> dict[str, str]:
    """Return the lines of a table, which has no train split for fitting a target."""
    path = data.resolve()
    if path.is_relative_to(folder.resolve()):
        path = path.relative_to(folder.resolve())
    lines = {
        "name: ": f"name: {_quote(_slug(data))}",
        "task: ": f"task: {task}",
        "  format: ": f"  format: {of_format}",
        "  path: ": f"  path: {_quote(str(path))}",
        _OWN_TARGET: '    # - {model: "openai:gpt-x"}',
        "  targets:": "  targets: []            # the models under test, such as the following",
    }
    if columns:
        lines["  # columns: "] = (
            f"  columns: {_flow(columns)}   # CoreEval's name -> the file's column"
        )
    return lines


def _task_text(data: Path, found: "TableGuess", names: Mapping[str, str]) -> str:
    """Return the task file of a table.

    Raises:
        UsageError: a label's name cannot be used.
    """
    from coreeval.config.user_files import parse_yaml
    from coreeval.tasks.task_file import TaskFile, parse_task_file

    text = "\n".join(_task_lines(data, found, names)) + "\n"
    parsed = parse_task_file(parse_yaml(text))
    if not isinstance(parsed, TaskFile):
        raise UsageError(parsed[0].message, where=str(data), hint=parsed[0].hint)
    return text


def _task_lines(data: Path, found: "TableGuess", names: Mapping[str, str]) -> Iterator[str]:
    from coreeval.tasks.label_finder import parse_label_number

    fields, kind = tuple(_field_names(found)), "tweet" if found.tweets else "text"
    named = " ".join(re.findall(r"[^\W_]+", found.label))
    what = "label" if named.casefold() in GENERAL_NAMES else named
    about = f"The {what} of a {kind} of {data.name}."
    ask = "Which label fits" if what == "label" else f"What is the {what} of"
    shown = "\n".join(f"{name}: ${name}" if len(fields) > 1 else f"${name}" for name in fields)
    templates = (
        f"{shown}\n\n{ask} this {kind}? Answer with one of these labels: $labels.",
        f"Label the {kind} with one of $labels and nothing else.\n\n{shown}",
    )
    yield "# What each role is told about the benchmark (coreeval docs tasks). Describe when a text"
    yield "# has each label: judges agree with the labels more often if the meanings are clear."
    yield f"name: {_quote(_slug(data))}"
    yield f"description: {_quote(about)}"
    yield f"fields: {_quote(list(fields))}"
    yield f"text_kind: {'tweet' if found.tweets else 'sentence'}"
    yield "labels:"
    numbers = [parse_label_number(value) for value in names]
    for number, name in enumerate(names.values()):
        own = number if None in numbers else numbers[number]
        yield f"  - id: {own}"
        yield f"    name: {_quote(name)}"
        meaning = _quote(f"the {what} is {name.replace('_', ' ')}", style='"')
        yield f"    meaning: {meaning}"
    yield f"question: {_quote(f'{ask} this {kind}?')}"
    yield "templates:"
    yield from ("  - |-\n" + indent(template, "    ") for template in templates)


def _guess_lines(data: Path, found: "TableGuess") -> Iterator[str]:
    listed = list(found.labels.items())[:MOST_SHOWN]
    shown = [f"{one_line(value)} ({count:,})" for value, count in listed]
    more = f" and {len(found.labels) - MOST_SHOWN} more" * (len(found.labels) > MOST_SHOWN)
    left_out = f"; {one_line(found.unreadable)}: a run skips it" * bool(found.unreadable)
    yield f"{brief(data)}: {format_quantity(found.rows, 'row')}{left_out}"
    yield f"  text:   {', '.join(map(one_line, found.texts))}"
    yield f"  label:  {one_line(found.label)}: {', '.join(shown)}{more}"
    if found.unlabelled:
        yield f"  no label: {one_line(found.unlabelled)}: a run skips them"
    yield from _unused_lines(found.unused, found.splits)
    yield "  if a column is wrong, delete both files and use --text COLUMN and --label COLUMN"


def _item_lines(data: Path, found: "ItemGuess") -> Iterator[str]:
    yield f"{brief(data)}: {format_quantity(found.rows, 'row')}"
    yield f"  task:   {found.task}, from the columns {', '.join(map(one_line, found.read))}"
    yield from _unused_lines(found.unused, found.splits)
    yield "  if a column is wrong, correct dataset.columns in the config"
    yield "  if the rows have labels, delete the config and use --text COLUMN and --label COLUMN"


def _unused_lines(columns: Sequence[str], splits: str) -> Iterator[str]:
    if columns:
        yield f"  unused: {list_first([*map(one_line, columns)], MOST_SHOWN)}"
    if splits:
        yield f"  note: {one_line(splits)}, but all rows are read as the split test: keep only the"
        yield "  rows of one split in the file"


# -- writing --------------------------------------------------------------------------------------


def _refuse_taken(paths: Sequence[Path]) -> None:
    if taken := [path for path in paths if path.is_symlink() or path.exists()]:
        raise _taken(taken)


def _taken(paths: Sequence[Path]) -> UsageError:
    what = " and a ".join("config" if path.name == CONFIG else "task file" for path in paths)
    them = "it" if len(paths) == 1 else "both"
    return UsageError(
        f"this folder already has a {what}",
        where=", ".join(map(str, paths)),
        hint=f"edit {them}, or delete {them} and run the command again, or choose another DIR",
    )


def _write_new(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:  # follows no link, not even a dangling one
            file.write(text)
    except FileExistsError:
        raise _taken([path]) from None


def _next_lines(
    folder: Path, has_task: bool, has_model: bool, items: "ItemGuess | None"
) -> Iterator[str]:
    yield f"wrote {folder / CONFIG}"
    if has_task:
        yield f"wrote {folder / TASK}: check it, and describe each label"
    elif not items:
        yield "set dataset.path to the path of your benchmark"
    if items and not has_model:
        yield "rules cannot write such items: use a model with --model PROVIDER:NAME"
    elif not has_model:
        yield (
            "rules play the roles, as a demonstration only; use a model with --model PROVIDER:NAME"
        )
    go = "" if folder == Path() else f"{shlex.join(['cd', str(folder)])} && "
    yield f"next: {go}coreeval gdelt sync --days 3 --feeds gal   # news, about 90 MB"
    yield f"  or: {go}coreeval gdelt sync --from FILE|FOLDER   # news that you have"
    yield f"then: {command('validate', CONFIG)}"
