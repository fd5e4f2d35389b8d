"""The licences that rows of the user's files state."""

import pytest

from coreeval.tools.licences import forbids_changes, stated_licence


@pytest.mark.parametrize(
    "licence",
    [
        "CC BY-ND 4.0",
        "cc-by-nc-nd-4.0",
        "CC_BY_NC_ND_4_0",
        "CC  BY - ND",
        "All  rights reserved.",
        "Alle Rechte vorbehalten",
        "No derivatives",
        "no modifications",
    ],
)
def test_licences_that_forbid_changes(licence: str) -> None:
    assert forbids_changes(licence)


@pytest.mark.parametrize("licence", ["", "CC BY 4.0", "CC BY-SA 4.0", "CC0", "Apache-2.0"])
def test_licences_that_do_not(licence: str) -> None:
    assert not forbids_changes(licence)


def test_all_that_a_row_states_counts() -> None:
    row: dict[str, object] = {"licence": ["CC BY 4.0", 1], "license": "All rights reserved"}
    assert stated_licence(row) == "CC BY 4.0; All rights reserved"
    assert stated_licence({"licence": [{"name": "CC BY-ND", "urls": ["x"]}]}) == "CC BY-ND; x"
    assert stated_licence({}) == ""
