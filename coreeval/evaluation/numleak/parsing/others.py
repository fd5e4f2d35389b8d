"""Numbers that an answer tells of other series, struck out so that none is taken for its own."""

import re
from collections.abc import Mapping
from typing import Final

_STRUCK: Final = "\u2020"
NUMBER: Final = r"[-+]?\d{1,9}(?:\.\d{1,9})? ?%?"
_WORDS: Final = r"(?:[^.,;\n()|]|[.,](?=\d))"
_FED_FUNDS: Final = ("fed funds", "federal funds", "fedfunds")
_DOW: Final = ("dow jones", "djia")
_MARKET_NAMES: Final = ("mkt", "market excess", "market factor")
_FACTORS: Final[Mapping[str, tuple[str, ...]]] = {
    **{each: (each, word) for each, word in (
        ("smb", "size"), ("hml", "value (hml)"), ("rmw", "profitability"), ("cma", "investment"),
    )},
    **dict.fromkeys(("umd", "wml", "mom"), ("umd", "mom")),
    **dict.fromkeys(("mkt-rf", "mkt", "market factor"), _MARKET_NAMES),
    **{f"{word} factor": (f"{word} factor", f"{word} ({short})") for word, short in (
        ("size", "smb"), ("value", "hml"), ("profitability", "rmw"), ("investment", "cma"),
        ("momentum", "mom"),
    )},
    "rf": ("risk-free", "rf factor"),
}  # fmt: skip
"""The factors of one library, which answers list side by side."""
_OTHERS: Final[Mapping[str, tuple[str, ...]]] = {
    **{each: (each,) for each in (
        "oil", "crude", "brent", "wti", "gold", "silver", "bitcoin", "small caps", "large caps",
        "small-cap", "large-cap", "equal-weighted", "emerging markets", "msci", "wilshire", "dax",
        "value stocks", "growth stocks", "anomaly", "departure", "teenagers",
        "core cpi", "core inflation", "pce", "10-year", "30-year",
        "risk-free", "s&p", "nasdaq", "russell", "ftse", "nikkei", "treasury", "mortgage rate",
        "interest rates",
    )},
    "fed funds": _FED_FUNDS,
    "federal funds": _FED_FUNDS,
    "dow jones": _DOW,
    "djia": _DOW,
    "dow": _DOW,
    "men": ("for men",),
    "women": ("for women",),
    "vix": ("vix", "volatility index"),
    "volatility": ("vix", "volatility"),
    **_FACTORS,
    "u-6": ("u-6",),
    "participation rate": ("participation",),
    "payems": ("payems", "payroll"),
}  # fmt: skip
"""What else a description of a market tells numbers of, and what a series is called whose own word
that is."""
_RECORD: Final = r"series|factor|name|metric|indicator|variable"
_SHORT_NAME: Final = 24
_EXCESS: Final = re.compile(r"\b(?:excess|premium|rf)\b", re.IGNORECASE)
"""What a return less the risk-free rate is called."""
_DATE: Final = (
    r"(?: (?:in|for|during|over) (?:the month|that month|this month|(?:the month of )?"
    r"[a-z]{3,9}\.?,? \d{4}))?"
)
_MARKET: Final = (
    r"(?:u\.s\.|us|broad|overall|total|aggregate|stock|equity|monthly|excess|market(?:'s)?|mkt-rf)"
)
_RETURN: Final = (
    rf"(?:^|[.,;:(\n]|\b(?:the|that|a|of|month's|\d{{4}})) ?(?:{_MARKET} ){{0,4}}?"
    r"(?:returns?|market|factor|premium|performance|portfolio)"
    rf"(?: (?:of|on|for) (?:the )?(?:{_MARKET} ){{0,4}}?(?:market|portfolio|factor))?{_DATE}"
)
_RATE: Final = (
    r"(?:the |a )?(?:(?:prevailing|monthly|short-term|low|u\.s\.|us|t-bill|(?:one|1)-month"
    r"|30-day) ){0,3}(?:risk-free|treasury)(?: (?:rate|return|yield|bills?|one|asset)s?){0,3}"
)
_LESS_THE_RATE: Final = re.compile(
    rf"(?P<own>{_RETURN}),? (?:in excess of|over|above|less|minus|net of) {_RATE}\b"
    rf"(?: ?\([^()\n]{{0,60}}\)| (?:of|at) (?:about |around |approximately |roughly )?~?{NUMBER})?"
    rf"(?={_DATE}(?: ?[:=]| (?:was|were|is|came|amount(?:s|ed)|stood|totall?ed|equall?ed|fell"
    r"|dropped|declined|rose|gained|landed|would (?:be|have been)|must have been)\b))",
    re.IGNORECASE,
)
"""A return less the risk-free rate, of which the sentence then says what it was."""


def without_others(text: str, name: str) -> str:
    """Return a plain text with the numbers of other series struck out.

    A number belongs to another series where one is named before it in its clause. A return less
    the risk-free rate is no other one where the series asked is such a return.

    Args:
        text: What was said.
        name: All that the series asked is called: those of the others that it is are its own.
    """
    if _EXCESS.search(name):
        text = _LESS_THE_RATE.sub(r"\g<own>", text)
    called = name.lower()
    others = [re.escape(other) for other, names in _OTHERS.items()
              if not any(each in called for each in names)]  # fmt: skip
    names = "|".join(sorted(others, key=len, reverse=True))
    own = "|".join(re.escape(one) for one in _own_names(name))
    words = rf"(?:(?!\b(?:{own}|the factor)\b){_WORDS})" if own else _WORDS
    about = rf"(?<![\w-])(?:{names})(?![\w-]){words}{{0,160}}(?:\(~?{NUMBER}\))?"
    record = rf"^[^\w\n]*(?:{_RECORD}) ?[:=] ?(?:{names})(?![\w-])(?:[^\n]*\n?(?!\n)){{1,12}}"
    text = re.sub(record, _without_digits, text, flags=re.IGNORECASE | re.MULTILINE)
    return re.sub(about, _without_digits, text, flags=re.IGNORECASE)


def labelled(before: str, name: str) -> bool:
    """Whether the words before a number end in a name of the series and a sign: `Mkt-RF = `."""
    own = "|".join(re.escape(one) for one in _own_names(name))
    label = rf"(?<![\w-])(?:{own})(?: ?\([^()]{{0,40}}\))?[\w \u2020-]{{0,30}}[:=]\W*$"
    return bool(own) and re.search(label, before, re.IGNORECASE) is not None


def _own_names(name: str) -> list[str]:
    """Return the short names of a series: abbreviations, and what stands in brackets."""
    parts = [part.strip() for part in re.split(r"[,()]", name)]
    return [part for part in parts if 1 < len(part) <= _SHORT_NAME and part[:1].isupper()]


def strike(found: re.Match[str]) -> str:
    """Return signs that are no number in the place of what was found."""
    return _STRUCK * len(found[0])


def _without_digits(found: re.Match[str]) -> str:
    return re.sub(r"[-+]?\d[\d.,]*(?: ?%)?", strike, found[0])
