"""Into which samples no news may be written: a policy by flag, and a word list of our own."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from coreeval.agents.rules import strictest
from coreeval.agents.words import normalise
from coreeval.schema import Extraction, Flag, Policy, Sample

_GROUP = (
    r"(?:muslims?|jews?|christians?|catholics?|mormons?|hindus?|sikhs?|atheists|blacks?|whites|"
    r"black people|white people|asians?|mexicans?|arabs?|africans|immigrants?|migrants?|refugees?|"
    r"gays?|lesbians?|homosexuals?|transgenders?|trans people|women|feminists|gypsies|disabled "
    r"people)"
)
_HOSTILE = (
    r"(?:animals|vermin|scum|filth|filthy|savages?|subhuman|parasites?|disgusting|inferior|evil|"
    r"terrorists|rapists|thugs|trash|a plague|a cancer|a disease|all the same|criminals|retarded|"
    r"less intelligent)"
)
_WORDS: Mapping[Flag, tuple[str, ...]] = MappingProxyType(
    {
        "self_harm": (
            r"\b(?:kill(?:ing|ed)?|hang(?:ing|ed)?|cut(?:ting)?|harm(?:ing|ed)?) "
            r"(?:myself|yourself|himself|herself|themselves|urself)\b"
            r"(?! (?:laughing|on|short|shaving|off|some|a) ?)",
            r"\bself[ -]?harm(?:ing)?\b",
            r"\b(?:want|wanna|wanted) (?:to )?die\b(?!,? (?:of|from|laughing|for))",
            r"\b(?:end|ending|take|taking|took) (?:my|your|his|her|their) own li(?:fe|ves)\b",
            r"\bend(?:ing)? my life\b",
            r"#\w*(?:killmyself|wanttodie|wannadie|endmylife)\w*",
            r"(?<!political )(?<!career )(?<!economic )(?<!commercial )(?<!social )"
            r"\bsuicid(?:e|al)\b(?! (?:squad|bomb|blast|attack|vest|belt|mission|car|truck))",
        ),
        "sexual_violence": (
            r"\b(?:gang[ -]?)?rap(?:e|ed|es|ing|ists?)\b(?! seed)(?! oil)",
            r"\bsexual(?:ly)? (?:assault|abus|violen|molest|exploit)\w*",
            r"\bmolest(?:ed|er|ers|ing|ation)\b",
            r"\b(?:child porn\w*|paedophil\w*|pedophil\w*)",
            r"\bsex (?:offenders?|abuse|crimes?|slaves?|traffick\w+)\b",
        ),
        "protected_group": (
            r"\b(?:nigg(?:er|ers)|fag(?:got|gots|s)|kikes?|spics?|ragheads?|towelheads?|wetbacks?|"
            r"trann(?:y|ies)|paki(?:s)?)\b",
            rf"\b{_GROUP}\b (?:\w+ )?(?:are|r) (?!not )(?:\w+ ){{0,2}}{_HOSTILE}\b",
            rf"\b(?:hate|despise|kill|exterminate|deport|ban) (?:all |these |those |the )?"
            rf"(?:fucking |damn |stupid |dirty )?{_GROUP}\b(?!')",
            rf"\ball {_GROUP} (?:should|must|need to|deserve to|have to) "
            r"(?:die|leave|be (?:killed|deported|banned|shot))\b",
        ),
    }
)
_HOSTILE_WORDS = re.compile(rf"\b(?:hate|{_HOSTILE})\b", re.IGNORECASE)


@dataclass(frozen=True)
class Screened:
    """What may be done with a sample, and why."""

    policy: Policy
    reason: str = ""
    """The flag that decided, with the words that raised it; empty where all is allowed."""


def screen(sample: Sample, extraction: Extraction, policy: Mapping[Flag, Policy]) -> Screened:
    """Return the strictest policy that a sample's flags ask for.

    The extractor's flags and our own words are asked both: neither a careless extractor nor an
    unusual wording opens the door alone.
    """
    found = [*_flagged(sample, extraction), *_worded(sample)]
    asked = strictest({policy[flag] for flag, _ in found})
    reasons = (
        f"{flag}: {span!r}" if span else flag for flag, span in found if policy[flag] == asked
    )
    return Screened(asked, "" if asked == "allow" else next(reasons, ""))


def _flagged(sample: Sample, extraction: Extraction) -> Iterator[tuple[Flag, str]]:
    flags = {sensitive.flag for sensitive in extraction.sensitive}
    for sensitive in extraction.sensitive:
        harmless = sensitive.flag == "protected_group" and not _hostile(sample, flags)
        if not harmless:
            yield sensitive.flag, sensitive.span


def _hostile(sample: Sample, flags: set[Flag]) -> bool:
    """Tell whether a text that mentions a protected group is hostile, not only about it."""
    return "abuse" in flags or any(
        _HOSTILE_WORDS.search(normalise(text)) for text in sample.fields.values()
    )


def _worded(sample: Sample) -> Iterator[tuple[Flag, str]]:
    for text in sample.fields.values():
        plain = normalise(text)
        for flag, patterns in _WORDS.items():
            hits = (re.search(pattern, plain, re.IGNORECASE) for pattern in patterns)
            yield from ((flag, hit.group()) for hit in hits if hit)
