"""What a cassette's lines add up to."""

from collections import Counter

from coreeval.releases.cassettes.lines import SampleLine
from coreeval.releases.cassettes.opening import Cassette


def stated_counts(cassette: Cassette) -> Counter[str]:
    """Return how many results are stated, by why: kept from a release, or their outcome.

    Raises:
        CassetteError: a line is malformed.
    """
    return Counter(
        "kept" if one.result.kept_from else one.result.outcome
        for line in cassette.lines(SampleLine)
        for one in (line.stated, line.control)
        if one
    )
