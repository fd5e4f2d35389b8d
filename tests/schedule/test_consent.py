"""Hooks run, and keys are sent, only as somebody has agreed to."""

from pathlib import Path

import pytest

from coreeval.schedule.consent import (
    accept_hooks,
    accept_stated,
    consent_digest,
    hooks_digest,
    require_consent,
)
from coreeval.schedule.plan import planned
from coreeval.tools.endpoints import EndpointPair
from coreeval.tools.trust import TrustRecord
from tests.schedule.kit import Office

CRON = "0 3 * * MON"
HOOKED = {"cron": CRON, "hooks": {"success": ["touch ran"], "failure": ["touch ran"]}}


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path / "office", schedule=HOOKED, consent=require_consent)


def accept(office: Office) -> None:
    with planned(office.config) as plan:
        accept_hooks(plan)


def test_hooks_that_nobody_accepted_are_not_run_and_nothing_else_is_done(office: Office) -> None:
    done = office.look_once()
    assert (done.ending, done.exit_code) == ("failed", 2)
    assert done.trouble and done.trouble.kind == "unaccepted_hooks"
    assert "touch ran" in done.trouble.message
    assert "schedule install" in done.trouble.hint and "--accept-hooks" in done.trouble.hint
    assert (office.did, office.told, office.state.begun) == ([], [], None)


def test_accepted_hooks_are_run_until_they_change(office: Office) -> None:
    accept(office)
    assert office.look_once().ending == "released" and len(office.told) == 1
    for changed in (
        {"success": ["touch ran; rm -rf x"], "failure": ["touch ran"]},
        {"success": [{"command": "touch ran", "tries": 4}], "failure": ["touch ran"]},
        {"success": ["touch ran"], "gate": ["touch ran"]},
        {"success": [{"webhook_env": "OTHER"}]},
    ):
        office.schedule = {"cron": "*/5 * * * *", "hooks": changed}
        office.write()
        done = office.look_once()
        assert (done.exit_code, len(office.told)) == (2, 1)
        assert done.trouble and done.trouble.kind == "unaccepted_hooks"


def test_a_schedule_without_hooks_needs_no_consent(office: Office) -> None:
    office.schedule = CRON
    office.write()
    assert office.look_once().ending == "released"


def test_a_look_that_finds_nothing_due_asks_for_nothing(office: Office) -> None:
    accept(office)
    office.look()
    office.schedule = {**HOOKED, "hooks": {"success": ["another"]}}
    office.write()
    done = office.look_once()
    assert (done.ending, done.exit_code) == ("nothing", 0)


def test_hooks_of_another_name_or_workspace_are_others(office: Office, tmp_path: Path) -> None:
    accept(office)
    other = Office(tmp_path / "other", schedule=HOOKED, consent=require_consent)
    assert other.look_once().exit_code == 2
    other.workspace.root.mkdir(parents=True, exist_ok=True)
    other.workspace.trust_file.write_bytes(office.workspace.trust_file.read_bytes())
    assert other.look_once().exit_code == 2


def test_hooks_of_another_folder_are_others_in_the_same_workspace(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`touch ran`, or `./notify.sh`, is run in the config's folder."""
    monkeypatch.setenv("COREEVAL_HOME", str(tmp_path / "home"))
    accept(office)
    other = Office(tmp_path / "other", schedule=HOOKED, consent=require_consent)
    with planned(office.config) as first, planned(other.config) as second:
        assert first.workspace.root == second.workspace.root
        assert hooks_digest(first) == hooks_digest(second)
    done = other.look_once()
    assert done.exit_code == 2 and other.told == []
    assert done.trouble and done.trouble.kind == "unaccepted_hooks"
    accept(other)
    for each in (other, office):
        with planned(each.config) as plan:
            require_consent(plan)


def test_an_endpoint_that_nobody_agreed_to_ends_the_look(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_KEY", "k")
    office.schedule = CRON
    office.write()
    model = "{model: 'openai:m', base_url: 'https://x.example/v1', api_key_env: OTHER_KEY}"
    text = office.config.read_text().replace("default: offline", f"default: {model}")
    office.config.write_text(text)
    done = office.look_once()
    assert done.trouble and done.trouble.kind == "untrusted_endpoint" and done.exit_code == 2
    assert office.did == []
    pair = EndpointPair("OTHER_KEY", "https://x.example")
    TrustRecord(office.workspace).trust_endpoints([pair])
    assert office.look_once().ending == "released"


def test_a_stated_digest_stands_for_hooks_and_endpoints(office: Office) -> None:
    with planned(office.config) as plan:
        digest = consent_digest(plan)
        accept_stated(plan, ["0" * 64, hooks_digest(plan)])
    assert office.look_once().exit_code == 2
    with planned(office.config) as plan:
        accept_stated(plan, [digest])
    assert office.look_once().exit_code == 0
