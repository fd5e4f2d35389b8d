"""A BigQuery on loopback and sources that ask it; Google's packages, without what they foretell."""

import warnings
from collections.abc import Callable, Iterator

import pytest

from tests.support.bigquery.server import BigQueryServer

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    from coreeval.tools.gdelt.bigquery.client import open_client
    from coreeval.tools.gdelt.bigquery.jobs import JobRunner, Patience
from coreeval.config.knowledge import BigQueryConfig
from coreeval.schema import Precision
from coreeval.tools.gdelt.bigquery.bigquery_source import BigQueryKnowledge
from coreeval.tools.gdelt.bigquery.request import BillRecord

HASTE = Patience(tries=3, first_wait_s=0.0, longest_wait_s=0.0, poll_s=0.01)
Opener = Callable[..., BigQueryKnowledge]


@pytest.fixture
def server() -> Iterator[BigQueryServer]:
    """A server with empty tables."""
    with BigQueryServer().running() as running:
        yield running


@pytest.fixture
def opened(server: BigQueryServer) -> Iterator[Opener]:
    """Opens sources that ask the server and wait for nothing."""
    sources: list[BigQueryKnowledge] = []

    def open_source(
        *,
        min_precision: Precision = "cluster",
        tell: Callable[[str], None] | None = None,
        record: BillRecord | None = None,
        **options: object,
    ) -> BigQueryKnowledge:
        config = BigQueryConfig.model_validate({"endpoint": server.url, **options})
        runner = JobRunner(open_client(config), patience=HASTE)
        source = BigQueryKnowledge(
            runner, config, min_precision=min_precision, tell=tell, record=record
        )
        sources.append(source)
        return source

    yield open_source
    for source in sources:
        source.close()
