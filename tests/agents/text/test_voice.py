"""How an author writes, read off one text."""

import pytest

from coreeval.agents.text import voice
from coreeval.agents.text.voice import voice_hints


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("@user cant wait 4 the game", "writes everything in lower case"),
        ("WHY IS THIS SO HARD", "writes everything in capitals"),
        ("so happy that Acme opened", "starts in lower case"),
        ("It was SO GOOD to see you.", "puts words in capitals for stress: SO, GOOD"),
        ("U dont know how sooo good it is", "spells as people type: u, dont, sooo"),
        ("What?! No way!!!", "repeats marks: ?! !!!"),
        ("Morning all\\nBack to work\\nWhy", "breaks lines with a written \\n (2 times)"),
        ("Salt &amp; pepper.", 'writes &amp; for "and"'),
        ("The shop is open again 😊 #happy", "leaves out the full stop at the end"),
        ("Not now. No way. Leave it.", "writes in very short sentences"),
        ("We like it.", "speaks as I or we"),
    ],
)
def test_a_habit_is_named(text: str, hint: str) -> None:
    assert hint in voice_hints(text)


def test_plain_news_has_no_habits() -> None:
    assert voice_hints("Shares of Acme rose 3 % in New York on Tuesday .") == []


def test_few_hints_are_shown() -> None:
    text = "omg i cant!!! u &amp; me\\nso\\nno way\\nnot now\\nhelp..."
    assert len(voice_hints(text)) <= voice.MOST_HINTS


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        ("All done", True),
        ("All done.", False),
        ("All done! 😊", False),
        ("All done 😊 #yes", True),
        ("", False),
        ("😊", False),
    ],
)
def test_an_open_end(text: str, is_open: bool) -> None:
    assert voice.ends_open(text) is is_open


def test_the_longest_run_of_shared_words() -> None:
    run = voice.find_shared_run(
        "I hear that gold tops 4,500 dollars an ounce now", "Gold tops 4,500 dollars an ounce"
    )
    assert run == ["gold", "tops", "4,500", "dollars", "an", "ounce"]
    assert voice.find_shared_run("gold tops all", "gold falls") == []


def test_headlines_leave_out_function_words() -> None:
    headline = voice.measure_function_words("Gold tops record high amid war fears")
    spoken = voice.measure_function_words("I can not believe that gold is at a record again")
    assert headline < 0.25 < spoken
    assert voice.measure_function_words("") == 1.0


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("so tired", "writes everything in lower case"),
        ("so tired #Merkel", "writes everything in lower case, tags apart"),
        ('said it is over . "', None),
    ],
)
def test_habits_hold_for_the_whole_text(text: str, hint: str | None) -> None:
    told = voice.voice_hints(text)
    assert "leaves out the full stop at the end" not in told or hint
    assert hint is None or hint in told


def test_a_tag_in_front_says_nothing_of_the_first_letter() -> None:
    assert "starts in lower case" not in voice.voice_hints("#TGIF oh just kidding, Anna")
