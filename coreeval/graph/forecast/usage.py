"""What each sample of a run used: calls, tokens, seconds and money, by role and model."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import astuple, dataclass, fields
from functools import cached_property
from typing import Self

from coreeval.config import ModelConfig
from coreeval.graph.forecast.players import Cast, name_of, players
from coreeval.graph.sources import ARMS
from coreeval.tools.catalogs import cost
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.call_store import CallStore, open_calls
from coreeval.tools.stores.run_records import CallRow, SampleResult
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles, Workspace

Seat = tuple[str, str]
"""A role, or `target`, and the name of its model."""


@dataclass(frozen=True)
class Used:
    """What some calls used; money is 0 where the model has no price."""

    calls: float = 0.0
    prompt_tokens: float = 0.0
    completion_tokens: float = 0.0
    call_seconds: float = 0.0
    usd: float = 0.0

    def __add__(self, other: Self) -> Self:
        """Add."""
        return type(self)(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def times(self, factor: float) -> Self:
        """Return a multiple."""
        return type(self)(*(each * factor for each in astuple(self)))


MEASURES = tuple(field.name for field in fields(Used))
BySample = list[Mapping[Seat, Used]]


@dataclass(frozen=True, kw_only=True)
class Bill:
    """What a run used, sample by sample, and what of it was paid for now."""

    by_sample: BySample
    by_train: BySample
    """What each item of the train split used."""
    paid: Used


def bill_of(
    files: RunFiles, workspace: Workspace, cast: Cast, *, templates: int, arms: bool
) -> Bill:
    """Return what a finished run used; its answers must still be in the call store.

    `templates` is the number of its task's templates: so often a target is asked about a text;
    `arms` tells whether it is asked about all arms, or about what PCR compares.
    """
    with (
        closing(RunStore.open(files.require_store(), now=utc_now)) as store,
        closing(open_calls(workspace.calls)) as calls,
    ):
        clerk = _Clerk(store, calls, cast, templates)
        by_sample, by_train = clerk.by_sample(arms=arms), clerk.by_train()
        return Bill(by_sample=by_sample, by_train=by_train, paid=clerk.paid())


class _Clerk:
    """Reads a run's calls; each counts once for a sample, and once for the bill."""

    def __init__(self, store: RunStore, calls: CallStore, cast: Cast, templates: int) -> None:
        self._store, self._calls, self._templates = store, calls, templates
        self._prices = {
            (role, name_of(model)): _price(cast, model) for role, model in players(cast)
        }
        self._targets = [model for role, model in players(cast) if role == "target"]
        self._bought: dict[str, Used] = {}

    def by_sample(self, *, arms: bool) -> BySample:
        """Return what each sample used, targets included."""
        asked_as = _arms if arms else _compared
        return [
            self._of(ended.sample.id, asked_as(ended)) for ended in self._store.sample_results()
        ]

    def by_train(self) -> BySample:
        """Return what each train item used, targets included."""
        ids = dict.fromkeys(self._store.train_ids(), 0)
        ids |= {item.sample.id: 2 for item in self._store.train_rewordings()}
        return [self._of(item, texts) for item, texts in ids.items()]

    def paid(self) -> Used:
        """Return what was paid for, once all samples have been read."""
        return sum(self._bought.values(), Used())

    @cached_property
    def _per_call(self) -> Mapping[str, Used]:
        return {name_of(target): self._mean_of(target) for target in self._targets}

    def _of(self, sample_id: str, texts: int) -> Mapping[Seat, Used]:
        """Return what a sample used about so many of whose texts targets were asked."""
        used: dict[Seat, Used] = {}
        for player, one in self._calls_of(sample_id):
            used[player] = used.get(player, Used()) + one
        asked = texts * self._templates
        return used | {("target", name): each.times(asked) for name, each in self._per_call.items()}

    def _mean_of(self, target: ModelConfig) -> Used:
        """Return what one question to a target used on average."""
        found = [one for _, one in self._calls_of(f"target {target.model}")]
        return sum(found, Used()).times(1 / len(found)) if found else Used()

    def _calls_of(self, sample_id: str) -> Iterator[tuple[Seat, Used]]:
        rows = {call.key: call for step in self._store.steps(sample_id) for call in step.calls}
        for call in rows.values():
            player = (call.role, call.model)
            one = self._used(player, call)
            if not call.cached:
                self._bought[call.key] = one
            yield player, one

    def _used(self, player: Seat, call: CallRow) -> Used:
        record = self._calls.get(call.key)
        price = self._prices.get(player, _nothing)
        usd = price(call.prompt_tokens, record.cached_tokens if record else 0,
                    call.completion_tokens)  # fmt: skip
        known = record.usd if record and record.usd is not None else usd
        return Used(1.0, call.prompt_tokens, call.completion_tokens, call.seconds, known)


def _arms(ended: SampleResult) -> int:
    return sum(texts(ended) is not None for texts in ARMS.values())


def _compared(ended: SampleResult) -> int:
    return 2 if ARMS["original"](ended) and ARMS["semantic"](ended) else 0


_Price = Callable[[int, int, int], float]


def _price(cast: Cast, model: ModelConfig) -> _Price:
    """Return what prices the tokens of a call: prompt, those cached of it, and answer."""
    price = cast.priced(model).price
    if price is None:
        return _nothing
    return lambda prompt, cached, answer: cost(
        price, prompt=prompt, cached=cached, written=0, completion=answer
    )


def _nothing(_prompt: int, _cached: int, _answer: int) -> float:
    return 0.0
