"""The task of an existing run: its own copy of the task file, which later changes do not reach."""

from pathlib import Path

from coreeval.config import Config
from coreeval.config.user_files import read_text
from coreeval.errors import RunStateError
from coreeval.runs.manifest import Manifest
from coreeval.schema import Task
from coreeval.tasks import BUILT_IN, hash_task, load_task
from coreeval.tools.files import write_text
from coreeval.tools.workspace import RunFiles


def keep_task_file(files: RunFiles, run: Manifest, config: Config) -> str:
    """Copy the user's task file into a new run, and return `find_task_file`.

    Raises:
        RunStateError: the file has changed since it was read for the manifest.
    """
    if config.task not in BUILT_IN:
        write_text(files.task, read_text(Path(config.task)))
        load_run_task(files, run, config)
    return find_task_file(files, config)


def find_task_file(files: RunFiles, config: Config) -> str:
    """Return the name of a run's built-in task, or the path of its task file.

    Runs of older versions have no copy, and use the user's file.
    """
    return str(files.task) if files.task.exists() else config.task


def load_run_task(files: RunFiles, run: Manifest, config: Config) -> Task:
    """Return the task of a run.

    Raises:
        TaskError: its file is missing or has a mistake.
        RunStateError: it is not the one that the run began with.
    """
    path = find_task_file(files, config)
    task = load_task(path, config.dataset.target, config.dataset.language)
    refuse_changed_task(task, run, where=path)
    return task


def refuse_changed_task(task: Task, run: Manifest, *, where: str) -> None:
    """Refuse to use an existing run with another task.

    Raises:
        RunStateError: the task is not the one that the run began with.
    """
    if hash_task(task) != run.fingerprints.task:
        raise RunStateError(
            "the task has changed since the run",
            where=where,
            hint="restore the task file, or refresh with the new one",
        )
