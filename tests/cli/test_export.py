"""`coreeval export` and `coreeval push`, as they are called."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from huggingface_hub import constants

from tests.cli.kit import Shell
from tests.cli.test_docs import DOCS, documented
from tests.support.hub_server import TOKEN, HubServer


@pytest.fixture
def released(shell: Shell, finished: Path) -> Path:
    """Return a release of the finished run."""
    assert (
        shell("release", finished, "--version", "1", "--out", "one", "--parent", "none").code == 0
    )
    return shell.folder / "one"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """Serve an empty hub."""
    with HubServer().running() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        yield server


def test_a_run_and_a_release_are_exported(shell: Shell, finished: Path, released: Path) -> None:
    said = shell("export", finished, "--to", "csv", "--out", "a")
    assert said.code == 0
    assert said.out.startswith("exported the run trial ")
    assert "  samples            5\n" in said.out
    told = shell("export", released, "--to", "hf", "--out", "b", "--json").document
    assert set(told) == documented("coreeval export")
    assert (told["kind"], told["version"], told["rows"]["samples"]) == ("release", "1", 5)
    assert shell("verify", "b").code == 0
    words = shell("export", released, "--to", "lm-eval", "--out", "c").out
    assert "use:    lm-eval run --include_path c --tasks coreeval_trial --model ...\n" in words


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (["--to", "xml", "--out", "a"], "usage", "'xml' is not a format"),
        (["--to", "csv", "--out", "one"], "usage", "this folder is not empty"),
        (["--to", "csv"], "usage", "--out"),
    ],
)
def test_what_cannot_be_exported(
    shell: Shell, released: Path, arguments: list[str], kind: str, message: str
) -> None:
    said = shell("export", released, *arguments, "--json")
    assert said.code == 2
    assert said.error["kind"] == kind
    assert message in said.error["message"]


@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
def test_a_release_is_pushed_with_the_token_of_the_env_file(
    shell: Shell, released: Path, hub: HubServer
) -> None:
    refused = shell("push", released, "--to", "me/trial", "--json")
    assert (refused.code, refused.error["kind"]) == (2, "credential")
    shell.write(".env", f"HF_TOKEN={TOKEN}\n")
    planned = shell("push", released, "--to", "me/trial", "--dry-run")
    assert planned.out.startswith("would update me/trial to trial 1: ")
    assert "  + release.json\n" in planned.out
    told = shell("push", released, "--to", "me/trial", "--json").document
    assert set(told) == documented("coreeval push")
    assert told["commit"] == hub.repositories["me/trial"].tags["1"]
    again = shell("push", released, "--to", "me/trial")
    assert (again.code, again.err) == (0, "")
    assert again.out.startswith("me/trial already has trial 1\n")
    assert TOKEN not in again.out


@pytest.mark.parametrize("address", ["http://[", "http://h:99999", "http://h..i", "ftp://h", ""])
def test_the_hubs_address_is_looked_at_before_its_package_is_imported(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", address)
    monkeypatch.delitem(sys.modules, "coreeval.releases.exports.hub", raising=False)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)  # its import would fail
    said = shell("push", shell.folder, "--to", "me/trial", "--json")
    assert (said.code, said.error["kind"]) == (2, "usage")
    assert said.error["message"] == "the address of the hub is not an http address"
    assert "HF_ENDPOINT" in said.error["where"]


def test_a_variable_that_the_hubs_package_cannot_read_is_told(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "coreeval.releases.exports.hub", raising=False)
    package = ModuleType("huggingface_hub")
    package.__getattr__ = lambda _: int("abc")  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "huggingface_hub", package)
    said = shell("push", shell.folder, "--to", "me/trial", "--json")
    assert (said.code, said.error["kind"]) == (2, "usage")
    assert "for the hub cannot be imported: invalid literal" in said.error["message"]
    assert "HF_" in said.error["hint"]


def test_every_format_is_documented() -> None:
    from coreeval.releases.exports.export import FORMATS

    for name in FORMATS:
        assert f"--to {name}" in DOCS["exports.md"]
