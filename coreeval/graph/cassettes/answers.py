"""The answers that a run's samples rest on, role by role."""

from collections.abc import Iterator, Mapping

from coreeval.config import ROLES
from coreeval.errors import CassetteError
from coreeval.models.replay import hash_request, line_key, to_answer_line
from coreeval.releases.cassettes.lines import AnswerLine, Pass
from coreeval.schema import RoleName
from coreeval.tools.stores.call_store import CallStore
from coreeval.tools.stores.run_store import RunStore

Keys = Mapping[RoleName, list[str]]


def answers_of(
    stores: Mapping[Pass, RunStore], stated: Mapping[Pass, Mapping[str, object]]
) -> Keys:
    """Return by role the keys of the calls that samples used, those of stated results left out."""
    found: dict[RoleName, set[str]] = {role: set() for role in ROLES}
    for stage, store in stores.items():
        for sample_id, role, key in store.call_uses():
            if sample_id not in stated[stage]:
                found[role].add(key)
    return {role: sorted(keys) for role, keys in found.items()}


def answer_lines(calls: CallStore, used: Keys, *, texts: bool) -> Iterator[AnswerLine]:
    """Yield the answers, with their requests or with the hashes of these.

    Raises:
        CassetteError: the call store has lost some, or has two answers to one request.
    """
    for role, keys in used.items():
        found, known = 0, dict[str, tuple[str, object]]()
        for record in calls.records_of(keys):
            line = to_answer_line(record)
            found += 1
            key, said = line_key(line), (line["content"], line.get("method"))
            before = known.get(key)
            if before == said:
                continue
            if before is not None:
                raise CassetteError(
                    f"the {role} gave two answers to one request",
                    hint="its parameters were changed while the run went on: refresh again",
                )
            known[key] = said
            yield AnswerLine(role=role, answer=line if texts else hash_request(line))
        if found < len(keys):
            raise CassetteError(
                f"{len(keys) - found} of {len(keys)} answers of the {role} are no longer in the "
                "call store of the run's workspace",
                hint="restore calls.db from a copy: coreeval calls gc may have cleared them",
            )
