import pytest

from coreeval.agents.offline.headline import clean_sentence, clean_title, parse_clause, split_clause


@pytest.mark.parametrize(
    ("title", "kept"),
    [
        ("Heatwave closes schools in Spain | Daily Post", "Heatwave closes schools in Spain"),
        ("UPDATE 2: Heatwave closes schools in Spain", "Heatwave closes schools in Spain"),
        (
            "Town council passes climate plan, drops emergency clause",
            "Town council passes climate plan",
        ),
        ("Is the electric car boom over?", "Is the electric car boom over?"),
    ],
)
def test_a_usable_title_is_cut_to_what_it_says(title: str, kept: str) -> None:
    assert clean_title(title) == kept


@pytest.mark.parametrize(
    "title",
    [
        "Too short",
        "WMO: carbon dioxide climbs to new high",
        'Mayor calls plan "a disgrace" in debate',
        "AI cant rescue the nuclear power industry",
        "Here is what you need to know today",
        "Forget the heat and book a trip",
        "HEATWAVE CLOSES SCHOOLS IN NORTHERN SPAIN",
        "Ola de calor cierra escuelas en España",
    ],
)
def test_a_title_that_the_rules_cannot_trust_is_left_out(title: str) -> None:
    assert clean_title(title) is None


@pytest.mark.parametrize(
    ("title", "subject", "verb", "tense"),
    [
        ("Heatwave closes schools in Spain", "Heatwave", "closes", "present"),
        ("Gold price rose after rate cut", "Gold price", "rose", "past"),
        ("Spain to ban short flights", "Spain", "to ban", "future"),
        ("Oracle set to deploy new chips", "Oracle", "to deploy", "future"),
        ("Plant approved in Washington", "Plant", "approved", "passive"),
        ("Talks will begin in Geneva", "Talks", "will", "modal"),
        ("Nations adopt the forest plan", "Nations", "adopt", "present"),
    ],
)
def test_a_title_is_read_as_a_clause(title: str, subject: str, verb: str, tense: str) -> None:
    clause = parse_clause(title)
    assert clause is not None
    assert (clause.subject, clause.verb, clause.tense) == (subject, verb, tense)


@pytest.mark.parametrize(
    "title",
    [
        "Atlantic heat wave made likelier by climate change",
        "The hidden climate cost that comes with everyday use",
        "How Ontario aims to lead the world",
        "Water levels fall and fire risk grows in Alabama",
        "Ten quiet walks along the coast",
    ],
)
def test_a_title_that_may_be_read_two_ways_is_not_read(title: str) -> None:
    assert parse_clause(title) is None


def test_number_of_the_subject() -> None:
    for title, plural in (
        ("Schools close after the storm", True),
        ("Tax on solar and wind power will rise", False),
        ("Shell and Exxon will open a plant", True),
    ):
        clause = parse_clause(title)
        assert clause is not None
        assert clause.plural is plural, title


def test_the_first_whole_sentence_of_a_snippet() -> None:
    assert (
        clean_sentence("The ferry runs on batteries. More soon.") == "The ferry runs on batteries"
    )
    assert clean_sentence("The ferry will run on batteries from") is None
    assert clean_sentence("Read about the ferry that runs on batteries.") is None
    assert clean_sentence("") is None


@pytest.mark.parametrize(
    "text", ["Heatwave closes schools in Spain", "one two three four five six"]
)
def test_parts_of_a_triple_are_words_of_the_statement(text: str) -> None:
    parts = split_clause(text)
    assert all(parts)
    assert " ".join(parts) == text
