"""Runs the hooks of a period, which need consent.

A hook is a command or a webhook that reports the result of a period, with a limited number of
tries. A config decides which commands run and where variables are sent, and it may have changed
since somebody read it, so a schedule does nothing before its hooks and endpoints are accepted.
"""

import hashlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

from coreeval.config.models import split_address
from coreeval.config.schedule import HookConfig
from coreeval.errors import CoreEvalError, UnacceptedHooks
from coreeval.schedule.plan import SchedulePlan
from coreeval.tools.endpoints import refuse_untrusted, run_pairs
from coreeval.tools.env_file import address_of_hook
from coreeval.tools.trust import TrustRecord

PAUSES_S = (1.0, 30.0)
"""The first and the longest pause between two tries; each pause is twice the one before."""
STDERR = 2
"""The file descriptor that commands write to; stdout is reserved for the document."""
STOP_SIGNALS = tuple(
    number for number in signal.Signals if number.name in ("SIGINT", "SIGTERM", "SIGHUP")
)
"""The signals that end a hook and the pauses between its tries; ignored signals stay ignored."""


@dataclass(frozen=True, kw_only=True)
class HookEvent:
    """The data for a hook: the body of a webhook, or the variables of a command."""

    outcome: str
    """`released`, `failed` or `gate`."""
    name: str
    version: str
    due_at: str
    run: str
    release: str
    """The release's directory; empty if there is none."""
    counts: Mapping[str, int]
    trouble: Mapping[str, str] | None

    def to_environment(self) -> dict[str, str]:
        """Return the event as environment variables; counts and error are JSON."""
        said = asdict(self)
        return {
            f"COREEVAL_{key.upper()}": value if isinstance(value, str) else json.dumps(value)
            for key, value in said.items()
        }


@dataclass(frozen=True)
class HookResult:
    """The result of running one hook."""

    hook: str
    tries: int
    problem: str
    """The reason that the hook failed; empty if it succeeded."""


class HookFailed(Exception):
    """A try of a hook failed."""

    def __init__(self, problem: str, *, final: bool = False) -> None:
        super().__init__(problem)
        self.final = final
        """Whether another try would fail in the same way."""


class _Interrupt:
    """Raises KeyboardInterrupt once after a signal, as soon as it is not held back."""

    def __init__(self) -> None:
        self._came = self._held = self._raised = False

    def note(self) -> None:
        """Record a signal, and raise KeyboardInterrupt unless it is held back."""
        self._came = True
        self._raise()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the interrupt back until the end of the block."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        self._raise()

    def _raise(self) -> None:
        if self._came and not self._held and not self._raised:
            self._raised = True
            raise KeyboardInterrupt


@contextmanager
def _interrupted_by_signals() -> Iterator[_Interrupt]:
    """Make signals raise KeyboardInterrupt in the block, after their usual handlers.

    A command runs in its own session, so it would outlive a process that a signal kills outright.
    """
    interrupt = _Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}

    def hear(number: int, frame: FrameType | None) -> None:
        handler = before[signal.Signals(number)]
        if callable(handler) and handler is not signal.default_int_handler:
            handler(number, frame)
        interrupt.note()

    heard = [number for number, handler in before.items() if handler not in (signal.SIG_IGN, None)]
    try:
        for number in heard:
            signal.signal(number, hear)
        yield interrupt
    finally:
        for number in heard:
            signal.signal(number, before[number])


@dataclass(frozen=True)
class HookRunner:
    """Runs hooks with retries; tests leave out the pauses."""

    sleep: Callable[[float], None] = time.sleep

    def __call__(
        self, hooks: Sequence[HookConfig], news: HookEvent, folder: Path
    ) -> tuple[HookResult, ...]:
        """Run each hook; commands run in `folder`.

        Raises:
            KeyboardInterrupt: a signal arrived; the running command was killed.
        """
        with _interrupted_by_signals() as interrupt:
            return tuple(self._run_hook(hook, news, folder, interrupt) for hook in hooks)

    def _run_hook(
        self, hook: HookConfig, news: HookEvent, folder: Path, interrupt: _Interrupt
    ) -> HookResult:
        import tenacity  # few checks notify anybody

        first, longest = PAUSES_S
        tries = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(hook.tries),
            wait=tenacity.wait_exponential(multiplier=first, max=longest),
            retry=tenacity.retry_if_exception(_is_retryable),
            sleep=self.sleep,
            reraise=True,
        )
        problem = ""
        try:
            if hook.command:
                tries(_run_command, hook, news, folder, interrupt)
            else:
                tries(_post_webhook, hook, news, folder)
        except HookFailed as error:
            problem = str(error)
        except CoreEvalError as error:
            problem = error.message
        except Exception as error:  # noqa: BLE001 - a release is there, and its period must close
            problem = (
                f"the notification failed ({type(error).__name__})"  # no text: it may be secret
            )
        return HookResult(hook.description, int(tries.statistics["attempt_number"]), problem)


def _is_retryable(error: BaseException) -> bool:
    return isinstance(error, HookFailed) and not error.final


def _run_command(hook: HookConfig, news: HookEvent, folder: Path, interrupt: _Interrupt) -> None:
    """Run a command to its end; kill it with all its children if it does not finish."""
    process = None
    try:
        with interrupt.held():
            process = subprocess.Popen(
                ["/bin/sh", "-c", hook.command or ""],
                cwd=folder,
                env=os.environ | news.to_environment(),
                stdin=subprocess.DEVNULL,
                stdout=STDERR,
                start_new_session=True,
            )
        code = process.wait(hook.timeout_s)
    except subprocess.TimeoutExpired:
        raise HookFailed(f"took longer than {hook.timeout_s:g} s") from None
    finally:
        with interrupt.held():
            if process is not None and process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if code:
        raise HookFailed(f"ended with exit code {code}")


def _post_webhook(hook: HookConfig, news: HookEvent, folder: Path) -> None:
    """Post the event; client errors are not quoted, because the address is secret."""
    import httpx2

    from coreeval.tools.http import ResponseOverdue, post_for_status

    address = address_of_hook(hook.webhook_env or "", folder)
    try:
        split_address(address)
        status = post_for_status(address, asdict(news), most_s=hook.timeout_s)
    except (ValueError, httpx2.InvalidURL, httpx2.UnsupportedProtocol):
        raise HookFailed(
            "its address does not start with http:// or https://, or cannot be reached",
            final=True,
        ) from None
    except ResponseOverdue:
        raise HookFailed(f"no answer within {hook.timeout_s:g} s") from None
    except httpx2.HTTPError as error:
        raise HookFailed(f"no answer ({type(error).__name__})") from None
    if not 200 <= status < 300:
        raise HookFailed(f"answered {status}", final=status not in (408, 429) and status < 500)


def hooks_digest(plan: SchedulePlan) -> str:
    """Return the sha256 of a schedule's hooks: commands, webhook variables, tries, limits.

    It does not cover the files that a command runs, nor its folder, which is recorded separately.
    """
    return _digest(plan.schedule.hooks.model_dump(mode="json"))


def consent_digest(plan: SchedulePlan) -> str:
    """Return the sha256 of everything that a schedule needs consent to; empty if nothing.

    This covers its hooks, and each variable with the origin that it may be sent to, whether or not
    the variable is set here.
    """
    pairs = run_pairs(plan.config, None)
    if not (plan.hooks or pairs):
        return ""
    return _digest([plan.name, plan.schedule.hooks.model_dump(mode="json"), pairs])


def require_hooks(plan: SchedulePlan) -> None:
    """Refuse hooks that differ from those accepted last.

    Raises:
        UnacceptedHooks: the hooks differ.
    """
    record = TrustRecord(plan.workspace)
    if plan.hooks and not record.accepts_hooks(plan.name, plan.path.parent, hooks_digest(plan)):
        said = "; ".join(hook.description for hook in plan.hooks)
        raise UnacceptedHooks(
            f"the hooks of {plan.name} are new or have changed and need to be accepted: {said}",
            where=str(plan.path),
            hint=f"review them, then run: coreeval schedule install {plan.path} --accept-hooks",
        )


def require_consent(plan: SchedulePlan) -> None:
    """Refuse a schedule whose hooks or endpoints nobody has consented to.

    Raises:
        UnacceptedHooks: its hooks differ from those accepted last.
        UntrustedEndpoint: a variable would be sent to an origin without consent.
    """
    require_hooks(plan)
    record = TrustRecord(plan.workspace)
    pairs = run_pairs(plan.config, os.environ)
    refuse_untrusted(pairs, record.endpoints(), record=record.path)


def accept_hooks(plan: SchedulePlan) -> None:
    """Record the hooks of a schedule as accepted."""
    if plan.hooks:
        TrustRecord(plan.workspace).accept_hooks(plan.name, plan.path.parent, hooks_digest(plan))


def accept_by_digest(plan: SchedulePlan, digests: Collection[str]) -> None:
    """Record consent to all that a schedule needs if its digest is among those given."""
    if consent_digest(plan) in digests:
        accept_hooks(plan)
        TrustRecord(plan.workspace).trust_endpoints(run_pairs(plan.config, None))


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
