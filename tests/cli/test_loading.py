"""What a run needs is loaded without looking for garbage, and what it need not have is not."""

import gc
import subprocess
import sys

import pytest

from coreeval.cli.loading import loading

UNUSED = {
    "coreeval.agents.offline",
    "duckdb",
    "jinja2",
    "openai",
    "opentelemetry.exporter.otlp.proto.http",
    "pyarrow",
    "scipy",
    "spacy",
    "sqlalchemy.dialects.postgresql",
}
"""For the end of a run, for roles played by rules, for models and databases of another kind, for
spans that nobody asked for."""


def printed(code: str) -> list[str]:
    """Return the words that a Python of its own prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_what_is_loaded_is_not_looked_through_again() -> None:
    code = "import gc; from coreeval.cli.loading import loading\nwith loading():\n"
    code += " print(gc.isenabled()); import coreeval.schema\n"
    code += "print(gc.isenabled(), gc.get_freeze_count() > len(vars(coreeval.schema)))"
    assert printed(code) == ["False", "True", "True"]


def test_what_is_loaded_is_taken_down_in_the_end() -> None:
    """What is not collected then, extension modules report as leaks."""
    code = "from coreeval.cli.loading import loading\nwith loading():\n import duckdb"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_nothing_is_kept_for_good_where_nothing_was_loaded() -> None:
    before = gc.get_freeze_count()
    with loading():
        assert not gc.isenabled()
    assert gc.isenabled() and gc.get_freeze_count() == before


def test_garbage_is_looked_for_again_after_an_import_that_failed() -> None:
    with pytest.raises(ImportError), loading():
        raise ImportError
    assert gc.isenabled()


def test_a_run_loads_only_what_it_begins_with() -> None:
    assert UNUSED.isdisjoint(printed("import sys, coreeval.graph.run; print(*sys.modules)"))
