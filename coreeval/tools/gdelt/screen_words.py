"""German and Spanish word lists of the first screen, for titles not offered as evidence.

They are short, and rather omit words: any two consecutive German nouns look like a name. Titles are
compared without accents; ß stays.
"""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from coreeval.languages import ENGLISH

ScreenRule = Literal[
    "short", "garbled", "all_caps", "listicle", "horoscope", "market_report", "advert",
    "health_claim",
    "sexual_violence", "self_harm", "minor", "named_crime", "named_health_or_grief",
]  # fmt: skip


class ScreenWords(NamedTuple):
    """Patterns of one language, by the rule of the screen."""

    titles: Mapping[ScreenRule, str]
    named: Mapping[ScreenRule, str]
    """Rules that apply if a person may be named."""


def _words(pattern: str) -> str:
    return rf"(?i:\b(?:{pattern})\b)"


_GERMAN: Final = ScreenWords(
    titles={
        "horoscope": _words(r"horoskope?|sternzeichen|tierkreis\w*|tarot"),
        "advert": _words(
            r"gutschein\w*|rabatt\w*|schnappchen\w*|sonderangebot\w*|anzeige|gewinnspiel\w*|"
            r"black friday|prime day"
        ),
        "market_report": _words(r"kursziel\w*|aktien? (?:kaufen|verkaufen|halten)|dax[- ]analyse"),
        "health_claim": _words(r"superfoods?|hausmittel|abnehmen|nahrungserganzung\w*|entgiftung"),
        "sexual_violence": _words(
            r"vergewaltig\w*|sexuell\w* (?:\w+ )?(?:missbrauch\w*|gewalt|ubergriff\w*|belastig\w*)|"
            r"missbrauch\w*|kinderporno\w*|sexualstraf\w*"
        ),
        "self_harm": _words(r"suizid\w*|selbstmord\w*|selbstverletz\w*|nahm sich das leben"),
        "minor": _words(
            r"(?:[1-9]|1[0-7])[- ]?jahrige\w*|kleinkind\w*|saugling\w*|baby|babys|schuler\w*|"
            r"jugendliche\w*|minderjahrige\w*|teenager\w*|junge|madchen"
        ),
    },
    named={
        "named_crime": _words(
            r"festnahme\w*|festgenommen|verhaftet|angeklagt\w*|anklage|verurteilt\w*|gefangnis\w*|"
            r"haft\w*|mord\w*|totschlag|ermordet\w*|betrug\w*|betruger\w*|bestech\w*|erpress\w*|"
            r"raub\w*|uberfall\w*|tatverdachtig\w*|verdachtig\w*|gericht|prozess|freigesprochen|"
            r"entfuhr\w*|messerstech\w*|mutmaßlich\w*|veruntreu\w*|drogen\w*"
        ),
        "named_health_or_grief": _words(
            r"gestorben|stirbt|starb|tot|tote|toten|toter|tod|getotet\w*|todlich\w*|beerdigung\w*|"
            r"trauer\w*|verstorben\w*|krebs\w*|tumor\w*|krankenhaus|klinik|diagnose|demenz|"
            r"schlaganfall|koma|vermisst\w*|verletzt\w*"
        ),
    },
)
_SPANISH: Final = ScreenWords(
    titles={
        "horoscope": _words(r"horoscopos?|zodiaco|zodiacal(?:es)?|tarot"),
        "advert": _words(
            r"cupon(?:es)?|descuentos?|rebajas|sorteo|patrocinado|black friday|prime day"
        ),
        "market_report": _words(r"precio objetivo|(?:comprar|vender) acciones"),
        "health_claim": _words(r"superalimentos?|adelgazar|remedios? caseros?|detox\w*"),
        "sexual_violence": _words(
            r"viola(?:cion(?:es)?|dor(?:es)?|da|das|do)|"
            r"(?:abusos?|agresion(?:es)?|acoso) sexual\w*|"
            r"pederast\w*|pedofil\w*|pornografia infantil"
        ),
        "self_harm": _words(r"suicid\w*|autolesion\w*|se quito la vida"),
        "minor": _words(
            r"(?:[1-9]|1[0-7]) anos|menor(?:es)?|bebes?|ninos?|ninas?|adolescentes?|escolares?"
        ),
    },
    named={
        "named_crime": _words(
            r"deten(?:ido|ida|cion)\w*|arrest\w*|acusad\w*|imputad\w*|condenad\w*|carcel|prision|"
            r"asesin\w*|homicid\w*|estaf\w*|fraude\w*|soborn\w*|cohecho|malversa\w*|robo|atraco|"
            r"secuestr\w*|juicio|tribunal|juez|jueza|absuelt\w*|narco\w*|presunt\w*"
        ),
        "named_health_or_grief": _words(
            r"muert[eoa]s?|muere|mueren|murio|fallec\w*|funeral\w*|entierro|luto|cancer|tumor\w*|"
            r"hospital\w*|diagnostic\w*|demencia|ictus|coma|desaparecid\w*|herid[oa]s?"
        ),
    },
)
SCREEN_WORDS: Final[Mapping[str, ScreenWords]] = {"de": _GERMAN, "es": _SPANISH}
"""The lists by language; English has its own in page_text.py, other languages have none."""


def list_unscreened(language: str) -> list[str]:
    """Return the phrases of news that the first screen omits in a language."""
    if language == ENGLISH or language in SCREEN_WORDS:
        return []
    return [
        "the exclusion of advertising and of news about crime, illness, minors and similar topics "
        "by word lists"
    ]
