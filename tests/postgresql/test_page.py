"""The commands on docs/postgresql.md run."""

import json

from tests.cli.conftest import shell  # noqa: F401 - a fixture
from tests.cli.kit import CONFIG, Shell
from tests.docs.pages import PAGES, iter_commands
from tests.postgresql.server import Server


def test_the_commands_of_the_page(shell: Shell, server: Server) -> None:  # noqa: F811
    shell.write("coreeval.yaml", json.dumps(CONFIG))
    for command in iter_commands(PAGES["docs/postgresql.md"]):
        assert shell(*command.words).code == 0
    assert "coreeval_run_" in server.sql("SELECT string_agg(nspname, ' ') FROM pg_namespace")
    assert not list(shell.folder.rglob("run.db*"))
