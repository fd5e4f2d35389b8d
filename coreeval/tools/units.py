"""The units of numbers in texts: measures, rates, currencies and times.

All spellings of a unit have one name, such as `kilometre per hour` or `square metre`. A spelling
with several meanings has all their names: `pounds` are `pound or pound sterling`.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Final
from unicodedata import digit

CURRENCIES: Final[Mapping[str, str]] = {
    "dollar": "$, dollar, dollars",
    "US dollar": "us$, usd, us dollar, us dollars, u.s. dollars, american dollars",
    "Canadian dollar": "c$, ca$, cad, canadian dollar, canadian dollars",
    "Australian dollar": "a$, au$, aud, australian dollar, australian dollars",
    "Hong Kong dollar": "hk$, hkd, hong kong dollar, hong kong dollars",
    "Singapore dollar": "s$, sgd, singapore dollar, singapore dollars",
    "New Zealand dollar": "nz$, nzd, new zealand dollar, new zealand dollars",
    "euro": "\u20ac, eur, euro, euros",
    "pound sterling": "\u00a3, gbp, pound sterling, pounds sterling, british pounds",
    "yen": "jpy, yen",
    "yuan": "cny, rmb, yuan, renminbi",
    "yen or yuan": "\u00a5",
    "rupee": "\u20b9, inr, rs, rs., rupee, rupees",
    "franc": "chf, franc, francs, swiss francs",
    "cent": "cent, cents",
}
"""The spellings of each currency."""
SCALES: Final[Mapping[str, float]] = {
    **dict.fromkeys(("hundred",), 1e2),
    **dict.fromkeys(("thousand", "thousands", "k"), 1e3),
    **dict.fromkeys(("lakh", "lakhs"), 1e5),
    **dict.fromkeys(("million", "millions", "mn", "mm", "mio", "mln", "m"), 1e6),
    **dict.fromkeys(("millionen", "millones"), 1e6),
    **dict.fromkeys(("crore", "crores"), 1e7),
    **dict.fromkeys(("billion", "billions", "bn", "bln", "b"), 1e9),
    **dict.fromkeys(("milliard", "milliards", "milliarde", "milliarden", "mrd"), 1e9),
    **dict.fromkeys(("trillion", "trillions", "tn", "trn", "t"), 1e12),
}
"""The words for powers of ten after a number; the German `Billion` is left out."""
TIMES: Final[Mapping[str, str]] = {
    "second": "second, seconds, sec, secs",
    "minute": "minute, minutes, min, mins",
    "hour": "hour, hours, hr, hrs",
    "day": "day, days",
    "week": "week, weeks, wk, wks",
    "month": "month, months",
    "quarter": "quarter, quarters",
    "year": "year, years, yr, yrs",
    "decade": "decade, decades",
    "century": "century, centuries",
}
"""The spellings of each span of time that are clear in any text."""
_OTHERS: Final[Mapping[str, Mapping[str, str]]] = {
    "length": {
        "metre": "metre, meter, metres, meters, m",
        "foot": "foot, feet, ft",
        "inch": "inch, inches, in",
        "yard": "yard, yards, yd, yds",
        "mile": "mile, miles, mi",
        "nautical mile": "nautical mile, nautical miles, nmi",
        "light year": "light year, light years, lightyears, ly",
        "nanometre or nautical mile": "nm",
        "micrometre": "micron, microns",
        "kilometre": "kms",
    },
    "mass": {
        "gram": "gram, grams, gramme, grammes, g, gm, gms",
        "kilogram": "kilo, kilos, kgs",
        "microgram": "mcg",
        "pound": "lb, lbs",
        "ounce or fluid ounce": "ounce, ounces, oz",
        "stone": "stone",
        "carat": "carat, carats",
        "tonne": "tonne, tonnes, metric ton, metric tons, t",
        "short ton": "short ton, short tons, us tons",
        "long ton": "long ton, long tons",
        "tonne or short ton or long ton": "ton, tons",
        "kilotonne": "kiloton, kilotons",
        "megatonne": "megaton, megatons",
        "gigatonne": "gigaton, gigatons",
        "megatonne or tonne": "MT",
    },
    "volume": {
        "litre": "litre, liter, litres, liters, l, L",
        "gallon": "gallon, gallons, gal",
        "quart": "quart, quarts",
        "pint": "pint, pints",
        "fluid ounce": "fluid ounce, fluid ounces, fl oz",
        "barrel": "barrel, barrels, bbl",
        "bushel": "bushel, bushels",
        "cubic centimetre": "cc",
        "megalitre or millilitre": "ML",
    },
    "area": {"hectare": "hectare, hectares, ha", "acre": "acre, acres"},
    "temperature": {
        "celsius": "celsius, centigrade, degree celsius, degrees celsius, degrees centigrade, "
        "deg celsius, degrees c, degree c, deg c, \u00b0c, \u00b0 c, \u00b0celsius, c",
        "fahrenheit": "fahrenheit, degree fahrenheit, degrees fahrenheit, deg fahrenheit, "
        "degrees f, degree f, deg f, \u00b0f, \u00b0 f, \u00b0fahrenheit, f",
        "kelvin": "kelvin, kelvins, degrees kelvin, K",
        "degree or celsius or fahrenheit or kelvin": "degree, degrees, deg, \u00b0",
    },
    "power": {"watt": "watt, watts, W", "horsepower": "horsepower, hp"},
    "energy": {
        "watt hour": "watt hour, watt hours, Wh",
        "joule": "joule, joules, J",
        "calorie": "calorie, calories, cal",
        "newton metre": "newton metre, newton meter, newton metres, newton meters, Nm",
        "electronvolt": "electronvolt, electronvolts, eV",
    },
    "frequency": {"hertz": "hertz, Hz"},
    "data": {"byte": "byte, bytes, B", "bit": "bit, bits", "kilobit": "kbit", "megabit": "Mbit"},
    "voltage": {"volt": "volt, volts, V"},
    "current": {"ampere": "ampere, amperes, amp, amps, A"},
    "pressure": {
        "pascal": "pascal, pascals, Pa",
        "bar": "bar, bars",
        "millibar": "mbar",
        "mmHg": "mmhg, mm hg",
        "psi": "psi",
    },
    "force": {"newton": "newton, newtons, N"},
    "amount": {"mole": "mole, moles, mol"},
    "speed": {"knot": "knot, knots, kn, kts", "knot or kilotonne": "kt"},
    "money or mass": {"pound or pound sterling": "pound, pounds"},
    "length or time": {"metre or minute": "m"},
    "time": {"second": "s", "hour": "h", "day": "d", "month": "mo, mos", "year": "y"},
}
"""The spellings of each other unit, by what it measures; prefixes and powers are added."""
_PREFIXES: Final = {
    "nano": ("n", 1e-9), "micro": ("\u00b5", 1e-6), "milli": ("m", 1e-3), "centi": ("c", 1e-2),
    "deci": ("d", 0.1), "hecto": ("h", 100.0), "kilo": ("k", 1e3), "mega": ("M", 1e6),
    "giga": ("G", 1e9), "tera": ("T", 1e12), "peta": ("P", 1e15),
}  # fmt: skip
_PREFIXED: Final = {
    "metre": "nano micro milli centi kilo", "gram": "nano micro milli kilo",
    "litre": "micro milli centi deci hecto mega", "tonne": "kilo mega giga",
    "watt": "milli kilo mega giga tera", "watt hour": "kilo mega giga tera",
    "hertz": "kilo mega giga tera", "byte": "kilo mega giga tera peta",
    "bit": "kilo mega giga tera", "joule": "kilo mega giga", "volt": "milli kilo",
    "ampere": "milli", "pascal": "hecto kilo mega", "newton": "kilo", "second": "nano micro milli",
    "calorie": "kilo", "electronvolt": "kilo mega giga", "mole": "micro milli", "bar": "milli",
}  # fmt: skip
_SIZES: Final = {
    f"{prefix}{name}": ("gram", 1e6 * size) if name == "tonne" else (name, size)
    for name, prefixes in _PREFIXED.items()
    for prefix, size in (("", 1.0), *((one, _PREFIXES[one][1]) for one in prefixes.split()))
}
"""For each unit: the unit without a prefix, and how many of these it is."""
_JOINED: Final = {
    "kph": "kilometre per hour", "kmh": "kilometre per hour", "kmph": "kilometre per hour",
    "mph": "mile per hour", "mpg": "mile per gallon", "kbps": "kilobit per second",
    "mbps": "megabit per second", "gbps": "gigabit per second",
}  # fmt: skip
_BITS: Final = {"kb": "kilo", "Mb": "mega", "Gb": "giga", "Tb": "tera"}
_CHANGING: Final = ("day", "week", "month", "quarter", "year")
"""Times that are often omitted from a rate."""
_UNCLEAR: Final = ("in", "pa", "mo", "ly")
"""Spellings that are also other words; so are all single letters."""
_SHORT_SCALES: Final = ("m", "mm", "t", "k", "b")
"""Spellings that may mean a scale such as million."""


def _iter_spellings() -> Iterator[tuple[str, str, str]]:
    """Yield each spelling with the unit's name and what the unit measures."""
    tables = (("money", CURRENCIES), ("time", TIMES), *_OTHERS.items())
    for kind, table in tables:
        for name, spellings in table.items():
            for form in spellings.split(", "):
                yield form, name, kind
                yield from _add_prefixes(form, name, kind)
    for form, prefix in _BITS.items():
        yield form, f"{prefix}bit or {prefix}byte", "data"
    yield from ((form, name, "") for form, name in _JOINED.items())


def _add_prefixes(form: str, name: str, kind: str) -> Iterator[tuple[str, str, str]]:
    is_symbol = len(form) <= len("mol") and form not in ("bit", "bar", "ton", "amp")
    for prefix in _PREFIXED.get(name, "").split():
        marks = [_PREFIXES[prefix][0] if is_symbol else prefix]
        marks += ["\u03bc", "u"] if marks == ["\u00b5"] else []
        yield from ((mark + form, prefix + name, kind) for mark in marks)


_EXACT: Final[dict[str, str]] = {}
_FOLDED: Final[dict[str, str]] = {}
_KINDS: Final[dict[str, set[str]]] = {}
for _form, _name, _kind in _iter_spellings():
    for _table, _key in ((_EXACT, _form), (_FOLDED, _form.casefold())):
        _names = dict.fromkeys((*_table.get(_key, _name).split(" or "), *_name.split(" or ")))
        _table[_key] = " or ".join(_names)
    for _meaning in _name.split(" or "):
        _KINDS.setdefault(_meaning, set()).update(
            _kind.split(" or ") if " or " not in _name else ()
        )
_KINDS["degree"] = {"temperature"}

_LETTER: Final = r"[^\W\d_\u00b2\u00b3\u00b9\u207b]"
_WORD: Final = (
    rf"(?:u\.s\.|{_LETTER}{{0,3}}[$\u20ac\u00a3\u00a5\u20b9]|\u00b0 ?{_LETTER}+|\u00b0|{_LETTER}+)"
)
_PHRASE: Final = re.compile(rf"{_WORD}(?:[ -]{_WORD}){{0,2}}", re.IGNORECASE)
_LAST_WORD: Final = re.compile(rf"[ -]{_WORD}\Z")
_BEFORE: Final = re.compile(r"(square|sq\.?|cubic|cu\.?)[ -]?(?=\w)", re.IGNORECASE)
_BEHIND: Final = re.compile(
    r"(?:\^?[23]|\^\{[23]\}|[\u00b2\u00b3]| squared| cubed)(?!\w)",
    re.IGNORECASE,
)
_PER: Final = re.compile(r" ?/ ?| per | an? |(?P<by> ?[\u00b7\u22c5*] ?| )(?=\w)", re.IGNORECASE)
_HUNDRED: Final = re.compile(r"100 ?(?=\w)")
_INVERSE: Final = re.compile(r"\^?\{?(?:-|\u207b)(?P<power>[123\u00b9\u00b2\u00b3])\}?(?!\w)")
_RAISED: Final = re.compile(rf"(?<!{_LETTER})({_LETTER}+)(\u207b?)([\u00b9\u00b2\u00b3])")
_POWERS: Final = {
    **dict.fromkeys(("square", "sq", "sq.", "2", "\u00b2", "squared"), "square "),
    **dict.fromkeys(("cubic", "cu", "cu.", "3", "\u00b3", "cubed"), "cubic "),
}
_START: Final = re.compile(
    r"(?<![^\W\d_])(?<!/)(?<!\bper )(?<!\bper square )(?<!\bper cubic )(?=\S)", re.IGNORECASE
)
_QUALIFIED: Final = re.compile(r" (?:of|above|below|deep|high|long|tall|thick|wide)\b", re.I)
_SCALED: Final = re.compile(
    r"(?:in )?(?:(?:thousand|million|billion|trillion)s?(?: of)?|[1-9][\d,.]*|'000)\s+", re.I
)


def name_unit(text: str) -> str:
    """Return the name of the unit that a text is or first contains; "" if there is none."""
    plain = " ".join(re.sub(r"[()\[\]]", " ", text).split())
    scale = _SCALED.match(plain)
    own = plain[scale.end() :] if scale else plain
    name, end = _read_unit(own, 0, is_clear=True)
    if name and (end == len(own) or _QUALIFIED.match(own, end)):
        return name
    found = (_read_unit(plain, start.start())[0] for start in _START.finditer(plain))
    return next(filter(None, found), "")


def read_unit_at(text: str, position: int) -> tuple[str, int]:
    """Return the name and end of the unit at a position in a text; "" if there is none.

    A space or a hyphen may precede it. A single letter, such as m, is not a unit.
    """
    start = position + (text[position : position + 1] in (" ", "-"))
    name, end = _read_unit(text, start)
    return (name, end) if name else ("", position)


def write_powers(text: str) -> str:
    """Return a text with superscript powers of units written as in `km^2`; others stay."""
    return _RAISED.sub(_write_power, text)


def _write_power(found: re.Match[str]) -> str:
    word, minus, power = found.groups()
    name, end = _read_name(word, 0)
    kinds = {kind for one in _meanings(name) for kind in _KINDS.get(one, ())}
    if end < len(word) or not (minus or (kinds & {"length", "time"} and power != "\u00b9")):
        return found[0]
    return f"{word}^{'-' if minus else ''}{digit(power)}"


def spell_units(text: str, unit: str) -> str:
    """Return a text with short spellings after numbers replaced by the names of their units.

    They are read as measuring the same as the given unit: `5 m` is 5 metres if it is `kilometre`,
    and otherwise 5 million.
    """
    parts, done = list[str](), 0
    for number in re.finditer(r"(?<=\d)[ -]?(?=[^\W\d_\u00b0]|\u00b0)", text) if unit else ():
        name, end = _read_unit(text, number.end(), is_clear=True)
        if not name or number.start() < done or not _is_meant(name, unit, text, number.end(), end):
            continue
        parts += [text[done : number.start()], " ", _choose_meaning(name, unit)]
        done = end
    return "".join([*parts, text[done:]])


def units_agree(said: str, due: str) -> bool:
    """Return whether a stated unit, if any, may be the expected one."""
    if not said or not due or said == due:
        return True
    own, _, rate = said.partition(" per ")
    other, _, due_rate = due.partition(" per ")
    if not _meanings(own) & _meanings(other):
        if own == "dollar" and other in CURRENCIES:
            return other.endswith("dollar") and _rates_agree(rate, due_rate, is_money=True)
        if (own, other) != ("US dollar", "dollar"):
            return False
    return _rates_agree(rate, due_rate, is_money=bool({own, other} & CURRENCIES.keys()))


def find_factor(said: str, due: str) -> float:
    """Return the factor between two units, such as 1000 for kilometres in metres; 0 if unknown."""
    for one, other in product(_meanings(said), _meanings(due)):
        (base, size), (due_base, due_size) = (
            _SIZES.get(one, ("", 0.0)),
            _SIZES.get(other, ("-", 1.0)),
        )
        if base == due_base:
            return size / due_size
    return 0.0


def _rates_agree(said: str, due: str, *, is_money: bool) -> bool:
    if said and due:
        return bool(_meanings(said) & _meanings(due))
    return said == due or is_money or (said or due) in _CHANGING


def _meanings(name: str) -> set[str]:
    return set(name.split(" or "))


def _is_meant(name: str, unit: str, text: str, start: int, end: int) -> bool:
    """Return whether a spelling is meant as a unit, given the unit of an item."""
    short = text[start:end]
    if short.casefold() in ("in", "a") and not units_agree(name, unit):
        return False
    if short in _SHORT_SCALES and read_unit_at(text, end)[0]:
        return False
    whole, _, rate = unit.partition(" per ")
    asked = _list_meanings(unit) + (_list_meanings(whole) if rate in _CHANGING else [])
    return any(_kind_of(one) == _kind_of(due) for one, due in product(_list_meanings(name), asked))


def _list_meanings(name: str) -> list[str]:
    first, _, rate = name.partition(" per ")
    return [f"{one} per {rate}" if rate else one for one in first.split(" or ")]


def _kind_of(name: str) -> tuple[str, ...]:
    """Return what a unit measures, such as length and time for a speed."""
    kinds = list[str]()
    for part in name.split(" per "):
        power, _, base = part.removeprefix("100 ").rpartition(" ")
        is_power = power in ("square", "cubic")
        kind = next(iter(sorted(_KINDS.get(base if is_power else part, ()))), part)
        kinds.append({"square": "area", "cubic": "volume"}[power] if is_power else kind)
    return ("length", "time") if kinds == ["speed"] else tuple(kinds)


def _choose_meaning(name: str, unit: str) -> str:
    meanings = _list_meanings(name)
    alike = [one for one in meanings if _kind_of(one) in map(_kind_of, _list_meanings(unit))]
    return next((one for one in meanings if units_agree(one, unit)), [*alike, name][0])


def _read_unit(text: str, start: int, *, is_clear: bool = False) -> tuple[str, int]:
    """Return the name and end of the unit at a position; single letters count if they are clear."""
    name, end = _read_part(text, start)
    if not name:
        return "", start
    spelling, parts = text[start:end], [name]
    while len(parts) <= 2 and (per := _PER.match(text, end)):
        hundred = _HUNDRED.match(text, per.end())
        part, last = _read_part(text, hundred.end() if hundred else per.end())
        inverse = _INVERSE.match(text, last) if part else None
        if not part or (bool(per["by"]) and not inverse):
            break
        if inverse:
            power = inverse["power"].translate(str.maketrans("\u00b2\u00b3", "23"))
            part, last = _POWERS.get(power, "") + part, inverse.end()
        if per[0].startswith(" a") and not part.startswith((*TIMES, "barrel")):
            break
        parts.append(f"100 {part}" if hundred else part)
        end = last
        is_clear = is_clear or "/" in per[0] or inverse is not None
    if not is_clear and (
        (len(spelling) == 1 and spelling.isalpha()) or spelling.casefold() in _UNCLEAR
    ):
        return "", start
    if text[end : end + 1] == "/" and len(parts) == 1 and len(spelling) == 1:
        return "", start
    return " per ".join(parts), end


def _read_part(text: str, start: int) -> tuple[str, int]:
    """Return the name of a unit without a rate, such as `square metre`, and its end."""
    before = _BEFORE.match(text, start)
    name, end = _read_name(text, before.end() if before else start)
    if not name:
        return "", start
    behind = None if before else _BEHIND.match(text, end)
    can_have_power = any("length" in _KINDS.get(one, ()) for one in _meanings(name))
    if before and not can_have_power:
        return "", start
    power = (before or behind or [""])[0].strip(" -^{}").casefold()
    if not power:
        return name, end
    if not (can_have_power or "second" in _meanings(name)):
        return "", start
    base = next(one for one in name.split(" or ") if _KINDS.get(one, set()) & {"length", "time"})
    return _POWERS[power] + base, behind.end() if behind else end


def _read_name(text: str, start: int) -> tuple[str, int]:
    phrase = _PHRASE.match(text, start)
    said = phrase[0] if phrase else ""
    while said:
        form, end = said.replace("-", " "), start + len(said)
        folded = form.casefold()
        name = _EXACT.get(form) or ("" if folded in _SHORT_SCALES else _FOLDED.get(folded, ""))
        ends = not form[-1].isalpha() or not text[end : end + 1].isalnum()
        if name and (ends or _BEHIND.match(text, end)):
            return name, end
        shorter = _LAST_WORD.search(said)
        said = said[: shorter.start()] if shorter else ""
    return "", start
