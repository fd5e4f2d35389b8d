"""The words around a number: refusal, retraction, truncation, and the meaning of the number.

Numbers of other series, of tables, notes and steps, and of confidence levels are struck out, so
that they are not read as the value.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Final

from coreeval.evaluation.numleak.parsing.answer_text import STRUCK

_SENDS_AWAY: Final = re.compile(
    r"\b(?:please|should|recommend|suggest|need to|would have to|best to)\b"
    r"(?: \w+){0,3}? (?:consult(?:ing)?|check(?:ing)?|refer(?:ring)?|look(?:ing)?|verify(?:ing)?"
    r"|visit(?:ing)?|download(?:ing)?)\b",
    re.IGNORECASE,
)
_TAKES_BACK: Final = re.compile(
    r"(?:^|[.!?\n-][^\S\n]*)(?:(?:oh|hmm|no|sorry),? )?(?:wait|hold on|scratch that|correction:"
    r"|(?:let me|i should|i need to) (?:re-?(?:consider|check|think|calculate|examine)|correct)"
    r"|on second thought|i meant|or rather|make that|actually, (?:no|let|that|i )"
    r"|i (?:misspoke|was wrong|made (?:a|an)))\b"
    r"|[,;.?(] ?(?:(?:sorry|oops|correction|or rather|make that|rather)[,:]? (?:i (?:mean|meant) )?"
    r"|i (?:mean|meant) |no[,:.;]? (?:wait[,:]? ?)?)(?=(?:i think )?(?:it (?:is|was) )?~?[-+]?\d)"
    r"|- no[,:]? wait[,:]?",
    re.IGNORECASE,
)
_ENDS: Final = frozenset(".!?)]\"'%…")
_LIKELY: Final = (
    r"(?:[\s~:=('\"*]|\b(?:approximately|approx\.?|about|around|roughly|nearly|likely|probably|some"
    r"|somewhere|circa|of|at|in|the|an?|range|between|negative|positive)\b)*"
)
_SUBJECT: Final = (
    r"(?:it|that|this|(?:the|its) (?:[\w-]+ ){0,5}?(?:return|rate|value|figure|temperature|level"
    r"|number|reading|inflation|change|factor|mean|price|count|total"
    r"|average(?! (?:high|low))))"
)
_SAID: Final = (
    r"(?:was|is|were|are|would be|stood at|averaged|came (?:in )?(?:at|to)|returned"
    r"|reported (?:as|at)|:|=|~)"
)
_POINT_CUE: Final = re.compile(
    r"\b(?:(?:point|final|single|one-number) (?:\w+ )?(?:estimate|answer|figure|guess|value)"
    r"|the answer|answer(?: is|:)|pressed)\b[^!?]{0,80}$",
    re.IGNORECASE,
)
_CUE: Final = re.compile(
    r"\b(?:estimate[sd]?|guess|from memory|i(?: would|'d|'ll| will) (?:say|put|go with)"
    r"|i (?:recall|remember|believe|think)|answer"
    r"|so (?=about|around|roughly|approximately)|settle on|therefore|hence)\b"
    rf"[^!?]{{0,90}}$|\b{_SUBJECT}\b[^.!?]{{0,30}}?{_SAID} ?{_LIKELY}$",
    re.IGNORECASE,
)
_EXAMPLE: Final = re.compile(
    r"(?:\b(?:e\.g|for example|for instance|such as|typical(?:ly)?|historical(?:ly)?"
    r"|on average|average(?: monthly)? (?:return|premium)|usually|ranges?|ranged|ranging"
    r"|uncertainty|off by|margin|fabricat\w+|made-up|invent\w*|hypothetical(?:ly)?|tolerance"
    r"|(?<!my )(?:forecast|consensus))\b"
    r"|\b(?:like|as) ?\(?\")[^;\n]{0,70}$",
    re.IGNORECASE,
)
_OWN_RANGE: Final = re.compile(
    r"\b(?:in|within) (?:the|a) (?:\w+ )?range of\b[^;\n]{0,40}$", re.IGNORECASE
)
_BOUND: Final = re.compile(
    r"\b(?:(?:more|less|greater|lower|higher|other|better|worse|fewer) than|at (?:least|most)|over"
    r"|as (?:high|low|much|many|little|few) as"
    r"|under|above|below|exceed(?:s|ed|ing)?|(?<![a-z]ed )(?<!went )(?<!crept )up to|within"
    r"|threshold(?: of)?|not|(?:traded|ranged|fluctuated|varied|swung|moved)(?: \w+)? between)"
    r"(?: (?:about|around|roughly|approximately|an?|the))* ?[~(]*$|(?<![=-])[<>\u2264\u2265] ?~?$",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(
    r"(?<!\.[A-Za-z])(?<!approx)[.!?](?=\s|$)|(?<!:)\n+"
    r"|\b(?:but|however|though|nevertheless)\b",
    re.IGNORECASE,
)
_SEEN: Final = 300
"""The number of characters before a number in which the start of its sentence is searched for."""


def sends_away(text: str) -> bool:
    """Return whether a text names a source instead; with a number, this is not a refusal."""
    return _SENDS_AWAY.search(text) is not None


def drop_retracted(text: str) -> str:
    """Return the part of a plain text that is not retracted: everything after its last "wait"."""
    return text[max((found.end() for found in _TAKES_BACK.finditer(text)), default=0) :]


def is_cut_off(text: str) -> bool:
    """Return whether a plain text of several words ends in the middle of a sentence."""
    return len(text.split()) > 3 and not _ENDS & set(_behind_words(text))


def _behind_words(text: str) -> Iterator[str]:
    """Yield the punctuation and spaces after the last word, from the end."""
    return takewhile(lambda sign: not (sign.isalnum() or sign == "_"), reversed(text))


def sentence_before(text: str, at: int) -> str:
    """Return the part of the sentence before a position; "but" also begins a sentence."""
    near = text[max(0, at - _SEEN) : at]
    return near[max((found.end() for found in _SENTENCE.finditer(near)), default=0) :]


def is_no_statement(before: str) -> bool:
    """Return whether words introduce an example, a bound, or a general description of values."""
    if _BOUND.search(before):
        return True
    return _EXAMPLE.search(before) is not None and _OWN_RANGE.search(before) is None


def rank_endorsement(before: str) -> int:
    """Return 2 if the words introduce a point estimate or the answer, 1 for an estimate, or 0."""
    return 2 if _POINT_CUE.search(before) else int(_CUE.search(before) is not None)


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
"""The factors of one data library, which answers list together."""
_OTHERS: Final[Mapping[str, tuple[str, ...]]] = {
    **{each: (each,) for each in (
        "oil", "crude", "brent", "wti", "gold", "silver", "bitcoin", "small caps", "large caps",
        "small-cap", "large-cap", "equal-weighted", "emerging markets", "msci", "wilshire", "dax",
        "value stocks", "growth stocks", "anomaly", "departure", "teenagers",
        "core cpi", "core inflation", "pce", "futures", "2-year", "5-year", "10-year", "30-year",
        "risk-free", "s&p", "nasdaq", "russell", "ftse", "nikkei", "treasury", "mortgage rate",
        "interest rates",
    )},
    "the fed": _FED_FUNDS,
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
    "inflation": ("inflation", "cpi", "consumer price"),
    "u-6": ("u-6",),
    "participation": ("participation",),
    "payems": ("payems", "payroll"),
}  # fmt: skip
"""Other series whose numbers a market description may contain.

Each has words that mean, if the name of the series asked about contains one, that it is not another
series.
"""
_UNADJUSTED: Final = ("not seasonally adjusted", "unadjusted", "not adjusted")
_RECORD: Final = r"series|factor|name|metric|indicator|variable"
_SHORT_NAME: Final = 24
_EXCESS: Final = re.compile(r"\b(?:excess|premium|rf)\b", re.IGNORECASE)
"""Words for a return less the risk-free rate."""
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
"""A return less the risk-free rate, followed by its value in the sentence."""


def strike_other_series(text: str, name: str) -> str:
    """Return a plain text with the numbers of other series struck out.

    A number belongs to another series if that series is named before it in its clause. A return
    less the risk-free rate is not another series if the series asked about is such a return.

    Args:
        text: The plain text of the answer.
        name: All names of the series asked about; names in it do not count as other series.
    """
    if _EXCESS.search(name):
        text = _LESS_THE_RATE.sub(r"\g<own>", text)
    called = name.lower()
    others = [other for other, names in _OTHERS.items()
              if not any(each in called for each in names)]  # fmt: skip
    if "seasonally adjusted" in called and not any(each in called for each in _UNADJUSTED):
        others += _UNADJUSTED
    names = "|".join(re.escape(other) for other in sorted(others, key=len, reverse=True))
    own = "|".join(re.escape(one) for one in _own_names(name))
    words = rf"(?:(?!\b(?:{own}|the factor)\b){_WORDS})" if own else _WORDS
    about = rf"(?<![\w-])(?:{names})(?![\w-]){words}{{0,160}}(?:\(~?{NUMBER}\))?"
    record = rf"^[^\w\n]*(?:{_RECORD}) ?[:=] ?(?:{names})(?![\w-])(?:[^\n]*\n?(?!\n)){{1,12}}"
    text = re.sub(record, _without_digits, text, flags=re.IGNORECASE | re.MULTILINE)
    return re.sub(about, _without_digits, text, flags=re.IGNORECASE)


def is_labelled(before: str, name: str) -> bool:
    """Return whether the words before a number end in a series name and a sign: `Mkt-RF = `."""
    own = "|".join(re.escape(one) for one in _own_names(name))
    named = rf"(?<![\w-])(?:{own})(?: ?\([^()]{{0,40}}\))?"
    label = rf"{named}[\w \u2020-]{{0,30}}[:=~](?:[\d\W]{{0,60}}=)?\W*$"
    return bool(own) and re.search(label, before, re.IGNORECASE) is not None


def _own_names(name: str) -> list[str]:
    """Return the short names of a series: abbreviations and text in brackets."""
    parts = [part.strip() for part in re.split(r"[,()]", name)]
    return [part for part in parts if 1 < len(part) <= _SHORT_NAME and part[:1].isupper()]


def strike(found: re.Match[str]) -> str:
    """Return a run of placeholder characters as long as the match."""
    return STRUCK * len(found[0])


def _without_digits(found: re.Match[str]) -> str:
    return re.sub(r"[-+]?\d[\d.,]*(?: ?%)?", strike, found[0])


_PERCENT: Final = r"(?:%|percent|per cent)"
_SURE: Final = (
    r"(?:sure|certain|confident|confidence|certainty|chance|probability|likelihood|likely)"
)
_ASIDES: Final = re.compile(
    rf"""(?ix)
      \b(?:tables?|sections?|figures?|fig\.?|pages?|steps?|chapters?|appendix|option|version|id|no\.
         |footnotes?|case|phase|point)\ \#?\d+(?:\.\d+)*(?![\d%.]|,\d|\ ?{_PERCENT})
    | \b{_SURE}\b(?:\ (?:level|score|interval|rating|in\ this|of|is|was|about|at|roughly|that))*
      \ ?[:=(~]?\ ?~?\d[\d.]*\ ?(?:/\ ?\d+|{_PERCENT})?
    | (?<![\d.])\d[\d.]*\ ?{_PERCENT}?\ (?:{_SURE})\b
    """
)
_NUMBERING: Final = re.compile(r"^ *\d{1,2}[.)](?= [^\n]*(?:\d|\n))", re.MULTILINE)


def strike_asides(text: str) -> str:
    """Return a plain text with the numbers of steps, tables and confidence levels struck out."""
    return _NUMBERING.sub(_strike, _ASIDES.sub(_strike, text))


def _strike(found: re.Match[str]) -> str:
    """Strike out only the digits of a match, because its words are still read."""
    return re.sub(r"[\d.%]", STRUCK, found[0])
