"""Words of others in what is published: shown as they are, without a meaning of their own."""

import csv
import re
from pathlib import Path

import pytest
import yaml

from coreeval.config import load_config
from coreeval.evaluation.report.report_document import write_items
from coreeval.releases.release import Release
from coreeval.releases.release_card import release_card
from coreeval.releases.release_manifest import Licence
from coreeval.releases.sample_tables import add_dataset_info
from coreeval.runs.card import describe_comparability, describe_cost, write_card
from coreeval.runs.manifest import Cost, read_manifest
from coreeval.runs.quality import Findings
from coreeval.tasks import load_task
from coreeval.tools.markdown import (
    code_span,
    code_table_cell,
    dump_front_matter,
    escape,
    web_address,
)
from coreeval.tools.text import UNSEEN, visible, visible_value
from tests.releases.gates.kit import COMPARABILITY
from tests.releases.kit import Made, make_run

HOSTILE = (
    "a\u202eb\x1b[31m\u200bc\n---\n# <script>alert(1)</script> [x](javascript:1) | `y` ![z](u)"
)
BIDI = "\u202egnp.exe\u2066"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def released(made: Made) -> Release:
    return made.release("1")


def assert_tame(card: str) -> None:
    """Check a card whose foreign words are all `HOSTILE`."""
    assert not UNSEEN.search(card)
    head, body = card.split("\n---\n", 1)
    assert yaml.safe_load(head.removeprefix("---\n"))["configs"]
    assert "alert(1)" in body
    bare = re.sub(r"`[^`\n]*`|\\[<>\[\]`|]", "", body)  # without code and what is escaped
    for meaning in ("<script", "](javascript", "![z", "\n# <", "| `y`"):
        assert meaning not in bare, meaning


def test_the_card_of_a_release(released: Release) -> None:
    task = released.task
    labels = tuple(
        one.model_copy(update={"name": f"{HOSTILE}{one.id}", "meaning": HOSTILE})
        for one in task.labels
    )
    task = task.model_copy(update={"description": HOSTILE, "labels": labels})
    licence = Licence(name=HOSTILE, url=f"javascript:{HOSTILE}", source=HOSTILE)
    manifest = released.manifest.model_copy(
        update={
            "licence": licence,
            "run": HOSTILE,
            "models": {"composer": {"model": HOSTILE}},
            "prompts": {"composer": HOSTILE},
        }
    )
    card = release_card(task, manifest)
    assert_tame(card)
    front = yaml.safe_load(card.split("\n---\n")[0].removeprefix("---\n"))
    assert "\n" not in front["license_name"] and "license_link" not in front
    assert "javascript:a" not in card


def test_the_card_of_a_run(made: Made, released: Release, tmp_path: Path) -> None:
    task = released.task.model_copy(update={"description": HOSTILE})
    manifest = read_manifest(made.files.manifest).model_copy(update={"run": HOSTILE})
    rows = {"updated": 3, "semantic": 3, "provenance": 3}
    write_card(tmp_path, task, load_config(made.files.config), manifest, rows)
    assert_tame((tmp_path / "README.md").read_text("utf-8"))
    measures = tuple(e.model_copy(update={"part": HOSTILE}) for e in COMPARABILITY.measures)
    alike = COMPARABILITY.model_copy(update={"sentences": (HOSTILE,), "measures": measures})
    write_card(tmp_path, task, load_config(made.files.config), manifest, rows, comparability=alike)
    assert_tame((tmp_path / "README.md").read_text("utf-8"))


def test_cards_say_whether_the_arms_are_comparable(made: Made, released: Release) -> None:
    section = describe_comparability(COMPARABILITY)
    assert "**The updated arm is not comparable" in section and "- They are shorter." in section
    rows = [line for line in section.splitlines() if line.startswith("| median ratio of words")]
    assert rows == [
        "| median ratio of words in the updated text to words in the original; median number of "
        "words | differs |  |  "
        "| 0.45 (0.40 to 0.50, n = 60) | 0.80 to 1.25 |"
    ]
    assert describe_comparability(None) == ""
    findings = Findings(comparability=COMPARABILITY)
    card = release_card(released.task, released.manifest.model_copy(update={"findings": findings}))
    assert card.index("Is the updated arm comparable with") < card.index("## Quality")
    before = released.manifest.model_copy(update={"findings": Findings()})
    assert "Is the updated arm comparable with" not in release_card(released.task, before)


def test_a_fence_inside_a_value_does_not_cut_the_front_matter(tmp_path: Path) -> None:
    head = dump_front_matter({"pretty_name": "x\n---\ny", "configs": []})
    card = add_dataset_info(f"---\n{head}---\n\nbody\n", tmp_path, "test")
    assert yaml.safe_load(card.split("\n---\n", 1)[0])["pretty_name"] == "x\n---\ny"
    assert card.endswith("body\n")


def test_items_have_no_formula_and_hide_nothing(tmp_path: Path) -> None:
    rows: list[dict[str, str | int | float | None]] = [
        {"id": "=cmd|' /C calc'!A0", "target": BIDI, "right": -1, "share": -0.5, "none": None},
        {"id": "emotion/test/1", "target": "+1", "right": 1, "share": 0.5, "none": None},
    ]
    write_items(tmp_path / "items.csv", list(rows[0]), rows)
    text = (tmp_path / "items.csv").read_text("utf-8")
    assert not UNSEEN.search(text.replace("\r\n", "\n"))
    first, second = csv.DictReader(text.splitlines())
    assert first["id"] == "'=cmd|' /C calc'!A0"
    assert (first["right"], first["share"], first["none"]) == ("-1", "-0.5", "")
    assert (second["id"], second["target"]) == ("emotion/test/1", "'+1")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("CC BY 4.0", "CC BY 4.0"),
        ("gpt_4o", "gpt_4o"),
        ("_x_", "\\_x\\_"),
        ("12. x", "12\\. x"),
        ("- x", "\\- x"),
        ("a\nb", "a b"),
        ("R&D <b>", "R&amp;D \\<b\\>"),
    ],
)
def test_plain_text_in_markdown(text: str, shown: str) -> None:
    assert escape(text) == shown


def test_code_and_addresses() -> None:
    assert (code_span("a`b|c"), code_table_cell("a`b|c")) == ("`a'b|c`", "`a'b\\|c`")
    assert web_address("https://a.org/x y)](z") == "https://a.org/x%20y%29%5D%28z"
    assert web_address("javascript:alert(1)") is None
    assert web_address(None) is None


def test_joiners_stay_where_they_belong() -> None:
    family = "👨\u200d👩\u200d👧"
    assert visible(family) == family
    assert visible("a\u200db\n\tc") == "a\N{REPLACEMENT CHARACTER}b\n\tc"
    assert visible_value(3) == 3


def test_the_cards_say_what_a_run_cost(made: Made, released: Release) -> None:
    def row(model: str, usd: float | None, *, cached: bool = False) -> dict[str, object]:
        sums = {"calls": 40, "prompt_tokens": 50_000, "cached_tokens": 0, "completion_tokens": 6000}
        priced = 0 if usd is None else 40
        return {"model": model, "cached": cached, "usd": usd, "priced": priced, **sums}

    rows = (row("openai:small", 0.25), row(HOSTILE, 1.5), row("openai:small", 9.0, cached=True))
    cost = Cost(
        billed_usd=1.75,
        billed_calls=80,
        cached_calls=40,
        prompt_tokens=100_000,
        completion_tokens=12_000,
        by_model=rows,
    )
    card = release_card(released.task, released.manifest.model_copy(update={"cost": cost}))
    assert "| openai:small | 40 | 50,000 | 6,000 | 0.2500 USD |" in card
    assert "| all | 80 | 100,000 | 12,000 | 1.75 USD |" in card
    assert "40 more answers came from the call store and cost nothing" in card
    assert_tame(card)
    unknown = cost.model_copy(update={"billed_usd": None, "by_model": (row("openai:new", None),)})
    said = describe_cost(unknown)
    assert "| openai:new | 40 | 50,000 | 6,000 | unknown price |" in said
    assert "| all" not in said
    assert describe_cost(Cost(cached_calls=3)) == ""


def test_the_card_of_a_run_says_what_it_cost(made: Made, tmp_path: Path) -> None:
    manifest = read_manifest(made.files.manifest)
    row = {"model": "openai:small", "cached": False, "usd": 0.25, "priced": 4, "calls": 4,
           "prompt_tokens": 5000, "cached_tokens": 0, "completion_tokens": 600}  # fmt: skip
    cost = Cost(billed_usd=0.25, billed_calls=4, by_model=(row,), unknown_usd=0.5)
    config = load_config(made.files.config)
    task = load_task(config.task)
    rows = {"updated": 1, "semantic": 1, "provenance": 1}
    write_card(tmp_path, task, config, manifest.model_copy(update={"cost": cost}), rows)
    card = (tmp_path / "README.md").read_text()
    assert "## What it cost" in card and "| 0.2500 USD |" in card
    assert "Calls with an unknown outcome may cost up to 0.50 USD more" in card
