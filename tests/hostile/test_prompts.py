"""Whatever a headline or a sample says, it stays inside its block of data."""

import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from coreeval.agents.composer import LLMComposer
from coreeval.agents.extractor import LLMExtractor
from coreeval.agents.fact_judge import LLMFactJudge
from coreeval.agents.label_judge import LLMLabelJudge
from coreeval.agents.replacer import LLMReplacer
from coreeval.agents.rewriter import LLMRewriter
from coreeval.agents.roles import CompositionRequest
from coreeval.errors import ModelCallError
from coreeval.prompts import Message
from coreeval.schema import Defect, Extraction, Plan, RoleName, Sample, Statement, Task
from coreeval.tasks import load_task
from tests.agents.llm.support import PROMPTS, ScriptedClient, new_store, news
from tests.hostile.texts import HOSTILE

TASKS = [load_task(name) for name in ("emotion", "irony", "mrpc", "rte")]
TASKS.append(load_task("stance", "climate"))
Role = Callable[..., Awaitable[object]]
Ask = Callable[[Role, Task, str, str], Awaitable[object]]
_BLOCK = re.compile(r"^<(\w+)>\n(.*?)\n</\1>$", re.DOTALL | re.MULTILINE)


def _sample(task: Task, text: str) -> Sample:
    label = task.labels[0]
    fields = dict.fromkeys(task.fields, text)
    return Sample(id="s", split="test", fields=fields, label=label.id, label_text=label.name)


def _plan(text: str) -> Plan:
    said = Statement(text=text, evidence_ids=("e",), quote=text, modality="asserted")
    return Plan(decision="use", statements=(said,), reason=text)


def _brief(task: Task, text: str, headline: str) -> CompositionRequest:
    sample = _sample(task, text)
    return CompositionRequest(
        sample=sample,
        extraction=Extraction(need=text),
        plan=_plan(headline),
        evidence=(news(1, headline, headline),),
        substituted=sample.fields,
        reworded=sample.fields,
        read_by=text,
        feedback=(_defect(headline),),
        previous=sample.fields,
    )


def _defect(text: str) -> Defect:
    return Defect(check="quote", kind="facts", message=text, route="compose")


HIRE: dict[RoleName, Callable[..., Role]] = {
    "extractor": LLMExtractor,
    "replacer": LLMReplacer,
    "rewriter": LLMRewriter,
    "composer": LLMComposer,
    "fact_judge": LLMFactJudge,
    "label_judge": LLMLabelJudge,
}
ASK: dict[RoleName, Ask] = {
    "extractor": lambda role, task, text, _: role(_sample(task, text)),
    "replacer": lambda role, task, text, headline: role(
        _sample(task, text),
        Extraction(need=text),
        [news(1, headline, headline)],
        feedback=[_defect(headline)],
        previous=_plan(headline),
    ),
    "rewriter": lambda role, task, text, _: role(
        _sample(task, text), Extraction(), feedback=[_defect(text)]
    ),
    "composer": lambda role, task, text, headline: role(_brief(task, text, headline)),
    "fact_judge": lambda role, task, text, headline: role(
        _sample(task, text).fields, [news(1, headline, headline)]
    ),
    "label_judge": lambda role, task, text, _: role(_sample(task, text).fields),
}


async def _rendered(asked: Awaitable[object], client: ScriptedClient) -> tuple[Message, ...]:
    with pytest.raises(ModelCallError):
        await asked
    system, user = (dict(message) for message in client.asked.pop())
    return system, user


def _strings(value: object) -> list[str]:
    """Return every string inside a block."""
    if isinstance(value, dict):
        return [text for part in value.values() for text in _strings(part)]
    if isinstance(value, list):
        return [text for part in value for text in _strings(part)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@pytest.mark.parametrize("role", ASK)
async def test_it_stays_inside_its_block(role: RoleName, task: Task, tmp_path: Path) -> None:
    store = new_store(tmp_path)
    client, ask = ScriptedClient(store), ASK[role]
    hired = HIRE[role](task, client, PROMPTS)
    said = "a plain text"
    system, plain = await _rendered(ask(hired, task, said, said), client)
    shape = [name for name, _ in _BLOCK.findall(plain["content"])]
    assert shape
    for trick, text in HOSTILE.items():
        told, shown = await _rendered(ask(hired, task, text, text), client)
        assert told == system, trick
        blocks = _BLOCK.findall(shown["content"])
        assert [name for name, _ in blocks] == shape, trick
        held = [found for _, data in blocks for found in _strings(json.loads(data))]
        assert any(found[:500] == text[:500] for found in held), trick
        outside = _BLOCK.sub("", shown["content"])
        assert not outside.strip(), trick
        assert shown["content"].count("<") == plain["content"].count("<"), trick
    store.close()


def test_there_are_enough_of_them() -> None:
    assert len(HOSTILE) >= 45
    assert len(set(HOSTILE.values())) == len(HOSTILE)
