import pytest

from coreeval.agents.locks import firm_locks, keeps
from coreeval.schema import Extraction, Lock, LockReason

from .builders import PAIRS, STANCE


@pytest.mark.parametrize("why", ["quotation", "label_carrier", "anaphor", "pun"])
def test_what_belongs_to_the_event_of_a_pair_goes_with_it(why: LockReason) -> None:
    lock = Lock(span="we won", field="sentence1", why=why)
    assert firm_locks(PAIRS, Extraction(locked=(lock,))) == []
    assert firm_locks(STANCE, Extraction(locked=(lock,))) == [lock]


def test_what_binds_any_text_stays() -> None:
    locks = (
        Lock(span="@user", field="sentence1", why="mention"),
        Lock(span="abortion", field="sentence2", why="target"),
    )
    assert firm_locks(PAIRS, Extraction(locked=locks)) == list(locks)


@pytest.mark.parametrize(
    ("span", "why", "text", "kept"),
    [
        ("This solution", "anaphor", "Part of this solution is new", True),
        ("so glad", "label_carrier", "So glad it is over", True),
        ("NOT", "label_carrier", "It is not", False),
        ("I hate", "label_carrier", "i hate it", False),
        ("He said", "quotation", "what he said", False),
        ("Climate", "target", "the CLIMATE", True),
    ],
)
def test_ordinary_words_may_begin_a_sentence_now(
    span: str, why: LockReason, text: str, kept: bool
) -> None:
    assert keeps(text, Lock(span=span, field="text", why=why)) is kept
