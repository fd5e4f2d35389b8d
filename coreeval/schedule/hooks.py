"""Telling somebody how a period ended: by a command or a webhook, a bounded number of times."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from coreeval.config.schedule import HookConfig
from coreeval.tools.env_file import address_of_hook

SECONDS = (1.0, 30.0)
"""First and longest pause between two tries; each is twice the one before."""
STDERR = 2
"""Where commands write, so that stdout is left to the document."""


@dataclass(frozen=True, kw_only=True)
class News:
    """What hooks are told: the body of a webhook, and the variables of a command."""

    outcome: str
    """`released`, `failed` or `gate`."""
    name: str
    version: str
    due_at: str
    run: str
    release: str
    """The release's directory; empty where there is none."""
    counts: Mapping[str, int]
    trouble: Mapping[str, str] | None

    def variables(self) -> dict[str, str]:
        """Return the news as environment variables; counts and trouble are JSON."""
        said = asdict(self)
        return {
            f"COREEVAL_{key.upper()}": value if isinstance(value, str) else json.dumps(value)
            for key, value in said.items()
        }


@dataclass(frozen=True)
class Told:
    """How telling one hook went."""

    hook: str
    tries: int
    problem: str
    """Empty where it was told."""


class NotTold(Exception):
    """A try that came to nothing."""

    def __init__(self, problem: str, *, final: bool = False) -> None:
        super().__init__(problem)
        self.final = final
        """Whether another try would come to the same."""


@dataclass(frozen=True)
class Teller:
    """Tells hooks, with pauses that tests leave out."""

    sleep: Callable[[float], None] = time.sleep

    def __call__(self, hooks: Sequence[HookConfig], news: News, folder: Path) -> tuple[Told, ...]:
        """Tell each hook; commands run in `folder`."""
        return tuple(self._tell(hook, news, folder) for hook in hooks)

    def _tell(self, hook: HookConfig, news: News, folder: Path) -> Told:
        import tenacity  # few looks tell anybody anything

        first, longest = SECONDS
        tries = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(hook.tries),
            wait=tenacity.wait_exponential(multiplier=first, max=longest),
            retry=tenacity.retry_if_exception(_worth_another),
            sleep=self.sleep,
            reraise=True,
        )
        problem = ""
        try:
            tries(_run if hook.command else _post, hook, news, folder)
        except NotTold as error:
            problem = str(error)
        return Told(hook.description, int(tries.statistics["attempt_number"]), problem)


def _worth_another(error: BaseException) -> bool:
    return isinstance(error, NotTold) and not error.final


def _run(hook: HookConfig, news: News, folder: Path) -> None:
    """Run a command to its end, or end it with all that it has started."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", hook.command or ""],
        cwd=folder,
        env=os.environ | news.variables(),
        stdin=subprocess.DEVNULL,
        stdout=STDERR,
        start_new_session=True,
    )
    try:
        code = process.wait(hook.timeout_s)
    except subprocess.TimeoutExpired:
        raise NotTold(f"took longer than {hook.timeout_s:g} s") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if code:
        raise NotTold(f"ended with exit code {code}")


def _post(hook: HookConfig, news: News, folder: Path) -> None:
    """Post the news; the address is secret, so no error of the client is repeated."""
    import httpx2

    address = address_of_hook(hook.webhook_env or "", folder)
    try:
        sent = httpx2.stream("POST", address, json=asdict(news), timeout=hook.timeout_s)
        with sent as answer:  # its body says nothing, and may have no end
            status = answer.status_code
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol):
        raise NotTold(
            "its address is none that starts with http:// or https://", final=True
        ) from None
    except httpx2.HTTPError as error:
        raise NotTold(f"no answer ({type(error).__name__})") from None
    if not 200 <= status < 300:
        raise NotTold(f"answered {status}", final=status not in (408, 429) and status < 500)
