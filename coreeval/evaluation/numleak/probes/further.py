"""The value asked for in further ways: in prose, step by step, in other words, after a wrong one.

And the next lines of the publisher's file. All are about the dates of a drawing, so that each
answer stands beside the plain one; only the lines of the file lie where they follow each other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Final

from coreeval.config import NumleakConfig
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.probes.sampling import Drawing
from coreeval.evaluation.numleak.probes.windows import Window, windows_of
from coreeval.evaluation.numleak.probes.wording import Wording
from coreeval.evaluation.numleak.probes.wrong import wrong_values
from coreeval.evaluation.numleak.replies import Variant
from coreeval.evaluation.numleak.series import Series
from coreeval.evaluation.numleak.series.excerpt import Excerpt, FileLine, excerpt_of
from coreeval.prompts import Message

PHRASINGS: Final = ("formal", "terse", "table", "spoken")
"""Other words of the question for a value: how an office, a note, a form and a caller put it."""
ROOM: Final[dict[Variant, int]] = {"description": 800, "step_by_step": 1600, "continuation": 800}
"""Tokens that an answer is given at least: NumLeak's 384 (appendix J) cut one in ten chains off."""
_NEEDS_FILE: Final = (
    "its values do not stand in a publisher's file as they are asked for: it is not asked to "
    "continue the file"
)


@dataclass(frozen=True, kw_only=True)
class Draft:
    """One such question, but for what all questions about a series have."""

    period: Period
    variant: Variant
    messages: Sequence[Message]
    truth: float | None
    phrasing: str | None = None
    stated: float | None = None
    shown: int | None = None
    following: tuple[FileLine, ...] = ()
    """The lines of the file that are asked for."""

    @property
    def room(self) -> int:
        """Tokens that the answer is given at least; 0: whatever the target has."""
        return ROOM.get(self.variant, 0)


@dataclass(frozen=True, kw_only=True)
class Further:
    """What is asked about one series of one model in further ways."""

    series: Series
    asked: NumleakConfig
    wording: Wording
    values: dict[Period, float]
    inside: Sequence[Period]
    """Dates that may be asked about."""
    cutoff: date | None

    @cached_property
    def excerpt(self) -> Excerpt | None:
        """The lines of the publisher's file."""
        return excerpt_of(self.series)

    def of_drawing(self, drawing: Drawing) -> Iterator[Draft]:
        """Yield the questions about the dates of one seed."""
        for variant in ("description", "step_by_step"):
            if variant in self.asked.probes:
                for period in drawing.dates:
                    yield self._draft(variant, period, f"series_{variant}")
        yield from self._phrased(drawing)
        yield from self._contradicted(drawing)
        yield from self._continued(drawing)

    def notes(self) -> Iterator[str]:
        """Yield what could not be asked, or not as it was meant."""
        if "continuation" not in self.asked.probes:
            return
        if self.excerpt is None:
            yield _NEEDS_FILE
        elif len(found := self._windows(0)) < self.asked.continuations:
            yield (
                f"{len(found)} stretches of the file lie before the cutoff and are whole, not "
                f"{self.asked.continuations}"
            )

    def _draft(
        self,
        variant: Variant,
        period: Period,
        prompt: str,
        *,
        phrasing: str | None = None,
        stated: float | None = None,
    ) -> Draft:
        return Draft(
            period=period,
            variant=variant,
            messages=self.wording.value(period, prompt=prompt, stated=stated),
            truth=self.values[period],
            phrasing=phrasing,
            stated=stated,
        )

    def _phrased(self, drawing: Drawing) -> Iterator[Draft]:
        if "phrasing" in self.asked.probes:
            for phrasing in PHRASINGS:
                for period in drawing.dates:
                    prompt = f"series_phrasing_{phrasing}"
                    yield self._draft("phrasing", period, prompt, phrasing=phrasing)

    def _contradicted(self, drawing: Drawing) -> Iterator[Draft]:
        if "contradiction" in self.asked.probes and drawing.dates:
            wrong = wrong_values(
                list(drawing.dates), self.values, self.series.definition, seed=drawing.seed
            )
            for period in drawing.dates:
                yield self._draft(
                    "contradiction", period, "series_contradiction", stated=wrong[period]
                )

    def _continued(self, drawing: Drawing) -> Iterator[Draft]:
        if "continuation" in self.asked.probes:
            for window in self._windows(drawing.seed):
                yield self._following(window)

    def _windows(self, seed: int) -> list[Window]:
        if self.excerpt is None:
            return []
        count = self.asked.continuations
        return windows_of(self.excerpt, self.inside, count=count, seed=seed, cutoff=self.cutoff)

    def _following(self, window: Window) -> Draft:
        header = self.excerpt.header if self.excerpt else ""
        return Draft(
            period=window.first,
            variant="continuation",
            messages=self.wording.continuation(
                [header, *(line.text for line in window.shown)], wanted=len(window.wanted)
            ),
            truth=None,
            shown=len(window.shown),
            following=window.wanted,
        )
