"""Fetches pages of current events from MediaWiki's API, one request at a time.

The service reports when it is too busy (maxlag, 429, 503) and how long to wait. Redirects are not
followed. Pages are HTML with resolved templates.
"""

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from typing import Final

import httpx2
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_after_attempt,
    stop_when_event_set,
)

from coreeval.errors import RunError, UsageError
from coreeval.tools.gdelt.current_events import day_of_page, page_name
from coreeval.tools.gdelt.rows import host_of
from coreeval.tools.gdelt.sync.downloads import FetchFailed, check_address
from coreeval.tools.http import (
    BoundedClient,
    ResponseTooLong,
    describe_http_error,
    parse_retry_after,
)

API: Final = "https://en.wikipedia.org/w/api.php"
CONTACT_VARIABLE: Final = "COREEVAL_CONTACT"
MAXLAG_S: Final = 5
"""The database lag, as the service recommends, from which on it refuses a request."""
ATTEMPTS: Final = 5
LONGEST_WAIT_S: Final = 300.0
"""The longest wait that the service may request; a day with a longer one is left for the next
sync."""
MOST_BYTES: Final = 4 << 20
"""The most bytes of an answer; a day's page has about 100 kB (own choice)."""
TIMEOUT_S: Final = 60.0
_BUSY: Final = ("maxlag", "ratelimited", "readonly")
_ABSENT: Final = ("missingtitle", "nosuchpageid")
_CONTACT = re.compile(r"[^\s()@]+@[^\s()@.]+(?:\.[^\s()@.]+)+|https?://[^\s()]+")
LONGEST_CONTACT: Final = 200


class ServiceBusy(FetchFailed):
    """The try failed for a reason that may not recur.

    Args:
        reason: The reason of the failure.
        wait_s: The seconds that the service asks to wait; None if it states none.
    """

    def __init__(self, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True)
class DayPage:
    """A day's page at one revision, as it is read and stored."""

    content: bytes
    """The page as one line of JSON; the same revision has the same bytes."""


def check_contact(contact: str | None) -> str:
    """Return the contact of the program's user, which Wikimedia asks each program to name.

    Raises:
        UsageError: there is none, or it is neither a mail address nor a web address.
    """
    named = (contact or "").strip()
    if named.isascii() and len(named) <= LONGEST_CONTACT and _CONTACT.fullmatch(named):
        return named
    told = (
        f"{named!r} is not a contact address"
        if named
        else "the current_events feed needs a contact"
    )
    raise UsageError(
        f"{told}: Wikimedia requires every program to state a contact address",
        where="--contact",
        hint=f"set your email or web address with --contact or {CONTACT_VARIABLE}",
    )


def normalise_api_url(url: str) -> str:
    """Return the address of a wiki's API.

    Raises:
        UsageError: it is not https; plain http is only for a server on this machine.
    """
    hint = f"use an address such as {API}"
    check_address(url, what="the API of a wiki", where="--wiki", hint=hint)
    return url


def open_client(contact: str) -> BoundedClient:
    """Return a client with one connection that names the program and a contact.

    Raises:
        RunError: the environment names a proxy that cannot be used.
    """
    try:
        return BoundedClient(
            most_s=TIMEOUT_S,
            most_bytes=MOST_BYTES,
            timeout=TIMEOUT_S,
            limits=httpx2.Limits(max_connections=1),
            headers={"User-Agent": f"CoreEval/{version('coreeval')} ({contact})"},
        )
    except ValueError:
        raise RunError(
            "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY is not a proxy address",
            where="environment variables",
            hint="set them to an http:// proxy, or unset them",
        ) from None


class PortalApi:
    """The API of a wiki, used through one client.

    Args:
        url: The address of the API.
        client: Sends the requests.
        stopped: Set if a stop is requested, which ends waits and further tries.
        pause_s: The seconds before the second try, if the service names none; they double.
    """

    def __init__(
        self,
        url: str,
        client: httpx2.Client,
        stopped: threading.Event,
        pause_s: float = 1.0,
    ) -> None:
        self._url, self._client, self._pause_s = url, client, pause_s
        self._stopped = stopped

    def fetch(self, day: date) -> DayPage | None:
        """Return a day's page; None if there is none.

        Raises:
            FetchFailed: none of several tries returned the page.
        """
        tries = Retrying(
            stop=stop_after_attempt(ATTEMPTS) | stop_when_event_set(self._stopped),
            wait=self._choose_wait,
            sleep=sleep_using_event(self._stopped),
            retry=retry_if_exception_type(ServiceBusy),
            reraise=True,
        )
        return tries(self._try, day)

    def _choose_wait(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.wait_s if isinstance(error, ServiceBusy) else None
        return self._pause_s * 2 ** (state.attempt_number - 1) if asked is None else asked

    def _try(self, day: date) -> DayPage | None:
        try:
            answer = self._client.get(self._url, params=_parameters(day))
        except ResponseTooLong as error:
            raise FetchFailed(str(error)) from None
        except httpx2.InvalidURL:
            raise FetchFailed("the address cannot be used") from None
        except httpx2.HTTPError as error:
            raise ServiceBusy(describe_http_error(error)) from None
        wait_s = _requested_wait(answer.headers.get("Retry-After"))
        _check_status(answer, wait_s)
        return _read_answer(answer.content, day, wait_s)


def _parameters(day: date) -> dict[str, str]:
    return {
        "action": "parse",
        "page": page_name(day),
        "prop": "text|revid",
        "format": "json",
        "formatversion": "2",
        "disablelimitreport": "1",
        "disableeditsection": "1",
        "disabletoc": "1",
        "maxlag": str(MAXLAG_S),
    }


def _requested_wait(header: str | None) -> float | None:
    """Return the seconds that the service asks to wait.

    Raises:
        FetchFailed: it asks for more than the longest wait.
    """
    wait_s = parse_retry_after(header)
    if wait_s is not None and wait_s > LONGEST_WAIT_S:
        raise FetchFailed(f"the service requires a pause of {wait_s:,.0f} s")
    return wait_s


def _check_status(answer: httpx2.Response, wait_s: float | None) -> None:
    status = answer.status_code
    if status == 200:
        return
    if status == 429 or status >= 500:
        raise ServiceBusy(f"HTTP {status}", wait_s)
    if 300 <= status < 400:
        host = host_of(answer.headers.get("Location", "")) or "another address"
        raise FetchFailed(
            f"HTTP {status}: the service redirects to {host[:100]!r}; redirects are not followed"
        )
    raise FetchFailed(f"HTTP {status}")


def _read_answer(content: bytes, day: date, wait_s: float | None) -> DayPage | None:
    """Return the page in an answer; None if the service says that there is none.

    Raises:
        ServiceBusy: the service is busy, or the answer is damaged.
        FetchFailed: the service refuses the request, or answers about another page.
    """
    try:
        said = json.loads(content)
    except (ValueError, RecursionError):
        raise ServiceBusy("the answer is not JSON, or is truncated", wait_s) from None
    error = said.get("error") if isinstance(said, dict) else None
    if isinstance(error, dict):
        code = str(error.get("code", ""))
        if code in _ABSENT:
            return None
        kind = f"the service returned {code[:100]!r}"
        busy = code in _BUSY or code.startswith("internal_api_error")
        raise ServiceBusy(kind, wait_s) if busy else FetchFailed(kind)
    page = said.get("parse") if isinstance(said, dict) else None
    if not isinstance(page, dict):
        raise FetchFailed("the answer is not from MediaWiki's API")
    return _to_page(page, day)


def _to_page(page: Mapping[str, object], day: date) -> DayPage:
    if day_of_page(str(page.get("title", ""))) != day:
        raise FetchFailed("the answer is about another page")
    kept = {key: page.get(key) for key in ("title", "revid", "text")}
    return DayPage(json.dumps({"parse": kept}).encode())
