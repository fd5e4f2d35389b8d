"""The drawn items of the train split: what became of each when it was reworded.

They are no part of the benchmark: no outcome, no arm and no count has them. Their ids begin with
`train:`, so that steps, calls and answers about them lie beside those about samples.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import Update, func, select, update

from coreeval.errors import DatasetError
from coreeval.schema import Sample, TrainEnd
from coreeval.tools.stores import run_tables as t
from coreeval.tools.stores.run_file import RunFile, chunks
from coreeval.tools.stores.run_rows import TrainItem

TRAIN = "train:"
"""What the ids of train items begin with."""


class RunTrain(RunFile):
    """The train items of a run."""

    def add_train(self, drawn: Sequence[Sample]) -> None:
        """Store the items that were drawn, in one commit, so that it is all of them or none.

        Raises:
            DatasetError: the benchmark has a sample with the id of one of them.
        """
        items = [one.model_copy(update={"id": f"{TRAIN}{one.id}"}) for one in drawn]
        self._refuse_taken([one.id for one in items])
        rows = [one.model_dump() | TrainEnd().model_dump() for one in items]
        with self._engine.begin() as connection:
            connection.execute(t.train_items.insert(), rows)

    def _refuse_taken(self, ids: Sequence[str]) -> None:
        for some in chunks(ids):
            for (taken,) in self._tuples(select(t.samples.c.id).where(t.samples.c.id.in_(some))):
                raise DatasetError(
                    f"the benchmark has a sample {taken!r}, which is how a train item is named",
                    where="detect.pcr",
                    hint=f"let no id of the benchmark begin with {TRAIN!r}",
                )

    def train_item(self, item_id: str) -> TrainItem:
        """Return one train item and what became of it.

        Raises:
            KeyError: there is none with this id.
        """
        for row in self._rows(select(*_ITEM).where(t.train_items.c.id == item_id)):
            return _item(row)
        raise KeyError(item_id)

    def open_train(self) -> list[str]:
        """Return the ids of the items that nothing has been made of yet, in the order drawn."""
        known = t.train_items.c
        query = select(known.id).where(known.status == "open").order_by(known.seq)
        return [item_id for (item_id,) in self._tuples(query)]

    def train_ids(self) -> list[str]:
        """Return the ids of all items, in the order drawn."""
        query = select(t.train_items.c.id).order_by(t.train_items.c.seq)
        return [item_id for (item_id,) in self._tuples(query)]

    def train_counts(self) -> dict[str, int]:
        """Return how many items have each status."""
        status = t.train_items.c.status
        return dict(self._tuples(select(status, func.count()).group_by(status)))

    def reworded_train(self) -> Iterator[TrainItem]:
        """Stream the items that are there in other words too, in the order drawn."""
        query = select(*_ITEM).where(t.train_items.c.status == "reworded")
        return map(_item, self._stream(query.order_by(t.train_items.c.seq)))

    async def end_train(self, item_id: str, end: TrainEnd) -> None:
        """Store what became of an item; when this returns, a kill cannot undo it.

        Raises:
            RunCorrupt: the store is damaged, be it that earlier steps could not be written.
            RunError: it cannot be written to.
        """
        known = t.train_items.c
        write = update(t.train_items).where(known.id == item_id).values(end.model_dump())
        await asyncio.wrap_future(self._submit([(write, None)]))
        if self._lost:
            raise self._lost

    def forget_failed_train(self) -> int:
        """Open the failed items again and return how many there were."""
        failed = self.train_counts().get("failed", 0)
        if failed:
            self._submit([(_reopening(), None)]).result()
        return failed


_NAMES = (*Sample.model_fields, *TrainEnd.model_fields)
_ITEM = [t.train_items.c[name] for name in _NAMES]


def _item(row: Mapping[str, object]) -> TrainItem:
    sample = Sample.model_validate({name: row[name] for name in Sample.model_fields})
    end = TrainEnd.model_validate({name: row[name] for name in TrainEnd.model_fields})
    return TrainItem(sample=sample, end=end)


def _reopening() -> Update:
    known = t.train_items.c
    return update(t.train_items).where(known.status == "failed").values(TrainEnd().model_dump())
