"""One line of an estimate: what a model in a role is expected to cost."""

from collections.abc import Sequence

from coreeval.config import ModelConfig
from coreeval.graph.forecast.estimates import Line, Stage
from coreeval.graph.forecast.learning import Seen, answer, cached_share, density, duration
from coreeval.graph.forecast.players import Cast, player_of
from coreeval.graph.forecast.ranges import Known
from coreeval.graph.forecast.reckoning import Asked, line_of
from coreeval.graph.forecast.sizes import Size

REUSED = "questions that were answered before cost nothing again; the estimate pays for them"


def expected(
    role: str,
    model: ModelConfig,
    calls: Known,
    size: Size,
    samples: int,
    cast: Cast,
    seen: Sequence[Seen],
    *,
    stage: Stage = "run",
) -> Line:
    """Return what a model in a role is expected to cost, by what recorded calls tell of it.

    Args:
        role: A role, or `target`.
        model: Who plays it.
        calls: How often it is asked about a sample.
        size: How long its prompts are.
        samples: How many there are.
        cast: Who is asked in the run.
        seen: Recorded calls.
        stage: What it is asked for.
    """
    player = player_of(role, model)
    said = answer(seen, player)
    return line_of(
        Asked(
            role=role,
            model=player.model,
            stage=stage,
            samples=samples,
            calls=calls,
            fixed=size.fixed,
            varied=size.varied,
            density=density(seen, player),
            answer=said,
            duration=duration(seen, player, said.range),
            cached_share=cached_share(seen, player),
            priced=cast.priced(model),
        )
    )
