"""The errors for the user, grouped by cause.

* CoreEvalError
  x UsageError            the user can fix the command or a file (exit 2)
    - ConfigError           the YAML config
    - TaskError             a task file
    - DatasetError          the benchmark's files
    - PromptError           a prompt file or its caller
    - KnowledgeError        the news: there is none, or none inside the window
    - CredentialError       a key is missing or was refused
    - UntrustedEndpoint     a variable would go to an endpoint that the user has not approved
    - UnacceptedHooks       a schedule's hooks are not those that were accepted
    - PluginError           a plugin is missing, or does not fit its protocol
    - UnallowedPlugin       a config names a plugin that the user has not allowed to run
    - RunStateError         the run cannot be started or resumed as requested
    - ReleaseError          the release cannot be made or read as requested
    - CassetteError         the cassette cannot be made or read as requested
  x RunError              the run could not continue (exit 1)
    - RunLocked             another process is using it
    - RunCorrupt            run.db or the call store is damaged
    - ReviewOpen            a person has yet to decide about samples
    - ModelUnusable         a model fails, and retries cannot help
    - PluginFailed          the code of a plugin raised an error or returned an invalid value
    - BudgetSpent           another call would cost more than the rest of the budget (exit 3)
  x GateNotMet            a condition for a release is not met yet (exit 4)
  x Interrupted           stopped by a signal; resumable (exit 130)

The errors of one call fail only one sample, and are not CoreEvalErrors:

* ModelCallError          the call failed: all tries failed, or it was rejected
  - RequestRejected         the endpoint rejects this form of the request
  - NoValidAnswer           the model responded, but not with a valid answer
  - NotRecorded             a recording has no answer to the request
* SampleBudgetSpent       the sample has cost more than its limit and makes no further call
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
"""Control characters that move the cursor, colour text, or reorder the output of a terminal."""
WAITING: Final = 5
"""The exit code of a run that waits for batches, which is not an error."""


class CoreEvalError(Exception):
    """Base of all errors for the user: what is wrong, where, and what to do."""

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
        """Return the text for a traceback; control characters in names are replaced."""
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
    """The benchmark's files are missing or not in the named format."""

    kind = "dataset"


class PromptError(UsageError):
    """A prompt file is missing, or has other variables than its caller."""

    kind = "prompt"


class KnowledgeError(UsageError):
    """There is no usable news: no files, or none inside the window."""

    kind = "knowledge"


class CredentialError(UsageError):
    """A key is missing from the environment or was refused."""

    kind = "credential"


class UntrustedEndpoint(UsageError):
    """An environment variable would be sent to an endpoint that the user has not approved."""

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
        """Variables, each with the origin to which it would be sent."""
        self.record = record
        """The file that records approvals; None if nobody can be asked."""


class UnacceptedHooks(UsageError):
    """The hooks of a schedule are not those that were accepted."""

    kind = "unaccepted_hooks"


class PluginError(UsageError):
    """A plugin is missing, cannot be imported, or does not fit its protocol."""

    kind = "plugin"


class UnallowedPlugin(UsageError):
    """A config names a plugin, and the user has not allowed its code to run."""

    kind = "unallowed_plugin"


class RunStateError(UsageError):
    """The run cannot be started or resumed as requested."""

    kind = "run_state"


class ReleaseError(UsageError):
    """The release cannot be made or read."""

    kind = "release"


class CassetteError(UsageError):
    """The cassette cannot be made or read."""

    kind = "cassette"


class RunError(CoreEvalError):
    """The run could not continue."""

    kind = "run"


class RunLocked(RunError):
    """Another process is using this run."""

    kind = "locked"


class RunCorrupt(RunError):
    """A store of the run is damaged; nothing was overwritten."""

    kind = "corrupt"


class ReviewOpen(RunError):
    """A release waits for a person's decision about all samples that need one."""

    kind = "review"


class BudgetSpent(RunError):
    """Another call might cost more than the rest of the budget; resumable with a larger one."""

    exit_code = 3
    kind = "budget"


class PluginFailed(RunError):
    """The code of a plugin raised an error, or returned what its protocol does not allow."""

    kind = "plugin_failed"


class ModelUnusable(RunError):
    """A model fails and retries cannot help: unknown name, no quota, or unreachable."""

    kind = "model"


class GateNotMet(CoreEvalError):
    """A condition for a release is not met yet; the run itself is not at fault."""

    exit_code = 4
    kind = "gate"


class Interrupted(CoreEvalError):
    """A signal stopped the run; answers received so far are kept."""

    exit_code = 130
    kind = "interrupted"


DEBUG = "--debug"
"""The option of all commands that shows tracebacks."""
_NO_ROOM = "the disk is full: free some space, then run the same command again"
_NO_PERMISSION = "grant this user read and write access, or copy the folder to a writable place"
_HINTS = {
    errno.ENOSPC: _NO_ROOM,
    errno.EDQUOT: _NO_ROOM,
    errno.EROFS: "this place is read-only: copy the folder to a writable place, or use another "
    "workspace: COREEVAL_HOME=DIR",
    errno.EACCES: _NO_PERMISSION,
    errno.EPERM: _NO_PERMISSION,
}
"""The hint for an operation that the system refuses, by errno."""


def suggest_name(
    word: str, known: Iterable[str], otherwise: str | None = None, *, likeness: float = 0.6
) -> str:
    """Return a hint that names the known word most similar to another one.

    Args:
        word: The unknown word.
        known: The known words.
        otherwise: The hint if no word is similar; None for a list of the known words.
        likeness: The lowest accepted similarity, from 0 to 1 (`difflib.SequenceMatcher.ratio`).
    """
    names = list(known)
    if near := difflib.get_close_matches(word, names, n=1, cutoff=likeness):
        return f"did you mean {near[0]!r}?"
    return f"known: {', '.join(names)}" if otherwise is None else otherwise


def to_coreeval_error(error: BaseException) -> CoreEvalError:
    """Return any error as an error for the user.

    An operation refused by the system is a RunError; an unexpected error is reported as a bug in
    CoreEval.
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
        hint=f"please report it{at}, and include the output of the same command with {DEBUG}",
    )


class ModelCallError(Exception):
    """A call got no valid answer after all tries; the sample fails, the run continues."""


class SampleBudgetSpent(Exception):
    """The calls of a sample have cost more than its limit; the sample fails, the run continues."""


class RequestRejected(ModelCallError):
    """The endpoint rejects the request; it may accept another form of it."""


class NotRecorded(ModelCallError):
    """A recording replaces the model, and has no answer to this request."""


class NoValidAnswer(ModelCallError):
    """The model responded, but declined, or its answer is truncated or malformed."""

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
        """The text received instead of an answer, such as a refusal or the beginning of a truncated
        answer."""
