"""Answers in a uniform notation: one minus sign, plain digits, no markup, number words as digits.

JSON and tables become lines of words: `{"date": "2020-03", "value": 1}` becomes
`2020-03, value: 1`, and a row 2020-03 under Mkt-RF becomes `2020-03, Mkt-RF: 1`.
"""

import calendar
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from coreeval.models.answer_text import extract_final_answer, iter_objects

_DEEPEST: Final = 6
_ASIDE: Final = frozenset({
    "confidence", "probability", "certainty", "likelihood", "low", "high", "lower", "upper", "min",
    "max", "lower_bound", "upper_bound", "ci_low", "ci_high", "std", "error", "margin", "id",
    "seed", "index", "n", "count", "rank", "page", "decimals", "unit", "units",
})  # fmt: skip
"""Keys whose numbers are not the value."""
_REASONS: Final = frozenset({
    "reason", "reasoning", "explanation", "rationale", "analysis", "thought", "thoughts", "notes",
    "note", "comment", "justification", "context", "source",
})  # fmt: skip
_DATES: Final = ("date", "observation_date", "month", "period", "quarter", "year", "time")
_NAMES: Final = ("series", "name", "factor", "metric", "indicator", "variable", "symbol")
_WHOLE_YEAR: Final = re.compile(r"(?:1[5-9]|20)\d{2}")
_MONTH_NUMBER: Final = re.compile(r"0?[1-9]|1[0-2]")
_DECODER: Final = json.JSONDecoder(parse_float=str, parse_int=str)


def flatten_objects(text: str) -> str:
    """Return an answer with its JSON objects rewritten as lines of text, and the rest unchanged."""
    parts, at = list[str](), 0
    for value, start, end in iter_objects(text, _DECODER):
        parts += [text[at:start], *_flatten_value(value, ())]
        at = end
    return "\n".join([*parts, text[at:]]).strip("\n") if parts else text


def _flatten_value(value: object, labels: tuple[str, ...]) -> Iterator[str]:
    if len(labels) > _DEEPEST:
        return
    if isinstance(value, dict):
        yield from _flatten_object(value, labels)
    elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
        for one in value:
            yield from _flatten_value(one, labels)
    elif isinstance(value, list):
        yield _object_line(" or ".join(str(one) for one in value), labels)
    elif not isinstance(value, bool):
        yield _object_line("not available" if value is None else value, labels)


def _object_line(said: object, labels: tuple[str, ...]) -> str:
    return f"{' '.join(labels)}: {said}" if labels else str(said)


def _flatten_object(value: Mapping[str, object], labels: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of an object; each names its date and series first."""
    keys = {key.lower(): said for key, said in value.items()}
    about = [str(keys[key]) for key in _NAMES if isinstance(keys.get(key), str)]
    date = _date(keys)
    unit = next((f" {keys[key]}" for key in ("unit", "units") if keys.get(key)), "")
    told = {key: said for key, said in value.items()
            if key.lower() not in _ASIDE.union(_REASONS, _NAMES, _DATES)}  # fmt: skip
    if not told and (date or about):
        yield f"answer: {' '.join([*date, *about])}"
    for key, said in (told or _reasons(value)).items():
        scalar = isinstance(said, str)
        own = unit or (" percent" if key.lower().endswith(("pct", "percent")) else "")
        yield from _flatten_value(
            f"{said}{own}" if scalar else said, _labels(key, labels, date + about)
        )


def _labels(key: str, labels: tuple[str, ...], about: list[str]) -> tuple[str, ...]:
    """Return the labels of a value; a month number is joined with the year above it."""
    if _MONTH_NUMBER.fullmatch(key) and labels and _WHOLE_YEAR.fullmatch(labels[-1]):
        return (*labels[:-1], f"{labels[-1]}-{int(key):02d}", *about)
    return (*labels, *about, key)


def _reasons(value: Mapping[str, object]) -> dict[str, object]:
    return {key: said for key, said in value.items() if key.lower() in _REASONS}


def _date(keys: Mapping[str, object]) -> list[str]:
    """Return the date of a record; a month number is joined with its year."""
    found = {key: str(keys[key]) for key in _DATES if isinstance(keys.get(key), str)}
    year, month = found.get("year"), found.get("month", "")
    if year and month.isdecimal():
        return [f"{year}-{int(month):02d}"]
    if year and month and year not in month:
        return [f"{month} {year}"]
    return [text for key, text in found.items() if key != "year" or len(found) == 1]


_NUMBER: Final = re.compile(
    r"[*_` ~]*[-+]?[ ]?[$\u20ac\u00a3]?(?:\d[\d.,_]*|\.\d+) ?(?:%|[a-zA-Z%]{1,4})?[*_` ]*"
)
_RULE: Final = re.compile(r"[\s|:+]*-[\s|:+-]*")
_BLANKS: Final = re.compile(r"\t| {2,}")
_DATE_HEADS: Final = frozenset({
    "date", "month", "year", "period", "quarter", "day", "time", "observation_date", "yearmonth",
})  # fmt: skip
_COUNTS: Final = frozenset({"#", "no", "no.", "n", "rank", "id", "index", "step"})
_UNITS: Final = frozenset({"unit", "units"})
_LONGEST_HEAD: Final = 40
Cells = list[str]


def flatten_tables(text: str) -> str:
    """Return an answer with its table rows rewritten as lines that name the row and the column.

    A table is a line of names, followed by lines with the same number of cells that contain
    numbers. Cells are separated by bars, tabs, semicolons, commas or blanks.
    """
    lines = text.split("\n")
    told, at = list[str](), 0
    while at < len(lines):
        head = _head(lines[at])
        rows = _rows(lines[at + 1 :], head) if head else []
        if head and any(rows):
            told += [line for row in rows if row for line in _flatten_row(head[1], row)]
            at += 1 + len(rows)
        else:
            told.append(lines[at])
            at += 1
    return "\n".join(told)


def split_cells(line: str, delimiter: str) -> Cells:
    """Return the cells of a line without markup characters."""
    parts = _BLANKS.split(line.strip()) if delimiter == " " else line.strip().split(delimiter)
    cells = [part.strip(" \t*_`") for part in parts]
    if delimiter == "|":
        cells = cells[not cells[0] : len(cells) - (not cells[-1])]
    return cells


def _head(line: str) -> tuple[str, Cells] | None:
    """Return the delimiter and the column names of a line that may be a table header, or None."""
    for delimiter in ("|", "\t", ";", ",", " "):
        cells = split_cells(line, delimiter)
        if len(cells) > 1:
            return (delimiter, cells) if _names(cells) else None
    return None


def _names(cells: Sequence[str]) -> bool:
    return any(cells[1:]) and all(
        len(cell) <= _LONGEST_HEAD and (not _NUMBER.fullmatch(cell) or _WHOLE_YEAR.fullmatch(cell))
        for cell in cells
    )


def _rows(lines: Sequence[str], head: tuple[str, Cells]) -> list[Cells]:
    """Return the rows below a header; a rule between rows becomes an empty row."""
    delimiter, names = head
    found = list[Cells]()
    for line in lines:
        if delimiter == "|" and _RULE.fullmatch(line):
            found.append([])
            continue
        cells = split_cells(line, delimiter)
        if len(cells) != len(names) or not any(_NUMBER.fullmatch(cell) for cell in cells):
            break
        found.append(cells)
    return found


def _flatten_row(names: Cells, row: Cells) -> Iterator[str]:
    """Yield a line for each number of a row: the row's subject, the column and the number."""
    dated = _row_date(names, row)
    about = [] if dated is None else [dated]
    unit = ""
    values = list[tuple[str, str]]()
    for name, cell in zip(names, row, strict=True):
        head = name.lower()
        if head in _COUNTS or not cell or (dated is not None and head in _DATE_HEADS):
            continue
        if head in _UNITS:
            unit = f" {cell}"
        elif _NUMBER.fullmatch(cell) and not (_WHOLE_YEAR.fullmatch(cell) and not values):
            values.append((name, cell))
        else:
            about.append(cell)
    year = next((cell for cell in about if _WHOLE_YEAR.fullmatch(cell)), None)
    for name, cell in values:
        of = [f"{name} {year}" if one is year else one for one in about]
        yield f"{' '.join([*of, *([] if year else [name])])}: {cell}{unit}"


def _row_date(names: Cells, row: Cells) -> str | None:
    """Return the date of a row from its date columns; year and month are joined."""
    cells = {name.lower(): cell for name, cell in zip(names, row, strict=True)
             if name.lower() in _DATE_HEADS}  # fmt: skip
    year, month = cells.get("year"), cells.get("month")
    if year and month:
        return f"{year}-{int(month):02d}" if _MONTH_NUMBER.fullmatch(month) else f"{month} {year}"
    if len(cells) == 1 and not year:
        return next(iter(cells.values()))
    return None


_DASHES: Final = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\u2796"
_FULL_WIDTH: Final = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_ZEROS: Final = (0x0660, 0x06F0, 0x0966)
"""The zeros of Arabic, Persian and Devanagari; their other digits follow them."""
_PLAIN: Final[dict[int, int | str]] = {
    **_FULL_WIDTH,
    **{zero + digit: str(digit) for zero in _ZEROS for digit in range(10)},
    **dict.fromkeys(map(ord, _DASHES), "-"),
    **dict.fromkeys(map(ord, "\u2018\u2019\u02bc"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u00ab\u00bb"), '"'),
    **dict.fromkeys(map(ord, "\u2248\u223c\u2245\u2243"), "~"),
    **dict.fromkeys(map(ord, "\u00b9\u00b2\u00b3\u2070\u2074\u2075\u2076\u2077\u2078\u2079"), ""),
    **dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff"), ""),
    ord("\u00ba"): "\u00b0",
    ord("\u066a"): "%",
    ord("\u066b"): ".",
    ord("\u3002"): ". ",
    ord("\u3001"): ",",
}
_DECIMAL_DOT: Final = re.compile(r"(?<=\d)\u00b7(?=\d)")
GROUPING: Final = re.compile(r"(?<=\d)['\u2019\u066c\u00a0\u202f\u2009](?=\d{3}(?!\d))")
"""A separator of thousands that is nothing else between digits."""
_POWERS: Final = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207a\u207b"
_LOWERED: Final = str.maketrans(f"{_POWERS}\u2212", "0123456789+--")
_POWER_OF_TEN: Final = re.compile(
    r"(?<=\d) ?(?:[x*\u00d7\u22c5\u00b7]|\\times|\\cdot) ?10"
    rf"(?:\^\{{?([-+\u2212]?\d{{1,3}})\}}?(?!\d|\.\d)|([{_POWERS}]{{1,4}}))"
)
"""The factor of a number in scientific notation: ` \u00d7 10^3`."""
_LONG_DASH: Final = re.compile(r"(?<=\S)[\u2014\u2015](?=[^\W\d_])")
"""A dash between two words, which is no hyphen."""
_SPACES: Final = re.compile(r"[^\S\n]+")
_LATEX: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"\\(?:text|mathrm|mathbf|textbf|mathit|textit)\{([^{}\n]{0,200})\}"), r"\1"),
    (re.compile(r"_\{[^{}\n]{0,80}\}"), ""),
    (re.compile(r"(?<=\d)\{,\}(?=\d)"), ","),
    (re.compile(r"\\(?:boxed|fbox)\{([^{}]*)\}+"), r"the answer: \1"),
    (re.compile(r"\\(?:approx|sim)\b"), "~"),
    (re.compile(r"(?:\\,)?\^\{?\\circ\}?"), "\u00b0"),
    (
        re.compile(
            r"\\[()\[\]]|\$\$|\$(?=[^$\n]{1,40}\$(?!\d))|(?<=[\d%.\u00b0])\$(?!\d)|\\(?=[%$])|\\[,;!]"
        ),
        "",
    ),
)
_MARKUP: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"~~[^~\n]{1,80}~~"), ""),
    (re.compile(r"(?<=\u00b0) (?=[CFK]\b)"), ""),
    (re.compile(r"(?<!^)\[\^?\d{1,3}\](?!\()"), ""),
    (re.compile(r"!?\[([^\[\]\n]{1,200})\]\([^()\n]{0,300}\)"), r"\1"),
    (re.compile(r"</?[A-Za-z][\w-]{0,30}\s?/?>"), " "),
    (re.compile(r"<[A-Za-z][\w-]{0,30}\s([^<>\n]{1,200})>"), r" \1: "),
    (re.compile(r"^ *```\w*[ ]*$", re.MULTILINE), ""),
    (re.compile(r"\*\*|__|`|(?<!\w)\*(?=[^\s*])|(?<=[^\s*])\*(?!\w)|(?<!\w)_|_(?!\w)"), ""),
)
_QUOTED_LINE: Final = re.compile(r"^(?:[ |]|>(?!\d)|#+(?!\d))+|[ |]+$", re.MULTILINE)
_GROUPED_BY_BLANKS: Final = re.compile(
    r"[^\w\n]*(?:(?:about|around|approximately|roughly|nearly|almost|ca\.?|etwa|environ) "
    r"[^\w\n]{0,3})?[1-9]\d{0,2}(?: \d{3}){1,4}(?:[.,]\d+)?(?: ?[^\d\n]{1,40})?",
    re.IGNORECASE,
)
_EAST_ASIAN: Final = "\u3040-\u30ff\u3400-\u9fff"
_EAST_ASIAN_DATE: Final = re.compile(
    r"(?<!\d)(\d{4}) ?\u5e74 ?(\d{1,2}) ?\u6708(?: ?(\d{1,2}) ?\u65e5)?"
)
_EAST_ASIAN_MONTH: Final = re.compile(r"(?<!\d)(1[0-2]|0?[1-9]) ?\u6708")
_EAST_ASIAN_EDGE: Final = re.compile(
    rf"(?<=[{_EAST_ASIAN}])(?=[-+]?\d)|(?<=[\d%])(?=[{_EAST_ASIAN}])"
)

_ONES: Final = [
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    "nineteen",
]
_TENS: Final = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_VALUES: Final = {
    **{word: value for value, word in enumerate(_ONES)},
    **{word: 10 * value for value, word in enumerate(_TENS, 2)},
}
_ONE: Final = "|".join(sorted(_ONES, key=len, reverse=True))
_SMALL: Final = rf"(?:(?:{'|'.join(_TENS)})(?:[- ](?:{_ONE})\b)?|(?:{_ONE})\b)"
_WORDS: Final = (
    rf"\b(?P<whole>{_SMALL}(?: hundred(?:(?: and)? {_SMALL})?)?)"
    rf"(?:(?P<digits> point(?: (?:{_ONE}|oh)\b)+)|(?P<part> and a (?:half|quarter)\b))?"
)
_NUMBER_WORDS: Final = re.compile(rf"{_WORDS}(?!\w)", re.IGNORECASE)
_IN_WORDS: Final = re.compile(
    rf"{_WORDS}(?![- ](?:months?|years?|days?|weeks?|of)\b)(?!\w)", re.IGNORECASE
)


STRUCK: Final = "\u2020"
"""The character in place of each character of a number or date that is not the value."""
LONGEST_ANSWER: Final = 8000
"""The number of characters read from the end of an answer: some 2,000 tokens of reasoning."""


def normalise_text(response: str) -> str:
    """Return an answer without markup, in ASCII characters, with its numbers in digits.

    Reasoning blocks are removed; objects and tables become lines of words.
    """
    text = _LONG_DASH.sub(" - ", flatten_objects(extract_final_answer(response)[-LONGEST_ANSWER:]))
    text = normalise_signs(write_powers_of_ten(text, before_units=False))
    text = flatten_tables(_strip_marks(_MARKUP, _strip_marks(_LATEX, GROUPING.sub("_", text))))
    text = _EAST_ASIAN_MONTH.sub(_month_name, write_iso_dates(text))
    text = _EAST_ASIAN_EDGE.sub(" ", text)
    text = _QUOTED_LINE.sub("", _SPACES.sub(" ", text))
    text = join_thousands(text)
    return _IN_WORDS.sub(_digits, text).strip()


def write_powers_of_ten(text: str, *, before_units: bool = True) -> str:
    """Return a text with `1.2e3` for `1.2 \u00d7 10^3`, also before a word if `before_units`."""

    def write(found: re.Match[str]) -> str:
        if not before_units and text[found.end() : found.end() + 2].strip()[:1].isalpha():
            return found[0]
        return f"e{(found[1] or found[2]).translate(_LOWERED)}"

    return _POWER_OF_TEN.sub(write, text)


def normalise_signs(text: str) -> str:
    """Return a text with typographic characters and foreign digits replaced by plain ones."""
    return _DECIMAL_DOT.sub(".", text).translate(_PLAIN)


def join_thousands(text: str) -> str:
    """Return a text with `_` between thousands, if it is one number with blanks between them."""
    return re.sub(r"(?<=\d) (?=\d)", "_", text) if _GROUPED_BY_BLANKS.fullmatch(text) else text


def write_digits(text: str) -> str:
    """Return a text with its English numbers up to 999 in digits, also in spans of time."""
    return _NUMBER_WORDS.sub(_digits, text)


def _strip_marks(marks: tuple[tuple[re.Pattern[str], str], ...], text: str) -> str:
    for mark, left in marks:
        text = mark.sub(left, text)
    return text


def write_iso_dates(text: str) -> str:
    """Return a text with its Chinese and Japanese dates as ISO dates."""
    return _EAST_ASIAN_DATE.sub(_iso_date, text)


def _month_name(found: re.Match[str]) -> str:
    return f" {calendar.month_name[int(found[1])]} "


def _iso_date(found: re.Match[str]) -> str:
    parts = (part.zfill(2) for part in found.groups() if part)
    return f" {'-'.join(parts)} "


def _digits(found: re.Match[str]) -> str:
    """Convert a number in words to digits: "twenty-one point five" becomes 21.5."""
    value = str(_whole(found["whole"].lower()))
    if found["part"]:
        return value + (".5" if "half" in found["part"].lower() else ".25")
    words = (found["digits"] or "").lower().split()[1:]
    return value + ("." if words else "") + "".join(str(_VALUES.get(word, 0)) for word in words)


def _whole(words: str) -> int:
    total = 0
    for word in re.findall(r"[a-z]+", words):
        total = total * 100 if word == "hundred" else total + _VALUES.get(word, 0)
    return total
