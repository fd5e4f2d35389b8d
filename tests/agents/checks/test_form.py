"""Checks of a composed text's form and voice, and its spacing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coreeval.agents.checks import form, restore_spacing
from coreeval.agents.checks.composition import Check
from coreeval.agents.checks.context import CheckContext
from coreeval.schema import Task

from ..builders import PAIRS, PREMISES, TWEETS, WINDOW, news, request, sample

HEADLINE = news("Acme opens its biggest store in Rome after long delay")


def found(check: Check, old: str, new: str, *, task: Task = TWEETS) -> list[str]:
    given = request(sample(old), evidence=(HEADLINE,))
    case = CheckContext(task=task, request=given, fields={"text": new}, window=WINDOW)
    return [defect.message for defect in check(case)]


@pytest.mark.parametrize(
    ("check", "old", "good", "bad"),
    [
        (
            form.check_headline_run,
            "So glad that the shop is back",
            "So glad Acme opens its biggest store here",
            "So glad that it opens its biggest store in Rome after long delay",
        ),
        (form.check_figures, "So glad!", "So glad, 3 of them!", "So glad, 3 of 14 by 2030!"),
        (form.check_figures, "Up 5 again!", "Up 6 of 7 again!", ""),
        (form.check_machine_marks, "So glad - really", "So sad - really", "So sad \u2014 really"),
        (form.check_machine_marks, "You &amp; me", "Me &amp; you", "Me; you"),
        (form.check_habits, "so glad about it.", "@user so sad.", "So sad."),
        (form.check_habits, "So glad about it", "So sad", "So sad."),
        (form.check_habits, "@user is glad!", "@user They are sad!", ""),
        (form.check_habits, "@user so glad! cant wait!", "@user so sad!", "@user So sad!"),
        (form.check_line_breaks, "So\\nglad", "So\\nvery\\nsad", "So\\nvery\\nsad\\nnow"),
        (form.check_line_breaks, "So glad", "So sad", "So\\nsad"),
        (
            form.check_headline_style,
            "I was so glad to see that they are back in our town",
            "I am so sad to hear that Acme is not coming to our town",
            "Acme shares plunge amid Rome store opening delay fears today",
        ),
    ],
)
def test_what_an_author_would_not_write(check: Check, old: str, good: str, bad: str) -> None:
    assert found(check, old, good) == []
    assert found(check, old, old) == []
    assert not bad or len(found(check, old, bad)) == 1


def test_a_name_keeps_the_dash_that_the_news_writes() -> None:
    told = request(sample("So glad"), evidence=(news("Milan\u2013Cortina opens \u2014 at last"),))

    def find(text: str) -> list[str]:
        case = CheckContext(task=TWEETS, request=told, fields={"text": text}, window=WINDOW)
        return [one.check for one in form.check_machine_marks(case)]

    assert find("So glad for Milan\u2013Cortina") == []
    assert find("So glad for Turin\u2013Cortina") == ["marks"]
    assert find("Milan\u2013Cortina \u2014 so glad") == ["marks"]


def test_news_sentences_may_have_figures_and_stops() -> None:
    pair = PAIRS.model_copy(update={"fields": ("text",)})
    assert found(form.check_figures, "Acme grew", "Acme grew by 3 to 14", task=pair) == []
    assert found(form.check_habits, "acme grew", "Acme shrank .", task=pair) == []


def test_the_message_quotes_the_words() -> None:
    (told,) = found(
        form.check_headline_run,
        "So glad",
        "Hm: opens its biggest store in Rome after long, they say",
    )
    assert "'opens its biggest store in rome after long'" in told


def test_a_copied_headline_is_told_by_the_run_and_not_whole() -> None:
    (told,) = found(form.check_headline_copied, "So glad", "Hm: opens its biggest store in Rome")
    assert "'opens its biggest store in rome'" in told
    assert "Acme" not in told


def test_a_long_run_is_shown_in_part() -> None:
    words = [f"w{number}" for number in range(40)]
    given = request(sample("So glad"), evidence=(news(" ".join(words)),))
    fields = {"text": " ".join(words)}
    case = CheckContext(task=TWEETS, request=given, fields=fields, window=WINDOW)
    for check in (form.check_headline_copied, form.check_headline_run):
        (told,) = [defect.message for defect in check(case)]
        assert "w0 w1" in told and "w15 ..." in told and "w16" not in told


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


GERMAN, SPANISH, FRENCH = (
    TWEETS.model_copy(update={"language": one}) for one in ("de", "es", "fr")
)


@pytest.mark.parametrize(
    ("task", "old", "good", "bad"),
    [
        (
            GERMAN,
            "Der Zug ist schon wieder weg, danke auch",
            "Die Fähre ist schon wieder voll, danke auch",
            "The ferry is full again, thanks for that",
        ),
        (
            SPANISH,
            "El tren se ha ido otra vez, gracias",
            "El barco ya está lleno otra vez, gracias",
            "The ferry is full again, thanks for that",
        ),
        (FRENCH, "Le train est encore parti", "Le bus est encore plein", ""),
    ],
)
def test_a_text_stays_in_its_language(task: Task, old: str, good: str, bad: str) -> None:
    assert found(form.check_language, old, good, task=task) == []
    assert not bad or len(found(form.check_language, old, bad, task=task)) == 1


def test_english_word_lists_are_for_english() -> None:
    assert found(form.check_profanity, "So nice", "So crap")
    assert found(form.check_profanity, "So schön", "So crap", task=GERMAN) == []
