"""Names the reasons that articles of a store are not searchable."""

from collections import Counter
from collections.abc import Mapping

from coreeval.tools.formatting import format_quantity, plural

_SCREENED = "excluded by the screening of titles"
_WHY = {
    "no_language": 'without a known language (in a file of your own, write `lang`, such as "en", '
    "in each line)",
    "unknown_language": "with a title that does not look English",
    "other_language": "in a language that the store does not offer (add it with `coreeval gdelt "
    "sync --languages`)",
    "front_page": "with the address of a front page",
}


def describe_left_out(left_out: Mapping[str, int]) -> str:
    """Return how many articles are not searchable, and why; "" if there are none."""
    why = Counter[str]()
    for reason, count in left_out.items():
        why[_WHY.get(reason, _SCREENED)] += count
    if not (total := why.total()):
        return ""
    reasons = "; ".join(f"{count:,} {reason}" for reason, count in why.most_common())
    are = f"{format_quantity(total, 'article')} {plural(total, 'is', 'are')}"
    return f"{are} not searchable: {reasons}"
