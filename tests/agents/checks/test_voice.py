"""What gives a text away as made from a headline."""

import pytest

from coreeval.agents.checks import voice
from coreeval.agents.checks.case import Case
from coreeval.agents.checks.composition import Check
from coreeval.schema import Task

from ..builders import PAIRS, TWEETS, WINDOW, brief, news, sample

HEADLINE = news("Acme opens its biggest store in Rome after long delay")


def found(check: Check, old: str, new: str, *, task: Task = TWEETS) -> list[str]:
    given = brief(sample(old), evidence=(HEADLINE,))
    case = Case(task=task, brief=given, fields={"text": new}, window=WINDOW)
    return [defect.message for defect in check(case)]


@pytest.mark.parametrize(
    ("check", "old", "good", "bad"),
    [
        (
            voice.headline_not_quoted,
            "So glad that the shop is back",
            "So glad Acme opens its biggest store here",
            "So glad that it opens its biggest store in Rome after long delay",
        ),
        (voice.figures_few, "So glad!", "So glad, 3 of them!", "So glad, 3 of 14 by 2030!"),
        (voice.figures_few, "Up 5 again!", "Up 6 of 7 again!", ""),
        (voice.no_machine_marks, "So glad - really", "So sad - really", "So sad \u2014 really"),
        (voice.no_machine_marks, "You &amp; me", "Me &amp; you", "Me; you"),
        (voice.habits_kept, "so glad about it.", "@user so sad.", "So sad."),
        (voice.habits_kept, "So glad about it", "So sad", "So sad."),
        (voice.line_breaks_kept, "So\\nglad", "So\\nvery\\nsad", "So\\nvery\\nsad\\nnow"),
        (voice.line_breaks_kept, "So glad", "So sad", "So\\nsad"),
        (
            voice.no_headline_style,
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


def test_news_sentences_may_have_figures_and_stops() -> None:
    pair = PAIRS.model_copy(update={"fields": ("text",)})
    assert found(voice.figures_few, "Acme grew", "Acme grew by 3 to 14", task=pair) == []
    assert found(voice.habits_kept, "acme grew", "Acme shrank .", task=pair) == []


def test_the_message_quotes_the_words() -> None:
    (told,) = found(
        voice.headline_not_quoted,
        "So glad",
        "Hm: opens its biggest store in Rome after long, they say",
    )
    assert "'opens its biggest store in rome after long'" in told
