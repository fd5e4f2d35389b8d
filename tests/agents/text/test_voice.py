"""How an author writes, read off one text."""

import pytest

from coreeval.agents.text import voice
from coreeval.agents.text.voice import voice_hints


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("@user cant wait 4 the game. so good", "writes everything in lower case"),
        ("@user cant wait, i am off", "writes everything in lower case"),
        ("so happy 😊 see u on monday", "writes everything in lower case"),
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
        ('We say "they like it"', "speaks as I or we"),
        ("so " + "very " * voice.LONG_SENTENCE + "tired", "runs on without a comma"),
    ],
)
def test_a_habit_is_named(text: str, hint: str) -> None:
    assert hint in voice_hints(text)


def test_plain_news_has_no_habits() -> None:
    assert voice_hints("Shares of Acme rose 3 % in New York on Tuesday .") == ()


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
        ("so tired. bye", "writes everything in lower case"),
        ("so tired! bye #Merkel", "writes everything in lower case, tags apart"),
        ("so tired", "starts in lower case"),
        ('said it is over . "', None),
    ],
)
def test_habits_hold_for_the_whole_text(text: str, hint: str | None) -> None:
    told = voice.voice_hints(text)
    assert "leaves out the full stop at the end" not in told or hint
    assert hint is None or hint in told


@pytest.mark.parametrize(
    "text",
    [
        "#TGIF oh just kidding, Anna",
        "@user is right about it, Anna",
        ".@user is right about it, Anna",
        "2 days to go, Anna",
        "iPhone sales fell",
        "https://t.co/x is down, Anna",
        "@user cant wait 4 the game",
        "3 days to go",
    ],
)
def test_a_start_that_is_no_word_says_nothing_of_the_first_letter(text: str) -> None:
    assert not [hint for hint in voice.voice_hints(text) if "lower case" in hint]
    assert not voice.starts_lower(text)


@pytest.mark.parametrize(
    ("text", "is_first_person"),
    [
        ("A copper mine in the US has closed.", False),
        ("The miners left the mine.", False),
        ("Her story was better than mine", True),
        ("A friend of mine was there.", True),
        ("They told us.", True),
    ],
)
def test_a_mine_is_no_first_person(text: str, is_first_person: bool) -> None:
    assert voice.speaks_as_i(text) is is_first_person


@pytest.mark.parametrize(
    "text",
    [
        'Anna said " we will win my race " .',
        "Anna said 'we will win it' today.",
        "Anna said: \u201cI see us there\u201d.",
    ],
)
def test_quoted_words_are_not_the_authors(text: str) -> None:
    assert not voice.speaks_as_i(text)


@pytest.mark.parametrize(
    "text",
    [
        "One of the biggest shops of the town is to be open for all of us on Sunday at last",
        "so " + "very " * voice.LONG_SENTENCE + "tired ... bye",
        "so " + "very " * voice.LONG_SENTENCE + ": tired",
    ],
)
def test_a_short_or_parted_sentence_does_not_run_on(text: str) -> None:
    assert "runs on without a comma" not in voice.voice_hints(text)
