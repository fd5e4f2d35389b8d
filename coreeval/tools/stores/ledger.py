"""What a run has spent, and what requests in flight may cost: committed before they are sent."""

import asyncio
import uuid
from dataclasses import dataclass

from sqlalchemy import Engine, Insert, delete, func, insert, literal, select, update

from coreeval.tools.stores import call_tables as t
from coreeval.tools.stores.prepared import PreparedInsert
from coreeval.tools.stores.sql import Write, Writer

MOST_USD = 1000.0
"""More than any call costs, twenty million tokens at the dearest price in prices.yaml: what a
damaged row says above it is the damage."""


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """Money put aside for one request: the most that it can cost, in US dollars."""

    id: str
    usd: float


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What a payer has spent, in US dollars."""

    billed_usd: float
    """Of answers that are stored."""
    unknown_usd: float
    """The worst case of requests that nobody knows the end of: those in flight at a kill."""


class Ledger:
    """Reservations beside the calls that settle them, in one file and one transaction.

    A reservation that nothing settles counts as spent for ever: after a kill nobody knows whether
    the request was billed.
    """

    def __init__(self, engine: Engine, writer: Writer, payer: str) -> None:
        self._engine = engine
        self._writer = writer
        self._payer = payer
        self._add = PreparedInsert(engine, t.reservations, twice="fails")

    def spent(self) -> Spent:
        """Return what the payer has spent so far: no call less than nothing, none `MOST_USD`."""
        possible = func.min(func.max(t.calls.c.usd, 0.0), MOST_USD)  # of one row: SQLite's
        billed = select(func.coalesce(func.sum(possible), 0.0)).where(
            t.calls.c.paid_by == self._payer
        )
        open_ = select(func.coalesce(func.sum(t.reservations.c.usd), 0.0)).where(
            t.reservations.c.payer == self._payer
        )
        with self._engine.connect() as connection:
            return Spent(
                billed_usd=connection.execute(billed).scalar_one(),
                unknown_usd=connection.execute(open_).scalar_one(),
            )

    def unsettled(self) -> dict[str, float]:
        """Return the worst case of what is not settled, in US dollars, by payer."""
        query = select(t.reservations.c.payer, func.sum(t.reservations.c.usd)).group_by(
            t.reservations.c.payer
        )
        with self._engine.connect() as connection:
            return {payer: usd for payer, usd in connection.execute(query)}

    async def reserve(self, key: str, usd: float) -> Reservation:
        """Put money aside for a request; when this returns, no kill or power cut can undo it."""
        reservation = Reservation(id=uuid.uuid4().hex, usd=usd)
        row = {"id": reservation.id, "payer": self._payer, "key": key, "usd": usd}
        try:
            await asyncio.wrap_future(self._writer.submit([(self._add, [row])], lasting=True))
        except BaseException:
            self.release(reservation)  # what was not sent costs nothing
            raise
        return reservation

    def release(self, reservation: Reservation) -> None:
        """Give back what a request did not cost; lost in a kill, it counts as spent."""
        self._writer.submit(self.settling(reservation, 0.0))

    def spent_in_vain(self, reservation: Reservation, usd: float | None) -> None:
        """Let a reservation stand for what a paid call cost that is not stored."""
        if usd is not None:
            ours = t.reservations.c.id == reservation.id
            self._writer.submit([(update(t.reservations).where(ours).values(usd=usd), None)])

    @staticmethod
    def settling(reservation: Reservation, usd: float | None) -> list[Write]:
        """Return what ends a reservation, to go with the record of a call that cost so much.

        Where nobody knows what it cost, the reservation stands for it.
        """
        if usd is None:
            return []
        return [(delete(t.reservations).where(t.reservations.c.id == reservation.id), None)]


def outliving(key: str) -> Insert:
    """Return what lets the cost of a damaged row stay spent: a reservation that outlives it."""
    row = select(literal(uuid.uuid4().hex), t.calls.c.paid_by, t.calls.c.key, t.calls.c.usd)
    paid = row.where(t.calls.c.key == key, t.calls.c.usd > 0, t.calls.c.usd <= MOST_USD)
    return insert(t.reservations).from_select(["id", "payer", "key", "usd"], paid)
