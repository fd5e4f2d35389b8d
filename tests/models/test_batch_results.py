"""Results and lists of batches that are not as they should be, through the real SDKs."""

import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from tempfile import TemporaryFile

import pytest

from coreeval.models import close_models
from coreeval.models.batch_http import parse_time
from coreeval.models.batch_results import read_in_thread
from coreeval.models.failures import CallFailure
from tests.models.batch_kit import (
    answers_of,
    both,
    custom_id,
    echo,
    ids_of,
    just_now,
    open_batches,
    read_until_failure,
    requests_of,
    run,
)
from tests.support import batch_server
from tests.support.batch_server import BatchServer


@pytest.fixture
async def server() -> AsyncIterator[BatchServer]:
    async with BatchServer(echo).running() as server:
        assert isinstance(server, BatchServer)
        yield server
        await close_models()


@both
async def test_unknown_and_doubled_ids_are_handed_on(server: BatchServer, speech: str) -> None:
    server.faults.unknown_ids = server.faults.doubled_ids = True
    batches = open_batches(server, speech)
    read, failure = await read_until_failure(
        batches, await run(batches, requests_of(server, speech, 1, 2))
    )
    assert failure is None
    assert [one.custom_id for one in read] == ["f" * 64, *map(custom_id, (1, 2, 1))]


@both
@pytest.mark.parametrize("cut", ["connection", "quiet"])
async def test_of_cut_results_the_whole_lines_come(
    server: BatchServer, speech: str, cut: str
) -> None:
    batches = open_batches(server, speech)
    state = await run(batches, requests_of(server, speech, *range(9)))
    server.set_faults({"cut": cut})
    read, failure = await read_until_failure(batches, state)
    assert [one.custom_id for one in read] == [custom_id(n) for n in (8, 7, 6, 5)]
    assert failure is not None and failure.retryable and not failure.billed
    assert "the results file ends in the middle" in failure.message
    server.set_faults({"cut": ""})
    assert len(await answers_of(batches, state)) == 9


@both
async def test_results_that_are_fewer_than_counted_are_cut(
    server: BatchServer, speech: str
) -> None:
    server.faults.missing_ids = 1
    batches = open_batches(server, speech)
    read, failure = await read_until_failure(
        batches, await run(batches, requests_of(server, speech, 1, 2, 3))
    )
    assert len(read) == 2
    assert failure is not None and "2 of 3 answers" in failure.message


@both
async def test_the_last_line_needs_no_end(server: BatchServer, speech: str) -> None:
    server.faults.no_last_end = True
    batches = open_batches(server, speech)
    state = await run(batches, requests_of(server, speech, 1, 2))
    assert len(await answers_of(batches, state)) == 2


@both
@pytest.mark.parametrize("status", [404, 429, 500])
async def test_results_may_not_come(server: BatchServer, speech: str, status: int) -> None:
    batches = open_batches(server, speech)
    state = await run(batches, requests_of(server, speech, 1))
    server.faults.results_status = status
    read, failure = await read_until_failure(batches, state)
    assert not read and failure is not None and not failure.billed


ODD = [
    '{"custom_id": "odd"}',
    '{"custom_id": "odd", "response": 1, "error": null, "result": {"type": "new"}}',
    '{"custom_id": "odd", "response": {"status_code": "x"}, "result": []}',
    '{"custom_id": "odd", "response": {"status_code": 200, "body": []}, "result": '
    '{"type": "succeeded", "message": []}}',
    '{"custom_id": "odd", "response": {"status_code": 200}, "result": {"type": "errored"}}',
    '{"custom_id": "odd", "response": {"body": {"choices": [{"message": {"content": "\\ud800"}}]}},'
    ' "result": {"type": "succeeded", "message": {"content": [{"type": "text", "text": "\\ud800"}]'
    "}}}",
]

ODD.append(ODD[-1].replace("\\ud800", "\udcff"))  # a byte that is no UTF-8


@both
@pytest.mark.parametrize("line", ODD, ids=map(str, range(len(ODD))))
async def test_an_unknown_kind_of_result_is_a_failure_of_its_id(
    server: BatchServer, speech: str, line: str
) -> None:
    server.faults.odd_lines = [line, "", "[1]", '{"no": "id"}']
    batches = open_batches(server, speech)
    read = await answers_of(batches, await run(batches, requests_of(server, speech, 1)))
    assert set(read) == {"odd", "", custom_id(1)}
    assert (read["odd"].kind, read["odd"].billed) == ("transient", True)
    assert read[custom_id(1)].text == '{"label": "1"}'


@both
async def test_a_result_that_is_too_long_is_a_failure_of_its_id(
    server: BatchServer, speech: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coreeval.models.batch_results.MOST_LINE_BYTES", 2000)
    server.faults.odd_lines = [f'{{"custom_id": "long", "x": "{"y" * 9000}"}}']
    batches = open_batches(server, speech)
    read = await answers_of(batches, await run(batches, requests_of(server, speech, 1)))
    assert read["long"].billed and "more than" in read["long"].message
    assert read[custom_id(1)].text == '{"label": "1"}'


@both
async def test_results_have_a_limit(
    server: BatchServer, speech: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coreeval.models.batch_http.MOST_RESULT_BYTES", 700)
    batches = open_batches(server, speech)
    state = await run(batches, requests_of(server, speech, *range(9)))
    _, failure = await read_until_failure(batches, state)
    assert failure is not None and "more than 0 GiB" in failure.message


@both
@pytest.mark.parametrize("junk", ["{}", ""])
async def test_results_have_a_limit_of_lines(
    server: BatchServer, speech: str, junk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coreeval.models.batch_results.MOST_LINES", 9)
    batches = open_batches(server, speech)
    server.faults.odd_lines = [junk] * 8
    state = await run(batches, requests_of(server, speech, 1))
    assert custom_id(1) in await answers_of(batches, state)
    server.faults.odd_lines = [junk] * 9
    _, failure = await read_until_failure(
        batches, await run(batches, requests_of(server, speech, 1))
    )
    assert failure is not None and "more than 9 lines" in failure.message


async def test_a_thread_parses_results() -> None:
    threads = set[str]()

    def read(_fields: object) -> None:
        threads.add(threading.current_thread().name)

    with TemporaryFile() as file:
        file.write(b'{"custom_id": "x"}\n' * 10_000)
        file.seek(0)
        read_ids = [one.custom_id async for one in read_in_thread(file, read, "")]
    assert read_ids == ["x"] * 10_000
    assert threads and threading.main_thread().name not in threads


@both
async def test_a_list_that_does_not_end_proves_nothing(
    server: BatchServer, speech: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coreeval.models.batch_http.MOST_PAGES", 3)
    batches = open_batches(server, speech)
    for number in range(8):
        state = await batches.create(f"o-{number}", requests_of(server, speech, number))
        await batches.look(state.provider_id)
    server.faults.most_listed = 2
    with pytest.raises(CallFailure, match="does not end"):
        await batches.find("b-1", {"x"}, since=just_now() - timedelta(hours=1))


# -- times ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "year"),
    [
        (1.0, 1970),
        ("2026-01-01T00:30:00+01:00", 2025),
        ("2026-01-01T00:00:00Z", 2026),
        ("2026-01-01T00:00:00", None),
        ("9999-12-31T23:59:59-14:00", None),
        ("0001-01-01T00:00:00+14:00", None),
        (1e18, None),
        (-1e18, None),
        (float("nan"), None),
        (True, None),
        ("soon", None),
        ([], None),
    ],
)
def test_a_time_at_the_edge_of_the_calendar_is_none(told: object, year: int | None) -> None:
    moment = parse_time(told)
    assert (moment and moment.year) == year


@both
@pytest.mark.parametrize("told", ["9999-12-31T23:59:59-14:00", 1e18, "soon"])
async def test_an_odd_time_hides_no_batch(
    server: BatchServer, speech: str, told: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = getattr(batch_server, f"{speech}_batch")
    changed = {"created_at": told}
    monkeypatch.setattr(batch_server, f"{speech}_batch", lambda batch: original(batch) | changed)
    batches, requests = open_batches(server, speech), requests_of(server, speech, 1, 2)
    state = await run(batches, requests)
    assert (state.phase, state.created_at) == ("ended", None)
    found = await batches.find("b-1", ids_of(requests), since=just_now())
    assert found is not None and found.provider_id == state.provider_id
