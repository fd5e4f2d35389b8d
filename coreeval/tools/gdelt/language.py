"""Which language a title is in: what the file says, checked against the words."""

import re

from coreeval.tools.gdelt.words import word_set

UNKNOWN = "und"

_NAMES = {
    "english": "en", "eng": "en", "spanish": "es", "spa": "es", "portuguese": "pt", "por": "pt",
    "french": "fr", "fra": "fr", "german": "de", "deu": "de", "italian": "it", "ita": "it",
    "dutch": "nl", "nld": "nl", "chinese": "zh", "zho": "zh", "japanese": "ja", "jpn": "ja",
    "korean": "ko", "kor": "ko", "arabic": "ar", "ara": "ar", "turkish": "tr", "tur": "tr",
    "greek": "el", "ell": "el", "russian": "ru", "rus": "ru", "ukrainian": "uk", "ukr": "uk",
    "polish": "pl", "pol": "pl", "romanian": "ro", "ron": "ro", "hungarian": "hu", "hun": "hu",
    "czech": "cs", "ces": "cs", "slovak": "sk", "slk": "sk", "bulgarian": "bg", "bul": "bg",
    "croatian": "hr", "hrv": "hr", "serbian": "sr", "srp": "sr", "slovenian": "sl", "slv": "sl",
    "albanian": "sq", "sqi": "sq", "macedonian": "mk", "mkd": "mk", "swedish": "sv", "swe": "sv",
    "norwegian": "no", "nor": "no", "danish": "da", "dan": "da", "finnish": "fi", "fin": "fi",
    "indonesian": "id", "ind": "id", "malay": "ms", "msa": "ms", "vietnamese": "vi", "vie": "vi",
    "thai": "th", "tha": "th", "hindi": "hi", "hin": "hi", "urdu": "ur", "urd": "ur",
    "bengali": "bn", "ben": "bn", "tamil": "ta", "tam": "ta", "telugu": "te", "tel": "te",
    "malayalam": "ml", "mal": "ml", "kannada": "kn", "marathi": "mr", "gujarati": "gu",
    "persian": "fa", "fas": "fa", "hebrew": "he", "heb": "he", "catalan": "ca", "cat": "ca",
    "galician": "gl", "basque": "eu", "estonian": "et", "latvian": "lv", "lithuanian": "lt",
    "azerbaijani": "az", "armenian": "hy", "georgian": "ka", "kazakh": "kk", "mongolian": "mn",
    "icelandic": "is", "swahili": "sw", "somali": "so", "afrikaans": "af",
}  # fmt: skip

_ENGLISH = word_set(
    "the of to and for is are was were be been has have had will would can could may not with "
    "by as  at on in from that this these it its their his her our your you we they he she "
    "who what how  why when where after over into than more about amid against says said new "
    "an or but if up out  all no do does which while during before between under"
)
_FOREIGN = word_set(
    "di del della delle dello dei degli il gli che è e sul sui sulla nel nella nei un una uno "
    "dai dal  dalla dalle agli alla alle ai su tra sono non più la le lo el los las y por "
    "para que en se al  les des du et une avec pour dans sur au aux est qui der das dem und "
    "mit für von im ein eine ist  nicht auf zu zum zur da dos em uma um não ao às os het een "
    "voor op zijn yang untuk dari  dengan ini pada och för att på av som med ve bir için și "
    "cu pentru din na się ze oraz de  o og til af det"
)  # no word of this list may be common in English headlines: so no `con`, `den`, `van`, `com`
FOREIGN_WORDS = tuple(sorted(word for word in _FOREIGN if word.isascii()))
"""Those without accents: a title of plain letters with none of them passes for English."""
_WORD = re.compile(r"(?<![\w-])[^\W\d_]+(?![\w-])")
FOREIGN_LETTERS = 0.2
"""Share of letters outside the Latin alphabets above which a title is not English."""


def language_code(mark: str) -> str:
    """Return the ISO 639-1 code for `English`, `eng`, `en` or `en-GB`; `und` if not known."""
    name = mark.strip().lower()
    code = re.split(r"[-_]", name)[0]
    if len(code) == 2 and code.isalpha():
        return code
    return _NAMES.get(name, UNKNOWN)


def checked_language(code: str, title: str) -> str:
    """Return the marked language, or `und` when a title marked English is not (pilot §2)."""
    return UNKNOWN if code == "en" and not looks_english(title) else code


def looks_english(title: str) -> bool:
    """Tell by letters and function words whether a title may be English."""
    words = _WORD.findall(title)
    letters = "".join(words)
    if not letters or sum(ord(letter) > 0x24F for letter in letters) > FOREIGN_LETTERS * len(
        letters
    ):
        return False
    english = sum(word.lower() in _ENGLISH for word in words)
    # Capitalised function words are names in English titles: La Niña, El Paso, LA, Das Auto.
    foreign = sum(word in _FOREIGN for word in words)
    if english == foreign == 0:
        return sum(not word.isascii() for word in words) < 2
    return english >= foreign
