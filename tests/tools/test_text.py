from hypothesis import given
from hypothesis import strategies as st

from coreeval.tools.text import MOST_PAIRS, DiffPiece, word_diff

TEXTS = st.text(alphabet="ab ,\u00e9", max_size=60)


@given(TEXTS, TEXTS)
def test_the_pieces_make_both_texts(before: str, after: str) -> None:
    pieces = word_diff(before, after)
    assert "".join(piece.text for piece in pieces if piece.op != "added") == before
    assert "".join(piece.text for piece in pieces if piece.op != "removed") == after
    assert all(piece.text for piece in pieces)


def test_what_differs_of_very_long_texts_is_one_piece_between_what_they_share() -> None:
    words = int(MOST_PAIRS**0.5) + 1
    old, new = "old " * words, "new " * words
    assert word_diff(f"It was {old}then.", f"It was {new}then.") == (
        DiffPiece(op="same", text="It was "),
        DiffPiece(op="removed", text=old),
        DiffPiece(op="added", text=new),
        DiffPiece(op="same", text="then."),
    )
