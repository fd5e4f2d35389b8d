"""What a run's databases hold that CoreEval does not write."""

from pathlib import Path

from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_check import find_odd_row
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles


def odd_row(run: Path) -> str:
    """Return what is wrong with the first odd row of a run, in either pass; "" if there is none."""
    files = RunFiles(run)
    for each in (files, files.control):
        if each.store.exists():
            with RunStore.open(each.store, now=utc_now) as store:
                if odd := find_odd_row(store.engine):
                    return odd
    return ""
