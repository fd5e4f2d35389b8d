"""What holds for all tests: no network but loopback, no keys, nothing of a user's own."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import tests.guard.sitecustomize  # noqa: F401 - importing it installs the guard in this process

EXTRAS = Path(__file__).with_name("extras.txt")
collect_ignore = EXTRAS.read_text("utf-8").split()
"""Tests that `make test-extras` runs by name: they need torch, Ray, Jupyter or PostgreSQL, or start
so many processes (commands, workers, browsers, other harnesses) that they take minutes."""
NO_SKIPS = "COREEVAL_TEST_NO_SKIPS"
"""Set where everything that tests need is there, so that a skipped test is a mistake."""
_OWN = (
    "COREEVAL_HOME",
    "COREEVAL_STORE_URL",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_SDK_DISABLED",
)
GUARD = str(Path(__file__).parent / "guard")
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # pytest-xdist has a process for each core already
os.environ["PYTHONPATH"] = os.pathsep.join(
    dict.fromkeys([GUARD, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
)

settings.register_profile(
    "any speed",
    deadline=None,
    derandomize=True,  # a failure is the same for everybody, and none comes by luck
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any speed")


def _clean(patch: pytest.MonkeyPatch, home: Path) -> None:
    """Take away what a developer's shell or a test's .env may have put into the environment."""
    for name in _OWN:
        patch.delenv(name, raising=False)
        patch.delenv(name.lower(), raising=False)
    patch.setenv("HOME", str(home))
    patch.setenv("LANGSMITH_TRACING", "false")


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty home directory, set before any fixture of a wider scope runs."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        _clean(patch, folder)
        yield folder


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Give each test the same environment, whatever the one before it has read from a .env."""
    _clean(monkeypatch, home)


@pytest.fixture(autouse=True)
def no_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have runs find no embeddings on this machine, which take seconds for each report."""
    monkeypatch.setattr("coreeval.runs.comparison.EMBEDDER", "none")


@pytest.fixture(scope="session", autouse=True)
def bundled_news(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Make the bundled news ready for searching once, not in each workspace."""
    from tests.support.news import made_once  # here, because numpy counts its threads on import

    with made_once(tmp_path_factory.mktemp("bundled-news") / "store"):
        yield


def pytest_collection_finish() -> None:
    """Search for garbage seldom, and not among what is imported by now, which makes it long."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a session that skipped tests where none may be skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get(NO_SKIPS) and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
