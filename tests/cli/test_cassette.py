"""`coreeval cassette`: a run as one file, shown, repeated and compared, as its user sees it."""

import shutil
from pathlib import Path

import pytest

from coreeval.releases.cassettes.format import CassetteLine, SampleLine
from coreeval.releases.cassettes.read import open_cassette
from coreeval.releases.create import make_release
from tests.cli.kit import Shell
from tests.cli.test_docs import documented
from tests.support.cassettes import remade


@pytest.fixture(scope="module")
def made(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cassette, texts and all, of a run whose roles rules played."""
    from coreeval.graph.cassettes.record import record

    path = tmp_path_factory.mktemp("cassette") / "a.cassette"
    record(finished, path, texts=True)
    return path


def test_a_run_goes_into_a_file_and_out_again(shell: Shell, finished: Path) -> None:
    said = shell("cassette", "export", finished, "--out", "a", "--texts", "--json")
    assert (said.code, said.err) == (0, "")
    assert set(said.document) == documented("coreeval cassette export")
    assert said.document["texts"] and not said.document["licence"]["redistribute"]
    shown = shell("cassette", "show", "a", "--json").document
    assert set(shown) == documented("coreeval cassette show")
    assert shown["digest"] == said.document["digest"]
    assert shown["lines"]["name"] and shown["lines"]["train"] and shown["made_with"]["spacy"]
    again = shell("cassette", "replay", "a", "--out", "b", "--json")
    assert (again.code, again.document["equal"]) == (0, True)
    assert set(again.document) == documented("coreeval cassette replay")
    assert [file["rows"] for file in again.document["files"]] == [2, 1, 2]
    assert shell("trace", "b", "emotion/test/1").code == 0
    assert shell("runs", "delete", "b", "--yes", "--json").document["kept"] == []
    assert not (shell.folder / "b").exists()


def test_the_words_say_what_may_be_passed_on(shell: Shell, finished: Path) -> None:
    said = shell("cassette", "export", finished, "--out", "a").out
    assert "texts:   not included" in said and "--dataset PATH" in said and "TweetEval" in said
    kept = shell("cassette", "export", finished, "--out", "a", "--texts").out
    assert (
        "texts:   included, although their licence forbids sharing them; omit" in kept
        and "--dataset" not in kept
    )
    shown = shell("cassette", "show", "a").out
    assert "snippets: in full, as shown to the rules" in shown
    assert "with their texts" in shown and "digest:" in shown


def test_kept_samples_need_no_release(shell: Shell, finished: Path) -> None:
    release = make_release(finished, version="1", out=shell.folder / "shelf" / "1")
    config = shell.config()
    done = shell("refresh", config, "--limit", "5", "--run-dir", "r", "--from", release.path)
    assert done.code == 0
    for path in (release.path, *release.path.rglob("*")):
        path.chmod(0o755)
    shutil.rmtree(release.path)
    shell("cassette", "export", "r", "--out", "a", "--texts")
    shown = shell("cassette", "show", "a").out
    assert "2 kept from release 1: their recorded results are used" in shown
    said = shell("cassette", "replay", "a", "--out", "b", "--json").document
    assert said["equal"] and said["stated"] == 2


def test_a_difference_is_an_exit_code_and_a_place(shell: Shell, made: Path) -> None:
    def other(line: CassetteLine) -> CassetteLine:
        if not isinstance(line, SampleLine):
            return line
        sample = line.sample.model_copy(update={"label": 1, "label_text": "joy"})
        return line.model_copy(update={"sample": sample})

    versions = open_cassette(made).head.made_with.model_copy(update={"pyarrow": "1.0"})
    remade(open_cassette(made), shell.folder / "c", other, made_with=versions)
    said = shell("cassette", "replay", "c", "--out", "d")
    assert said.code == 1
    assert "DIFFERS" in said.out and "bytes DIFFER" in said.out
    assert "first difference in row 1, emotion/test/" in said.out
    assert "recorded with pyarrow 1.0, replayed with" in said.out


def test_a_sample_that_is_none_of_the_task_is_refused(shell: Shell, made: Path) -> None:
    def other(line: CassetteLine) -> CassetteLine:
        if not isinstance(line, SampleLine):
            return line
        return line.model_copy(
            update={"sample": line.sample.model_copy(update={"label_text": "\x1b[31mJOY"})}
        )

    remade(open_cassette(made), shell.folder / "c", other)
    said = shell("cassette", "replay", "c", "--out", "d")
    assert said.code == 2 and "is not a sample of the task emotion" in said.err
    assert "\x1b" not in said.err and not (shell.folder / "d").exists()


def test_what_this_version_does_not_know_needs_another(shell: Shell, made: Path) -> None:
    cassette = open_cassette(made)
    later = cassette.head.config.model_copy(update={"safety": {"aliens": "skip"}})
    versions = cassette.head.made_with.model_copy(update={"coreeval": "9.9"})
    remade(cassette, shell.folder / "c", lambda line: line, config=later, made_with=versions)
    error = shell("cassette", "replay", "c", "--out", "d", "--json").error
    assert (
        "this version of CoreEval cannot replay the recording: unknown key 'safety.aliens'"
        in error["message"]
    )
    assert error["hint"].endswith("pip install coreeval==9.9")
    assert not (shell.folder / "d").exists()


def test_what_a_cassette_states_is_shown_on_its_own_line(shell: Shell, made: Path) -> None:
    cassette = open_cassette(made)
    head, forged = cassette.head, "\ndigest:   " + "0" * 64
    remade(
        cassette,
        shell.folder / "c",
        lambda line: line,
        run=head.run.model_copy(update={"run": f"r{forged}", "task": f"t{forged}"}),
        made_with=head.made_with.model_copy(update={"coreeval": f"9{forged}", "python": "3\r\n4"}),
        files=tuple(
            each.model_copy(update={"sha256": each.sha256 + forged}) for each in head.files
        ),
        models={f"{role}{forged}": model for role, model in head.models.items()},
    )
    plain = shell("cassette", "show", made).out.splitlines()
    shown = shell("cassette", "show", "c").out.splitlines()
    starts = [line.split(":")[0] for line in plain]
    assert [line.split(":")[0] for line in shown[1:]] == starts[1:]
    assert sum(line.startswith("digest:") for line in shown) == 1


def test_what_is_wrong_is_told(shell: Shell, finished: Path) -> None:
    for command in (("show", "none"), ("replay", "none", "--out", "x")):
        error = shell("cassette", *command, "--json").error
        assert (error["kind"], error["message"]) == (
            "cassette",
            "cannot read the cassette: No such file or directory",
        )
    shell.write("text", "not a cassette")
    assert "this is not a cassette" in shell("cassette", "show", "text").err
    nowhere = shell("cassette", "export", shell.folder, "--out", "a", "--json")
    assert (nowhere.code, nowhere.error["kind"]) == (2, "run_state")
    assert not (shell.folder / "x").exists()
