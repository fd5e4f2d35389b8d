"""What a person must have agreed to before a schedule does anything: its hooks, and where keys go.

A config decides which commands run and which variables are sent where, and it may have changed
since somebody read it.
"""

import hashlib
import json
import os
from collections.abc import Collection

from coreeval.errors import UnacceptedHooks
from coreeval.schedule.plan import Plan
from coreeval.tools.endpoints import refuse_untrusted, run_pairs
from coreeval.tools.trust import TrustRecord


def hooks_digest(plan: Plan) -> str:
    """Return the sha256 of a schedule's hooks: commands, variables of webhooks, tries, limits.

    It covers neither the files that a command runs nor the folder that it runs in, which the
    record has beside it.
    """
    return _digest(plan.schedule.hooks.model_dump(mode="json"))


def consent_digest(plan: Plan) -> str:
    """Return the sha256 of all that a schedule needs consent to; empty if it needs none.

    That is its hooks, and each variable with the origin that it may be sent to, whether or not the
    variable is set here.
    """
    pairs = run_pairs(plan.config, None)
    if not (plan.hooks or pairs):
        return ""
    return _digest([plan.name, plan.schedule.hooks.model_dump(mode="json"), pairs])


def require_hooks(plan: Plan) -> None:
    """Refuse hooks that are not those accepted last.

    Raises:
        UnacceptedHooks: they are not.
    """
    record = TrustRecord(plan.workspace)
    if plan.hooks and not record.accepts_hooks(plan.name, plan.path.parent, hooks_digest(plan)):
        said = "; ".join(hook.description for hook in plan.hooks)
        raise UnacceptedHooks(
            f"the hooks of {plan.name} are new here or have changed, and nobody has accepted them: "
            f"{said}",
            where=str(plan.path),
            hint=f"read them, then: coreeval schedule install {plan.path} --accept-hooks",
        )


def require_consent(plan: Plan) -> None:
    """Refuse a schedule whose hooks or endpoints nobody has agreed to.

    Raises:
        UnacceptedHooks: its hooks are not those accepted last.
        UntrustedEndpoint: a variable would be sent where nobody has agreed to.
    """
    require_hooks(plan)
    record = TrustRecord(plan.workspace)
    pairs = run_pairs(plan.config, os.environ)
    refuse_untrusted(pairs, record.endpoints(), record=record.path)


def accept_hooks(plan: Plan) -> None:
    """Remember the hooks of a schedule as accepted."""
    if plan.hooks:
        TrustRecord(plan.workspace).accept_hooks(plan.name, plan.path.parent, hooks_digest(plan))


def accept_stated(plan: Plan, digests: Collection[str]) -> None:
    """Remember all that a schedule needs consent to, if its digest is among those stated."""
    if consent_digest(plan) in digests:
        accept_hooks(plan)
        TrustRecord(plan.workspace).trust_endpoints(run_pairs(plan.config, None))


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
