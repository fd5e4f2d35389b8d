"""The bundled news as a store: a test process makes it once, and copies it into each workspace."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from unittest import mock

from coreeval.graph.bundled import demo_data
from coreeval.tools.gdelt import local


@contextmanager
def made_once(kept: Path) -> Iterator[None]:
    """Make the store of the bundled news in `kept`, when it is first asked for; any other as ever.

    What is copied was made by the program, in a process and from files that are the same.
    """
    make, bundled, one_at_a_time = local._make, demo_data() / "news", Lock()

    def make_or_copy(store: Path, path: Path, language: str = "en") -> None:
        if path != bundled:
            make(store, path, language)
            return
        with one_at_a_time:
            if not kept.exists():
                make(kept, path)
        shutil.copytree(kept, store)

    with mock.patch.object(local, "_make", make_or_copy):
        yield
