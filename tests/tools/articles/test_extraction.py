"""Pages are read in other processes, and one that is too much costs no more than its process."""

import asyncio
import os
import signal

import pytest

from coreeval.tools.articles import extraction
from coreeval.tools.articles.extraction import NotExtracted, PageReaders
from tests.support.news_site import BODY, article_page

URL = "https://herald.example/2026/ferry"


async def test_a_process_reads_several_pages_and_what_is_none() -> None:
    readers = PageReaders(most=1)
    try:
        page = article_page().encode()
        readings = await asyncio.gather(
            *(readers.read(body, URL) for body in (page, b"", b"\xff\xfe\0", page))
        )
    finally:
        await readers.close()
    assert readings[0] == readings[3]
    assert all(part in readings[0].text for part in BODY)
    assert (readings[1].text, readings[2].text) == ("", "")


async def test_a_page_that_takes_too_long_ends_its_process_and_the_next_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change = (
        "def f(body, url):\n    while b'slow' in body: pass\n    return e.PageReading(text='read')"
    )
    monkeypatch.setattr(extraction, "_PROGRAM", _program(change))
    readers = PageReaders(most=1, limit_s=1)
    try:
        with pytest.raises(NotExtracted, match="took too long"):
            await readers.read(b"slow", URL)
        assert (await readers.read(b"fast", URL)).text == "read"
    finally:
        await readers.close()


def _program(change: str) -> str:
    """Return the program of a process with another way to read pages."""
    return (
        "import sys; sys.path[:] = sys.argv[1:]; import coreeval.tools.articles.extraction as e; "
        f"exec({change!r}); e.read_page = f; e.serve()"
    )


async def test_a_process_gets_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a key of nobody")
    change = "def f(body, url):\n    import os; return e.PageReading(text=' '.join(os.environ))"
    monkeypatch.setattr(extraction, "_PROGRAM", _program(change))
    readers = PageReaders(most=1)
    try:
        names = (await readers.read(b"", URL)).text.split()
    finally:
        await readers.close()
    assert "PATH" in names and "OPENAI_API_KEY" not in names


async def test_a_process_that_dies_is_replaced() -> None:
    readers = PageReaders(most=1)
    try:
        await readers.read(b"", URL)
        (process,) = readers._idle
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(NotExtracted, match="cannot be read"):
            await readers.read(article_page().encode(), URL)
        assert (await readers.read(article_page().encode(), URL)).text
    finally:
        await readers.close()


async def test_a_caller_that_is_cancelled_leaves_no_answer_behind() -> None:
    readers = PageReaders(most=1)
    try:
        task = asyncio.ensure_future(readers.read(article_page("One").encode(), URL))
        while not readers._slots.locked():
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await readers.read(article_page("Two").encode(), URL)).title == "Two"
    finally:
        await readers.close()
