"""A model as LangChain sees it: callbacks, roles, and what it cannot do."""

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import LLMResult
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.context import collect_runs

from coreeval.config import ModelConfig
from coreeval.models import Model, open_model
from coreeval.models.failures import CallFailure
from coreeval.models.forms import Form
from tests.models.kit import GOOD, SHAPE
from tests.support.llm_server import LLMServer, refused, script

FORM = Form(schema=SHAPE.schema, name="answer", method="json_schema", max_tokens=9)


def model(server: LLMServer) -> Model:
    return open_model(ModelConfig(model="openai:stub", base_url=server.url, seed=3), {})


class Watching(AsyncCallbackHandler):
    """Remembers what LangChain tells those who watch."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def on_chat_model_start(self, *args: object, **kwargs: object) -> None:
        self.told.append("start")

    async def on_llm_end(self, response: LLMResult, **kwargs: object) -> None:
        self.told.append(response.generations[0][0].text)

    async def on_llm_error(self, error: BaseException, **kwargs: object) -> None:
        self.told.append(type(error).__name__)


async def test_callbacks_see_each_request(server: LLMServer) -> None:
    server.answers = script(GOOD, refused(500))
    watching = Watching()
    chat = model(server).chat
    await chat.ainvoke("hi", config={"callbacks": [watching]}, form=FORM)
    with pytest.raises(CallFailure):
        await chat.ainvoke("hi", config={"callbacks": [watching]}, form=FORM)
    assert watching.told == ["start", GOOD, "start", "CallFailure"]


async def test_whoever_listens_around_a_question_hears_of_it(server: LLMServer) -> None:
    server.answers = script(GOOD)
    watching, chat = Watching(), model(server).chat

    async def ask(text: str) -> str:
        return str((await chat.ask([{"role": "user", "content": text}], FORM)).text)

    assert await RunnableLambda(ask).ainvoke("one", config={"callbacks": [watching]}) == GOOD
    assert watching.told == ["start", GOOD]
    with collect_runs() as heard:
        assert await ask("two") == GOOD
    assert [run.run_type for run in heard.traced_runs] == ["llm"]
    assert await ask("three") == GOOD
    assert len(heard.traced_runs) == 1 and watching.told == ["start", GOOD]


async def test_messages_of_langchain_are_sent_in_the_roles_of_the_wire(server: LLMServer) -> None:
    said: list[BaseMessage] = [SystemMessage("s"), HumanMessage("h"), AIMessage("a")]
    await model(server).chat.ainvoke([*said, HumanMessage("h")], form=FORM)
    roles = [("system", "s"), ("user", "h"), ("assistant", "a"), ("user", "h")]
    sent = [{"role": role, "content": content} for role, content in roles]
    assert server.requests[0]["messages"] == sent


async def test_it_says_what_it_needs(server: LLMServer) -> None:
    chat = model(server).chat
    with pytest.raises(NotImplementedError, match="ainvoke"):
        chat.invoke("hi", form=FORM)
    with pytest.raises(TypeError, match="form"):
        await chat.ainvoke("hi", form="json")
    with pytest.raises(TypeError, match="form"):
        await chat.ainvoke("hi")
    assert server.requests == []


def test_what_identifies_it_is_what_decides_its_answers(server: LLMServer) -> None:
    told = model(server).chat._identifying_params
    assert (told["model"], told["seed"], told["max_tokens"]) == ("stub", 3, 2048)
