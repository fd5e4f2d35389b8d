"""The paths in the workspace beside the config, and the files of one run."""

import os
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, count
from pathlib import Path
from typing import Final

from coreeval.errors import RunCorrupt, RunError, RunStateError
from coreeval.paths import expand_home
from coreeval.tools.files import special_files_among, special_kind
from coreeval.tools.stores.heartbeat import open_readonly
from coreeval.tools.stores.places import has_store

HOME_VARIABLE = "COREEVAL_HOME"
WORKSPACE_NAME: Final = ".coreeval"
"""The name of the workspace beside a config."""
ASKED_FOLDERS = ("pcr", "numleak")
"""Folders of a workspace or run with targets' answers, which a command can write again."""
MOST_FILE_BYTES: Final = 512 << 20
"""The most bytes of a file that is read whole, such as a log of decisions (own choice)."""
_PAID_BY = "SELECT 1 FROM calls WHERE paid_by = ? LIMIT 1"
_SENT_BY = "SELECT 1 FROM batches WHERE payer = ? LIMIT 1"


@dataclass(frozen=True)
class Workspace:
    """The folder shared by all runs of one config folder.

    The folder itself may be a link; it may come from somebody else, beside a run or a config.

    Raises:
        RunCorrupt: on the path of a file that is read whole: the file, or its folder, is a link,
            pipe or device, or the file is too large.
    """

    root: Path

    def _whole_file(self, name: str) -> Path:
        """Return the path of a file that is read whole; it may not exist yet."""
        for path in (self.root / Path(name).parts[0], self.root / name):
            if kind := special_kind(path) or _describe_excess(path):
                raise RunCorrupt(
                    f"this workspace contains {kind}, which CoreEval never creates; nothing was "
                    "read or written",
                    where=str(path),
                    hint="delete it, or replace it with a file; if you do not know where this "
                    "workspace comes from, do not use it",
                )
        return self.root / name

    @property
    def calls(self) -> Path:
        """The call store."""
        return self.root / "calls.db"

    @property
    def project(self) -> Path | None:
        """Return the folder that has the workspace; None for one of another name."""
        return self.root.parent if self.root.name == WORKSPACE_NAME else None

    def record_path(self, path: str) -> str:
        """Return a path to store in the workspace: relative to the project if it is inside.

        In a copied or renamed project, `find_path` then returns the path in the present folder.
        """
        if not path or self.project is None:
            return path
        project, place = self.project.resolve(), Path(path).parent.resolve() / Path(path).name
        return str(place.relative_to(project)) if place.is_relative_to(project) else path

    def find_path(self, recorded: str) -> str:
        """Return the present path of one that `record_path` returned."""
        return recorded and str(self.root.absolute().parent / recorded)

    @property
    def trust_file(self) -> Path:
        """The record of accepted variables sent to endpoints, hooks and plugins."""
        return self._whole_file("trusted.json")

    @property
    def takedown(self) -> Path:
        """Names that must not be used in this workspace, even if a config contains them."""
        return self._whole_file("takedown.txt")

    @property
    def gdelt(self) -> Path:
        """The data created from GDELT files."""
        return self.root / "gdelt"

    @property
    def news(self) -> Path:
        """The local news store, unless the config names another."""
        return self.gdelt / "store"

    @property
    def cache(self) -> Path:
        """The cache, whose data can be fetched again if lost."""
        return self.root / "cache"

    @property
    def runs(self) -> Path:
        """The runs, by name and start."""
        return self.root / "runs"

    def new_run(self, name: str, start: datetime) -> Path:
        """Return a directory named after the start, numbered if two start in the same second."""
        folder, stamp = self.runs / name, start.strftime("%Y%m%dT%H%M%SZ")
        names = chain([stamp], (f"{stamp}-{number}" for number in count(2)))
        return next(folder / name for name in names if not (folder / name).exists())

    @property
    def releases(self) -> Path:
        """The releases, by name and version."""
        return self.root / "releases"

    def decisions(self, name: str) -> Path:
        """Return the log of people's decisions about the texts of a benchmark."""
        return self._whole_file(f"reviews/{name}.jsonl")

    def notes(self, name: str) -> Path:
        """Return the log of people's notes on the samples of a benchmark."""
        return self._whole_file(f"reviews/{name}.notes.jsonl")

    def reviewed_releases(self, name: str) -> Path:
        """Return the digests of the reviewed releases of a benchmark that were created here."""
        return self._whole_file(f"reviews/{name}.releases")

    @property
    def pcr(self) -> Path:
        """The answers of targets about benchmarks of items, by the config's name."""
        return self.root / "pcr"

    @property
    def numleak(self) -> Path:
        """The answers of targets about series, by the config's name."""
        return self.root / "numleak"

    @property
    def scores(self) -> Path:
        """The scores of local weights for texts outside any run."""
        return self.root / "scores"

    @property
    def series(self) -> Path:
        """The files of published series."""
        return self.root / "series"

    @property
    def asking_payers(self) -> set[str]:
        """The payers in the call store of the questions in `pcr` and `numleak`."""
        items = {item_payer(path.name) for path in self.pcr.glob("*/")}
        return items | {series_payer(path.name) for path in self.numleak.glob("*/")}

    def estimate(self, name: str) -> Path:
        """Return the last estimate of a config."""
        return self._whole_file(f"estimates/{name}.json")


def _describe_excess(path: Path) -> str:
    with suppress(OSError):
        if path.lstat().st_size > MOST_FILE_BYTES:
            return f"a file of more than {MOST_FILE_BYTES >> 20} MiB"
    return ""


def has_asked_answers(path: Path) -> bool:
    """Return whether a file has targets' answers, by its place in a workspace or run.

    `WORKSPACE/pcr/NAME/FILE`, `WORKSPACE/numleak/NAME/FILE` and `RUN/numleak/FILE` have them.
    """
    folder = path.parent
    if folder.parent.name in ASKED_FOLDERS and is_workspace(folder.parents[1]):
        return True
    return folder.name in ASKED_FOLDERS and has_store(folder.with_name("run.db"))


def name_payer(run: str, now: str, cassette: str = "") -> str:
    """Return the payer in the call store for the calls of a run, by its name and its clock."""
    return f"{run}@{now}#{cassette}" if cassette else f"{run}@{now}"


def item_payer(name: str) -> str:
    """Return the payer in the call store for the questions of a config about items."""
    return f"pcr@{name}"


def series_payer(name: str) -> str:
    """Return the payer in the call store for the questions of a config about series."""
    return f"numleak@{name}"


def name_target_file(model: str) -> str:
    """Return the name of a target's file, without characters that file systems do not allow."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", model)[-100:]


def workspace_for(base: Path) -> Workspace:
    """Return `COREEVAL_HOME` if it is set, else `.coreeval` in `base`."""
    home = os.environ.get(HOME_VARIABLE)
    return Workspace(expand_home(home) if home else base / WORKSPACE_NAME)


def find_workspace(recorded: Path, run: Path, payer: str) -> Path:
    """Return the workspace of a run; a foreign manifest may name any folder.

    The first existing folder of these is returned: the one that `COREEVAL_HOME` names, if the run
    paid there and not in the one that contains it; the one that contains the run; the one beside
    the run or the recorded one, if the run paid there; the one that `COREEVAL_HOME` names; the
    recorded one; the one beside the run. If none exists, the recorded one is returned.

    Args:
        recorded: The workspace in the run's manifest.
        run: The run's directory.
        payer: The run's name in the call store.
    """
    beside, home = run.parent / WORKSPACE_NAME, os.environ.get(HOME_VARIABLE)
    around = _enclosing_workspace(run)
    paid = (place for place in (beside, recorded) if knows_payer(place, payer))
    named = [expand_home(home)] if home else []
    # Lazy: `calls gc` has the call store locked, and opening it would wait for the lock.
    copied_from = (place for place in named if _paid_there(place, around, payer))
    likely = filter(is_workspace, chain(copied_from, around, paid))
    others = (place for place in (recorded, beside) if is_workspace(place))
    places = chain(likely, filter(Path.exists, named), others)
    return next(places, beside if recorded.exists() else recorded)


def _paid_there(place: Path, around: Sequence[Path], payer: str) -> bool:
    """Return whether a run has paid in a workspace, and not in the one that contains the run."""
    return any(
        place.resolve() != one.resolve()
        and knows_payer(place, payer)
        and not knows_payer(one, payer)
        for one in around
    )


def leads_elsewhere(workspace: Path, run: Path, payer: str) -> bool:
    """Return whether only a run's manifest links the run to a workspace.

    This is so if the workspace is neither named by `COREEVAL_HOME` nor that of this folder, the run
    is neither in it nor beside it, and its call store does not know the run.
    """
    near = {place.resolve() for place in find_own_workspaces(run)}
    inside = workspace.resolve().is_relative_to(run)
    return not (inside or workspace.resolve() in near or knows_payer(workspace, payer))


def find_own_workspaces(run: Path) -> list[Path]:
    """Return the workspaces that a run's location implies, regardless of its manifest.

    They are the workspace of this folder or of `COREEVAL_HOME`, the one that contains the run, and
    the one beside it; they may not exist. The same holds for a release.
    """
    own = workspace_for(Path.cwd()).root
    return [own, *_enclosing_workspace(run.resolve()), run.parent / WORKSPACE_NAME]


def knows_payer(workspace: Path, payer: str) -> bool:
    """Return the same as `has_paid_answers`; False if the call store cannot be read."""
    try:
        return has_paid_answers(workspace, payer)
    except RunError:
        return False


def has_paid_answers(workspace: Path, payer: str) -> bool:
    """Return whether the call store of a workspace has an answer or a batch that a run paid for.

    Raises:
        RunCorrupt: the call store is damaged.
        RunError: the call store cannot be used now.
    """
    if not _has_calls(workspace):
        return False
    with open_readonly(Workspace(workspace).calls, what="the call store") as store:
        return any(store.execute(each, (payer,)).fetchone() for each in (_PAID_BY, _SENT_BY))


def _enclosing_workspace(run: Path) -> list[Path]:
    """Return the workspace that contains a run, if there is one: `WORKSPACE/runs/NAME/START`.

    A release is in `WORKSPACE/releases/NAME/VERSION`.
    """
    inside = run.parent.parent.name in ("runs", "releases") and is_workspace(run.parents[2])
    return [run.parents[2]] if inside else []


def is_workspace(place: Path) -> bool:
    """Return whether a folder is a workspace, by its name or by its contents."""
    return (place.name == WORKSPACE_NAME and place.is_dir()) or _has_calls(place)


def _has_calls(place: Path) -> bool:
    """Return whether a folder has a call store; False if it may not be read."""
    try:
        return has_store(Workspace(place).calls)
    except OSError:
        return False


def user_cache() -> Path:
    """Return the folder that all workspaces of a user share, following XDG."""
    home = os.environ.get("XDG_CACHE_HOME")
    return expand_home(home or "~/.cache") / "coreeval"


_OF_A_PASS = (
    "run.store.json",
    *(
        f"{name}{end}"
        for name in ("run.db", "checkpoints.db")
        for end in ("", "-wal", "-shm", "-journal")
    ),
)
RUN_FILES: Final = (
    *_OF_A_PASS,
    *(f"control/{name}" for name in _OF_A_PASS),
    *("config.yaml", "task.yaml", "series.json", "manifest.json", "run.lock", ".takedown"),
    *("report.json", "report.html", "items.csv", "annotation.json", "tags.txt"),
)
"""The files of a run directory outside `dataset`, `numleak` and `detectors`."""
_OF_A_RUN = (*RUN_FILES, "dataset", "numleak", "detectors")


@dataclass(frozen=True)
class RunFiles:
    """The files of a run directory (a contract: other programs read them).

    The directory itself may be a link; the files in it may come from somebody else.

    Raises:
        RunStateError: one of a run's files, or one of their folders, is a link, pipe or device.
    """

    root: Path

    def __post_init__(self) -> None:
        for path in special_files_among(self.root, _OF_A_RUN):
            raise RunStateError(
                f"this run's folder contains {special_kind(path)}, which CoreEval never creates; "
                "nothing was read or written",
                where=str(path),
                hint="delete it, or replace it with a file; if you do not know where this run "
                "comes from, do not resume it",
            )

    @property
    def config(self) -> Path:
        """The config as used by the run, with absolute paths."""
        return self.root / "config.yaml"

    @property
    def task(self) -> Path:
        """A copy of the user's task file; runs of built-in tasks, and older ones, have none."""
        return self.root / "task.yaml"

    @property
    def series(self) -> Path:
        """A copy of the series that targets were asked about; runs without NumLeak have none."""
        return self.root / "series.json"

    @property
    def manifest(self) -> Path:
        """The inputs, settings and result of the run."""
        return self.root / "manifest.json"

    @property
    def store(self) -> Path:
        """The samples, their results and steps."""
        return self.root / "run.db"

    def require_store(self) -> Path:
        """Return `store` of a run that had one; opening a missing one would hide the loss.

        Raises:
            RunCorrupt: the store is missing.
        """
        if not has_store(self.store):
            raise RunCorrupt(
                "run.db is missing from a run that had one",
                where=str(self.store),
                hint="restore it from a copy, or start a new run",
            )
        return self.store

    @property
    def checkpoints(self) -> Path:
        """LangGraph's checkpoints of samples in flight."""
        return self.root / "checkpoints.db"

    @property
    def control(self) -> "RunFiles":
        """The samples, results and checkpoints of the pass that writes the control arm."""
        return RunFiles(self.root / "control")

    @property
    def lock(self) -> Path:
        """The lock held by the process that works on the run."""
        return self.root / "run.lock"

    @property
    def takedown_mark(self) -> Path:
        """A file of digests that exists from the start of a takedown until all names are erased."""
        return self.root / ".takedown"

    @property
    def dataset(self) -> Path:
        """The arms, the provenance and the dataset card."""
        return self.root / "dataset"

    @property
    def numleak(self) -> Path:
        """The answers of targets about series, one file per target."""
        return self.root / "numleak"

    def detector_document(self, name: str) -> Path:
        """Return the file of a detector's finding; only detectors without a node have one."""
        return self.root / "detectors" / f"{name}.json"

    def detector_folder(self, name: str) -> Path:
        """Return the folder of a detector's measurements so far, from which the finding is made."""
        return self.root / "detectors" / name

    @property
    def report_json(self) -> Path:
        """The report for programs."""
        return self.root / "report.json"

    @property
    def items(self) -> Path:
        """The table of samples beside the report."""
        return self.root / "items.csv"

    @property
    def tags(self) -> Path:
        """The user's tags of the run, one per line."""
        return self.root / "tags.txt"

    @property
    def annotation(self) -> Path:
        """People's annotations of the texts."""
        return self.root / "annotation.json"

    @property
    def report_html(self) -> Path:
        """The report for people."""
        return self.root / "report.html"


def command(name: str, run: Path) -> str:
    """Return a command line for a run, to copy."""
    return shlex.join(["coreeval", name, str(run)])
