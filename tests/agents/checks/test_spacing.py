import pytest
from hypothesis import given
from hypothesis import strategies as st

from coreeval.agents.checks import restore_spacing

from ..builders import PAIRS, PREMISES, TWEETS


@pytest.mark.parametrize(
    ("plain", "tokenised"),
    [
        ("Wal-Mart, the nation's largest.", "Wal-Mart , the nation 's largest ."),
        ("They didn't sell; O'Neill\u2019s did.", "They didn 't sell ; O 'Neill 's did ."),
        ('"We won," he said.', '" We won , " he said .'),
        ("\u201cWe won\u201d (again)!", '" We won " ( again ) !'),
        ("It rose 5% to $4,500.25.", "It rose 5 % to $ 4,500.25 ."),
        ("Mr. Lee of the U.S. left. She stayed.", "Mr. Lee of the U.S. left . She stayed ."),
        ("until 6 p.m.", "until 6 p.m."),
        ("AT&T and R&amp;D", "AT & T and R&amp;D"),
        ("the networks' shows", "the networks ' shows"),
        ("no. 2 at J. Smith Corp. today", "no. 2 at J. Smith Corp. today"),
        ("So ... it ends...", "So ... it ends ..."),
    ],
)
def test_a_tokenised_task_keeps_punctuation_apart(plain: str, tokenised: str) -> None:
    assert restore_spacing(PAIRS, plain) == tokenised
    assert restore_spacing(PAIRS, tokenised) == tokenised


@pytest.mark.parametrize("task", [TWEETS, PREMISES])
def test_other_texts_are_put_on_one_line_only(task: object) -> None:
    assert isinstance(task, type(TWEETS))
    assert restore_spacing(task, " It's  5%,\n\nok? ") == "It's 5%, ok?"


@given(st.text(alphabet="aB1 .,'\"$%&;:()!?-"))
def test_spacing_is_settled_after_one_pass(text: str) -> None:
    once = restore_spacing(PAIRS, text)
    assert restore_spacing(PAIRS, once) == once
    assert "".join(once.split()).replace("''", '"') == "".join(text.split()).replace("''", '"')
