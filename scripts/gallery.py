"""Build the gallery of the site: pages of a run, a report and an audit, from bundled data.

`python -m scripts.gallery FOLDER` needs no key and no network.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from coreeval.graph.bundled import write_memory_config

CONTENTS = ("run/index.html", "run/samples.html", "memory.html", "audit.html")
"""The pages that docs/gallery.md links, in the gallery's folder."""


def build_gallery(folder: Path) -> None:
    """Write the gallery into a folder, which is emptied first.

    Raises:
        CalledProcessError: a command failed; what it printed is on stderr.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    parts: tuple[Callable[[Path, Path], None], ...] = (_show_run, _show_memory, _show_audit)
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(len(parts)) as pool:
        for done in [pool.submit(part, Path(place), folder) for part in parts]:
            done.result()
    assert all((folder / page).exists() for page in CONTENTS)


def _show_run(place: Path, folder: Path) -> None:
    """Write the pages of a recorded run, whose texts a model wrote."""
    _run(place, ["demo", "--kind", "choice", "--dir", "recorded"])
    _run(place, ["view", "recorded/quiz", "--bundle", str(folder / "run")])


def _show_memory(place: Path, folder: Path) -> None:
    """Write the report on targets of which it is known what they remember."""
    config = write_memory_config(place / "memory")
    _run(place, ["refresh", str(config), "--run-dir", "remembering"])
    shutil.copy(place / "remembering" / "report.html", folder / "memory.html")


def _show_audit(place: Path, folder: Path) -> None:
    """Write the audit of two back-tests, whose models are personas with known memory."""
    models = ["--model", "offline:memorizing", "--model", "offline:fluent"]
    period = ["--backtest", "1975:2000", "--series", "macro_unemp"]
    page = ["--page", str(folder / "audit.html")]
    _run(place, ["detect", "numleak", *period, *models, *page])


def _run(place: Path, arguments: Sequence[str]) -> None:
    command = [sys.executable, "-m", "coreeval", *arguments]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stderr)
        done.check_returncode()


if __name__ == "__main__":
    build_gallery(Path(sys.argv[1]).resolve())
