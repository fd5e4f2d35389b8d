"""Reading the chosen option off an answer in free text."""

import gzip
import json
from collections import Counter

import pytest

from coreeval.evaluation.answer_parsers import read_choice
from coreeval.evaluation.benchmarks.item_records import find_bracketed_options
from tests.evaluation.recorded import CAP, beside

METALS = {"A": "tin", "B": "gold", "C": "iron", "D": "lead"}


@pytest.mark.parametrize(
    "text",
    [
        "B",
        " B.\n",
        "(B)",
        "**B**",
        "['B']",
        "\uff22",
        "\uff08\uff22\uff09",
        "B. gold",
        "B: gold, because it shines.",
        "B gold",
        "the answer is (B)",
        "The correct answer is B, since A and C are wrong.",
        "Answer: B",
        "ANSWER: \\boxed{B}",
        "After some thought I would choose option B.",
        "The best choice is **B**.",
        "Tin is soft. I pick B",
        "Option B",
        "\u7b54\u6848\uff1aB",
        "\u7b54\u6848\u662f\uff1a**\uff22**\u3002",
        "\u7b54\u6848\u5e94\u4e3a\u9009\u9879B\uff1a gold",
        "A\u9879\u9519\u8bef\u3002\u6545\u9009B",
        "\u4ece\u9009\u9879\u770b\uff0c\u5e94\u9009\u201cB\u201d\u9879\u3002",
        "\u4e0d\u6b63\u786e\u7684\u662f\uff1a**B**\u3002",
        "gold",
        "B. B",
        "B - A metal that shines.",
        "B\n\nA. tin: too soft\nC. iron: rusts",
        "The answer is B. A is wrong.",
        "The answer is B. Option A is wrong.",
        "The correct answer is B. The others are incorrect.",
        "The correct answer is (B). All other statements are false.",
        "The answer is **B**. All other options are incorrect.",
        "Answer: B\n\nOption A is incorrect because it is soft.",
        "Answer: B. A and C are wrong.",
        "B. A, C and D are incorrect.",
        "B\n\nThe other options are incorrect.",
        "B) gold\nOption A is incorrect",
        "(B) because all others are incorrect",
        "The answer is B because A is false.",
        "The answer is B and A is wrong.",
        "B is correct because A is false.",
        "The answer is definitely B",
        "The answer is most likely B",
        "B!",
        "It's B!",
        "Answer - B",
        "Answer \u2192 B",
        "The answer cannot be A, so B.",
        "Answers A, C and D are incorrect. Therefore B.",
        "The wrong answer is A; the right one is B",
        "The only wrong answer is A; I choose B",
        "The incorrect answer is A. The correct answer is B.",
        "I would not pick A, I would pick B",
        "If I'm not mistaken the answer is B",
        "A is wrong so B is correct",
        "A. tin - no\nB. gold - yes\nC. iron - no\nThe answer is B.",
    ],
)
def test_one_letter_is_read(text: str) -> None:
    assert read_choice(text, METALS) == "B"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no idea",
        "b",
        "E",
        "the answer is E",
        "A or B",
        "AB",
        "the answer is A or B",
        "\u7b54\u6848\uff1aAB",
        "\u7b54\u6848\uff1aA\u3001B",
        "\u7b54\u6848\uff1aA\u3002\u4e0d\u5bf9\uff0c\u7b54\u6848\uff1aB",
        "\u4e0d\u9009B",
        "A: tin, B: gold, C: iron, D: lead",
        "['A', 'B', 'C', 'D']",
        "B: gold, because it shines. A: tin rusts.",
        "A metal is hard to tell.",
        "The answer is A metal of some kind.",
        "BBC reported it",
        "vitamin B12",
        "P(B) is 0.5",
        "gold or lead",
        "(A) or (B)",
        "(A) or (B): I cannot tell",
        "$\\boxed{A}$ or $\\boxed{B}$",
        "A\nB\nC\nD",
        "A. tin\nB. gold",
        "A - tin\nB - gold",
        "A; B; C",
        "A ... B",
        "tin, lead",
        "Option A, option B",
        "golden",
        "The wrong answer is A",
        "I would not choose A",
        "I do not think that the answer is A",
        "You should never choose option A",
        "A. tin - no\nB. gold - yes\nC. iron - no",
        "A) false\nB) true\nC) false\nD) false",
        "The answer is A. No wait, B.",
        "The answer is A. No, B.",
        "The answer is B or maybe C",
        "The answer is (A) or (B)",
        "The answer is A, or B",
        "Answer: B (or C)",
        "A isn't correct",
    ],
)
def test_several_letters_or_none_are_unclear(text: str) -> None:
    assert read_choice(text, METALS) == ""


def test_only_letters_of_the_item_count() -> None:
    assert read_choice("the answer is C", {"A": "yes", "B": "no"}) == ""
    assert read_choice("the answer is E", {**METALS, "E": "zinc"}) == "E"
    assert read_choice("I do not know", {letter: letter * 3 for letter in "ABCDEFGHI"}) == ""
    assert read_choice("same", {"A": "same", "B": "same"}) == ""


def test_an_option_of_nothing_but_signs_is_chosen_by_its_letter() -> None:
    options = {"A": "...", "B": "n apple", "C": "-"}
    for text in ("An apple is red", "Maybe", '"', "A apple", ". . ."):
        assert read_choice(text, options) == "", text
    assert read_choice("A", options) == "A"
    assert read_choice("n apple", options) == "B"


@pytest.mark.parametrize("text", ["B. no", "Answer: B. No", "B) no.", "B no", "no"])
def test_an_option_that_reads_like_a_verdict_is_chosen(text: str) -> None:
    assert read_choice(text, {"A": "yes", "B": "no"}) == "B"


@pytest.mark.parametrize(
    "text", ["B. No, not yet", "Answer: B. no, not yet.", "B) No", "B. No, not"]
)
def test_an_option_that_begins_like_a_verdict_is_chosen(text: str) -> None:
    assert read_choice(text, {"A": "yes", "B": "No, not yet"}) == "B"


@beside
@pytest.mark.parametrize(
    ("model", "agreed", "contrary"), [("gpt", 0.98, 0.004), ("baichuan", 0.98, 0.001)]
)
def test_agreement_with_what_the_authors_of_cap_read(
    model: str, agreed: float, contrary: float
) -> None:
    """Theirs were read by hand in part; both name a letter, but not the same, a few times."""
    found = Counter[str]()
    for path in (CAP / "predictions" / "fineval" / model).glob("*.json.gz"):
        for row in json.loads(gzip.decompress(path.read_bytes())):
            options = find_bracketed_options(row["input"])
            ours = read_choice(row["pred_output"], options)
            theirs = row["pred_opt"] if row["pred_opt"] in options else ""
            found["agreed"] += ours == theirs
            found["contrary"] += bool(ours and theirs and ours != theirs)
            found["all"] += 1
    assert found["all"] == 2642
    assert found["agreed"] / found["all"] > agreed
    assert found["contrary"] / found["all"] < contrary
