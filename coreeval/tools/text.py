"""Displays foreign texts: differences by word, hidden characters, spreadsheet cells.

Invisible characters, such as controls and those that reorder or hide text, are shown as U+FFFD. In
CSV for spreadsheets, no cell is a formula, whatever separator the spreadsheet expects, and cells
are read back unchanged.
"""

import csv
import html
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import dropwhile
from pathlib import Path
from typing import Literal, TypeVar

from coreeval.config.user_files import MOST_DATA_BYTES, read_text
from coreeval.errors import UsageError
from coreeval.schema import Value

UNSPACED = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
"""Character ranges of scripts without spaces: Han, kana, Hangul; each character is about a word."""
_LETTERS = rf"(?:(?![{UNSPACED}])\w)+"
_JOINED = rf"{_LETTERS}(?:['\u2019-]{_LETTERS})*"
_WORD = re.compile(rf"(?:[{UNSPACED}]|{_JOINED}|[^\w\s])\s*|\s+")
"""A word or sign with the space after it, so that changed phrases form one piece."""


MOST_PAIRS = 1_000_000
"""The most pairs of words to compare, which takes about a second at worst; the time grows with
their number. For longer texts, sentences are compared, then the words of those that differ, up to
the same number of pairs; the remainder is one piece."""
_MOST_SENTENCE_PAIRS = 10 * MOST_PAIRS
"""The most pairs of sentences, few of which are equal."""
_SENTENCE_SIGNS = frozenset(".!?\u3002\uff01\uff1f")


class DiffPiece(Value):
    """A piece of one of two texts, or of both."""

    op: Literal["same", "removed", "added"]
    text: str


def word_diff(before: str, after: str) -> tuple[DiffPiece, ...]:
    """Return the pieces: those not added make `before`, those not removed make `after`."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    start = _count_common(old, new)
    end = _count_common(old[start:][::-1], new[start:][::-1])
    middle = _diff_pieces(old[start : len(old) - end], new[start : len(new) - end])
    pieces = (*_same_pieces(old[:start]), *middle, *_same_pieces(old[len(old) - end :]))
    return tuple(pieces)


def _count_common(old: Sequence[str], new: Sequence[str]) -> int:
    """Return the number of words that both have in common at the start."""
    pairs = zip(old, new, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(old), len(new)))


def _diff_pieces(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffPiece]:
    if len(old) * len(new) > MOST_PAIRS:
        yield from _merge_pieces(_diff_sentences(old, new))
        return
    for op, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if op == "equal":
            yield from _same_pieces(old[i:j])
            continue
        if i < j:
            yield DiffPiece(op="removed", text="".join(old[i:j]))
        if k < m:
            yield DiffPiece(op="added", text="".join(new[k:m]))


def _diff_sentences(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffPiece]:
    """Yield the pieces of two long texts, sentence by sentence."""
    before, after = _group_sentences(old), _group_sentences(new)
    times = Counter(after)
    same = sum(times[sentence] for sentence in before)
    if same > MOST_PAIRS or len(before) * len(after) > _MOST_SENTENCE_PAIRS:
        yield from _whole_pieces(old, new)
        return
    left = MOST_PAIRS
    for op, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        gone = [word for sentence in before[i:j] for word in sentence]
        come = [word for sentence in after[k:m] for word in sentence]
        pairs = len(gone) * len(come)
        if op == "equal":
            yield from _same_pieces(gone)
        elif 0 < pairs <= left:
            left -= pairs
            yield from _diff_pieces(gone, come)
        else:
            yield from _whole_pieces(gone, come)


def _group_sentences(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the words of each sentence."""
    found, start = list[tuple[str, ...]](), 0
    for place, word in enumerate(words, start=1):
        if _ends_sentence(word) or place == len(words):
            found.append(tuple(words[start:place]))
            start = place
    return found


def _ends_sentence(word: str) -> bool:
    """Return whether a sentence or line ends with a word or sign and the spaces behind it."""
    bare = word.rstrip()
    return bare in _SENTENCE_SIGNS or "\n" in word[len(bare) :]


def _whole_pieces(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffPiece]:
    if old:
        yield DiffPiece(op="removed", text="".join(old))
    if new:
        yield DiffPiece(op="added", text="".join(new))


def _merge_pieces(pieces: Iterable[DiffPiece]) -> Iterator[DiffPiece]:
    """Yield pieces, merging neighbours of the same kind."""
    last: DiffPiece | None = None
    for piece in pieces:
        if last and last.op == piece.op:
            last = DiffPiece(op=piece.op, text=last.text + piece.text)
            continue
        if last:
            yield last
        last = piece
    if last:
        yield last


def _same_pieces(words: Sequence[str]) -> Iterator[DiffPiece]:
    if words:
        yield DiffPiece(op="same", text="".join(words))


UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Control, bidi, zero-width and tag characters, and surrogates, except tab and newline."""
_JOINERS = re.compile(r"(?<=[^\x00-\x7f])[\u200c\u200d](?=[^\x00-\x7f])")
"""Joiners between non-ASCII characters, which emoji and some scripts need."""
_Shown = TypeVar("_Shown")


def find_unseen(text: str) -> list[re.Match[str]]:
    """Return the invisible characters in a text, except joiners that belong there."""
    if text.isascii() and text.isprintable():
        return []
    joined = {match.start() for match in _JOINERS.finditer(text)}
    return [match for match in UNSEEN.finditer(text) if match.start() not in joined]


def visible(text: str) -> str:
    """Return a text with each invisible character replaced by U+FFFD; lines end in LF."""
    text = text.replace("\r\n", "\n")
    found = find_unseen(text)
    if not found:
        return text
    letters = list(text)
    for match in found:
        letters[match.start()] = "\N{REPLACEMENT CHARACTER}"
    return "".join(letters)


def visible_line(text: str) -> str:
    """Return a text as `visible` does, on one line."""
    return " ".join(visible(text).split())


def visible_value(value: _Shown) -> _Shown | str:
    """Return a value unchanged, or a text with invisible characters shown: `finalize` for Jinja."""
    if not isinstance(value, str):
        return value
    shown = visible(value)
    return type(value)(shown) if shown != value else value


_SEPARATORS = ",;\t"
"""The separators of a sheet; in some locales, spreadsheets expect and save another separator."""
_SIGNS = "-=+@＝＋－＠"  # noqa: RUF001
"""Signs that make a spreadsheet treat a cell as a formula (OWASP, CSV Injection)."""


def _starts(mark: str) -> re.Pattern[str]:
    """Return a pattern for the places in a cell that need our mark, followed by `mark`.

    They are its start, if a sign, an apostrophe or a space that may be dropped follows, and each
    separator or line break before a sign: a spreadsheet that expects another separator starts a
    cell there, without the quotes before the sign.
    """
    whole = rf"\A{mark}(?=[{_SIGNS}\t\r\n'])"
    inner = rf"(?<=[{_SEPARATORS}\r\n]){mark}(?='*\"*[{_SIGNS}])"
    return re.compile(f"{whole}|{inner}")


_UNMARKED, _MARKED = _starts(""), _starts("'")


def format_sheet(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a sheet as CSV, with the byte order mark by which spreadsheets detect UTF-8."""
    made = io.StringIO(newline="")
    writer = csv.writer(made, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([escape_formula(cell) for cell in row] for row in rows)
    return f"\ufeff{made.getvalue()}"


def join_fields(fields: Mapping[str, str]) -> str:
    """Return the texts of a sample as one text; if there are several, each with its name."""
    if len(fields) == 1:
        return next(iter(fields.values()))
    return "\n".join(f"{name}: {text}" for name, text in fields.items())


def escape_formula(cell: str) -> str:
    """Return a cell with an apostrophe wherever a spreadsheet would read a formula.

    That is at its start, or after a separator or line break in it.
    """
    return _UNMARKED.sub("'", cell.replace("\0", "\N{REPLACEMENT CHARACTER}"))


def unescape_formula(cell: str) -> str:
    """Return a cell without the apostrophes that `escape_formula` added."""
    return _MARKED.sub("", cell)


def iter_sheet_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a sheet with the line number that each begins on, from its header on.

    Raises:
        UsageError: the sheet cannot be read.
    """
    try:
        text = read_text(path, most_bytes=MOST_DATA_BYTES)
        rows = _number_rows(text, find_separator(text))
        yield from dropwhile(lambda row: is_preamble(row[1]), rows)
    except UnicodeDecodeError:
        raise sheet_error(path, "it is not UTF-8", "save it as CSV UTF-8") from None
    except (OSError, csv.Error) as error:
        hint = "save it as CSV, in the format that CoreEval wrote"
        raise sheet_error(path, str(error), hint) from None


def find_separator(text: str, likely: str = "") -> str:
    """Return the separator of a sheet: the likely one if its header has it, or its most frequent.

    The header is the first line that is not blank or Excel's `sep=;`.
    """
    lines = io.StringIO(text, newline=None)
    header = next((line for line in lines if not is_preamble([line])), "")
    return likely if likely and likely in header else max(_SEPARATORS, key=header.count)


def _number_rows(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    line = 1
    for cells in reader:
        yield line, cells
        line = reader.line_num + 1


def is_preamble(cells: Sequence[str]) -> bool:
    """Return whether a row is not yet the header: it is blank, or is Excel's `sep=;`."""
    return "".join(cells).strip(f"{_SEPARATORS} \r\n").casefold() in ("", "sep=")


def sheet_error(path: Path, problem: str, hint: str) -> UsageError:
    """Return the error for a sheet that cannot be read."""
    return UsageError(f"the sheet cannot be read: {problem}", where=str(path), hint=hint)


def find_columns(path: Path, header: Sequence[str], wanted: Sequence[str]) -> dict[str, int]:
    """Return the positions of the wanted columns by name.

    Raises:
        UsageError: a column is missing or occurs twice.
    """
    names = [name.strip().casefold() for name in header]
    missing = [name for name in wanted if names.count(name) != 1]
    if missing:
        raise sheet_error(
            path,
            f"it does not have exactly one {missing[0]!r} column",
            "keep the first line as CoreEval wrote it",
        )
    return {name: names.index(name) for name in wanted}


_LONG = re.compile(r"&#([0-9]{8,})")
_MOST_DIGITS = 8
"""The most digits kept of a character reference, more than any character's number has; an overlong
number stays invalid."""


def unescape(text: str) -> str:
    """Return a text with its HTML references resolved, however many digits they have.

    Python refuses to parse a number of more than 4300 digits; an invalid reference becomes U+FFFD,
    as HTML specifies.
    """
    if "&" not in text:
        return text
    return html.unescape(_LONG.sub(_shortened, text))  # noqa: TID251 - here alone


def _shortened(found: re.Match[str]) -> str:
    return "&#" + (found[1].lstrip("0")[:_MOST_DIGITS] or "0")
