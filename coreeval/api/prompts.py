"""The prompts of the six roles: listing, rendering and trying them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from coreeval.api.arguments import FIRST_FEW
from coreeval.api.places import RunLike, find_run
from coreeval.api.tables import CommandResult, Table, parse_columns
from coreeval.config import ConfigLike
from coreeval.errors import UsageError
from coreeval.graph.prompt_lab import lab
from coreeval.graph.prompt_lab.lab import PromptLab, RoleInputs
from coreeval.graph.prompt_lab.role_inputs import is_as_sent, parse_role, render_request
from coreeval.graph.prompt_lab.trial import (
    PromptTrial,
    PromptVariant,
    check_judges,
    list_variants,
    run_trials,
    sum_trials,
)
from coreeval.prompts import ROLES_OF_PROMPT, PromptName
from coreeval.schema import RoleName, Task
from coreeval.tasks import ALL_TARGETS, BUILT_IN, load_task
from coreeval.tools.env_file import hold_env_file
from coreeval.tools.formatting import format_quantity
from coreeval.tools.loops import run_coroutine
from coreeval.tools.trust import retry_with_trust

_CHARACTERS_PER_TOKEN: Final = 4
"""Characters per token, a rule of thumb for English; each call records the actual number."""
_GIVEN: Final = TypeAdapter(Mapping[str, object])
_PROMPT_COLUMNS: Final = parse_columns("role name file version words:integer tokens:integer")
_MESSAGE_COLUMNS: Final = parse_columns("role content")
_TRIAL_COLUMNS: Final = parse_columns("sample contender valid:boolean error answer")


def list_prompts(
    config: ConfigLike | None = None, *, prompts: Path | str | None = None
) -> CommandResult:
    """Return the prompt of each role: its file, version, length and variables.

    Args:
        config: A config with the task and prompts to show; by default the built-in ones.
        prompts: The folder of the prompts, or `built-in` for the built-in ones.

    Raises:
        ConfigError: the config cannot be read.
        PromptError: the folder has no prompts, or one of them cannot be used.
    """
    bench = None if config is None else lab.open_lab(config)
    if bench is not None and prompts is None:
        chosen = bench.setup.prompts
    else:
        chosen = lab.load_prompt_folder(str(prompts or lab.BUILT_IN))
    known = [bench.setup.task] if bench else [*map(_load_built_in, BUILT_IN)]
    rows = [
        {
            "role": ROLES_OF_PROMPT[name][0],
            "name": name,
            "file": prompt.name,
            "version": prompt.version,
            "words": len(prompt.text.split()),
            "tokens": _estimate_tokens(prompt.text),
            "variables": sorted(prompt.variables),
            "lines": {
                task.name: {
                    "words": sum(len(line.split()) for line in lines),
                    "version": chosen.version_for(name, task),
                }
                for task in known
                if (lines := _list_task_lines(name, task))
            },
        }
        for name, prompt in chosen.by_name.items()
    ]
    said = format_quantity(len(rows), "prompt")
    return CommandResult(
        {"prompts": rows}, said, Table.from_dicts("prompts", _PROMPT_COLUMNS, rows)
    )


def _list_task_lines(name: PromptName, task: Task) -> list[str]:
    """Return the lines of a task that a prompt shows."""
    return [task.lines[role] for role in ROLES_OF_PROMPT[name] if role in task.lines]


def _load_built_in(name: str) -> Task:
    return load_task(name, ALL_TARGETS if name == "stance" else None)


@hold_env_file()
def render_prompt(
    role: RoleName | str,
    *,
    task: str | None = None,
    sample: str | None = None,
    config: ConfigLike | None = None,
    run: RunLike | None = None,
    prompts: Path | str | None = None,
) -> CommandResult:
    """Return the exact messages that a model would be sent in a role, without calling it.

    Args:
        role: The role, such as `composer`.
        task: A built-in task, which is used with its bundled samples.
        sample: A sample's id; by default, the first sample that reaches this role.
        config: A config whose task, samples, news and prompts are used.
        run: A run whose last attempt provides the role's input.
        prompts: The folder of the prompts, or `built-in` for the built-in ones.

    Returns:
        A result whose table has a row for each message.

    Raises:
        UsageError: there is no such role or sample, or not exactly one task is given.
        RunStateError: there is no such run.
    """
    known, past = parse_role(role), None if run is None else find_run(run)
    with _open_lab(task, config, past, None if prompts is None else str(prompts)) as bench:
        aligned, calls = _apply_run(bench, past)
        inputs = run_coroutine(_collect(aligned, known, past, [sample] if sample else [], 1))
        one = inputs.found[0]
        shown = run_coroutine(render_request(one, bench.setup.prompts))
        sent = is_as_sent(one, shown, calls) if past else None
        prompt = bench.setup.prompts[one.prompt_name]
    document = {
        "role": one.role,
        "task": one.task.name,
        "sample": one.sample.model_dump(),
        "inputs": inputs.made_by,
        "sent": sent,
        "prompt": {
            "file": prompt.name,
            "version": prompt.version,
            "version_with_line": prompt.version_with_lines(
                *(one.task.lines.get(role, "") for role in ROLES_OF_PROMPT[one.prompt_name])
            ),
        },
        "messages": list(shown.messages),
        "tokens": sum(_estimate_tokens(message["content"]) for message in shown.messages),
        "schema": {"name": shown.schema_name, "schema": shown.schema},
    }
    said = f"{one.role} on {one.sample.id}: about {document['tokens']} tokens"
    table = Table.from_dicts("messages", _MESSAGE_COLUMNS, shown.messages)
    return CommandResult(document, said, table)


@hold_env_file()
def try_prompt(
    config: ConfigLike,
    *,
    role: RoleName | str,
    samples: Sequence[str] = (),
    limit: int | None = None,
    models: Sequence[str] = (),
    prompts: Sequence[Path | str] = (),
    run: RunLike | None = None,
    judge: bool = False,
    trust_endpoints: bool = False,
) -> CommandResult:
    """Send the prompt of one role to models for a few samples, and check the answers.

    Args:
        config: The path of a YAML config, or a config in memory.
        role: The role, such as `composer`.
        samples: The ids of samples; by default the first samples.
        limit: Use only this many samples from the start; 3 by default.
        models: Models to test, as `provider:name`; by default the config's.
        prompts: Folders of prompts to compare; by default the config's.
        run: A run whose last attempts provide the role's inputs.
        judge: Whether to send each composed text to both judges.
        trust_endpoints: Send keys and texts to the config's endpoints without confirmation, and
            remember this choice.

    Returns:
        A result whose table has a row for each sample with each combination of
            model and prompts.

    Raises:
        UsageError: there is no such role or sample, or `samples` and `limit` are both given.
        UntrustedEndpoint: a variable would be sent to an endpoint that was not approved.
        RunError: a model cannot be called.
    """
    if samples and limit:
        raise UsageError("--sample and --limit cannot be used together")
    known, past = parse_role(role), None if run is None else find_run(run)
    bench = lab.open_lab(config)

    def open_models() -> list[PromptVariant]:
        if judge:
            check_judges(bench, known)
        return list_variants(bench, known, models, [str(folder) for folder in prompts])

    asked = retry_with_trust(open_models, lambda _: trust_endpoints)
    aligned, _ = _apply_run(bench, past)
    inputs = run_coroutine(_collect(aligned, known, past, samples, limit or FIRST_FEW))
    trials = run_coroutine(run_trials(aligned, inputs.found, asked, judge=judge))
    document = {
        "role": known,
        "task": inputs.found[0].task.name,
        "inputs": inputs.made_by,
        "contenders": [_variant_document(inputs, each) for each in asked],
        "samples": [
            {
                "sample": one.sample.model_dump(),
                "given": _GIVEN.dump_python(one.given, mode="json"),
                "trials": [_trial_document(trial) for trial in row],
            }
            for one, row in zip(inputs.found, zip(*trials, strict=True), strict=True)
        ],
        "passed_over": [{"sample": one.sample_id, "reason": one.reason} for one in inputs.missed],
        "totals": [asdict(sum_trials(row)) for row in trials],
    }
    rows = [
        (one.sample.id, each.name, trial.answer is not None, trial.error, trial.said)
        for each, row in zip(asked, trials, strict=True)
        for one, trial in zip(inputs.found, row, strict=True)
    ]
    said = f"{known}: {sum(row[2] for row in rows)} of {len(rows)} answers are valid"
    return CommandResult(document, said, Table("answers", _TRIAL_COLUMNS, rows))


def _variant_document(inputs: RoleInputs, each: PromptVariant) -> dict[str, object]:
    one = inputs.found[0]
    prompt = each.prompts[one.prompt_name]
    return {
        "name": each.name,
        "model": each.model.model_dump(mode="json", exclude_none=True),
        "prompt": {
            "file": prompt.name,
            "version": each.prompts.version_for(one.prompt_name, one.task),
        },
    }


def _trial_document(trial: PromptTrial) -> dict[str, object]:
    answer = trial.answer
    return {
        "valid": answer is not None,
        "error": trial.error,
        "answer": answer.model_dump(mode="json") if answer is not None else None,
        "said": trial.said,
        "looked": asdict(trial.looked) if trial.looked else None,
        "judged": {name: asdict(looked) for name, looked in trial.judged.items()},
        "calls": [call.model_dump(mode="json") for call in trial.calls],
    }


@contextmanager
def _open_lab(
    task: str | None, config: ConfigLike | None, run: Path | None, folder: str | None
) -> Iterator[PromptLab]:
    """Open the lab of a config, of a run, or of a task's bundled samples."""
    if task is not None and (config or run):
        raise UsageError("the config or the run defines the task", hint="omit --task")
    if config or run:
        bench = lab.open_lab(config) if config else lab.open_run_lab(run or Path())
        yield lab.use_prompts(bench, folder)
    elif task is not None:
        with lab.open_bundled_lab(task) as bench:
            yield lab.use_prompts(bench, folder)
    else:
        raise UsageError("no task was chosen", hint="use --task T, --config CONFIG or --run RUN")


def _apply_run(bench: PromptLab, run: Path | None) -> tuple[PromptLab, Path]:
    """Return the lab with a run's window, and the call file of that run or of the lab."""
    return lab.align_with_run(bench, run) if run else (bench, bench.workspace.calls)


async def _collect(
    bench: PromptLab, role: RoleName, run: Path | None, ids: Sequence[str], limit: int
) -> RoleInputs:
    if run:
        return await lab.collect_run_inputs(bench, role, run, ids, limit)
    return await lab.collect_dry_inputs(bench, role, ids, limit)


def _estimate_tokens(text: str) -> int:
    return -(-len(text) // _CHARACTERS_PER_TOKEN)
