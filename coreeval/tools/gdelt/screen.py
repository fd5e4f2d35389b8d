r"""Which titles are not offered as evidence.

A first screen by words, on the side of leaving out: it neither understands a title nor replaces the
checks on what is written. Its topics are those that must not be moved to someone else (pilot §4,
rule 7), and titles that carry no fact (research: gdelt §5). The patterns are RE2's, so that DuckDB
runs them, and see texts without their accents, so that a letter is a letter to `\w` and `\b`.
"""

from typing import Literal

Drop = Literal[
    "short", "garbled", "all_caps", "listicle", "horoscope", "market_report", "advert",
    "health_claim",
    "sexual_violence", "self_harm", "minor", "named_crime", "named_health_or_grief",
]  # fmt: skip
MIN_WORDS = 5
"""Fewer words than this rarely state a fact (research: gdelt §5)."""


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
"""Spares counting: so many words there are at least."""
_WORD = r"[\pL\pN_][\pL\pN_'\u2019.,-]*"

_TITLE_RULES: dict[Drop, str] = {
    "horoscope": _HOROSCOPE,
    "advert": _ADVERT,
    "market_report": _MARKET_REPORT,
    "listicle": _LISTICLE,
    "health_claim": _HEALTH_CLAIM,
    "sexual_violence": _SEXUAL_VIOLENCE,
    "self_harm": _SELF_HARM,
    "minor": _MINOR,
}
_RULES_FOR_NAMED: dict[Drop, str] = {
    "named_crime": _CRIME,
    "named_health_or_grief": _HEALTH_OR_GRIEF,
}


def _first_of(rules: dict[Drop, str], text: str) -> str:
    """Return SQL that names the first rule that a text meets, most texts being asked only once."""
    cases = " ".join(
        f"WHEN regexp_matches({text}, {_quoted(pattern)}) THEN '{drop}'"
        for drop, pattern in rules.items()
    )
    any_of_them = "|".join(rules.values())
    return f"CASE WHEN regexp_matches({text}, {_quoted(any_of_them)}) THEN CASE {cases} END END"


def _quoted(pattern: str) -> str:
    return "'" + pattern.replace("\\u2019", "\u2019").replace("'", "''") + "'"


MACROS = f"""
CREATE MACRO names_someone(text) AS regexp_matches(text, {_quoted(_TWO_CAPITALISED)});
CREATE MACRO screened_title(title, plain) AS
    CASE WHEN NOT regexp_matches(title, '{_MANY}')
              AND len(regexp_extract_all(title, {_quoted(_WORD)})) < {MIN_WORDS} THEN 'short'
         WHEN contains(title, '\ufffd') THEN 'garbled'
         WHEN upper(title) = title AND lower(title) <> title THEN 'all_caps'
         ELSE {_first_of(_TITLE_RULES, "plain")} END;
CREATE MACRO screened_told(told, person) AS
    CASE WHEN person OR names_someone(told) THEN {_first_of(_RULES_FOR_NAMED, "told")} END;
CREATE MACRO screened(title, snippet, person) AS
    coalesce(screened_title(title, strip_accents(title)),
             screened_told(strip_accents(title || ' ' || snippet), person));
CREATE MACRO asks(title) AS contains(title, '?');
"""
"""`screened(title, snippet, person)`: why an article is not offered, NULL if nothing speaks against
it; `person` says that GKG found one. `asks(title)`: a question stays, ranked lower, because it
asserts nothing (pilot §2)."""
