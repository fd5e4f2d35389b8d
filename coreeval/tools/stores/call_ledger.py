"""The ledger of the call store: what runs have spent and reserved.

The most that a request may cost is committed before it is sent.
"""

import asyncio
import math
import uuid
from dataclasses import dataclass

from sqlalchemy import (
    Engine,
    Float,
    Insert,
    func,
    insert,
    literal,
    literal_column,
    select,
    text,
    update,
)

from coreeval.tools.clock import utc_now
from coreeval.tools.stores import call_tables as t
from coreeval.tools.stores.batch_writer import BatchWriter, Write
from coreeval.tools.stores.heartbeat import DIGITS
from coreeval.tools.stores.prepared_statements import DeleteStatement
from coreeval.tools.stores.sqlite import Row, is_postgresql

MOST_USD = 1000.0
"""A limit above the cost of any call, twenty million tokens at the highest price in prices.yaml: a
higher value in a row is damage."""


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """An amount reserved for one request: the most that it can cost, in US dollars."""

    id: str
    usd: float


@dataclass(frozen=True, kw_only=True)
class SpendingTotal:
    """The amount that a payer has spent, in US dollars."""

    billed_usd: float
    """The cost of stored answers."""
    unknown_usd: float
    """The most that requests with an unknown result cost: those in flight when the process was
    killed."""


_COST = f"CASE WHEN usd > {MOST_USD} THEN {MOST_USD} WHEN usd > 0 THEN usd ELSE 0.0 END"
"""The amount that a call counts for: at least 0, at most `MOST_USD`."""
_RESERVE = f"""
    INSERT INTO reservations (id, payer, key, usd, made_at)
    SELECT :id, :payer, :key, :usd, :made_at
    WHERE :billed + :usd
        + (SELECT coalesce(sum({_COST}), 0.0) FROM calls NOT INDEXED
           WHERE rowid > :seen AND paid_by = :payer)
        + (SELECT coalesce(sum(usd), 0.0) FROM reservations
           WHERE payer = :payer AND id <> :id) <= :budget
    ON CONFLICT (id) DO UPDATE SET usd = excluded.usd
"""
"""Checks the budget and reserves an amount in one statement, so that no other process intervenes;
running it twice has the same effect."""
_BILLED_SINCE = f"""
    SELECT coalesce(max(rowid), :seen),
        coalesce(sum(CASE WHEN paid_by = :payer THEN {_COST} END), 0.0)
    FROM calls NOT INDEXED WHERE rowid > :seen
"""
_OWN_BILLED_SINCE = f"""
    SELECT coalesce(max(rowid), :seen), coalesce(sum({_COST}), 0.0)
    FROM calls WHERE rowid > :seen AND paid_by = :payer
"""
"""The same with PostgreSQL's index: other payers' rows may become visible after newer rows of this
payer, and are not needed."""
_MOST_ADDED_ANEW = 64
"""The number of reservations after which new costs are added to the known sum: summing all of
100,000 calls takes 16 ms, summing the newest 64 takes 0.03 ms."""


class Ledger:
    """Reservations and the calls that settle them, in one file and one transaction.

    A reservation that is never settled counts as spent forever: after a kill, it is unknown whether
    the request was billed.
    """

    def __init__(self, engine: Engine, writer: BatchWriter, payer: str) -> None:
        self._engine = engine
        self._writer = writer
        self._payer = payer
        there = is_postgresql(engine)
        self._reserve = text(_RESERVE.replace(" NOT INDEXED", "") if there else _RESERVE)
        self._add = text(_OWN_BILLED_SINCE if there else _BILLED_SINCE)
        self._settle = DeleteStatement(engine, t.reservations.c.id)
        self._seen, self._billed = 0, 0.0
        """The last row of calls included in the sum, and the amount billed to the payer up to
        it."""
        self._not_added = _MOST_ADDED_ANEW
        """The number of reservations since then."""

    def spent(self) -> SpendingTotal:
        """Return what the payer has spent; each call counts as at least 0, at most `MOST_USD`."""
        billed = select(func.coalesce(func.sum(literal_column(_COST, Float)), 0.0)).where(
            t.calls.c.paid_by == self._payer
        )
        open_ = select(func.coalesce(func.sum(t.reservations.c.usd), 0.0)).where(
            t.reservations.c.payer == self._payer
        )
        with self._engine.connect() as connection:
            return SpendingTotal(
                billed_usd=connection.execute(billed).scalar_one(),
                unknown_usd=connection.execute(open_).scalar_one(),
            )

    def open_usd_by_payer(self) -> dict[str, float]:
        """Return the worst case of unsettled requests, in US dollars, by payer."""
        query = select(t.reservations.c.payer, func.sum(t.reservations.c.usd)).group_by(
            t.reservations.c.payer
        )
        with self._engine.connect() as connection:
            return {payer: usd for payer, usd in connection.execute(query)}

    async def reserve(
        self, key: str, usd: float, *, budget_usd: float = math.inf
    ) -> Reservation | None:
        """Reserve an amount for a request; once this returns, no kill or power cut can undo it.

        Args:
            key: The key of the request.
            usd: The most that it can cost.
            budget_usd: The budget shared by all processes of the payer.

        Returns:
            The reservation; None if too little of the budget is left.
        """
        if self._not_added >= _MOST_ADDED_ANEW:
            await self._add_up(self._seen, self._billed)
        self._not_added += 1
        reservation = Reservation(id=uuid.uuid4().hex, usd=usd)
        if await self._insert(reservation, key, budget_usd):
            return reservation
        await self._add_up(0, 0.0)  # rows may have been deleted meanwhile
        return reservation if await self._insert(reservation, key, budget_usd) else None

    async def reserve_lost(self, recorded_usd: float) -> None:
        """Reserve forever what the payer has spent on calls that this file does not contain.

        Args:
            recorded_usd: The cost of the calls that the payer's own store records.
        """
        spent = self.spent()
        lost = round(recorded_usd - spent.billed_usd - spent.unknown_usd, DIGITS)
        if lost > 0:
            await self.reserve("", lost)

    async def _add_up(self, seen: int, billed: float) -> None:
        """Sum up what was billed after a row up to which the amount is known."""
        self._not_added = 0
        if is_postgresql(self._engine):
            newest, more = await asyncio.to_thread(self._sum_since, seen)
        else:
            newest, more = self._sum_since(seen)
        self._seen, self._billed = newest, billed + more

    def _sum_since(self, seen: int) -> tuple[int, float]:
        """Return the number of the newest row, and what was billed after the given one."""
        with self._engine.connect() as connection:
            about = {"payer": self._payer, "seen": seen}
            newest, billed = connection.execute(self._add, about).one()
            return newest, billed

    async def reserve_writes(
        self, reservation: Reservation, key: str, budget_usd: float
    ) -> list[Write]:
        """Return the statements that make a reservation if the budget covers it."""
        await self._add_up(0, 0.0)
        return [(self._reserve, [self._reservation_row(reservation, key, budget_usd)])]

    def _reservation_row(self, reservation: Reservation, key: str, budget_usd: float) -> Row:
        return {
            "id": reservation.id,
            "payer": self._payer,
            "key": key,
            "usd": reservation.usd,
            "made_at": utc_now().isoformat(timespec="milliseconds"),
            "billed": self._billed,
            "seen": self._seen,
            "budget": budget_usd + 10**-DIGITS,
        }

    async def _insert(self, reservation: Reservation, key: str, budget_usd: float) -> bool:
        row = self._reservation_row(reservation, key, budget_usd)
        try:
            written = self._writer.submit([(self._reserve, [row])], lasting=True)
            return await asyncio.wrap_future(written) > 0
        except BaseException:
            self.release(reservation)  # an unsent request costs nothing
            raise

    def release(self, reservation: Reservation) -> None:
        """Release a reservation that cost nothing; a release lost in a kill leaves it spent."""
        self._writer.submit(self.settle_writes(reservation, 0.0))

    def keep_as_spent(self, reservation: Reservation, usd: float | None) -> None:
        """Keep a reservation as the cost of a paid call that is not stored."""
        if usd is not None:
            ours = t.reservations.c.id == reservation.id
            self._writer.submit([(update(t.reservations).where(ours).values(usd=usd), None)])

    def settle_writes(self, reservation: Reservation, usd: float | None) -> list[Write]:
        """Return the statements that settle a reservation, to be written with the call's record.

        If the cost is unknown, there are none: the reservation stays as its worst case.
        """
        if usd is None:
            return []
        return [(self._settle, [{"id": reservation.id}])]


def insert_lasting_reservation(key: str) -> Insert:
    """Return an insert of a reservation that keeps the cost of a damaged row as spent."""
    c = t.calls.c
    row = select(literal(uuid.uuid4().hex), c.paid_by, c.key, c.usd, c.started_at)
    paid = row.where(c.key == key, c.usd > 0, c.usd <= MOST_USD)
    return insert(t.reservations).from_select(["id", "payer", "key", "usd", "made_at"], paid)
