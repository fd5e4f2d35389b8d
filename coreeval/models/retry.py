"""Retries failed requests, with limits on attempts and time; nothing else retries."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt
from tenacity.stop import stop_base

from coreeval.models.activity import awake_s
from coreeval.models.failures import LONGEST_WAIT_S, CallFailure

T = TypeVar("T")


def _ignore_reason(_reason: str) -> None:
    """Discard the reason."""


@dataclass(frozen=True, kw_only=True)
class Retry:
    """When and how often a failed request is sent again."""

    attempts: int = 8
    total_s: float = 600.0
    """No attempt starts later than this after the first one, not counting time for which the
    process was asleep, because the endpoint might have answered then."""
    first_s: float = 1.0
    longest_s: float = 30.0
    retry_after_cap_s: float = LONGEST_WAIT_S
    """The longest wait that a server may ask for."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random

    def run(
        self, call: Callable[[], Awaitable[T]], note: Callable[[str], None] = _ignore_reason
    ) -> Awaitable[T]:
        """Return an awaitable of a call's result, which raises its last failure.

        Args:
            call: Sends the request once.
            note: Receives the reason for a failure before each retry.
        """
        again = AsyncRetrying(
            before_sleep=lambda state: note(str(state.outcome and state.outcome.exception())),
            retry=retry_if_exception(_is_retryable),
            stop=stop_after_attempt(self.attempts)
            | _StopAfterAwake(self.total_s, awake_s())
            | _StopAtWebPage(),
            wait=self._wait,
            sleep=self.sleep,
            reraise=True,
        )
        return again(call)

    def _wait(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after if isinstance(error, CallFailure) else None
        if asked is not None:
            return min(asked, self.retry_after_cap_s) + self.jitter()
        doubled = min(self.first_s * 2.0 ** (state.attempt_number - 1), self.longest_s)
        return doubled * (0.5 + self.jitter() / 2)


class _StopAfterAwake(stop_base):
    """Stops retrying if the next attempt would begin after a number of seconds since a moment."""

    def __init__(self, seconds: float, since: float) -> None:
        self._until = since + seconds

    def __call__(self, retry_state: RetryCallState) -> bool:
        return awake_s() + retry_state.upcoming_sleep >= self._until


class _StopAtWebPage(stop_base):
    """Stops retrying at the third web page: an overloaded gateway shows one once or twice."""

    def __call__(self, retry_state: RetryCallState) -> bool:
        error = retry_state.outcome.exception() if retry_state.outcome else None
        is_page = isinstance(error, CallFailure) and error.kind == "web_page"
        return is_page and retry_state.attempt_number >= _MOST_PAGES


_MOST_PAGES: Final = 3


def _is_retryable(error: BaseException) -> bool:
    return isinstance(error, CallFailure) and error.retryable
