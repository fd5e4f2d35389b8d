"""The errors meant for the user, by whose fault they are.

* CoreEvalError
  x UsageError            fix the command or a file of yours (exit 2)
    - ConfigError           the YAML
    - TaskError             a task file
    - DatasetError          the benchmark's files
    - PromptError           a prompt file or its caller
    - KnowledgeError        the news: none there, or none inside the window
    - CredentialError       a key that is missing or refused
    - UntrustedEndpoint     a variable would go to an endpoint that nobody has agreed to
    - UnacceptedHooks       a schedule's hooks are not the ones that were accepted
    - PluginError           a plugin is missing, or is not what its protocol asks for
    - UnallowedPlugin       a config names code of others that nobody has agreed to run
    - RunStateError         this run cannot be started or resumed as asked
    - ReleaseError          this release cannot be made or read as asked
    - CassetteError         this cassette cannot be made or read as asked
  x RunError              the run could not go on (exit 1)
    - RunLocked             another process works on it
    - RunCorrupt            run.db or the call store is damaged
    - ReviewOpen            a person has yet to decide about samples
    - ModelUnusable         a model that no retry will bring back
    - PluginFailed          the code of a plugin raised an error, or returned what it may not
    - BudgetSpent           another call would cost more than the budget has left (exit 3)
  x GateNotMet            what must be so before a release is not so yet (exit 4)
  x Interrupted           stopped by a signal; resumable (exit 130)

Not among them is what goes wrong with one call, which fails one sample:

* ModelCallError          the call went wrong for good: given up after all tries, or rejected
  - RequestRejected         the endpoint does not take the request as it was put
  - NoValidAnswer           the model was reached, and what it said is no answer
  - NotRecorded             an answer is wanted of a recording that has none
* SampleBudgetSpent       the sample has cost more than one may: it makes no further call
"""

import difflib
import errno
import re
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar, Final, Literal

from coreeval.project import find_issues_page

OBEYED: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters that move the cursor, colour text, or reorder what a terminal shows."""
WAITING: Final = 5
"""The exit code of a run that waits for batches, which is no error."""


class CoreEvalError(Exception):
    """Base of all errors meant for the user: what is wrong, where, and what to do."""

    exit_code: ClassVar[int] = 1
    kind: ClassVar[str] = "error"

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def as_dict(self) -> dict[str, str]:
        """Return the error as the CLI's `--json` shows it."""
        return {
            "kind": self.kind,
            "message": self.message,
            "where": self.where,
            "hint": self.hint,
        }

    def __str__(self) -> str:
        """Return what a traceback shows; names in it may be of others, and control no terminal."""
        where = f"\n  where: {self.where}" if self.where else ""
        hint = f"\n  to do: {self.hint}" if self.hint else ""
        return OBEYED.sub("\N{REPLACEMENT CHARACTER}", self.message + where + hint)


class UsageError(CoreEvalError):
    """The user can fix it in a command or a file."""

    exit_code = 2
    kind = "usage"


class ConfigError(UsageError):
    """The configuration file is wrong."""

    kind = "config"


class TaskError(UsageError):
    """A task file is wrong."""

    kind = "task"


class DatasetError(UsageError):
    """The benchmark's files are missing or not in the format named."""

    kind = "dataset"


class PromptError(UsageError):
    """A prompt file and its caller disagree about variables, or it is missing."""

    kind = "prompt"


class KnowledgeError(UsageError):
    """There is no usable news: no files, or none inside the window."""

    kind = "knowledge"


class CredentialError(UsageError):
    """A key is missing from the environment or was refused."""

    kind = "credential"


class UntrustedEndpoint(UsageError):
    """A variable of the environment would be sent to an endpoint that nobody has agreed to."""

    kind = "untrusted_endpoint"

    def __init__(
        self,
        message: str,
        *,
        where: str = "",
        hint: str = "",
        pairs: Sequence[tuple[str, str]] = (),
        record: Path | None = None,
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.pairs = pairs
        """Variables, each with the origin that it would be sent to."""
        self.record = record
        """The file that remembers what was agreed to; None where nobody can be asked."""


class UnacceptedHooks(UsageError):
    """The hooks of a schedule are not the ones that were accepted."""

    kind = "unaccepted_hooks"


class PluginError(UsageError):
    """A plugin is missing, cannot be imported, or does not fit its protocol."""

    kind = "plugin"


class UnallowedPlugin(UsageError):
    """A config names a plugin, and the user has not allowed its code to run."""

    kind = "unallowed_plugin"


class RunStateError(UsageError):
    """The run cannot be started or resumed in the way that was asked."""

    kind = "run_state"


class ReleaseError(UsageError):
    """The release cannot be made, or is not one that can be read."""

    kind = "release"


class CassetteError(UsageError):
    """The cassette cannot be made, or is not one that can be read."""

    kind = "cassette"


class RunError(CoreEvalError):
    """The run could not go on."""

    kind = "run"


class RunLocked(RunError):
    """Another process works on this run."""

    kind = "locked"


class RunCorrupt(RunError):
    """A store of the run is damaged; nothing was overwritten."""

    kind = "corrupt"


class ReviewOpen(RunError):
    """A release waits until a person has decided about all samples that ask for it."""

    kind = "review"


class BudgetSpent(RunError):
    """Another call might cost more than the budget has left; resumable with a larger one."""

    exit_code = 3
    kind = "budget"


class PluginFailed(RunError):
    """The code of a plugin raised an error, or returned what its protocol does not allow."""

    kind = "plugin_failed"


class ModelUnusable(RunError):
    """A model fails in a way that no retry can heal: unknown name, no quota, unreachable."""

    kind = "model"


class GateNotMet(CoreEvalError):
    """Something must be so before a release, and is not yet; nothing is wrong with the run."""

    exit_code = 4
    kind = "gate"


class Interrupted(CoreEvalError):
    """A signal stopped the run; what was answered is kept."""

    exit_code = 130
    kind = "interrupted"


DEBUG = "--debug"
"""The option of all commands that shows tracebacks."""
_NO_ROOM = "the disk is full: free some space, then run the same command again"
_NO_PERMISSION = "give this user read and write access, or copy the folder to a writable place"
_HINTS = {
    errno.ENOSPC: _NO_ROOM,
    errno.EDQUOT: _NO_ROOM,
    errno.EROFS: "this place is read-only: copy the folder to a writable place, or use another "
    "workspace: COREEVAL_HOME=DIR",
    errno.EACCES: _NO_PERMISSION,
    errno.EPERM: _NO_PERMISSION,
}
"""What to do if the system refuses an operation of a command, by errno."""


def suggest_name(
    word: str, known: Iterable[str], otherwise: str | None = None, *, likeness: float = 0.6
) -> str:
    """Return a hint that names the known word most similar to another one.

    Args:
        word: The word that is not known.
        known: The known words.
        otherwise: The hint if none is similar; None for one that lists the known words.
        likeness: The least similarity, from 0 to 1 (`difflib.SequenceMatcher.ratio`).
    """
    names = list(known)
    if near := difflib.get_close_matches(word, names, n=1, cutoff=likeness):
        return f"did you mean {near[0]!r}?"
    return f"known: {', '.join(names)}" if otherwise is None else otherwise


def to_coreeval_error(error: BaseException) -> CoreEvalError:
    """Return any error as one that is meant for the user.

    What the system refuses is a RunError; what nobody foresaw is told as a fault of CoreEval.
    """
    if isinstance(error, CoreEvalError):
        return error
    if isinstance(error, OSError):
        hint = _HINTS.get(error.errno or 0, "")
        return RunError(error.strerror or str(error), where=str(error.filename or ""), hint=hint)
    last = traceback.extract_tb(error.__traceback__)[-1]
    at = f" at {issues}" if (issues := find_issues_page()) else ""
    return CoreEvalError(
        f"this is a bug in CoreEval, not your mistake: {type(error).__name__}: {error}",
        where=f"{Path(last.filename).name}, line {last.lineno}",
        hint=f"please report it{at}, with the output of the same command with {DEBUG}",
    )


class ModelCallError(Exception):
    """One call has no valid answer after all bounded tries; the sample fails, the run goes on."""


class SampleBudgetSpent(Exception):
    """The calls of one sample have cost more than its limit; the sample fails, the run goes on."""


class RequestRejected(ModelCallError):
    """The endpoint does not take the request; asked for in another way, it may."""


class NotRecorded(ModelCallError):
    """A recording stands in a model's place, and this request is not among its answers."""


class NoValidAnswer(ModelCallError):
    """The model was reached and declined, broke off or garbled its answer: that is what it says."""

    def __init__(
        self,
        message: str,
        *,
        kind: Literal["refused", "truncated", "unparsed"] = "unparsed",
        said: str = "",
    ) -> None:
        super().__init__(message)
        self.kind: Literal["refused", "truncated", "unparsed"] = kind
        self.said = said
        """What came in an answer's place: words of a refusal, the beginning of what was cut off."""
