"""The part of a release's card about what people said."""

from collections.abc import Iterator

from coreeval.evaluation.annotation.ratings import CriterionResult, RatingDifference
from coreeval.evaluation.scores import Score
from coreeval.releases.markdown import plain
from coreeval.releases.release_manifest import PeopleSaid


def ratings_told(said: PeopleSaid | None) -> Iterator[str]:
    """Yield the part; nothing where nobody was asked."""
    if said is None:
        return
    means = "\n".join(map(_mean_row, said.criteria))
    notes = "\n".join(
        f"- {plain(one.criterion)}: {plain(note)}" for one in said.criteria for note in one.notes
    )
    agreement = _agreement(said) if said.raters > 1 else _ONE_RATER
    told = f"""## Ratings by people

{said.items} texts of all arms, mixed, rated by {said.raters} who were not told the arm; means with
95 % intervals. Study {plain(said.study)}, scored on {said.scored_at[:10]}.

{plain(said.scale)}

| | original | semantic | updated | updated less original |
|---|---|---|---|---|
{means}

{agreement}"""
    yield f"{told}\n\n{notes}" if notes else told


_ONE_RATER = "One rater: there is no agreement to measure."


def _mean_row(one: CriterionResult) -> str:
    arms = (_mean(one.arms.get(arm)) for arm in ("original", "semantic", "updated"))
    scale = f"{one.values[0]} to {one.values[-1]}"
    return (
        f"| {plain(one.criterion)}, {scale} | {' | '.join(arms)} | {_difference(one.difference)} |"
    )


def _mean(score: Score | None) -> str:
    if score is None or score.estimate is None:
        return "not rated"
    return f"{score.estimate:.2f} ({score.ci_low:.2f} to {score.ci_high:.2f}, n = {score.n})"


def _difference(found: RatingDifference) -> str:
    if found.estimate is None:
        return "not measured"
    return f"{found.estimate:+.2f} ({found.ci_low:+.2f} to {found.ci_high:+.2f})"


def _agreement(said: PeopleSaid) -> str:
    rows = "\n".join(map(_agreement_row, said.criteria))
    return f"""| agreement | pairs that say the same | Fleiss' kappa | Krippendorff's alpha |
|---|---|---|---|
{rows}"""


def _agreement_row(one: CriterionResult) -> str:
    found = one.reliability
    share = found.agreement.estimate
    pairs = "not measured" if share is None else f"{share:.1%}"
    return f"| {plain(one.criterion)} | {pairs} | {_chance(found.kappa)} | {_chance(found.alpha)} |"


def _chance(score: Score) -> str:
    if score.estimate is None:
        return "not defined"
    ends = "" if score.ci_low is None else f"{score.ci_low:.2f} to {score.ci_high:.2f}, "
    return f"{score.estimate:.3f} ({ends}n = {score.n})"
