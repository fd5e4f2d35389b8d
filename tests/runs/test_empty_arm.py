"""A run that accepted nothing: it is not released unasked, and no config without rows is named."""

from pathlib import Path

import pytest
import yaml
from datasets import get_dataset_config_names, load_dataset  # type: ignore[import-untyped]

from coreeval.cli.app import main
from coreeval.errors import GateNotMet
from coreeval.releases.exports.export import export
from coreeval.releases.verify import verify
from coreeval.schema import Outcome
from tests.releases import kit
from tests.releases.exports.conftest import assemble
from tests.releases.kit import Made, make_run


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """Return a complete run with 0 accepted samples and no reworded ones."""
    ends: tuple[tuple[Outcome, str], ...] = (("rejected_facts", ""),) * len(kit.ENDS)
    monkeypatch.setattr(kit, "ENDS", ends)
    return make_run(tmp_path)


def configs_of(folder: Path) -> list[dict[str, object]]:
    head = (folder / "README.md").read_text("utf-8").split("---\n")[1]
    found: list[dict[str, object]] = yaml.safe_load(head)["configs"]
    return found


def test_it_is_refused_and_nothing_is_left(empty: Made) -> None:
    with pytest.raises(GateNotMet, match="0 of 6 samples are accepted") as caught:
        empty.release("1")
    assert caught.value.exit_code == 4
    assert caught.value.hint.endswith("--allow-empty-arm")
    assert ": coreeval release " in caught.value.hint
    assert not list(empty.shelf.glob("*[!k]"))


def test_the_command_ends_with_4_unless_it_is_allowed(
    empty: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["release", str(empty.files.root), "--version", "1"]
    assert main(asked) == 4
    assert "--allow-empty-arm" in capsys.readouterr().err
    assert main([*asked, "--allow-empty-arm"]) == 0


def test_what_stands_in_for_rejected_samples_is_no_new_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kit, "ENDS", (("rejected_facts", ""),) * len(kit.ENDS))
    filled = make_run(tmp_path, run={"on_reject": "semantic"})
    with pytest.raises(GateNotMet, match="no new text"):
        filled.release("1")


def test_accepted_samples_that_are_left_out_do_not_count(tmp_path: Path) -> None:
    made = make_run(tmp_path)
    listed = tmp_path / "takedown.txt"
    listed.write_text(f"{0:016x}\n{1:016x}\n")
    with pytest.raises(
        GateNotMet,
        match="3 of 6 samples are accepted, but all of these are withheld",
    ):
        made.release("1", takedown=listed)


def test_no_config_without_rows_is_declared(empty: Made, tmp_path: Path) -> None:
    release = empty.release("1", allow_empty_arm=True)
    names = {one["config_name"] for one in configs_of(release.path)}
    assert names == {arm for arm, rows in release.manifest.arms.items() if rows}
    assert "updated" not in names and "samples" in names
    assert verify(release.path).ok
    made = export(release.path, to="hf", out=tmp_path / "hf")
    assert set(made.rows) == names and 0 not in made.rows.values()
    assert sum(one.get("default", False) is True for one in configs_of(made.out)) == 1
    cache = str(tmp_path / "cache")
    for name in get_dataset_config_names(str(made.out)):
        assert load_dataset(str(made.out), name, split="test", cache_dir=cache).num_rows > 0


def test_a_hint_names_an_arm_with_rows(
    empty: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assemble(empty)
    assert (
        main(["export", str(empty.files.root), "--to", "lm-eval", "--out", str(tmp_path / "l")])
        == 0
    )
    release = empty.release("1", allow_empty_arm=True).path
    capsys.readouterr()
    assert main(["export", str(release), "--to", "hf", "--out", str(tmp_path / "h")]) == 0
    assert "'updated'" not in capsys.readouterr().out
