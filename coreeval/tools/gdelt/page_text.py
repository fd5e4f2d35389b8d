"""Repairs, cleans, flags and screens titles and descriptions, which anybody may have written.

DOC 2.0 splits titles into tokens and loses characters. Invisible characters are removed, texts that
look like instructions to a model are flagged, and some titles are not offered as evidence.
"""

import re
import unicodedata
from collections.abc import Mapping

from coreeval.tools.gdelt.screen_words import SCREEN_WORDS, ScreenRule, ScreenWords
from coreeval.tools.text import unescape

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)[a-z]*\.?"
_PREFIXES = (
    r"anti|bi|co|counter|cross|cyber|e|eco|ex|first|full|half|high|inter|long|low|mid|mini|multi|"
    r"non|off|on|once|over|part|post|pre|pro|re|real|second|self|semi|short|single|start|sub|super|"
    r"third|trans|ultra|under|well|zero"
)
_LEADS_A_CLAUSE = (
    r"a|an|and|as|at|but|by|for|from|here|how|in|it|new|of|on|or|says?|see|the|this|to|what|when|"
    r"where|who|why|with|analysts?|data|experts?|minister|officials?|photos?|police|poll|reports?|"
    r"reuters|review|sources?|study|survey|video|watch"
)
_PARTICIPLES = (
    "Based|Backed|Driven|Focused|Free|Friendly|Funded|Grade|Haven|Led|Linked|Made|Old|Owned|Powered|"
    "Quality|Ready|Related|Scale|Style|Term|Yield"
)
_DATE_BEFORE = re.compile(rf"{_MONTH} $", re.IGNORECASE)
_LONGEST_MONTH = 12
"""The most characters of a month's name and what follows it before the number."""
_YEAR = re.compile(r"(?:19|20)\d\d$")

_STEPS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(?<=\b[A-Za-z]) ?\. ?(?=[A-Z]\b ?\.)", "."),  # U . S . -> U.S .
        (r"(?<=[A-Za-z]\.[A-Z]) \.", "."),  # U.S . -> U.S.
        (r"(?<=\w) \. (?=(?:com|org|net|co|io|ca|uk|eu|tv)\b)", "."),  # Baystreet . ca
        (r"(?<=\.) ?- (?=[A-Z])", "-"),  # U.S .- China
        (r"(?<=\b[A-Z]) & (?=[A-Z]\b)", "&"),  # S & P
        (r"\bAT & T\b", "AT&T"),
        (r"\bBen & Jerry\b(?!['\u2019])", "Ben & Jerry's"),
        (r"(?<=\w) ['\u2019] ?(?=(?:s|re|ve|ll|d|t|m)\b)", "'"),  # Putin ' s
        (r"(?<=\d) ([/-]) (?=\d)", r"\1"),  # 24 / 7, 2025 - 2026
        (r"(?<=[a-z0-9]) - (?=(?!(?:" + _LEADS_A_CLAUSE + r")\b)[a-z])", "-"),  # two - month
        (r"\b((?i:" + _PREFIXES + r")) - (?=\w)", r"\1-"),  # High - Quality, ex - Bharat
        (r"\b(US|EU|UK|UN|AI) - (?=[A-Z]\w+ )", r"\1-"),  # US - China talks
        (r"(?<=\w) - (?=(?:" + _PARTICIPLES + r")\b)", "-"),  # Climate - Linked
        (r"\b([A-Z]{1,4}) - (?=\d)", r"\1-"),  # GPT - 5
        (r"\bunited states\b", "United States"),
        (r"\bunited kingdom\b", "United Kingdom"),
        (r"(?<=[#$£€]) (?=\d)", ""),  # # 1
        (r"° (?=[CF]\b)", "°"),
        (r"(?<=\d) (?=°)", " "),
        (r"(?<! ) +([,;:!?%)\]…])", r"\1"),
        (r"(?<! ) +\.(?= |$|[,;:)\]'\"-])", "."),
        (r"([(\[]) +", r"\1"),
    )
)


_OUTLET = re.compile(
    r" [|\u2013\u2014-] (?=[A-Z])(?:[^|\u2013\u2014-]*\b"
    r"(?i:news\w*|radio|tv|weather|sports?|herald|times|post|dispatch|gazette|tribune|journal|press|"
    r"magazine|chronicle|observer|courier|daily|weekly)\b[^|\u2013\u2014]*)$"
)


def without_outlet(title: str) -> str:
    """Drop suffixes of outlets in a headline: ` | Outlet`, ` - Town Herald`, ` - News, Weather`.

    Otherwise "weather" would match every story of a station with the word in its name.
    """
    head, bar, _ = title.rpartition(" | ")
    return _OUTLET.sub("", head if bar else title)


def clean_title(raw: str) -> str:
    """Resolve HTML entities and CSV's doubled quotes, and collapse spaces."""
    text = unescape(unescape(raw)).replace('""', '"')
    return " ".join(text.split())


def repair_title(raw: str) -> str:
    """Undo the tokens of a DOC 2.0 title: `$4, 500`, `1. 5 °C`, ` : `, `two - month`."""
    text = clean_title(raw)
    text = re.sub(r"(?<!\d)(\d{1,3}(?: ?, ?\d{3})*) ?, (\d{3})(?!\d)", _join_thousands, text)
    text = re.sub(r"(?<!\d)(\d+) ?\. (?=\d)", _join_decimal, text)
    for pattern, replacement in _STEPS:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


def _join_thousands(match: re.Match[str]) -> str:
    """Join `4 , 500`, but not `June 10 , 100 workers`."""
    start = match.start()
    if _DATE_BEFORE.search(match.string[max(0, start - _LONGEST_MONTH) : start]):
        return match[0]
    return re.sub(r" ?, ?", ",", match[0])


def _join_decimal(match: re.Match[str]) -> str:
    """Join `1 . 5`, but not the end of a sentence in a year: `in 2025 . 5 ways`."""
    return match[0] if _YEAR.search(match[1][-4:]) else f"{match[1]}."


LONGEST_TITLE = 500
LONGEST_SNIPPET = 1000
"""The most characters kept; GAL's descriptions have a median of 146 (research: gdelt §1), titles
fewer."""
_MOST_LOOKED_AT = 20
"""The part of a raw text to examine, as a multiple of the longest result, since a comment may have
no end."""

_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,300}>")
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e"
    r"\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
"""Control characters, marks of writing direction (bidi), zero-width characters, and Unicode tags.
The joiners of emoji and of some scripts are not included."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_FOLDED = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0406\u0410\u0415\u041e\u0420\u0421\u0131\u0130",
    "aeopcyxijsIAEOPCiI",
)
"""Cyrillic and Turkish letters that look Latin, each mapped to the Latin one."""
_SIGNS = ("<", "[", "===", "```", "{", "\\")
_WORDS = (
    "ignore", "disregard", "forget", "override", "bypass", "system", "developer", "you are",
    "do not", "don't", "stop", "answer", "respond", "reply", "output", "label", "mark",
    "assistant", "user", "human", "feedback",
)  # fmt: skip
"""An instruction has at least one of these words or of the signs; most texts have none and skip the
full search."""
_ORDER = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b[^.!?]{0,30}\b(?:instructions?|rules?|prompts?|"
    r"guidelines|above|previous|prior)\b|"
    r"\b(?:system|developer) (?:prompt|message|instructions?)\b|"
    r"\bmessage from the developers?\b|"
    r"\byou are (?:now |from now on )?(?:a |an |the )?"
    r"(?:ai\b|assistant|judge|language model|poet|bot)|"
    r"\b(?:do not|don't|stop) (?:follow|obey|read)(?:ing)?\b[^.!?]{0,20}"
    r"\b(?:instructions?|rules?|this)\b|"
    r"\b(?:answer|respond|reply|output|label)\b[^.!?]{0,20}"
    r"\b(?:only|exactly|the (?:word|label)|this as|with one json)\b|"
    r"\bmark (?:every|all|each)\b[^.!?]{0,20}\b(?:supported|true|correct)\b|"
    r"<\|?\w*\|?>|\[/?INST\]|^(?:system|assistant|user|human|feedback) ?:|"
    r"(?<!=)={3,} ?\w+ ?={3,}|```|"
    r"\{\s*\"\w+\"\s*:|</?(?:news|item|text|evidence|plan|drafts|feedback)\b|\\u00|\{\{|\{%|\$\{",
    re.IGNORECASE | re.MULTILINE,
)


def clean_text(raw: str, longest: int = LONGEST_TITLE) -> str:
    """Return a text as one line without markup and invisible characters, cut off at a word."""
    raw = raw[: _MOST_LOOKED_AT * longest]
    text = unescape(unescape(raw))
    if "<" in text:
        text = _TAG.sub(" ", _without_comments(text))
    return _cut(without_unseen(text), longest)


def _without_comments(text: str) -> str:
    """Drop the contents of markup comments; an unclosed comment is kept."""
    kept, at = list[str](), 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        kept.append(text[at:start])
        at = end + len("-->")
    return " ".join((*kept, text[at:]))


def without_unseen(text: str) -> str:
    """Drop control, bidi, zero-width and tag characters, and replace lone surrogates."""
    if not text.isascii() or not text.isprintable():
        text = _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", _UNSEEN.sub("", text))
    return " ".join(text.split())


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    head = text[: longest - 1]
    return (head.rpartition(" ")[0] or head).rstrip(" ,;:") + "\u2026"


def is_instruction_like(*texts: str) -> bool:
    """Return whether one of the texts reads like an instruction to a model or part of a prompt."""
    return any(_may_order(text) and _ORDER.search(text) for text in map(_plain, texts))


def _may_order(text: str) -> bool:
    """Return whether a text may be an instruction, in a fifteenth of the time of a full search."""
    lowered = text.lower()
    return any(sign in text for sign in _SIGNS) or any(word in lowered for word in _WORDS)


def _plain(text: str) -> str:
    """Undo disguises of letters: entities, wide and fancy forms, look-alikes."""
    if text.isascii() and "&" not in text:
        return text
    return unicodedata.normalize("NFKC", unescape(text)).translate(_FOLDED)


MIN_TITLE_WORDS = 5
"""A text of fewer words rarely states a fact (research: gdelt §5)."""


def _any_of(words: str) -> str:
    return rf"(?i:\b(?:{words})\b)"


_LISTICLE = (
    r"(?i:"
    r"^(?:the |top |best |here are |these |\W)*(?:\d+|two|three|four|five|six|seven|eight|nine|"
    r"ten) (?:[\w'\u2019-]+ ){0,4}(?:things|"
    r"ways|reasons|tips|facts|ideas|gifts|books|deals|hacks|tricks|"
    r"questions|mistakes|examples|places|stocks|films|movies|shows|quotes|foods|takeaways|features)\b"
    r"|\b(?:top|best) \d+\b|\bthings to (?:know|do|watch)\b"
    r")"
)
_HOROSCOPE = _any_of("horoscopes?|zodiac|tarot|astrolog\\w+|numerolog\\w+")
_MARKET_REPORT = (
    r"(?i:"
    r"\((?:[A-Z]{2,8}|OTC\w*|NYSE\w*|Nasdaq\w*) ?: ?\^?[A-Z0-9.]{1,6} ?\)|\bshort interest\b|"
    r"\bprice target\b|\bstocks? (?:to watch|market (?:today|live)|of the day)\b|\bCAGR\b|"
    r"\bmarket (?:size|share|worth|valuation|outlook|forecast|report|research|analysis|to (?:reach|"
    r"hit|surpass|grow|worth)|projected|is projected|set to|expected)\b|\binvestor outlook\b|"
    r"\b(?:shares|stake|position) (?:gap|bought|sold|acquired|purchased|trimmed|raised) "
    r"(?:up|down|by)\b|"
    r"\bmoving average\b|\bbuy,? (?:or )?(?:hold|sell)\b|\b(?:dividend|penny|growth) stocks?\b"
    r")"
)
_ADVERT = (
    r"(?i:"
    r"\b(?:coupons?|promo codes?|discounts?|pre-?sale|airdrop|casino|betting odds|shopper reviews|"
    r"side effects\b.*\bingredients|ingredients\b.*\bside effects|amazon reviews|personal reviews|"
    r"prime day|black friday|crypto (?:presale|to buy))\b|\b\d+% off\b|\bsponsored\b"
    r")"
)
_HEALTH_CLAIM = _any_of(
    r"superfoods?|immunity boost\w*|antioxidants?|detox\w*|weight[- ]loss|(?:herbal|dietary|food) "
    r"supplements?|supplements (?:of|for|that)|health benefits?|miracle \w+|"
    r"(?:home|natural|herbal|plant|ayurvedic)[- ](?:based )?(?:remed(?:y|ies)|cures?|treatments?|"
    r"medicines?)|(?:boosts?|strengthens?) (?:your |the )?immun\w+|"
    r"lowers? (?:your )?(?:blood pressure|cholesterol|risk of)|"
    r"(?:answer to|cures?|reduces?|cuts?|prevents?|fights?|treats?|beats?|reverses?|heals?) "
    r"(?:\w+ ){0,3}(?:cancer|diabetes|dementia|alzheimer\w*|arthritis|inflammation|disease|"
    r"infections?|antibiotic resistance|ageing|aging)"
)
_SEXUAL_VIOLENCE = _any_of(
    r"rap(?:e|es|ed|ist|ists)|sexual(?:ly)? (?:\w+ )?(?:assault\w*|abuse\w*|violen\w+|harass\w+|"
    r"offen[cs]\w+)|molest\w+|pa?edophil\w+|groom(?:ed|ing) (?:gang|of)|child porn\w*|"
    r"sex traffick\w+"
)
_SELF_HARM = _any_of(r"suicid\w+|self-? ?harm\w*|took (?:his|her|their) own li(?:fe|ves)")
_MINOR = _any_of(
    r"(?:[1-9]|1[0-7])[- ]year[- ]olds?|toddlers?|infants?|newborns?|schoolboys?|schoolgirls?|"
    r"teenagers?|teen|boy|girl|baby|minors"
)
_CRIME = _any_of(
    r"arrest(?:ed|s)?|charged with|accused|convicted|sentenced|jailed|imprisoned|indict\w+|guilty|"
    r"murder\w*|manslaughter|homicide|stabb\w+|shot dead|gunman|shooter|bail|lawsuit against|"
    r"kidnap\w+|abduct\w+|embezzl\w+|fraud\w*|brib\w+|launder\w+|extort\w+|smuggl\w+|suspects?|"
    r"on trial|in court|prison|inmates?|allegedly|assault\w*|robber\w*|traffick\w+|defam\w+|sued|"
    r"quashed|acquitted|verdict|pleads?|pleaded"
)
_HEALTH_OR_GRIEF = _any_of(
    r"dies|died|dead|deaths?|killed|kills|funeral|obituar\w+|passe[sd] away|mourn\w*|"
    r"grie(?:f|v\w+)|"
    r"cancer|tumou?r|hospitali[sz]\w+|diagnos\w+|dementia|overdose|miscarriage|stroke|coma|"
    r"terminal(?:ly)? ill\w*|tests? positive|missing (?:wife|husband|man|woman|person)|"
    r"tributes? (?:paid|to)"
)
_TWO_CAPITALISED = r"\b[A-Z][a-z'\u2019-]+ (?:[A-Z]\.? )?[A-Z][\w'\u2019-]*[a-z]"
_MANY = "(?:[A-Za-z0-9][^ ]* [^A-Za-z0-9]*){5}"
"""A pattern for at least five words, so that the words need not be counted."""
_WORD = r"[\pL\pN_][\pL\pN_'\u2019.,-]*"

_TITLE_RULES: dict[ScreenRule, str] = {
    "horoscope": _HOROSCOPE,
    "advert": _ADVERT,
    "market_report": _MARKET_REPORT,
    "listicle": _LISTICLE,
    "health_claim": _HEALTH_CLAIM,
    "sexual_violence": _SEXUAL_VIOLENCE,
    "self_harm": _SELF_HARM,
    "minor": _MINOR,
}
_RULES_FOR_NAMED: dict[ScreenRule, str] = {
    "named_crime": _CRIME,
    "named_health_or_grief": _HEALTH_OR_GRIEF,
}


def _first_of(rules: Mapping[ScreenRule, str], text: str) -> str:
    """Return SQL that names the first rule that a text matches; most texts need one check."""
    cases = " ".join(
        f"WHEN regexp_matches({text}, {_quote_sql(pattern)}) THEN '{drop}'"
        for drop, pattern in rules.items()
    )
    any_of_them = "|".join(rules.values())
    return f"CASE WHEN regexp_matches({text}, {_quote_sql(any_of_them)}) THEN CASE {cases} END END"


def _quote_sql(pattern: str) -> str:
    return "'" + pattern.replace("\\u2019", "\u2019").replace("'", "''") + "'"


def _word_macros(language: str, words: ScreenWords) -> str:
    """Return the macros of the word lists of a language, for texts without accents."""
    return f"""
CREATE MACRO screened_title_{language}(plain) AS {_first_of(words.titles, "plain")};
CREATE MACRO screened_told_{language}(told, person) AS
    CASE WHEN person OR names_someone(told) THEN {_first_of(words.named, "told")} END;
CREATE MACRO screened_{language}(title, snippet, person) AS
    coalesce(screened_title_{language}(strip_accents(title)),
             screened_told_{language}(strip_accents(title || ' ' || snippet), person));
"""


_LISTS = {"en": ScreenWords(_TITLE_RULES, _RULES_FOR_NAMED), **SCREEN_WORDS}
_WORD_MACROS = "".join(_word_macros(language, words) for language, words in _LISTS.items())
_BY_LANGUAGE = " ".join(
    f"WHEN '{language}' THEN screened_{language}(title, snippet, person)" for language in _LISTS
)
SCREEN_MACROS = f"""
CREATE MACRO names_someone(text) AS regexp_matches(text, {_quote_sql(_TWO_CAPITALISED)});
CREATE MACRO screened_form(title) AS
    CASE WHEN NOT regexp_matches(title, '{_MANY}')
              AND len(regexp_extract_all(title, {_quote_sql(_WORD)})) < {MIN_TITLE_WORDS}
              THEN 'short'
         WHEN contains(title, '\ufffd') THEN 'garbled'
         WHEN upper(title) = title AND lower(title) <> title THEN 'all_caps' END;
{_WORD_MACROS}
CREATE MACRO screened(language, title, snippet, person) AS
    coalesce(screened_form(title), CASE language {_BY_LANGUAGE} END);
CREATE MACRO asks(title) AS contains(title, '?');
"""
"""The macros `screened(language, title, snippet, person)`, the reason that an article is not
offered (NULL if there is none; `person` says that GKG found one), and `asks(title)`, whether a
title is a question: it is kept but ranked lower, because it asserts nothing (pilot §2)."""
