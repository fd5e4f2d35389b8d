"""Samples that share a passage are one cluster, with or without a column that says so."""

from collections.abc import Mapping

from coreeval.evaluation.clusters import ClusteredTexts, find_clusters, find_shared

PASSAGES = (
    "The Channel Tunnel was opened by the Queen in May 1994.",
    "The mission to the comet ended when the orbiter was shut down.",
    "A third passage has a single question.",
)
FIELDS = ("context", "question")


def _sample(key: str, passage: str, question: str, cluster: str = "") -> ClusteredTexts:
    return key, cluster, {"context": passage, "question": question, "answers": key}


def _groups(found: Mapping[str, str]) -> set[frozenset[str]]:
    return {frozenset(k for k in found if found[k] == name) for name in found.values()}


def test_questions_on_one_passage_are_one_cluster() -> None:
    one, two, three = PASSAGES
    samples = [
        _sample("a", one, "Who?"),
        _sample("b", two, "When did that happen, in which year or at least in which decade?"),
        _sample("c", one, "Which of the many people who are named in the text opened the tunnel?"),
        _sample("d", three, "Why?"),
        _sample("e", two, "Why?"),
    ]
    assert _groups(find_clusters(samples, FIELDS)) == {
        frozenset("ac"),
        frozenset("be"),
        frozenset("d"),
    }
    assert _groups(find_shared(samples, FIELDS)) == {frozenset("ac"), frozenset("be")}


def test_a_cluster_of_the_benchmark_wins() -> None:
    samples = [_sample(key, PASSAGES[0], key, cluster=key) for key in "ab"]
    samples += [_sample("c", PASSAGES[0], "c"), _sample("d", PASSAGES[1], "d")]
    assert len(set(find_clusters(samples, FIELDS).values())) == 4
    assert find_shared(samples, FIELDS) == {}


def test_short_titles_and_instructions_make_no_cluster() -> None:
    titles = [_sample(key, f"War and Peace {key in 'ab'}", "Good?") for key in "abcd"]
    assert len(set(find_clusters(titles, FIELDS).values())) == 4
    told = [_sample(key, "Answer the next question in a single word.", f"{key}?") for key in "abc"]
    assert len(set(find_clusters(told, FIELDS).values())) == 3


def test_an_instruction_in_several_wordings_makes_no_cluster() -> None:
    samples = [_sample(str(n), PASSAGES[n % 3], f"Text {n}?") for n in range(93)]
    assert find_shared(samples, FIELDS) == {}
    assert len(_groups(find_shared(samples[:90], FIELDS))) == 3


def test_equal_samples_are_one_cluster_and_texts_of_one_field_are_compared_whole() -> None:
    twins = [("a", "", {"text": PASSAGES[0]}), ("b", "", {"text": PASSAGES[0]})]
    assert len(set(find_clusters(twins, ("text",)).values())) == 1
    asked = [("a", "", {"question": PASSAGES[0], "answers": "1"})]
    asked += [("b", "", {"question": PASSAGES[0], "answers": "2"})]
    assert len(set(find_clusters(asked, ("question",)).values())) == 2
    short = [_sample("a", "Oxygen", "Boils at?")] * 2
    assert len(set(find_clusters(short, FIELDS).values())) == 1
